"""The files of the inlined rows, and the snapshot at which each was written.

The rows that a snapshot added are in a file of their own, which keeps its name while others add
rows: a client that reads only what was added gets exactly these rows, and one that replaces files
finds them. When rows end, or the columns or the partitioning change, the rows that are left move to
a new file, whose snapshot says so. So do they when there are too many files.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ...ducklake.rows.sums import Event

OLDER, NEW, ALL = 0, 1, 2
"""Parts of the inlined rows. `ALL` is one file for scans that the server plans."""

MOST_NEW = 32
"""Files of rows that snapshots added one after the other; all are read in each scan. The next one
moves their rows to one file."""


class RowsFile(NamedTuple):
    """One file of inlined rows."""

    part: int
    """`OLDER`: rows from before the last move; `NEW`: rows that a snapshot added since."""
    record_count: int
    begin_snapshot: int
    """The sequence number: rows that only moved keep that of the table."""
    written_at: int
    """The snapshot as of which the rows are read."""
    hash: int
    """Sum of 64-bit hashes of the rows."""


@dataclass(frozen=True, slots=True)
class RowsFiles:
    """The files of the inlined rows of a table at each snapshot."""

    snapshot_ids: Sequence[int]
    """The snapshots that changed the files, ascending."""
    files: Sequence[tuple[RowsFile, ...]]
    """The files since each of these."""

    def at(self, snapshot_id: int) -> tuple[RowsFile, ...]:
        """The files at a snapshot."""
        number = bisect_right(self.snapshot_ids, snapshot_id)
        return self.files[number - 1] if number else ()

    def changed_at(self, snapshot_id: int) -> int:
        """The last snapshot, up to this one, that changed the files; 0 if there is none."""
        number = bisect_right(self.snapshot_ids, snapshot_id)
        return self.snapshot_ids[number - 1] if number else 0


def rows_files(events: Iterable[Event], moves: Iterable[int], table_begin: int) -> RowsFiles:
    """The files of inlined rows.

    Args:
        events: the sums of all rows that began and ended, by snapshot.
        moves: the snapshots that changed the columns or the partitioning.
        table_begin: older rows were added at several snapshots; the table began before them all.
    """
    inlined = (event for event in events if event.kind == "inlined")
    changes = {at: list(of) for at, of in groupby(inlined, key=lambda event: event.snapshot_id)}
    moves = frozenset(moves)
    rows = hash_ = 0
    files: tuple[RowsFile, ...] = ()
    files_since: dict[int, tuple[RowsFile, ...]] = {}
    for at in sorted(changes.keys() | moves):
        added = [event for event in changes.get(at, ()) if event.sign > 0]
        ended = [event for event in changes.get(at, ()) if event.sign < 0]
        new = sum(event.rows for event in added), sum(event.hash for event in added)
        rows += new[0] - sum(event.rows for event in ended)
        hash_ += new[1] - sum(event.hash for event in ended)
        has_moved = at in moves or bool(ended)
        if has_moved or len(files) > MOST_NEW:
            begin = at if has_moved else table_begin
            files = (RowsFile(OLDER, rows - new[0], begin, at, hash_ - new[1]),)
        files = tuple(f for f in (*files, RowsFile(NEW, new[0], at, at, new[1])) if f.record_count)
        files_since[at] = files
    return RowsFiles(tuple(files_since), tuple(files_since.values()))
