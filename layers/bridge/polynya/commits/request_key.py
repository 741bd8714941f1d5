"""The header `Idempotency-Key`: a request that is sent again has no second effect.

It is recorded with the commit, in the same transaction, together with the request that it belongs
to. Only what took place is recorded: a refused request can be sent again. Keys never expire.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import UUID

from ..ducklake.writes.commits import CommitRow
from ..errors import BadRequest


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key, and the request that it belongs to."""

    key: str
    principal: str | None
    route: str
    body_hash: str

    @classmethod
    def of(
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

    def on(self, rows: Iterable[CommitRow]) -> list[CommitRow]:
        """The rows of a commit with this key."""
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

    def own(self, found: Iterable[CommitRow]) -> list[CommitRow]:
        """What the request has recorded, if it took place before; else empty.

        Args:
            found: the rows with this key.

        Raises:
            BadRequest: the key belongs to another request.
        """
        rows = list(found)
        own = (self.principal, self.route, self.body_hash)
        if any((row.principal, row.route, row.body_hash) != own for row in rows):
            raise BadRequest("this Idempotency-Key was used for another request")
        return rows
