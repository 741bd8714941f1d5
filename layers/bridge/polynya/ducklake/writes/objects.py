"""Rows of views and schemas, and tags: comments, and properties that Iceberg clients set."""

from collections.abc import Mapping, Sequence

from pg8000.native import Connection

from ..queries import has_view_column_tags
from ..rows.objects import Lake
from .rows import copy, end_live, insert


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
    insert(
        con,
        "ducklake_view",
        view_id=view_id,
        view_uuid=view_uuid,
        begin_snapshot=snapshot_id,
        schema_id=schema_id,
        view_name=view_name,
        dialect="duckdb",
        sql=sql,
        column_aliases="",
    )


def end_view(con: Connection, snapshot_id: int, view_id: int) -> None:
    """End the newest text and name of a view."""
    end_live(con, snapshot_id, "ducklake_view", view_id=view_id)


def end_column_tags_of_view(con: Connection, lake: Lake, snapshot_id: int, view_id: int) -> None:
    """End the tags of a view's columns, which belong to its text; only catalogs of 1.1 have any."""
    if has_view_column_tags(lake):
        end_live(con, snapshot_id, "ducklake_view_column_tag", view_id=view_id)


def drop(con: Connection, lake: Lake, snapshot_id: int, view_id: int) -> None:
    """End a view with its tags and those of its columns."""
    end_view(con, snapshot_id, view_id)
    end_column_tags_of_view(con, lake, snapshot_id, view_id)
    end_live(con, snapshot_id, "ducklake_tag", object_id=view_id)


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
    # Only catalogs since 1.1 have the column, and only schemas in others a value in it.
    parent = {} if parent_id is None else {"parent_schema_id": parent_id}
    insert(
        con,
        "ducklake_schema",
        schema_id=schema_id,
        schema_uuid=schema_uuid,
        begin_snapshot=snapshot_id,
        schema_name=schema_name,
        path=path,
        path_is_relative=True,
        **parent,
    )


def end_schema(con: Connection, snapshot_id: int, schema_id: int) -> None:
    """End a schema, which must be empty, with its properties."""
    end_live(con, snapshot_id, "ducklake_schema", schema_id=schema_id)
    # DuckLake has no tags of schemas, so that a native DROP SCHEMA leaves them.
    end_live(con, snapshot_id, "ducklake_tag", object_id=schema_id)


def add_tags(
    con: Connection, snapshot_id: int, object_id: int, tags: Mapping[str, str | None]
) -> None:
    """Add tags at a snapshot."""
    rows = [(object_id, snapshot_id, key, value) for key, value in tags.items()]
    copy(con, "ducklake_tag", ("object_id", "begin_snapshot", "key", "value"), rows)


def end_tags(con: Connection, snapshot_id: int, object_id: int, keys: Sequence[str]) -> None:
    """End the tags with these keys at a snapshot."""
    end_live(con, snapshot_id, "ducklake_tag", object_id=object_id, key=list(keys))
