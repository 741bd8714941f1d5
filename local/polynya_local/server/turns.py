"""Clients that commit to one table at the same time take turns.

Each commit makes those in vain that other clients have begun, and they take the time of the next
one: of 16 clients most work is lost. A client whose commit is refused as a conflict loads the table
and tries again when it has the answer. While another one is trying again, the answer waits.
"""

import asyncio
import re
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

TABLE = re.compile("/v1/.+/namespaces/[^/]+/tables/[^/]+")

TURN_SECONDS = 0.5
"""How long a client may take to try again until the next one may."""

LONGEST_WAIT = 4.0
"""No answer waits longer, in seconds."""


@dataclass(slots=True)
class _Conflicts:
    """The clients that lost a commit to one table."""

    end_of_turn: asyncio.TimerHandle
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    """An application whose answers 409 to commits to one table are sent one after the other."""

    def __init__(self, app: ASGIApp) -> None:
        """`app`: the catalog."""
        self._app = app
        self._conflicts: dict[str, _Conflicts] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope["path"]
        if scope["method"] != "POST" or not TABLE.fullmatch(path):
            await self._app(scope, receive, send)
            return

        async def send_in_turn(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 409:
                    await self._wait(path)
                elif message["status"] == 200:
                    self._end_turn(path)
            await send(message)

        await self._app(scope, receive, send_in_turn)

    async def _wait(self, path: str) -> None:
        conflicts = self._conflicts.get(path)
        if conflicts is None:
            self._conflicts[path] = _Conflicts(self._timer(path))
            return
        turn = asyncio.get_running_loop().create_future()
        conflicts.waiting.append(turn)
        with suppress(TimeoutError):
            await asyncio.wait_for(turn, LONGEST_WAIT)

    def _end_turn(self, path: str) -> None:
        conflicts = self._conflicts.pop(path, None)
        if conflicts is None:
            return
        conflicts.end_of_turn.cancel()
        while conflicts.waiting:
            turn = conflicts.waiting.popleft()
            if not turn.done():  # it has waited for too long, or its client has gone
                turn.set_result(None)
                self._conflicts[path] = _Conflicts(self._timer(path), conflicts.waiting)
                return

    def _timer(self, path: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(TURN_SECONDS, self._end_turn, path)
