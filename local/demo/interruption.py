"""Ctrl-C and its kin: obeyed at once where that is safe, else after the step that is under way."""

import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import resource_tracker
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """The first signal ends the program by SystemExit; later ones cannot disturb the tidying up."""

    def __init__(self) -> None:
        self.number: int | None = None  # of the signal, once there was one
        self._held = 0

    @property
    def code(self) -> int:
        """What a shell calls the end by this signal."""
        return 128 + (self.number or 0)

    def install(self) -> None:
        # Where it is not there yet, the start of a child by multiprocessing unblocks SIGINT.
        resource_tracker.ensure_running()
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                signal.signal(number, self._arrived)

    @contextmanager
    def held(self) -> Iterator[None]:
        """What happens in here happens whole: a signal waits until it is over."""
        arrived_before = self.number is not None
        self._held += 1
        # Children inherit this: Ctrl-C reaches every process of the terminal, and we end ours.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._held -= 1
            if self.number is not None and not arrived_before and not self._held:
                raise SystemExit(self.code)

    def wait(self) -> None:
        """Until a signal comes: here it is the expected end."""
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
    """What has been started: each start is held, and so is the end of all of it."""

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
