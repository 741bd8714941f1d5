"""Ends the demo on SIGINT, SIGTERM or SIGHUP: at once, or after a step that must not be cut off."""

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
