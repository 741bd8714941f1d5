"""Rows of tables that are renamed or dropped, as native DuckLake writes them."""

from pg8000.native import Connection

END = """
UPDATE {table} SET end_snapshot = :snapshot_id
WHERE {key} = :table_id AND end_snapshot IS NULL"""

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
"""What ends with a table. Its inlined rows do not: nothing shows them without the table."""


def end(con: Connection, snapshot_id: int, table_id: int) -> None:
    """End a table: older snapshots still show it, so its files stay."""
    for table, key in ENDING:
        con.run(END.format(table=table, key=key), snapshot_id=snapshot_id, table_id=table_id)


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
    con.run(
        END.format(table="ducklake_table", key="table_id"),
        snapshot_id=snapshot_id,
        table_id=table_id,
    )
    con.run(
        RENAMED,
        snapshot_id=snapshot_id,
        table_id=table_id,
        schema_id=schema_id,
        table_name=table_name,
        path=path[0],
        path_is_relative=path[1],
    )
