"""Snapshots that Iceberg clients committed: listed under the clients' ids, with their summaries.

Every other snapshot has DuckLake's id in Iceberg too. The sequence number is always DuckLake's id.

`NextRowIds` has the row ids that each snapshot gave. DuckLake gives ids in ascending order, and
keeps only the next one of now.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import or_

from ..ducklake.rows.files import AssignedRowIds
from ..ducklake.rows.objects import NO_CHOSEN_IDS, ChosenIds, ClientSnapshot
from ..iceberg.table_metadata import Snapshot
from .properties import stored_texts

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
"""Numbers of a summary that Polynya computes, because it only knows the net change.
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
    """Merge Polynya's operation and numbers with all other keys of the client's summaries."""
    return {**client_summary(commits, ducklake_id), **summary}


def client_summary(commits: Iterable[ClientSnapshot], ducklake_id: int) -> dict[str, str]:
    """The keys and values of clients' summaries besides the operation and the numbers."""
    theirs: dict[str, str] = {}
    for commit in commits:
        theirs |= stored_texts(commit.summary)
    client_keys = {
        key: text for key, text in theirs.items() if key not in COUNTS and key != "operation"
    }
    return client_keys | {DUCKLAKE_ID: str(ducklake_id)}


BLOCK = 4096
"""Ids that are hashed together: a digest takes those of one block at most."""


class SnapshotIds:
    """The Iceberg snapshot id of each DuckLake snapshot of a table."""

    def __init__(self, chosen: ChosenIds) -> None:
        """Those that clients have chosen; all others are the same in Iceberg."""
        self._ids, self._chosen = chosen
        # Of the ids before each block.
        self._hashes = [hashlib.blake2b(digest_size=8)]
        for end in range(BLOCK, len(self._ids) + 1, BLOCK):
            self._hashes.append(self._hash(end))

    @property
    def are_same(self) -> bool:
        """Whether clients have chosen none."""
        return not self._ids

    def __contains__(self, snapshot_id: int) -> bool:
        """Whether a client has chosen the id of a DuckLake snapshot."""
        place = bisect_left(self._ids, snapshot_id)
        return place < len(self._ids) and self._ids[place] == snapshot_id

    def iceberg_id(self, snapshot_id: int) -> int:
        """The Iceberg snapshot id of a DuckLake snapshot."""
        place = bisect_left(self._ids, snapshot_id)
        if place < len(self._ids) and self._ids[place] == snapshot_id:
            return self._chosen[place]
        return snapshot_id

    def digests(self, snapshot_id: int) -> tuple[int, ...]:
        """A digest of the ids that were chosen up to a snapshot; empty if there are none."""
        number = bisect_right(self._ids, snapshot_id)
        digest = self._hash(number).digest() if number else b""
        return (int.from_bytes(digest, "little"),) if digest else ()

    def _hash(self, number: int) -> "hashlib.blake2b":
        """The hash of the first ids, one at least."""
        block = (number - 1) // BLOCK
        ids = slice(block * BLOCK, number)
        hash_ = self._hashes[block].copy()
        hash_.update(self._ids[ids])
        hash_.update(self._chosen[ids])
        return hash_


SAME = SnapshotIds(NO_CHOSEN_IDS)
"""The ids of a table to which no Iceberg client has committed."""


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

    def first_after(self, snapshot_id: int) -> int:
        """The first id that no row had up to this snapshot."""
        number = bisect_right(self._begins, snapshot_id)
        end = self._ends[number]
        return max(end, self._later[number]) if self._has_unnamed[number] else end
