"""Rows of inlined deletes: rows of data files that a snapshot deletes."""

from collections.abc import Mapping, Sequence

from pg8000.native import Connection, identifier

from .copy import copy

COLUMNS = ("file_id", "row_id", "begin_snapshot")

# As DuckDB creates it at the first small DELETE: it is registered nowhere.
TABLE = """
CREATE TABLE IF NOT EXISTS {table} (file_id bigint, row_id bigint, begin_snapshot bigint)"""


REMOVE = """
DELETE FROM {table} WHERE file_id = ANY(:data_file_ids)"""


def remove(con: Connection, table_id: int, data_file_ids: list[int]) -> None:
    """Remove the inlined deletes of data files: they are in delete files now."""
    name = identifier(f"ducklake_inlined_delete_{table_id}")
    con.run(REMOVE.format(table=name), data_file_ids=data_file_ids)


def add(
    con: Connection, snapshot_id: int, table_id: int, positions: Mapping[int, Sequence[int]]
) -> None:
    """Delete rows of data files.

    Args:
        positions: by data_file_id; rows that are not deleted yet.
    """
    name = f"ducklake_inlined_delete_{table_id}"
    con.run(TABLE.format(table=identifier(name)))
    rows = [
        (data_file_id, position, snapshot_id)
        for data_file_id, found in sorted(positions.items())
        for position in found
    ]
    copy(con, name, COLUMNS, rows)
