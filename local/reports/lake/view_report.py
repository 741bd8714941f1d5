"""A view of the lake: its text in DuckDB's dialect, and what Iceberg clients get."""

from dataclasses import dataclass
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.rows.named_objects import Schema, View
from polynya.errors import NoSuchView, Refused
from polynya.namespaces import dotted
from polynya.translate.client_properties import COMMENT
from polynya.translate.views import view_metadata

from .changes import SnapshotReport
from .report import served_lake, snapshot_of


@dataclass(frozen=True, slots=True)
class ViewHead:
    """What is said of a view first."""

    namespace: str
    name: str
    newest: int
    snapshot: SnapshotReport
    is_dropped: bool
    """The newest snapshot has none of this name."""


@dataclass(frozen=True, slots=True)
class ViewReport:
    """A view at a snapshot."""

    head: ViewHead
    uuid: str
    comment: str
    dialect: str
    sql: str
    begin_snapshot: int
    """When it got this text and name."""
    metadata: dict[str, Any]
    """The document that Iceberg clients get; empty: they do not get the view."""
    reason: str
    """Why they do not."""


def view_report(
    con: Connection, namespace: str, name: str, snapshot_id: int | None, location: str
) -> ViewReport:
    """Read a view.

    Args:
        location: where all virtual files are.

    Raises:
        NoSuchView: the lake has none of this name at the snapshot.
    """
    lake = served_lake(con)
    shown = snapshot_of(con, lake, snapshot_id)
    found = _found(con, namespace, name, shown.snapshot_id)
    if found is None:
        full_name = f"{namespace}.{dotted(name)}"
        raise NoSuchView(f"there is no view {full_name} at snapshot {shown.snapshot_id}")
    schema, view = found
    now = _found(con, namespace, name, lake.snapshot_id)
    tags = queries.tags_at(shown.snapshot_id, view.view_id).run(con)
    texts = queries.view_texts(shown.snapshot_id, view.view_id).run(con)
    comments = queries.view_column_comments_at(lake, shown.snapshot_id, view.view_id).run(con)
    metadata, reason = {}, ""
    try:
        metadata = view_metadata(schema, view, texts, tags, comments, location)
    except Refused as error:
        reason = str(error)
    return ViewReport(
        head=ViewHead(schema.full_name, view.view_name, lake.snapshot_id, shown, now is None),
        uuid=view.view_uuid,
        comment=next((tag.value or "" for tag in tags if tag.key == COMMENT), ""),
        dialect=view.dialect or "",
        sql=view.sql or "",
        begin_snapshot=view.begin_snapshot,
        metadata=metadata,
        reason=reason,
    )


def _found(con: Connection, namespace: str, name: str, at: int) -> tuple[Schema, View] | None:
    for schema in queries.schemas_at(at).run(con):
        if schema.full_name == namespace:
            for view in queries.views_at(at, schema.schema_id).run(con):
                if view.view_name == name:
                    return schema, view
    return None
