"""The files of the inlined rows at their last change, and the snapshot at which each began.

Rows that a snapshot added are in a file of their own, so that a client that reads only what was
added gets exactly these rows. Older rows move to a new file with each snapshot that adds rows. When
rows end, all remaining rows are in a new file: the old and the new file together show which rows
are gone.
"""

from typing import NamedTuple

from ...ducklake.history import Totals

OLDER, NEW, ALL = 0, 1, 2
"""Parts of the inlined rows. `ALL` is one file for scans that the server plans."""


class RowsFile(NamedTuple):
    """One file of inlined rows."""

    part: int
    """`OLDER`: rows from before the last change; `NEW`: rows that it added."""
    record_count: int
    begin_snapshot: int


def rows_files(inlined: Totals, at: int, table_begin: int) -> list[RowsFile]:
    """The files of inlined rows.

    Args:
        at: the last change of the rows, or of the schema in which they are written.
        table_begin: older rows were added at several snapshots; the table began before them all.
    """
    is_change = inlined.changed_at == at
    new = inlined.added.rows if is_change and inlined.added else 0
    begin = at if is_change and inlined.removed else table_begin
    files = [RowsFile(OLDER, inlined.rows - new, begin), RowsFile(NEW, new, at)]
    return [file for file in files if file.record_count]
