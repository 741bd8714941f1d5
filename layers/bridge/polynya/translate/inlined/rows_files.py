"""Which files show the inlined rows at their last change, and since when.

What a snapshot added stands apart, so that whoever reads only that gets just that. The rows from
before go from file to file as long as rows come. When rows end, whatever is left is new, so that
the files before and after say together which rows are gone.
"""

from typing import NamedTuple

from ...ducklake.history import Totals

OLDER, NEW = 0, 1


class RowsFile(NamedTuple):
    part: int
    """`OLDER`: rows from before the last change; `NEW`: those that it added."""
    record_count: int
    begin_snapshot: int


def rows_files(inlined: Totals, at: int, table_begin: int) -> list[RowsFile]:
    """The files of inlined rows.

    Args:
        at: their last change, or that of the schema in which they are written.
        table_begin: when older rows came is not one snapshot; the table's own is before them all.
    """
    is_change = inlined.changed_at == at
    new = inlined.added.rows if is_change and inlined.added else 0
    begin = at if is_change and inlined.removed else table_begin
    files = [RowsFile(OLDER, inlined.rows - new, begin), RowsFile(NEW, new, at)]
    return [file for file in files if file.record_count]
