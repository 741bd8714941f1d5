"""PostgreSQL tables of inlined rows: created after an ALTER; rows ended at a snapshot."""

from collections.abc import Iterable, Sequence

from pg8000.native import Connection, identifier

from ...types.names import ducklake_type
from ..column_tree import ColumnNode
from ..queries import CATALOG_SCHEMA, system_columns
from ..rows.objects import Layout
from .rows import Snapshot, insert

OWNER = f"""
SELECT pg_get_userbyid(relowner) FROM pg_class
WHERE relname = CAST(:name AS text) AND relnamespace = {CATALOG_SCHEMA}"""

# The migration to 1.1 changes this row: if it has, the transaction fails and is tried again.
LOCK_VERSION = "SELECT value FROM ducklake_metadata WHERE key = 'version' FOR SHARE"

NEWEST = f"""
SELECT i.table_name FROM ducklake_inlined_data_tables AS i
JOIN pg_class AS c ON c.relname = i.table_name AND c.relnamespace = {CATALOG_SCHEMA}
WHERE i.table_id = :table_id ORDER BY i.schema_version DESC LIMIT 1"""


def newest_table(con: Connection, table_id: int) -> str | None:
    """The PostgreSQL table that DuckDB inlines rows in; None if it has inlined none."""
    return next((str(name) for (name,) in con.run(NEWEST, table_id=table_id)), None)


def add_table(
    con: Connection,
    snapshot: Snapshot,
    table_id: int,
    before: str,
    columns: Iterable[ColumnNode],
    layout: Layout,
) -> None:
    """Create the table for rows that DuckDB inlines from this snapshot on.

    Args:
        before: the newest PostgreSQL table of inlined rows; its owner is granted all rights.
        columns: all columns of the table. `before` may lack more than the new ones, because a
            writer that does not inline rows creates no table at its ALTER.
        layout: what the catalog has.
    """
    con.run(LOCK_VERSION)
    name = f"ducklake_inlined_data_{table_id}_{snapshot.schema_version}"
    # DuckDB inserts by position, and its columns are in the order of their ids.
    in_order = sorted(columns, key=lambda column: column.column_id)
    system = [f"{name} bigint" for name in layout.inlined_columns]
    own = [
        f"{identifier(column.column_name)} {ducklake_type(column.column_type).postgres}"
        for column in in_order
    ]
    # As DuckDB does at each ALTER: without it, DuckDB would go on using the table `before`, which
    # lacks the new columns.
    con.run(f"CREATE TABLE {identifier(name)} ({', '.join([*system, *own])})")
    [[owner]] = con.run(OWNER, name=before)
    con.run(f"GRANT ALL ON {identifier(name)} TO {identifier(owner)}")
    insert(
        con,
        "ducklake_inlined_data_tables",
        table_id=table_id,
        table_name=name,
        schema_version=snapshot.schema_version,
    )


def end_rows(con: Connection, snapshot_id: int, tables: Iterable[str]) -> int:
    """End the live inlined rows in these PostgreSQL tables; return their number."""
    count = 0
    for name in tables:
        *_, end = map(identifier, system_columns(name).run(con))
        con.run(
            f"UPDATE {identifier(name)} SET {end} = :snapshot_id WHERE {end} IS NULL",
            snapshot_id=snapshot_id,
        )
        count += con.row_count
    return count


def end_rows_of(con: Connection, snapshot_id: int, table: str, row_ids: Sequence[int]) -> int:
    """End those of these inlined rows that are live; return their number."""
    row_id, _, end = map(identifier, system_columns(table).run(con))
    con.run(
        f"UPDATE {identifier(table)} SET {end} = :snapshot_id "
        f"WHERE {end} IS NULL AND {row_id} = ANY(CAST(:row_ids AS bigint[]))",
        snapshot_id=snapshot_id,
        row_ids=list(row_ids),
    )
    count: int = con.row_count
    return count
