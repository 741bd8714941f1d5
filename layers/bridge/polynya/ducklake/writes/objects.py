"""Rows of views."""

from pg8000.native import Connection

VIEW = """
INSERT INTO ducklake_view
  (view_id, view_uuid, begin_snapshot, schema_id, view_name, dialect, sql, column_aliases)
VALUES (:view_id, CAST(:view_uuid AS uuid), :snapshot_id, :schema_id, :view_name, 'duckdb',
  :text, '')"""


def add(
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


END = """
UPDATE ducklake_view SET end_snapshot = :snapshot_id
WHERE view_id = :view_id AND end_snapshot IS NULL"""


def end(con: Connection, snapshot_id: int, view_id: int) -> None:
    """End the newest text and name of a view."""
    con.run(END, snapshot_id=snapshot_id, view_id=view_id)


END_TAGS = """
UPDATE ducklake_tag SET end_snapshot = :snapshot_id
WHERE object_id = :view_id AND end_snapshot IS NULL"""


def drop(con: Connection, snapshot_id: int, view_id: int) -> None:
    """End a view with its tags."""
    end(con, snapshot_id, view_id)
    con.run(END_TAGS, snapshot_id=snapshot_id, view_id=view_id)


RENAMED = """
INSERT INTO ducklake_view
  (view_id, view_uuid, begin_snapshot, schema_id, view_name, dialect, sql, column_aliases)
SELECT v.view_id, v.view_uuid, v.end_snapshot, :schema_id, :view_name, v.dialect, v.sql,
  v.column_aliases
FROM ducklake_view AS v WHERE v.view_id = :view_id AND v.end_snapshot = :snapshot_id"""


def rename(con: Connection, snapshot_id: int, view_id: int, schema_id: int, view_name: str) -> None:
    """Give a view another name, in the same or another schema."""
    end(con, snapshot_id, view_id)
    con.run(
        RENAMED,
        snapshot_id=snapshot_id,
        view_id=view_id,
        schema_id=schema_id,
        view_name=view_name,
    )
