"""Lets clients that commit to one table at the same time take turns.

Each commit makes the attempts of other clients stale, and stale attempts delay the next commit:
with 16 clients most work is lost. A client whose commit is refused as a conflict loads the
table and tries again when it has the answer. While another client has its turn, the answer waits.
"""

import asyncio
import re
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

from anyio import move_on_after
from polynya.storage.file_cache import Leases
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TABLE = re.compile("/v1/.+/namespaces/[^/]+/tables/[^/]+")

TURN_SECONDS = 0.5
"""How long a client may take to try again before the next one gets its turn."""

LONGEST_WAIT = 10.0
"""The longest wait of an answer, in seconds."""

POLL_SECONDS = 0.01
"""How often a process looks whether another one's turn has ended."""

Client = tuple[str, int]
"""The address and the port of a connection; a client tries again through the same one."""


class _Turn(NamedTuple):
    client: Client | None
    end: asyncio.TimerHandle


class Turns:
    """An application whose answers 409 to commits to one table are sent one after the other."""

    def __init__(self, app: ASGIApp, leases: Leases) -> None:
        """`app`: the catalog; `leases`: of the paths of tables, in all processes of a server."""
        self._app, self._leases = app, leases
        self._turns: dict[str, _Turn] = {}
        """The turns of clients of this process, by the paths of tables."""
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """The locks for which answers of this process wait, by the paths of tables."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path, client = scope["path"], scope.get("client")
        if scope["method"] != "POST" or not TABLE.fullmatch(path):
            await self._app(scope, receive, send)
            return
        turn = self._turns.get(path)
        if turn and turn.client == client:
            # Clients sleep before they try again: the next one does while this one commits.
            self._end_turn(path)

        async def send_in_turn(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 409:
                with suppress(OSError):  # no folder for leases
                    await self._begin_turn(path, client)
            await send(message)

        await self._app(scope, receive, send_in_turn)

    async def _begin_turn(self, path: str, client: Client | None) -> None:
        queue = self._queues.setdefault(path, asyncio.Lock())
        with move_on_after(LONGEST_WAIT):
            async with queue:
                while not self._leases.lease(path):
                    await asyncio.sleep(POLL_SECONDS)
                end = asyncio.get_running_loop().call_later(TURN_SECONDS, self._end_turn, path)
                self._turns[path] = _Turn(client, end)

    def _end_turn(self, path: str) -> None:
        self._turns.pop(path).end.cancel()
        with suppress(OSError):  # the commit goes on
            self._leases.release(path)
