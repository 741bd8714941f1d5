"""Rows of tables, as native DuckLake writes them: created, altered, renamed, dropped.

With a table go its columns, partitioning, sort order and comments.
"""

from collections.abc import Iterable, Mapping, Sequence

from pg8000.native import Connection

from ..column_tree import ColumnNode, NewColumn
from ..rows.objects import Layout, PartitionColumn
from .rows import Snapshot, copy, end_live, insert


def add(
    con: Connection,
    snapshot_id: int,
    schema_id: int,
    table_id: int,
    table_uuid: str,
    table_name: str,
    path: tuple[str, bool],
) -> None:
    """Add a table.

    Args:
        path: of the table's directory, and whether it is relative to that of the schema.
    """
    insert(
        con,
        "ducklake_table",
        table_id=table_id,
        table_uuid=table_uuid,
        begin_snapshot=snapshot_id,
        schema_id=schema_id,
        table_name=table_name,
        path=path[0],
        path_is_relative=path[1],
    )


def add_schema_version(con: Connection, snapshot: Snapshot, table_id: int) -> None:
    """Record that the snapshot has a new schema version because of this table."""
    insert(
        con,
        "ducklake_schema_versions",
        begin_snapshot=snapshot.snapshot_id,
        schema_version=snapshot.schema_version,
        table_id=table_id,
    )


def add_columns(
    con: Connection, snapshot_id: int, table_id: int, columns: Iterable[NewColumn]
) -> None:
    """Add columns with their nested columns."""
    rows: list[Sequence[object]] = []

    def visit(column: ColumnNode, parent: int | None) -> None:
        kind = "" if column.children else "literal"
        # DuckLake writes the text NULL for no default, and gives a column its id as its position.
        default = "NULL" if column.default_value is None else column.default_value
        definition = (column.column_name, column.column_type, default, column.nulls_allowed, parent)
        ids = (column.column_id, snapshot_id, table_id, column.column_id)
        rows.append((*ids, *definition, kind, "duckdb", column.initial_default))
        for child in column.children:
            visit(child, column.column_id)

    for new in columns:
        visit(new.column, new.parent_column)
    copy(
        con,
        "ducklake_column",
        (
            *("column_id", "begin_snapshot", "table_id", "column_order", "column_name"),
            *("column_type", "default_value", "nulls_allowed", "parent_column"),
            *("default_value_type", "default_value_dialect", "initial_default"),
        ),
        rows,
    )


def end_partitioning(con: Connection, snapshot_id: int, table_id: int) -> None:
    """End the partitioning of a table; a new one, perhaps without keys, begins in its place."""
    end_live(con, snapshot_id, "ducklake_partition_info", table_id=table_id)


def add_partitioning(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    partition_id: int,
    keys: Iterable[PartitionColumn],
    *,
    is_of_clients: bool,
) -> None:
    """Add the partitioning of a table.

    Args:
        is_of_clients: DuckLake cannot express it. It has no keys, and ends at once, as DuckLake
            writes one that the same transaction has replaced: since July 2026 its merges and
            rewrites require that a live partitioning of files has keys.
    """
    ids = {"partition_id": partition_id, "table_id": table_id}
    lifetime = {
        "begin_snapshot": snapshot_id,
        "end_snapshot": snapshot_id if is_of_clients else None,
    }
    insert(con, "ducklake_partition_info", **ids, **lifetime)
    rows = [
        (partition_id, table_id, key.partition_key_index, key.column_id, key.transform)
        for key in keys
    ]
    copy(
        con,
        "ducklake_partition_column",
        ("partition_id", "table_id", "partition_key_index", "column_id", "transform"),
        rows,
    )


def add_comments(
    con: Connection, snapshot_id: int, table_id: int, comments: Mapping[int, str | None]
) -> None:
    """Add comments of columns, by column_id."""
    rows = [
        (table_id, column_id, snapshot_id, "comment", text) for column_id, text in comments.items()
    ]
    names = ("table_id", "column_id", "begin_snapshot", "key", "value")
    copy(con, "ducklake_column_tag", names, rows)


def end_sort_order(con: Connection, snapshot_id: int, table_id: int) -> None:
    """End the sort order of a table."""
    end_live(con, snapshot_id, "ducklake_sort_info", table_id=table_id)


SORT_COLUMNS = (
    *("sort_id", "table_id", "sort_key_index", "expression"),
    *("dialect", "sort_direction", "null_order"),
)


def add_sort_order(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    sort_id: int,
    keys: Iterable[tuple[str, str, str]],
) -> None:
    """Add the sort order of a table.

    Args:
        keys: expression, direction (ASC or DESC) and order of NULLs (NULLS_FIRST or NULLS_LAST).
    """
    ids = {"sort_id": sort_id, "table_id": table_id}
    insert(con, "ducklake_sort_info", **ids, begin_snapshot=snapshot_id)
    rows = [
        (sort_id, table_id, index, expression, "duckdb", direction, null_order)
        for index, (expression, direction, null_order) in enumerate(keys)
    ]
    copy(con, "ducklake_sort_expression", SORT_COLUMNS, rows)


# The position, the initial default and the parent stay, and a default that is an expression.
CHANGE = """
WITH ended AS (
  UPDATE ducklake_column AS c SET end_snapshot = :snapshot_id
  FROM unnest(CAST(:ids AS bigint[]), CAST(:names AS text[]), CAST(:column_types AS text[]),
    CAST(:nulls_allowed AS boolean[]), CAST(:defaults AS text[]))
    AS new(column_id, column_name, column_type, nulls_allowed, default_value)
  WHERE c.table_id = :table_id AND c.end_snapshot IS NULL AND c.column_id = new.column_id
  RETURNING c.*, new.column_name AS new_name, new.column_type AS new_type,
    new.nulls_allowed AS new_nulls_allowed, coalesce(new.default_value, 'NULL') AS new_default,
    coalesce(c.default_value, 'NULL') = coalesce(new.default_value, 'NULL') AS is_same_default)
INSERT INTO ducklake_column (column_id, begin_snapshot, end_snapshot, table_id, column_order,
  column_name, column_type, initial_default, default_value, nulls_allowed, parent_column,
  default_value_type, default_value_dialect)
SELECT column_id, :snapshot_id, NULL, table_id, column_order, new_name, new_type, initial_default,
  CASE WHEN is_same_default THEN default_value ELSE new_default END, new_nulls_allowed,
  parent_column, CASE WHEN is_same_default THEN default_value_type ELSE 'literal' END,
  default_value_dialect
FROM ended ORDER BY column_id"""


def change(con: Connection, snapshot_id: int, table_id: int, columns: Sequence[ColumnNode]) -> None:
    """Give columns a new name, type, NOT NULL or default at a snapshot; their children stay."""
    con.run(
        CHANGE,
        snapshot_id=snapshot_id,
        table_id=table_id,
        ids=[column.column_id for column in columns],
        names=[column.column_name for column in columns],
        column_types=[column.column_type for column in columns],
        nulls_allowed=[column.nulls_allowed for column in columns],
        defaults=[column.default_value for column in columns],
    )


def drop(
    con: Connection, snapshot_id: int, table_id: int, column_ids: Sequence[int], layout: Layout
) -> None:
    """End columns at a snapshot, as DuckLake's own ALTER does."""
    keys = {"table_id": table_id, "column_id": list(column_ids)}
    end_live(con, snapshot_id, "ducklake_column", **keys)
    # DuckLake leaves their statistics, and before version 1.1 their comments.
    if layout.is_1_1:
        end_live(con, snapshot_id, "ducklake_column_tag", **keys)


def set_comments(
    con: Connection, snapshot_id: int, table_id: int, comments: Mapping[int, str | None]
) -> None:
    """Set the comments of columns by column_id; None, which DuckDB writes too, for no comment."""
    keys = {"table_id": table_id, "column_id": list(comments), "key": "comment"}
    end_live(con, snapshot_id, "ducklake_column_tag", **keys)
    add_comments(con, snapshot_id, table_id, comments)


ENDING = (
    ("ducklake_table", "table_id"),
    ("ducklake_column", "table_id"),
    ("ducklake_column_tag", "table_id"),
    ("ducklake_data_file", "table_id"),
    ("ducklake_delete_file", "table_id"),
    ("ducklake_partition_info", "table_id"),
    ("ducklake_sort_info", "table_id"),
    ("ducklake_tag", "object_id"),
)
"""The tables whose rows end with a table. Its inlined rows do not: no one sees them without it."""


def end(con: Connection, snapshot_id: int, table_id: int) -> None:
    """End a table: older snapshots still show it, so its files stay."""
    for table, key in ENDING:
        end_live(con, snapshot_id, table, **{key: table_id})


RENAMED = """
INSERT INTO ducklake_table
  (table_id, table_uuid, begin_snapshot, schema_id, table_name, path, path_is_relative)
SELECT t.table_id, t.table_uuid, t.end_snapshot, :schema_id, :table_name, :path,
  :path_is_relative
FROM ducklake_table AS t WHERE t.table_id = :table_id AND t.end_snapshot = :snapshot_id"""


def rename(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    schema_id: int,
    table_name: str,
    path: tuple[str, bool],
) -> None:
    """Give a table another name, in the same or another schema.

    Args:
        path: of the table's directory, and whether it is relative to that of the schema. The
            directory must stay: the paths of the files are relative to it.
    """
    end_live(con, snapshot_id, "ducklake_table", table_id=table_id)
    con.run(
        RENAMED,
        snapshot_id=snapshot_id,
        table_id=table_id,
        schema_id=schema_id,
        table_name=table_name,
        path=path[0],
        path_is_relative=path[1],
    )
