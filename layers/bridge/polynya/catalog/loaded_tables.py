"""Answers to loadTable that are kept for as long as nothing has changed them.

One statement checks that (`queries.changes_since`): a commit to one table keeps the answers of the
others, and a change that names no table drops all of them.
"""

import gzip
import json
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from ..access.vended_credentials import TableScope
from ..ducklake.connection.catalog_connection import Statement
from ..ducklake.queries import ChangedTables, SeenState, changes_since
from ..ducklake.rows.objects import Lake, Schema, Table
from ..rest import answers
from ..runtime.namespaces import Namespace

CAPACITY = 32 << 20
"""The bytes of the answers that a lake keeps: some ten thousand tables of a few snapshots."""

GZIP_LEVEL = 4
"""A thousand snapshots take a few milliseconds, and 5 % more bytes than at level 9."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """The answer to loadTable."""

    zipped: bytes = field(repr=False)
    """The body as JSON, compressed with gzip. It may contain vended credentials."""
    etag: str | None
    """None for an answer with credentials, because they are new each time."""

    @classmethod
    def from_body(cls, body: answers.LoadTableResult, etag: str | None) -> "LoadedTable":
        """The answer with this body."""
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        return cls(compressor.compress(text.encode()) + compressor.flush(), etag)

    @property
    def plain(self) -> bytes:
        """The body as JSON."""
        return gzip.decompress(self.zipped)

    @property
    def body(self) -> answers.LoadTableResult:
        """The body."""
        body: answers.LoadTableResult = json.loads(self.plain)
        return body


class LoadRequest(NamedTuple):
    """The values on which an answer depends, besides the catalog and the settings."""

    namespace: Namespace
    table: str
    refs_only: bool
    with_credentials: bool
    """The client asks for credentials."""
    shows_version_3: bool
    clients: frozenset[str] | None


class CachedAnswer(NamedTuple):
    """An answer, with its table."""

    snapshot_id: int
    """The newest snapshot of the lake when it was made."""
    schema: Schema
    table: Table
    may_write: bool
    """Whether it is for callers who may write the table."""
    loaded: LoadedTable
    keys: tuple[str, ...]
    """The objects of a bucket to which it leads, with the delivery `materialize`."""
    until_ms: float
    """When the answer changes although nobody changes the catalog."""
    scope: TableScope | None
    """The scope of the credentials that are added each time; None: the client gets none."""

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return len(self.loaded.zipped) + sum(map(len, self.keys))


Changes = tuple[SeenState, ChangedTables | None]
Ask = Callable[[Statement[Changes]], Changes]
"""Runs a statement in a transaction of its own."""


class LoadedTables:
    """The answers of one lake."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """`capacity`: in bytes."""
        self._answers: OrderedDict[LoadRequest, CachedAnswer] = OrderedDict()
        self._size, self._capacity = 0, capacity
        self._state: SeenState | None = None
        """A state that all answers hold for."""
        self._lock = Lock()
        self.is_asked = False
        """Whether this process answers loadTable: on AWS the function that writes does not."""

    def unchanged(self, request: LoadRequest, ask: Ask) -> CachedAnswer | None:
        """The answer, if it is still the one of the catalog; None: the table has to be read."""
        self.is_asked = True
        with self._lock:
            if request not in self._answers:
                return None
        self._follow(ask)
        with self._lock:
            answer = self._answers.get(request)
            if answer is None or answer.until_ms <= time.time() * 1000:
                return None
            self._answers.move_to_end(request)
            return answer

    def keep(self, lake: Lake, answers: Mapping[LoadRequest, CachedAnswer], ask: Ask) -> None:
        """Keep answers that were made in one transaction, which saw the lake in this state."""
        if lake.state is None:
            return
        self._follow(ask)
        with self._lock:
            # If others have changed a table since, later checks would not show that.
            if self._state is None or not lake.state.includes(self._state.state):
                return
            for request, answer in answers.items():
                self._remove(request)
                self._answers[request] = answer
                self._size += answer.size
            while self._size > self._capacity:
                self._remove(next(iter(self._answers)))

    def _follow(self, ask: Ask) -> None:
        """Remove the answers that have changed since the last state."""
        earlier = self._state
        now, tables = ask(changes_since(earlier))
        with self._lock:
            if tables is None:
                self._answers.clear()
                self._size = 0
            elif tables:
                for request, answer in [*self._answers.items()]:
                    if answer.snapshot_id < tables.get(answer.table.table_id, 0):
                        self._remove(request)
            # Another thread may have seen a newer state meanwhile; states of another server are
            # never newer.
            if (
                self._state is None
                or self._state is earlier
                or now.state.includes(self._state.state)
            ):
                self._state = now

    def _remove(self, request: LoadRequest) -> None:
        if (answer := self._answers.pop(request, None)) is not None:
            self._size -= answer.size
