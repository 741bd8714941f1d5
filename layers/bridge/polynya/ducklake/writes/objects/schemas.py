"""Rows of schemas."""

from pg8000.native import Connection

SCHEMA = """
INSERT INTO ducklake_schema
  (schema_id, schema_uuid, begin_snapshot, schema_name, path, path_is_relative)
VALUES (:schema_id, CAST(:schema_uuid AS uuid), :snapshot_id, :schema_name, :path, true)"""


def add(
    con: Connection, snapshot_id: int, schema_id: int, schema_uuid: str, schema_name: str, path: str
) -> None:
    """Add a schema; `path` is relative to the lake's data path."""
    con.run(
        SCHEMA,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        schema_uuid=schema_uuid,
        schema_name=schema_name,
        path=path,
    )


END = """
UPDATE ducklake_schema SET end_snapshot = :snapshot_id
WHERE schema_id = :schema_id AND end_snapshot IS NULL"""

# DuckLake has no tags of schemas, so that a native DROP SCHEMA leaves them.
END_TAGS = """
UPDATE ducklake_tag SET end_snapshot = :snapshot_id
WHERE object_id = :schema_id AND end_snapshot IS NULL"""


def end(con: Connection, snapshot_id: int, schema_id: int) -> None:
    """End a schema, which must be empty, with its properties."""
    con.run(END, snapshot_id=snapshot_id, schema_id=schema_id)
    con.run(END_TAGS, snapshot_id=snapshot_id, schema_id=schema_id)
