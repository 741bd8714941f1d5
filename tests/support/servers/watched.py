"""A proxy that watches the commits to the table `feed`, and kills the server within them."""

import re
import time
from collections import Counter
from collections.abc import Callable

from tests.support.servers.killing import Killing
from tests.support.servers.restarted import Server

PATIENCE = 300
"""Seconds until a commit: on a busy machine many are told 409 before one is in time."""


class Watched(Killing):
    """Passes commits on, and counts and times their answers, until it kills the server."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.statuses: Counter[int] = Counter()
        self.longest = 0.0
        self.refusals: Counter[str] = Counter()

    def __enter__(self) -> "Watched":
        super().__enter__()
        self._server.handle_error = lambda *_: None  # clients and the server are killed
        return self

    def forward(self, method, sent):
        is_commit = method == "POST" and sent.path.endswith("/tables/feed")
        began = time.monotonic()
        try:
            answer = super().forward(method, sent)
        except OSError:
            self.statuses[0] += is_commit
            raise
        if is_commit:
            self.statuses[answer[0]] += 1
            if answer[0] == 200:
                self.longest = max(self.longest, time.monotonic() - began)
            else:
                self.refusals[re.sub(r"\d{2,}", "…", answer[2][:300].decode())] += 1
        return answer

    def wait_for_commit(self, is_running: Callable[[], bool]) -> None:
        """Wait until the client has committed something, or has ended."""
        before, end = self.statuses[200], time.monotonic() + PATIENCE
        while self.statuses[200] == before and is_running():
            assert time.monotonic() < end, "the client commits nothing"
            time.sleep(0.1)

    def wait_for_kill(self, is_running: Callable[[], bool]) -> bool:
        """Wait until the server is killed within a commit; False: the client has ended."""
        end = time.monotonic() + PATIENCE
        while not self.killed.wait(0.1):
            if not is_running():
                return False
            assert time.monotonic() < end, "the client commits nothing"
        return True
