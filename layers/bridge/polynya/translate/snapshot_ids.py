"""Iceberg's snapshot ids of a table: DuckLake's, or those that clients chose in their commits.

A client recognises its own commit by its id alone, so the id is the same for ever and everywhere.
The sequence number of a snapshot is always DuckLake's id.
"""

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from ..ducklake.rows.commits import ClientSnapshot

MODULUS = 2**64


@dataclass(frozen=True, slots=True)
class SnapshotIds:
    """The Iceberg snapshot id of each DuckLake snapshot of a table."""

    chosen: Mapping[int, int]
    """By DuckLake's id, ascending; a snapshot that is absent has the same id in Iceberg."""
    _digests: tuple[tuple[int, ...], tuple[int, ...]]
    """DuckLake's ids, and for each a digest of all ids that were chosen up to it."""

    def of(self, snapshot_id: int) -> int:
        """The Iceberg snapshot id of a DuckLake snapshot."""
        return self.chosen.get(snapshot_id, snapshot_id)

    def digests(self, snapshot_id: int) -> tuple[int, ...]:
        """A digest of the ids that were chosen up to a snapshot; empty if there are none."""
        ids, digests = self._digests
        number = bisect_right(ids, snapshot_id)
        return digests[number - 1 : number]


SAME = SnapshotIds({}, ((), ()))
"""The ids of a table to which no Iceberg client has committed."""


def snapshot_ids(commits: Iterable[ClientSnapshot]) -> SnapshotIds:
    """The ids of a table.

    Args:
        commits: ordered by snapshot and position.
    """
    chosen = {
        commit.snapshot_id: commit.client_snapshot_id
        for commit in commits
        if commit.client_snapshot_id is not None
    }
    hashes = (_hash(*pair) for pair in chosen.items())
    sums = accumulate(hashes, lambda total, one: (total + one) % MODULUS)
    return SnapshotIds(chosen, (tuple(chosen), tuple(sums)))


def _hash(snapshot_id: int, chosen: int) -> int:
    """A number of 64 bits. A fingerprint takes three times as long, for each commit of a table each
    time that somebody opens it."""
    packed = struct.pack("<qq", snapshot_id, chosen)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")
