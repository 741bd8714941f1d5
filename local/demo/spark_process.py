"""Spark in a process of its own: it talks on stderr, leaves files about, and takes long to start.

What it says and writes goes to a folder that is gone afterwards.
"""

import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from ..clients.duckdb import stream

SECONDS_TO_ANSWER = 120
SECONDS_TO_END = 5


class SparkProcess:
    """A context manager. Spark starts meanwhile; `connect` it when there is a bridge."""

    name = "Spark"

    def __enter__(self) -> "SparkProcess":
        self._folder = Path(tempfile.mkdtemp(prefix="polynya-spark-"))
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=answer, args=(theirs, self._folder), daemon=True)
        self._process.start()
        theirs.close()  # else the end of the child would not be seen
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        end_group(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def connect(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        self._ask("connect", catalog_uri, warehouse, s3_endpoint)

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        answer = self._ask("rows", namespace, table, snapshot_id)
        return pa.ipc.open_stream(answer).read_all()

    def close(self) -> None:
        """The session stays, for the next catalog."""

    def _ask(self, *question: object) -> bytes:
        try:
            self._pipe.send(question)
            if not self._pipe.poll(SECONDS_TO_ANSWER):
                raise RuntimeError(f"Spark gave no answer within {SECONDS_TO_ANSWER} s")
            kind, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError(f"Spark's process has ended: {self._last_words()}") from error
        if kind == "error":
            raise RuntimeError(answer)
        return answer

    def _last_words(self) -> str:
        log = self._folder / "log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return lines[-1] if lines else "it said nothing"


def answer(pipe: Connection, folder: Path) -> None:
    """The child: questions come in; an Arrow stream or an error goes out."""
    os.setsid()  # Java becomes a member of the group that the parent ends
    move_into(folder)
    from ..clients import spark

    with suppress(Exception):  # `connect` will tell
        spark.session()
    client = None
    with suppress(EOFError):  # the parent is gone
        while True:
            kind, *words = pipe.recv()
            try:
                if kind == "connect":
                    client = spark.open(*words)
                    pipe.send(("connected", b""))
                else:
                    pipe.send(("rows", stream(client.rows(*words))))
            except Exception as error:
                pipe.send(("error", in_short(error)))


def move_into(folder: Path) -> None:
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    os.environ.update(
        TMPDIR=str(folder),
        SPARK_LOCAL_DIRS=str(folder),
        # The second: no file in /tmp, which a JVM that is killed would leave.
        JAVA_TOOL_OPTIONS=f"-Djava.io.tmpdir={folder} -XX:-UsePerfData",
    )
    tempfile.tempdir = None  # else it remembers the old one
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(name, None)  # another Spark of this machine


def in_short(error: Exception) -> str:
    """A Java error without its stack: what happened, and at last why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines[2:] if line.startswith("Caused by:")]
    return " ".join([type(error).__name__ + ":", *lines[:2], *causes[-1:]])[:600]


def end_group(process) -> None:
    """End the child and Java, and wait for both; nothing of theirs is worth a longer goodbye."""
    group = process.pid
    process.kill()
    with suppress(ProcessLookupError):  # it may not have made the group yet
        os.killpg(group, signal.SIGKILL)
    process.join()
    process.close()
    deadline = time.monotonic() + SECONDS_TO_END
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.02)
