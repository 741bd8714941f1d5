"""PostgreSQL tables of inlined rows: created with a table and after an ALTER; rows ended."""

from collections.abc import Iterable, Iterator, Sequence

from pg8000.native import Connection, identifier

from ...types.names import ducklake_type
from ..column_tree import ColumnNode
from ..queries import CATALOG_SCHEMA, system_columns
from ..rows.lifetimes import postgres_name
from ..rows.objects import Layout
from .rows import Snapshot, insert
from .stats import GEOMETRY, VARIANT

OWNER = f"""
SELECT pg_get_userbyid(relowner) FROM pg_class
WHERE relname = CAST(:name AS text) AND relnamespace = {CATALOG_SCHEMA}"""

# DuckDB's role need not be the owner: a role that may write the list of these tables would
# otherwise create this one itself, and own it.
WRITERS = f"""
SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(a.grantee)::text END
FROM pg_class AS c
CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
WHERE c.relname = 'ducklake_inlined_data_tables' AND c.relnamespace = {CATALOG_SCHEMA}
  AND a.privilege_type = 'INSERT' AND pg_get_userbyid(a.grantee) <> current_user
ORDER BY 1"""

# The migration to 1.1 changes this row: if it has, the transaction fails and is tried again.
LOCK_VERSION = "SELECT value FROM ducklake_metadata WHERE key = 'version' FOR SHARE"

NEWEST = f"""
SELECT i.table_name FROM ducklake_inlined_data_tables AS i
JOIN pg_class AS c ON c.relname = i.table_name AND c.relnamespace = {CATALOG_SCHEMA}
WHERE i.table_id = :table_id ORDER BY i.schema_version DESC LIMIT 1"""

# The option of the table itself comes before that of its schema, and this before the lake's.
ROW_LIMIT = f"""
SELECT pg_get_userbyid(c.relowner) = current_user, (
  SELECT m.value FROM ducklake_metadata AS m
  JOIN ducklake_table AS t ON t.table_id = :table_id AND t.end_snapshot IS NULL
  WHERE m.key = 'data_inlining_row_limit' AND (m.scope IS NULL
    OR m.scope = 'schema' AND m.scope_id = t.schema_id
    OR m.scope = 'table' AND m.scope_id = t.table_id)
  ORDER BY CASE m.scope WHEN 'table' THEN 0 WHEN 'schema' THEN 1 ELSE 2 END LIMIT 1)
FROM pg_class AS c
WHERE c.relname = 'ducklake_inlined_data_tables' AND c.relnamespace = {CATALOG_SCHEMA}"""

# DuckLake reads a table of inlined rows with the columns of the snapshot in this row, and without
# one with those that the lake's table had at first. DuckDB itself writes none with a table that it
# makes at an INSERT. Such an INSERT alters nothing: if its snapshot has expired, the columns are
# those of the schema version before.
ADD_MISSING_VERSIONS = """
INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id)
SELECT coalesce(
    (SELECT min(s.snapshot_id) FROM ducklake_snapshot AS s
     WHERE s.schema_version = i.schema_version),
    (SELECT max(v.begin_snapshot) FROM ducklake_schema_versions AS v
     WHERE v.table_id = i.table_id AND v.schema_version < i.schema_version)),
  i.schema_version, i.table_id
FROM ducklake_inlined_data_tables AS i
WHERE i.table_id = :table_id AND NOT EXISTS (
    SELECT FROM ducklake_schema_versions AS v
    WHERE v.table_id = i.table_id AND v.schema_version = i.schema_version)
  AND EXISTS (SELECT FROM ducklake_schema_versions AS v
    WHERE v.table_id = i.table_id AND v.schema_version < i.schema_version)"""


def add_missing_versions(con: Connection, table_id: int) -> int:
    """Record the columns of tables of inlined rows where DuckDB has not; return their number.

    After a change of the columns DuckLake would read NULL in place of their values.
    """
    con.run(ADD_MISSING_VERSIONS, table_id=table_id)
    count: int = con.row_count
    return count


def add_table(
    con: Connection,
    snapshot: Snapshot,
    table_id: int,
    columns: Sequence[ColumnNode],
    layout: Layout,
) -> None:
    """Create the table for rows that DuckDB inlines from this snapshot on, if it inlines any.

    Args:
        columns: all columns of the table.
        layout: what the catalog has.
    """
    newest = next((str(name) for (name,) in con.run(NEWEST, table_id=table_id)), None)
    if not is_inlined(con, table_id, columns, newest):
        return
    con.run(LOCK_VERSION)
    name = f"ducklake_inlined_data_{table_id}_{snapshot.schema_version}"
    # DuckDB inserts by position, and its columns are in the order of their ids.
    in_order = sorted(columns, key=lambda column: column.column_id)
    system = [f"{name} bigint" for name in layout.inlined_columns]
    own = [
        f"{identifier(column.column_name)} {ducklake_type(column.column_type).postgres}"
        for column in in_order
    ]
    # As DuckDB does at CREATE and each ALTER. Without it, DuckDB would go on using the one before,
    # which lacks new columns; or it would make one at an INSERT, without saying which columns it
    # has, and lose values at the next change of the columns.
    con.run(f"CREATE TABLE {identifier(name)} ({', '.join([*system, *own])})")
    for (role,) in con.run(WRITERS):
        grantee = role if role == "public" else identifier(role)
        con.run(f"GRANT ALL ON {identifier(name)} TO {grantee}")
    if newest is not None:
        [[owner]] = con.run(OWNER, name=newest)
        con.run(f"GRANT ALL ON {identifier(name)} TO {identifier(owner)}")
    insert(
        con,
        "ducklake_inlined_data_tables",
        table_id=table_id,
        table_name=name,
        schema_version=snapshot.schema_version,
    )


def is_inlined(
    con: Connection, table_id: int, columns: Sequence[ColumnNode], newest: str | None = None
) -> bool:
    """Whether DuckDB would create a table of inlined rows for these columns.

    Args:
        newest: the last one that it has, into which it would insert; None: it has none.
    """
    [[is_owner, row_limit]] = con.run(ROW_LIMIT, table_id=table_id)
    types = {type_ for column in columns for type_ in _types(column)}
    if newest is not None:
        # Also if the limit is 0 now: it may rise, and DuckDB would insert into the existing table.
        return GEOMETRY not in types
    # DuckDB could not drop a table of another role at a flush. A catalog in a file of DuckDB can
    # inline variants and columns with long names, and one in PostgreSQL cannot: here it is not
    # known which of them it is.
    has_long_name = any(postgres_name(c.column_name) != c.column_name for c in columns)
    return is_owner and row_limit != "0" and not (has_long_name or types & {GEOMETRY, VARIANT})


def _types(column: ColumnNode) -> Iterator[str]:
    yield column.column_type
    for child in column.children:
        yield from _types(child)


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
    """End the live ones of these inlined rows; return their number."""
    row_id, _, end = map(identifier, system_columns(table).run(con))
    con.run(
        f"UPDATE {identifier(table)} SET {end} = :snapshot_id "
        f"WHERE {end} IS NULL AND {row_id} = ANY(CAST(:row_ids AS bigint[]))",
        snapshot_id=snapshot_id,
        row_ids=list(row_ids),
    )
    count: int = con.row_count
    return count
