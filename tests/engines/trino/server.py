"""A Trino server on this machine, on loopback."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

from tests.engines.trino.archives import CACHE, HOME, java

SECONDS_TO_START = 300
CONFIG = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
node.internal-address=127.0.0.1
http-server.log.enabled=false
discovery.uri=http://127.0.0.1:{port}
query.max-memory=512MB
query.max-memory-per-node=512MB
memory.heap-headroom-per-node=256MB
catalog.management=dynamic
catalog.store=file
"""
JVM = (
    "-Xmx2G",
    "-XX:+UseSerialGC",
    "-Djdk.attach.allowAttachSelf=true",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


LOG = CACHE / "trino.log"


@contextmanager
def trino(catalogs: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start the server and end it; yields its address. The variable TRINO names one that runs.

    Args:
        catalogs: the properties of catalogs by name, which only a server has that starts now.

    Raises:
        RuntimeError: it does not start.
    """
    if "TRINO" in os.environ and not catalogs:
        yield os.environ["TRINO"]
        return
    with TemporaryDirectory() as folder, LOG.open("w") as out:
        port = _free_port()
        config = Path(folder, "config.properties")
        config.write_text(CONFIG.format(port=port))
        Path(folder, "catalog").mkdir()
        for name, text in (catalogs or {}).items():
            Path(folder, "catalog", f"{name}.properties").write_text(text)
        settings = {
            "node.environment": "test",
            "node.id": "one",
            "node.data-dir": f"{folder}/data",
            "config": str(config),
            "plugin.dir": str(HOME / "plugin"),
            "catalog.config-dir": f"{folder}/catalog",
        }
        words = [f"-D{name}={value}" for name, value in settings.items()]
        classes = ["-cp", str(HOME / "lib" / "*"), "io.trino.server.TrinoServer"]
        process = subprocess.Popen([java(), *JVM, *words, *classes], stdout=out, stderr=out)
        try:
            yield _ready(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            process.wait()


def _ready(address: str, process: subprocess.Popen) -> str:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if not requests.get(f"{address}/v1/info", timeout=5).json()["starting"]:
                return address
        except (requests.ConnectionError, requests.Timeout):
            pass
        time.sleep(0.5)
    raise RuntimeError(f"Trino does not start: {LOG.read_text()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
