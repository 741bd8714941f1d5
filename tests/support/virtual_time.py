"""Time that passes at once, for limits of minutes."""

import asyncio


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that waits for no timer: as soon as only timers are left, it is their time."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        select = self._selector.select

        def select_or_skip(timeout: float | None) -> list:
            events = select(timeout and 0)
            if not events and timeout:
                self._now += timeout
            return events

        self._selector.select = select_or_skip

    def time(self) -> float:
        """Seconds since the beginning of the loop."""
        return self._now
