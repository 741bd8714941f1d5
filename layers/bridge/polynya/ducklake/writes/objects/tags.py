"""Tags of tables and views: comments, and properties that Iceberg clients set."""

from collections.abc import Mapping, Sequence

from pg8000.native import Connection

from ..copy import copy


def add(con: Connection, snapshot_id: int, object_id: int, tags: Mapping[str, str | None]) -> None:
    """Add tags at a snapshot."""
    rows = [(object_id, snapshot_id, key, value) for key, value in tags.items()]
    copy(con, "ducklake_tag", ("object_id", "begin_snapshot", "key", "value"), rows)


END = """
UPDATE ducklake_tag SET end_snapshot = :snapshot_id
WHERE object_id = :object_id AND key = ANY(:keys) AND end_snapshot IS NULL"""


def end(con: Connection, snapshot_id: int, object_id: int, keys: Sequence[str]) -> None:
    """End the tags with these keys at a snapshot."""
    con.run(END, snapshot_id=snapshot_id, object_id=object_id, keys=list(keys))
