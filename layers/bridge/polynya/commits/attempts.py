"""Attempts to commit: repeated until one is committed or refused, or the time is up.

A request that is sent again with its `Idempotency-Key` has no second effect. The key is recorded
with the commit, in the same transaction, together with the request that it belongs to. Only what
took place is recorded: a refused request can be sent again. Keys never expire.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar
from uuid import UUID

from ..ducklake.connection.database import Database
from ..ducklake.writes.new_snapshot import CommitRow
from ..ducklake.writes.rows import has_committed
from ..runtime import budget
from ..runtime.errors import BadRequest, CommitFailed, CommitStateUnknown, OutOfTime, PolynyaError

TRIES = 60
LONGEST_PAUSE = 0.5
"""Between two tries, in seconds."""
RESERVE_SECONDS = 2.0
"""No new attempt begins with less time left: the answer must arrive before the gateway gives up."""

LEAST_SECONDS = 1.0
"""For COMMIT, and for the answer to a commit of few files."""

SECONDS_OF_FILE = 0.0005
"""For the entry of an added file in the manifests of the answer."""

Result = TypeVar("Result")


def commit(attempt: Callable[[], Result], longest_pause: float = LONGEST_PAUSE) -> Result:
    """Repeat an attempt until one ends, and return its result.

    An attempt reads the lake, claims a snapshot, and writes. Its errors say what is so in the lake:
    it finds out whether its own COMMIT took place (`took_place`).

    Args:
        longest_pause: between two attempts, in seconds.

    Raises:
        CommitFailed: other writers were faster each time, or the time is up; nothing is written.
        PolynyaError: what the attempt raises.
    """
    for _ in _tries(longest_pause):
        try:
            return attempt()
        except OutOfTime:
            break
        except PolynyaError as error:
            if not error.is_transient:
                raise
    raise CommitFailed(
        "the commit did not take place: other writers of the lake were faster, or the catalog "
        "database or S3 did not answer in time; try again"
    )


def took_place(database: Database, transaction_id: int) -> bool:
    """Whether a transaction took place although its COMMIT was not answered.

    Raises:
        CommitStateUnknown: PostgreSQL does not say, until the time is up.
    """
    for _ in _tries():
        try:
            with database.transaction() as con:
                # PostgreSQL remembers every transaction for long enough, so no operation has to
                # leave a mark by which it finds out later whether it took place.
                answer = has_committed(transaction_id).run(con)
        except OutOfTime:
            break
        except PolynyaError:
            continue  # the server is down, or another one, which does not know the transaction
        if answer is not None:
            return answer
    raise CommitStateUnknown(
        "the connection to the catalog was lost at COMMIT, and the catalog database does not say "
        "whether the change took place: load the object again to see whether it has the change"
    )


def _tries(longest_pause: float = LONGEST_PAUSE) -> Iterator[None]:
    """Attempts while there is time for another one, with longer and longer pauses between them."""
    for tries in range(TRIES):
        yield
        if budget.seconds_left() < RESERVE_SECONDS:
            return
        # Random, so that writers that have met once do not meet again.
        time.sleep(random.uniform(0.5, 1) * min(longest_pause, 0.02 * 1.5**tries))


@contextmanager
def load_after_commit(what: str) -> Iterator[None]:
    """Load the answer to a request that has taken place before.

    A refusal in the block becomes CommitStateUnknown: the request itself was not refused.

    Args:
        what: what is loaded for the answer, for the error's message.

    Raises:
        CommitStateUnknown: what the request has changed cannot be loaded any more.
    """
    try:
        yield
    except PolynyaError as error:
        if error.status >= 500:
            raise
        # Not a 4xx: the files of the commit belong to DuckLake's history.
        raise CommitStateUnknown(f"{what} cannot be loaded any more: {error}") from None


def check_time(files: int = 0) -> None:
    """Check that there is time to commit and to answer, before COMMIT.

    Args:
        files: the number of added files.

    Raises:
        CommitFailed: there is none; nothing is written.
    """
    if budget.seconds_left() < LEAST_SECONDS + files * SECONDS_OF_FILE:
        raise CommitFailed("the commit takes longer than one request may take; commit fewer files")


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key, and the request that it belongs to."""

    key: str
    principal: str | None
    route: str
    body_hash: str

    @classmethod
    def from_request(
        cls, header: str | None, principal: str | None, route: str, body: bytes
    ) -> "RequestKey | None":
        """The key of a request; None if it has none.

        Args:
            header: `Idempotency-Key`.
            route: the method and the path.

        Raises:
            BadRequest: the key is no UUID.
        """
        if header is None:
            return None
        try:
            key = str(UUID(header))
        except ValueError:
            raise BadRequest("Idempotency-Key must be a UUID") from None
        return cls(key, principal, route, sha256(body).hexdigest())

    def rows_with_key(self, rows: Iterable[CommitRow]) -> list[CommitRow]:
        """The rows of a commit, with this key."""
        return [
            replace(
                row,
                idempotency_key=self.key,
                principal=self.principal,
                route=self.route,
                body_hash=self.body_hash,
            )
            for row in rows
        ]

    def own_rows(self, rows: list[CommitRow]) -> list[CommitRow]:
        """The rows that the request has recorded, if it took place before; else empty.

        Args:
            rows: those with this key.

        Raises:
            BadRequest: the key belongs to another request.
        """
        own = (self.principal, self.route, self.body_hash)
        if any((row.principal, row.route, row.body_hash) != own for row in rows):
            raise BadRequest("this Idempotency-Key was used for another request")
        return rows
