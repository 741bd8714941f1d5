"""PostgreSQL tables of inlined rows: a new one after an ALTER, and rows that end."""

from collections.abc import Iterable

from pg8000.native import Connection, identifier
from polynya.ducklake.queries import CATALOG_SCHEMA

from ..columns import Added
from .snapshots import Snapshot

TYPES = {
    "boolean": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float32": "real",
    "float64": "double precision",
    "varchar": "bytea",
    "blob": "bytea",
    "time": "time",
}
"""What DuckLake inlines columns as, of the types that a new column may have; others as text."""

OWNER = f"""
SELECT pg_get_userbyid(relowner) FROM pg_class
WHERE relname = CAST(:name AS text) AND relnamespace = {CATALOG_SCHEMA}"""

TABLE = """
INSERT INTO ducklake_inlined_data_tables (table_id, table_name, schema_version)
VALUES (:table_id, :table_name, :schema_version)"""


def add_table(
    con: Connection, snapshot: Snapshot, table_id: int, before: str, added: Iterable[Added]
) -> None:
    """A table for the rows that DuckDB will inline from now on. It makes one at each ALTER, and
    without it would go on with the one `before`, which lacks the new columns."""
    name = f"ducklake_inlined_data_{table_id}_{snapshot.schema_version}"
    con.run(f"CREATE TABLE {identifier(name)} (LIKE {identifier(before)})")
    for column in (new.column for new in added if new.parent_column is None):
        kind = TYPES.get(column.column_type, "varchar")
        if column.column_type.startswith("decimal"):
            kind = column.column_type.replace("decimal", "numeric")
        con.run(f"ALTER TABLE {identifier(name)} ADD {identifier(column.column_name)} {kind}")
    [[owner]] = con.run(OWNER, name=before)
    con.run(f"GRANT ALL ON {identifier(name)} TO {identifier(owner)}")
    con.run(
        TABLE,
        table_id=table_id,
        table_name=name,
        schema_version=snapshot.schema_version,
    )


def end_rows(con: Connection, snapshot_id: int, tables: Iterable[str]) -> int:
    """End the rows that live in PostgreSQL itself; gives how many."""
    count = 0
    for name in tables:
        con.run(
            f"UPDATE {identifier(name)} SET end_snapshot = :snapshot_id WHERE end_snapshot IS NULL",
            snapshot_id=snapshot_id,
        )
        count += con.row_count
    return count
