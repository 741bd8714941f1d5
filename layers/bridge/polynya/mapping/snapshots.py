"""Snapshots that Iceberg clients committed: listed under the clients' ids, with their summaries.

Every other snapshot has DuckLake's id in Iceberg too. The sequence number is always DuckLake's id.

`NextRowIds` says which row ids each snapshot gave. DuckLake gives ids in ascending order, and keeps
only the next one of now.
"""

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import or_

from ..ducklake.rows.files import AssignedRowIds
from ..ducklake.rows.objects import ClientSnapshot
from ..iceberg.table_metadata import Snapshot
from .properties import stored_json

FITTING = {
    "append": {"append", "overwrite"},
    "delete": {"delete", "overwrite"},
    "overwrite": {"overwrite", "replace"},
    "replace": {"append", "delete", "overwrite", "replace"},
}
"""The operations that a client may give, by the operation that follows from the changes."""

COUNTS = {
    *(
        f"{what}-{files}"
        for what in ("added", "total", "deleted", "removed")
        for files in (
            "data-files",
            "records",
            "files-size",
            "delete-files",
            "position-deletes",
            "equality-deletes",
            "position-delete-files",
            "equality-delete-files",
            "dvs",
        )
    ),
    *("manifests-created", "manifests-kept", "manifests-replaced", "entries-processed"),
    *("changed-partition-count", "partition-summaries-included", "deleted-duplicate-files"),
}
"""Numbers of a summary: they are ours, because we have seen the net change alone.
https://iceberg.apache.org/spec/#optional-snapshot-summary-fields"""

DUCKLAKE_ID = "ducklake.snapshot-id"


def listed(
    snapshot: Snapshot, commits: Sequence[ClientSnapshot], *, shows_expired: bool = False
) -> Snapshot:
    """Show a DuckLake snapshot as the Iceberg snapshot that a client committed, under its id.

    Args:
        snapshot: as it follows from the changes.
        commits: what the client committed; empty if no client did.
        shows_expired: it also shows the changes of snapshots that have expired, of which the
            client's operation says nothing.
    """
    chosen = [commit for commit in commits if commit.client_snapshot_id is not None]
    if not chosen:
        return snapshot
    # One commit may hold several Iceberg snapshots (PyIceberg's overwrite deletes and then
    # appends). The last is listed, with the changes of all: DuckLake has no state between them.
    client_snapshot_id = chosen[-1].client_snapshot_id
    assert client_snapshot_id is not None
    summary = _merged(snapshot.summary, chosen, snapshot.sequence_number)
    if not shows_expired and chosen[-1].operation in FITTING[snapshot.summary["operation"]]:
        summary["operation"] = str(chosen[-1].operation)
    # A client recognises its own commit by the id alone, so it is the same for ever and everywhere.
    return replace(snapshot, snapshot_id=client_snapshot_id, summary=summary)


def _merged(
    summary: Mapping[str, str], commits: Sequence[ClientSnapshot], ducklake_id: int
) -> dict[str, str]:
    """Merge our operation and numbers with all other keys of the client's summaries."""
    return {**client_summary(commits, ducklake_id), **summary}


def client_summary(commits: Iterable[ClientSnapshot], ducklake_id: int) -> dict[str, str]:
    """What clients' summaries say beside the operation and the numbers."""
    theirs: dict[str, str] = {}
    for commit in commits:
        with suppress(ValueError):
            theirs |= stored_json(commit.summary or "{}")
    client_keys = {
        key: text for key, text in theirs.items() if key not in COUNTS and key != "operation"
    }
    return client_keys | {DUCKLAKE_ID: str(ducklake_id)}


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
    sums = accumulate(hashes, lambda total, digest: (total + digest) % MODULUS)
    return SnapshotIds(chosen, (tuple(chosen), tuple(sums)))


def _hash(snapshot_id: int, chosen: int) -> int:
    """A number of 64 bits for one commit."""
    # A fingerprint takes three times as long, for each commit of a table whenever it is opened.
    packed = struct.pack("<qq", snapshot_id, chosen)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")


class NextRowIds:
    """The first row id that no row of a table had up to a snapshot; it never falls."""

    def __init__(self, assigned: Sequence[AssignedRowIds], next_row_id: int) -> None:
        """No row may have an id that is neither named nor was given before.

        Args:
            assigned: of all snapshots, ascending, also of those after the ones that are asked for.
            next_row_id: the first id that no row has now.
        """
        self._begins = [ids.begin_snapshot for ids in assigned]
        self._ends = [0, *accumulate((ids.end for ids in assigned), max)]
        self._has_unnamed = [False, *accumulate((ids.has_unnamed for ids in assigned), or_)]
        # What a later snapshot gave first is higher than all that was given before it.
        firsts = (next_row_id if ids.first is None else ids.first for ids in reversed(assigned))
        self._later = [*accumulate(firsts, min, initial=next_row_id)][::-1]

    def after(self, snapshot_id: int) -> int:
        """The first id that no row had up to this snapshot."""
        number = bisect_right(self._begins, snapshot_id)
        end = self._ends[number]
        return max(end, self._later[number]) if self._has_unnamed[number] else end
