"""DuckLake views as Iceberg views. https://iceberg.apache.org/view-spec/"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ducklake.rows.objects import VIEW_VERSION, Schema, Tag, View, ViewText
from ..runtime.errors import REMEDY, Refused
from ..types.temporal import EPOCH
from .properties import is_label, stored_json
from .tables import ONE_MILLISECOND, properties

DIALECT = "duckdb"

COLUMN_COMMENT = "polynya.column-comment."
"""The beginning of the property with the comment of a column that the view's schema lacks."""

UNKNOWN_SCHEMA: dict[str, Any] = {"type": "struct", "fields": []}
"""The schema of a view that DuckDB made: DuckLake does not record the types of its columns. A
client that knows the dialect derives them from the SQL."""


@dataclass(slots=True)
class Versions:
    """The versions of a view, their log and their schemas, as they are collected."""

    versions: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    schemas: list[dict[str, Any]] = field(default_factory=list)

    def schema_id(self, schema: dict[str, Any]) -> int:
        """The id of a schema, which is added if it is new."""
        if schema not in self.schemas:
            self.schemas.append(schema)
        return self.schemas.index(schema)

    def version(self, version_id: int) -> dict[str, Any]:
        """The version of this id."""
        return next(version for version in self.versions if version["version-id"] == version_id)


def view_metadata(
    schema: Schema,
    view: View,
    texts: Sequence[ViewText],
    tags: list[Tag],
    column_comments: Mapping[str, str],
    location: str,
) -> dict[str, Any]:
    """The view metadata document.

    Args:
        texts: all texts of the view, oldest first.
        column_comments: comments by column name.

    Raises:
        Refused: the view's row in the catalog is broken.
    """
    if None in (view.view_id, view.view_uuid, view.dialect, view.sql) or not texts:
        name = schema.name_of(view.view_name)
        raise Refused(
            f"the view {name} is not served: its identity, dialect or text in ducklake_view is "
            f"NULL{REMEDY}"
        )
    history = _versions(schema, view.dialect, texts)
    current = history.version(history.log[-1]["version-id"])["schema-id"]
    documented = _documented(history.schemas[current], column_comments)
    history.schemas[current] = documented
    numbered = [{**struct, "schema-id": id_} for id_, struct in enumerate(history.schemas)]
    names = {column["name"] for column in documented["fields"]}
    return {
        "view-uuid": view.view_uuid,
        "format-version": 1,
        "location": f"{location}/{view.view_uuid}",
        "current-version-id": history.log[-1]["version-id"],
        "versions": history.versions,
        "version-log": history.log,
        "schemas": numbered,
        "properties": {
            **properties([tag for tag in tags if tag.key != VIEW_VERSION], is_label),
            **{
                COLUMN_COMMENT + name: comment
                for name, comment in column_comments.items()
                if name not in names
            },
        },
    }


def _documented(schema: dict[str, Any], comments: Mapping[str, str]) -> dict[str, Any]:
    """The schema with the comments of its columns."""
    columns = [
        {**column, "doc": comments[column["name"]]} if column["name"] in comments else column
        for column in schema["fields"]
    ]
    return {**schema, "fields": columns}


def _versions(schema: Schema, dialect: str, texts: Sequence[ViewText]) -> Versions:
    history, before = Versions(), None
    for text in texts:
        # A view that is renamed has another row with the same text.
        if (text.sql, text.client_version) != before:
            _add(history, schema, dialect, text)
        before = text.sql, text.client_version
    return history


def _add(history: Versions, schema: Schema, dialect: str, text: ViewText) -> None:
    client_version = _client_version(text)
    time = ((text.begin_time or EPOCH) - EPOCH) // ONE_MILLISECOND
    version_id = client_version.get("version-id", text.begin_snapshot)
    version_ids = {version["version-id"] for version in history.versions}
    # Otherwise the view went back to an earlier version, which only the log shows.
    if version_id not in version_ids:
        time = client_version.get("timestamp-ms", time)
        default_catalog = client_version.get("default-catalog")
        version = {
            "version-id": version_id,
            "timestamp-ms": time,
            "schema-id": history.schema_id(client_version.get("schema", UNKNOWN_SCHEMA)),
            "summary": client_version.get("summary", {}),
            "representations": [
                other or {"type": "sql", "sql": text.sql, "dialect": dialect}
                for other in client_version.get("representations", [None])
            ],
            "default-namespace": client_version.get("default-namespace", list(schema.namespace)),
        }
        if default_catalog is not None:
            version["default-catalog"] = default_catalog
        history.versions.append(version)
    history.log.append({"version-id": version_id, "timestamp-ms": time})


def _client_version(text: ViewText) -> dict[str, Any]:
    """The view version that a client gave with a text; empty if DuckDB wrote the text."""
    if text.client_version is None:
        return {}
    try:
        version = stored_json(text.client_version)
    except ValueError:
        return {}  # somebody has changed the tag by hand
    return version if isinstance(version, dict) else {}
