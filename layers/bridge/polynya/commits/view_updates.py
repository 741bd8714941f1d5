"""Versions of views that clients write, or a refusal."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..mapping.views import DIALECT
from ..rest import updates
from ..rest.requests import (
    AddViewVersion,
    SetCurrentViewVersion,
    ViewUpdate,
    ViewVersion,
    schema_json,
)
from ..rest.schemas import Schema
from ..rest.updates import LAST_ADDED
from ..runtime.errors import BadRequest

Json = dict[str, Any]


@dataclass(slots=True)
class ViewCommit:
    """What a commit to a view asks for."""

    schemas: list[Schema] = field(default_factory=list)
    """The schemas that are added, in order."""
    versions: list[ViewVersion] = field(default_factory=list)
    current: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    removed_properties: list[str] = field(default_factory=list)


def view_commit(changes: Sequence[ViewUpdate]) -> ViewCommit:
    """The record of a commit.

    The location of a view is ignored, because no file of it exists, and so is its uuid.
    """
    commit = ViewCommit()
    for change in changes:
        match change:
            case updates.AddSchema():
                commit.schemas.append(change.schema_)
            case AddViewVersion():
                commit.versions.append(change.view_version)
            case SetCurrentViewVersion():
                commit.current = change.view_version_id
            case updates.SetProperties():
                commit.properties |= change.updates
            case updates.RemoveProperties():
                commit.removed_properties += change.removals
            case updates.UpgradeFormatVersion(format_version=version) if version != 1:
                raise BadRequest("views have format version 1")
    return commit


def query(version: ViewVersion) -> str:
    """The SQL of a version.

    Raises:
        BadRequest: it has another dialect, or several.
    """
    dialects = [r.dialect.lower() for r in version.representations]
    for dialect in dialects:
        if dialects.count(dialect) > 1:
            raise BadRequest(
                f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            )
    if dialects != [DIALECT]:
        raise BadRequest(
            f"the view has SQL for {', '.join(dialects) or 'no dialect'}: DuckLake's views have "
            f"one text, which DuckDB must be able to read, so send it for `{DIALECT}` alone"
        )
    return version.representations[0].sql


def tagged_version(version: ViewVersion, schema: Schema) -> Json:
    """What the view's tag says of a version: all but its SQL."""
    record: Json = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "summary": version.summary,
        "default-namespace": version.default_namespace,
        "schema": schema_json(schema),
    }
    if version.default_catalog is not None:
        record["default-catalog"] = version.default_catalog
    return record


def tag_text(record: Json) -> str:
    """The text of the tag."""
    return json.dumps(record, ensure_ascii=True, sort_keys=True)


def current_version(commit: ViewCommit, document: Json) -> tuple[str, Json] | None:
    """The SQL of the version that a commit makes current, and what the view's tag says of it.

    The version has the id of an equal one if there is one, else one above all others.

    Args:
        document: the view metadata before.

    Returns:
        None if the commit does not change the version.

    Raises:
        BadRequest: the version is not there, or not DuckLake's.
    """
    if commit.current is None:
        return None
    chosen = commit.versions[-1:] if commit.current == LAST_ADDED else []
    chosen = chosen or [v for v in commit.versions if v.version_id == commit.current]
    if not chosen:
        return _earlier(commit.current, document)
    version = chosen[-1]
    sql, record = query(version), tagged_version(version, _schema(version, commit, document))
    for earlier in document["versions"]:
        if _of(earlier, document) == (sql, {**record, "version-id": 0, "timestamp-ms": 0}):
            return sql, {**record, "version-id": earlier["version-id"]}
    highest = max(earlier["version-id"] for earlier in document["versions"])
    return sql, {**record, "version-id": max(version.version_id, highest + 1)}


def _schema(version: ViewVersion, commit: ViewCommit, document: Json) -> Schema:
    added = {schema.schema_id: schema for schema in commit.schemas}
    if version.schema_id == LAST_ADDED and commit.schemas:
        return commit.schemas[-1]
    if version.schema_id in added:
        return added[version.schema_id]
    for published in document["schemas"]:
        if published["schema-id"] == version.schema_id:
            return Schema.model_validate(published)
    raise BadRequest(f"the version of the view has the schema {version.schema_id}, which it lacks")


def _earlier(version_id: int, document: Json) -> tuple[str, Json]:
    for version in document["versions"]:
        if version["version-id"] == version_id:
            sql, record = _of(version, document)
            times = {key: version[key] for key in ("version-id", "timestamp-ms")}
            return sql, {**record, **times}
    raise BadRequest(f"the view has no version {version_id}")


def _of(version: Json, document: Json) -> tuple[str, Json]:
    """The SQL of a version of the view, and what its tag says, without id and time."""
    schema = Schema.model_validate(document["schemas"][version["schema-id"]])
    record = {key: version[key] for key in ("summary", "default-namespace")}
    if "default-catalog" in version:
        record["default-catalog"] = version["default-catalog"]
    times = {"version-id": 0, "timestamp-ms": 0}
    return version["representations"][0]["sql"], {**record, **times, "schema": schema_json(schema)}
