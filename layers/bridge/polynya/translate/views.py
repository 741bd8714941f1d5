"""DuckLake views as Iceberg views. https://iceberg.apache.org/view-spec/"""

from typing import Any

from ..ducklake.rows.named_objects import Schema, Tag, View
from ..ducklake.text_values import EPOCH
from ..errors import REMEDY, Refused
from .tables import ONE_MILLISECOND, properties


def view_metadata(schema: Schema, view: View, tags: list[Tag], location: str) -> dict[str, Any]:
    """The view metadata document, with the view's newest text as its one version.

    DuckLake does not record the types of a view's columns, so the schema is empty: a client that
    knows the dialect derives them from the SQL.

    Raises:
        Refused: the view's row in the catalog is broken.
    """
    if None in (view.view_uuid, view.dialect, view.sql):
        name = f"{schema.schema_name}.{view.view_name}"
        raise Refused(
            f"the view {name} is not served: its identity, dialect or text in ducklake_view is "
            f"NULL{REMEDY}"
        )
    time = view.begin_time or EPOCH
    timestamp_ms = (time - EPOCH) // ONE_MILLISECOND
    version = {
        "version-id": view.begin_snapshot,
        "timestamp-ms": timestamp_ms,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": view.sql, "dialect": view.dialect}],
        "default-namespace": [schema.schema_name],
    }
    return {
        "view-uuid": view.view_uuid,
        "format-version": 1,
        "location": f"{location}/{view.view_uuid}",
        "current-version-id": view.begin_snapshot,
        "versions": [version],
        "version-log": [{"version-id": view.begin_snapshot, "timestamp-ms": timestamp_ms}],
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "properties": properties(tags),
    }
