"""Iceberg's own REST catalog, of its test fixtures: a JDBC catalog with its metadata in S3."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from polynya_local.processes.postgres import HOST, free_port
from polynya_local.processes.serving import KEY_ID, REGION, SECRET

from ..lakes import BUCKET

ROOT = Path(__file__).parents[3]
PROJECT = ROOT / "tests" / "catalog_tests"
"""The Maven project whose dependencies contain the fixture."""

SERVER = "org.apache.iceberg.rest.RESTCatalogServer"
SECONDS_TO_START = 120


class IcebergFixture:
    """The catalog as a process, which can be killed and started again on the same port."""

    def __init__(self, s3_endpoint: str, folder: Path, warehouse: str) -> None:
        """Start it.

        Args:
            folder: has the database of SQLite.
            warehouse: the location of its files in S3.
        """
        self._port, self._classpath = free_port(), _classpath(folder)
        self.uri = f"http://{HOST}:{self._port}"
        settings = {
            "REST_PORT": str(self._port),
            "URI": f"jdbc:sqlite:file:{folder}/catalog.db",
            "WAREHOUSE": warehouse,
            "IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
            "S3_ENDPOINT": s3_endpoint,
            "S3_PATH__STYLE__ACCESS": "true",
            "S3_ACCESS__KEY__ID": KEY_ID,
            "S3_SECRET__ACCESS__KEY": SECRET,
            "CLIENT_REGION": REGION,
            "CLIENTS": "1",
        }
        self._environment = {f"CATALOG_{name}": value for name, value in settings.items()}
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        self._process = subprocess.Popen(
            ["java", "-Xmx400m", "-cp", self._classpath, SERVER],
            env={**os.environ, **self._environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends this process, which then ends the server
        )
        _wait(self._port, self._process)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()

    close = kill


@contextmanager
def iceberg_fixture(s3_endpoint: str, folder: Path) -> Iterator[str]:
    """The catalog's URI, on the loopback interface; SQLite in `folder`, files in S3."""
    with closing(IcebergFixture(s3_endpoint, folder, f"s3://{BUCKET}/iceberg")) as fixture:
        yield fixture.uri


def _classpath(folder: Path) -> str:
    found = folder / "classpath.txt"
    maven = [
        "mvn",
        "-q",
        "-B",
        "-C",
        "-f",
        str(PROJECT),
        f"-Dbuild.folder={ROOT}/.cache/catalog-tests",
    ]
    # As `make catalog-tests` resolves them, which needs `test-compile` where it has never run.
    command = [*maven, "dependency:build-classpath", f"-Dmdep.outputFile={found}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return found.read_text()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    given_up_at = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > given_up_at:
                sys.exit("bench: Iceberg's REST fixture does not start")
            time.sleep(0.2)
