"""The demo's process of Spark, whose output and files go to a temporary folder; and signals.

`Interruption` ends the demo on SIGINT, SIGTERM or SIGHUP: at once, or after a step that must not be
cut off.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ..clients.duckdb import stream
from ..processes.spawned import spawned

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """The first signal ends the program with SystemExit; later ones are ignored."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The number of the first signal."""
        self._held = 0

    @property
    def code(self) -> int:
        """The exit code that shells use for an end by this signal."""
        return 128 + (self.number or 0)

    def install(self) -> None:
        """Handle the signals, unless they are ignored."""
        # Started later, by the first child of multiprocessing, it would unblock SIGINT.
        resource_tracker.ensure_running()
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                signal.signal(number, self._arrived)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay signals until the end of the block."""
        arrived_before = self.number is not None
        self._held += 1
        # Children inherit the mask: Ctrl-C reaches them too, but this process ends them itself.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._held -= 1
            if self.number is not None and not arrived_before and not self._held:
                raise SystemExit(self.code)

    def wait(self) -> None:
        """Wait for a signal, and return."""
        self._held += 1
        while self.number is None:
            time.sleep(0.1)
        self._held -= 1

    def _arrived(self, number: int, _frame: object) -> None:
        if self.number is None:
            self.number = number
            if not self._held:
                raise SystemExit(self.code)


class Running(ExitStack):
    """An ExitStack that signals do not interrupt while it starts or ends something."""

    def __init__(self, interruption: Interruption) -> None:
        super().__init__()
        self._interruption = interruption

    def enter_context(self, manager: AbstractContextManager[T]) -> T:
        with self._interruption.held():
            return super().enter_context(manager)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        with self._interruption.held():
            return super().__exit__(kind, error, traceback)


SECONDS_TO_ANSWER = 120
SECONDS_TO_END = 5


class SparkProcess:
    """A context manager that starts Spark in the background; `connected` gives it a catalog."""

    name = "Spark"

    def __enter__(self) -> "SparkProcess":
        self._folder = Path(tempfile.mkdtemp(prefix="polynya-spark-"))
        self._process, self._pipe = spawned(answer, self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        end_group(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def connected(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> "SparkProcess":
        """This process, which reads from a catalog from now on."""
        self._ask("connect", catalog_uri, warehouse, s3_endpoint)
        return self

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> "pa.Table":
        """All rows of a table, at a snapshot or the newest."""
        import pyarrow as pa

        answer = self._ask("rows", namespace, table, snapshot_id)
        return pa.ipc.open_stream(answer).read_all()

    def close(self) -> None:
        """Keep the session for the next catalog."""

    def _ask(self, *request: object) -> bytes:
        try:
            self._pipe.send(request)
            if not self._pipe.poll(SECONDS_TO_ANSWER):
                raise RuntimeError(f"Spark gave no answer within {SECONDS_TO_ANSWER} s")
            kind, reply = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError(f"Spark's process has ended: {self._last_line()}") from error
        if kind == "error":
            raise RuntimeError(reply)
        return bytes(reply)

    def _last_line(self) -> str:
        log = self._folder / "log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return lines[-1] if lines else "it printed nothing"


def answer(pipe: Connection, folder: Path) -> None:
    """Run in the child: receive requests, send Arrow streams or errors."""
    os.setsid()  # the parent ends the group, Java included
    move_into(folder)
    from ..clients import spark

    with suppress(Exception):  # `connected` reports it
        spark.session()
    client: spark.Spark | None = None
    with suppress(EOFError):  # the parent has ended
        while True:
            kind, *words = pipe.recv()
            try:
                if kind == "connect":
                    client = spark.open(*words)
                    pipe.send(("connected", b""))
                elif client is not None:
                    pipe.send(("rows", stream(client.rows(*words))))
            except Exception as error:
                pipe.send(("error", shorten_error(error)))


def move_into(folder: Path) -> None:
    """Send this process's output and temporary files to a folder."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    os.environ.update(
        TMPDIR=str(folder),
        SPARK_LOCAL_DIRS=str(folder),
        # UsePerfData would leave a file in /tmp if the JVM is killed.
        JAVA_TOOL_OPTIONS=f"-Djava.io.tmpdir={folder} -XX:-UsePerfData",
    )
    tempfile.tempdir = None  # the module caches the folder
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(name, None)  # they name another Spark


def shorten_error(error: Exception) -> str:
    """A Java error without its stack: the first lines, and the last cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines[2:] if line.startswith("Caused by:")]
    return " ".join([type(error).__name__ + ":", *lines[:2], *causes[-1:]])[:600]


def end_group(process: BaseProcess) -> None:
    """Kill the child and Java, and wait until both have ended."""
    group = process.pid
    assert group is not None
    process.kill()
    with suppress(ProcessLookupError):  # the group may not exist yet
        os.killpg(group, signal.SIGKILL)
    process.join()
    process.close()
    deadline = time.monotonic() + SECONDS_TO_END
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.02)
