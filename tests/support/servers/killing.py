"""A proxy before the catalog that kills the server at a point of a commit."""

import time
from contextlib import suppress
from threading import Event, Timer

from tests.support.servers.lost_answers import LostAnswers, Sent, is_commit
from tests.support.servers.restarted import Server

POINTS = ("uploaded", "within", "committed")
"""Before the server has the commit, while it works, and before the client has the answer."""


class Killing(LostAnswers):
    """Kills the server at a point of a commit, and gives the client no answer.

    A request that is told 503 with `Retry-After`, as on a busy machine, is sent again for all
    clients, as Iceberg's Java does it.
    """

    def __init__(self, server: Server) -> None:
        super().__init__(server.uri)
        self._served = server
        self._point: str | None = None
        self._share, self._skipped = 0.0, 0
        self._took = 0.1
        """Seconds of the last commit after which the server was killed."""
        self.killed = Event()
        self.unanswered: Sent | None = None
        """The commit at which the server was killed."""
        self.answered = 0
        """Commits that have succeeded before the one that is killed."""

    def arm(self, point: str, share: float, skipped: int = 0) -> None:
        """Kill the server, once.

        Args:
            share: of the time that a commit takes, after which the server is killed `within`.
            skipped: commits that pass first.
        """
        self.killed.clear()
        self.answered, self._share, self._skipped = 0, share, skipped
        self._point = point

    def forward(self, method, sent):
        if self._point is None or method != "POST" or not is_commit(sent.path):
            return self._answer(method, sent)
        if self._skipped:
            self._skipped -= 1
            answer = self._answer(method, sent)
            self.answered += answer[0] in (200, 204)
            return answer
        point, self._point, self.last, self.unanswered = self._point, None, sent, sent
        if point == "within":
            Timer(self._share * self._took, self._kill).start()
        began = time.monotonic()
        with suppress(OSError):  # killed within
            if point != "uploaded":
                super().forward(method, sent)
        if point == "committed":
            self._took = time.monotonic() - began
        if point == "within":
            self.killed.wait()  # a client that asks again at once would find the server alive
        else:
            self._kill()
        raise ConnectionError

    def _answer(self, method, sent):
        for _ in range(20):
            answer = super().forward(method, sent)
            if answer[0] != 503:
                break
            time.sleep(2)
        return answer

    def _kill(self) -> None:
        self._served.kill()
        self.killed.set()
