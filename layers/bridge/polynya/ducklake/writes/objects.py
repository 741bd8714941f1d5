"""Rows of views and schemas, and tags: comments, and properties that Iceberg clients set."""

from collections.abc import Mapping, Sequence

from pg8000.native import Connection

from ..queries import has_view_column_tags
from ..rows.objects import Lake
from .files import copy

VIEW = """
INSERT INTO ducklake_view
  (view_id, view_uuid, begin_snapshot, schema_id, view_name, dialect, sql, column_aliases)
VALUES (:view_id, CAST(:view_uuid AS uuid), :snapshot_id, :schema_id, :view_name, 'duckdb',
  :text, '')"""


def add_view(
    con: Connection,
    snapshot_id: int,
    schema_id: int,
    view_id: int,
    view_uuid: str,
    view_name: str,
    sql: str,
) -> None:
    """Add a view, or another text of one that `end` has ended."""
    con.run(
        VIEW,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        view_id=view_id,
        view_uuid=view_uuid,
        view_name=view_name,
        text=sql,
    )


END_VIEW = """
UPDATE ducklake_view SET end_snapshot = :snapshot_id
WHERE view_id = :view_id AND end_snapshot IS NULL"""


def end_view(con: Connection, snapshot_id: int, view_id: int) -> None:
    """End the newest text and name of a view."""
    con.run(END_VIEW, snapshot_id=snapshot_id, view_id=view_id)


END_COLUMN_TAGS_OF_VIEW = """
UPDATE ducklake_view_column_tag SET end_snapshot = :snapshot_id
WHERE view_id = :view_id AND end_snapshot IS NULL"""


def end_column_tags_of_view(con: Connection, lake: Lake, snapshot_id: int, view_id: int) -> None:
    """End the tags of a view's columns, which belong to its text; only catalogs of 1.1 have any."""
    if has_view_column_tags(lake):
        con.run(END_COLUMN_TAGS_OF_VIEW, snapshot_id=snapshot_id, view_id=view_id)


END_TAGS_OF_VIEW = """
UPDATE ducklake_tag SET end_snapshot = :snapshot_id
WHERE object_id = :view_id AND end_snapshot IS NULL"""


def drop(con: Connection, lake: Lake, snapshot_id: int, view_id: int) -> None:
    """End a view with its tags and those of its columns."""
    end_view(con, snapshot_id, view_id)
    end_column_tags_of_view(con, lake, snapshot_id, view_id)
    con.run(END_TAGS_OF_VIEW, snapshot_id=snapshot_id, view_id=view_id)


RENAMED = """
INSERT INTO ducklake_view
  (view_id, view_uuid, begin_snapshot, schema_id, view_name, dialect, sql, column_aliases)
SELECT v.view_id, v.view_uuid, v.end_snapshot, :schema_id, :view_name, v.dialect, v.sql,
  v.column_aliases
FROM ducklake_view AS v WHERE v.view_id = :view_id AND v.end_snapshot = :snapshot_id"""


def rename(con: Connection, snapshot_id: int, view_id: int, schema_id: int, view_name: str) -> None:
    """Give a view another name, in the same or another schema."""
    end_view(con, snapshot_id, view_id)
    con.run(
        RENAMED,
        snapshot_id=snapshot_id,
        view_id=view_id,
        schema_id=schema_id,
        view_name=view_name,
    )


SCHEMA = """
INSERT INTO ducklake_schema
  (schema_id, schema_uuid, begin_snapshot, schema_name, path, path_is_relative{column})
VALUES (:schema_id, CAST(:schema_uuid AS uuid), :snapshot_id, :schema_name, :path, true{value})"""

OUTERMOST = SCHEMA.format(column="", value="")
INNER = SCHEMA.format(column=", parent_schema_id", value=", :parent_id")
"""Only catalogs since 1.1 have the column, and only schemas in others a value in it."""


def add_schema(
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


END_SCHEMA = """
UPDATE ducklake_schema SET end_snapshot = :snapshot_id
WHERE schema_id = :schema_id AND end_snapshot IS NULL"""

# DuckLake has no tags of schemas, so that a native DROP SCHEMA leaves them.
END_TAGS_OF_SCHEMA = """
UPDATE ducklake_tag SET end_snapshot = :snapshot_id
WHERE object_id = :schema_id AND end_snapshot IS NULL"""


def end_schema(con: Connection, snapshot_id: int, schema_id: int) -> None:
    """End a schema, which must be empty, with its properties."""
    con.run(END_SCHEMA, snapshot_id=snapshot_id, schema_id=schema_id)
    con.run(END_TAGS_OF_SCHEMA, snapshot_id=snapshot_id, schema_id=schema_id)


def add_tags(
    con: Connection, snapshot_id: int, object_id: int, tags: Mapping[str, str | None]
) -> None:
    """Add tags at a snapshot."""
    rows = [(object_id, snapshot_id, key, value) for key, value in tags.items()]
    copy(con, "ducklake_tag", ("object_id", "begin_snapshot", "key", "value"), rows)


END_TAG = """
UPDATE ducklake_tag SET end_snapshot = :snapshot_id
WHERE object_id = :object_id AND key = ANY(:keys) AND end_snapshot IS NULL"""


def end_tags(con: Connection, snapshot_id: int, object_id: int, keys: Sequence[str]) -> None:
    """End the tags with these keys at a snapshot."""
    con.run(END_TAG, snapshot_id=snapshot_id, object_id=object_id, keys=list(keys))
