"""Check that the result of `make package` is complete.

Unpacked into an empty folder it runs jobs with nothing else but PySpark. A package for other
machines is not run: only its libraries are checked.
"""

import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.build.package import ARCHIVE, JOB_FILE, MACHINES
from tests.checks.built import DIST_INFO, locked, normal

ELF_MACHINES = {62: "x86_64", 183: "aarch64"}  # elf.h: EM_X86_64, EM_AARCH64
LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
INSERT INTO t FROM range(1000);
DELETE FROM t WHERE i < 10;
"""
LIMIT = 600  # megabytes, unpacked: each executor unpacks it when it starts


@contextmanager
def only_pyspark() -> Iterator[Path]:
    """A folder for PYTHONPATH that is like Spark's own: PySpark and py4j, and no other package."""
    import py4j
    import pyspark

    with tempfile.TemporaryDirectory(prefix="polynya-pyspark-") as folder:
        for package in (pyspark, py4j):
            place = Path(package.__file__).parent
            (Path(folder) / place.name).symlink_to(place)
        yield Path(folder)


def submit(
    environment: Path, job: Path, *words: str, **variables: str
) -> subprocess.CompletedProcess:
    """`spark-submit job.py <words>` with the environment's Python in driver and executors."""
    python = str(environment / "bin/python")
    with only_pyspark() as pyspark, tempfile.TemporaryDirectory() as empty:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV"))
        }
        needed = {
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "PYTHONPATH": str(pyspark),
            "SPARK_HOME": str(pyspark / "pyspark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
        pairs = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
        return subprocess.run(
            [pyspark / "pyspark/bin/spark-submit", "--master", "local[2]", *pairs, job, *words],
            cwd=empty,
            env=inherited | needed | variables,
            capture_output=True,
            text=True,
        )


def machines(folder: Path) -> set[str]:
    """The machines for which its shared libraries are built."""
    found = set()
    for path in folder.rglob("*.so*"):
        head = path.read_bytes()[:20]
        if head[:4] == b"\x7fELF":
            found.add(ELF_MACHINES.get(int.from_bytes(head[18:20], "little"), "other"))
    return found


def problems(package: Path, architecture: str) -> list[str]:
    found = []
    with tempfile.TemporaryDirectory(prefix="polynya-package-") as folder:
        environment = Path(folder) / "environment"
        with tarfile.open(package / ARCHIVE) as tar:
            tar.extractall(environment, filter="tar")
        size = sum(p.lstat().st_size for p in environment.rglob("*") if not p.is_symlink()) / 1e6
        print(f"unpacked: {size:.0f} MB of {LIMIT}")
        if size > LIMIT:
            found.append(f"the environment is over {LIMIT} MB")
        versions = locked()
        for path in environment.rglob("*.dist-info"):
            name, version = DIST_INFO.fullmatch(path.name).groups()
            if versions.get(normal(name)) != version:
                found.append(f"{name} {version}, but the tests ran {versions.get(normal(name))}")
        if machines(environment) != {MACHINES[architecture]}:
            found.append(f"libraries for {machines(environment)}, not only for {architecture}")
        if platform.machine() == MACHINES[architecture] and (environment / "bin/python").exists():
            found += _run(environment, (package / JOB_FILE).resolve())
        else:
            print("not run: it is for another machine")
    return found


def _run(environment: Path, job: Path) -> list[str]:
    """Write to a lake and verify it with the environment's Python in driver and executors."""
    from polynya_local.clients.native import write_lake
    from polynya_local.processes.postgres import postgres

    with tempfile.TemporaryDirectory(prefix="polynya-package-") as folder, postgres() as server:
        rows = Path(folder) / "rows.json"
        rows.write_text('{"i": 5000}\n{"i": 5001}\n')
        database = server.create_database("packaged")
        write_lake("packaged", LAKE, database, f"{folder}/data", None)
        for words in (
            ("ingest", "t", str(rows), "--format", "json", "--token", "two rows"),
            ("verify", "--master", "cluster", "--footers"),
        ):
            done = submit(environment, job, *words, DATABASE_URL=database.url)
            if done.returncode:
                return [f"job.py {words[0]}: {done.returncode} {done.stdout} {done.stderr}"]
            print(f"job.py {words[0]}: {_last_line(done.stdout)}")
    return []


def _last_line(text: str) -> str:
    return [line for line in text.splitlines() if line][-1]


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]), sys.argv[2])) or None)
