"""Rows of schemas."""

from pg8000.native import Connection

SCHEMA = """
INSERT INTO ducklake_schema
  (schema_id, schema_uuid, begin_snapshot, schema_name, path, path_is_relative{column})
VALUES (:schema_id, CAST(:schema_uuid AS uuid), :snapshot_id, :schema_name, :path, true{value})"""

OUTERMOST = SCHEMA.format(column="", value="")
INNER = SCHEMA.format(column=", parent_schema_id", value=", :parent_id")
"""Only catalogs since 1.1 have the column, and only schemas in others a value in it."""


def add(
    con: Connection,
    snapshot_id: int,
    schema_id: int,
    schema_uuid: str,
    schema_name: str,
    path: str,
    parent_id: int | None = None,
) -> None:
    """Add a schema.

    Args:
        path: relative to the lake's data path.
        parent_id: the schema that it is in, which needs a catalog of version 1.1.
    """
    con.run(
        OUTERMOST if parent_id is None else INNER,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        schema_uuid=schema_uuid,
        schema_name=schema_name,
        path=path,
        **({} if parent_id is None else {"parent_id": parent_id}),
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
