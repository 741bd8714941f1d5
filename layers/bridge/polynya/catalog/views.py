"""Operations that change views, and the versions of views that clients write."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from ..access.authorized_lake import AuthorizedLake, check_may_write_table
from ..commits.attempts import load_after_commit
from ..commits.request import tags
from ..ducklake import queries
from ..ducklake.rows.objects import VIEW_VERSION, Schema, View, quoted
from ..ducklake.writes import objects
from ..ducklake.writes.new_snapshot import CommitRow, NewSnapshot
from ..iceberg.view_text import check_length, names_are_qualified, view_text
from ..mapping.properties import is_label
from ..mapping.views import DIALECT
from ..rest import answers, requests, updates
from ..rest.schemas import Schema as ViewSchema
from ..rest.updates import LAST_ADDED
from ..runtime.errors import BadRequest, CommitFailed, IllegalArgument, NoSuchView
from ..runtime.namespaces import Namespace, dotted
from .names import check_new_name, destination_schema
from .writer import WritableCatalog, answer_nothing

Json = dict[str, Any]

DROP_DIALECT = "replace.drop-dialect.allowed"
"""The property of a view that may lose dialects."""


@dataclass(slots=True)
class ViewCommit:
    """The changes of a commit to a view."""

    schemas: list[ViewSchema] = field(default_factory=list)
    """The schemas that are added, in order."""
    versions: list[requests.ViewVersion] = field(default_factory=list)
    current: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    removed_properties: list[str] = field(default_factory=list)


def create(
    catalog: WritableCatalog, namespace: Namespace, request: requests.CreateViewRequest
) -> answers.LoadViewResult:
    """Create a view.

    Raises:
        NoSuchNamespace: the namespace does not exist.
        AlreadyExists: a table or a view has this name.
        BadRequest: DuckLake cannot have such a view.
        CommitStateUnknown: it was created, and cannot be loaded any more.
    """
    version, name = request.view_version, request.name
    text = view_text(query(version, catalog.reader.settings.view_dialects))
    new_tags = tags.values(tags.tags(request.properties, is_served=is_label))
    new_tags[VIEW_VERSION] = tag_text(tagged_version(version, request.schema_))

    def write(snapshot: NewSnapshot) -> answers.LoadViewResult:
        lake = catalog.reader.readable(snapshot.con)
        schema = lake.schema(namespace)
        check_new_name(lake, schema, name, "View")
        _check_namespace(text.is_qualified, version.default_namespace, schema)
        view_id, view_uuid = snapshot.catalog_id(), str(uuid4())
        ids = (snapshot.snapshot_id, schema.schema_id, view_id)
        objects.add_view(snapshot.con, *ids, view_uuid, name, text.sql)
        objects.add_tags(snapshot.con, snapshot.snapshot_id, view_id, new_tags)
        catalog.finish(snapshot, view_uuid, f"created_view:{quoted(*schema.namespace, name)}")
        return catalog.reader.load_view_result(lake, *lake.view(schema.namespace, name))

    return catalog.commit(write, partial(_answer_again, catalog))


def replace(
    catalog: WritableCatalog, namespace: Namespace, name: str, request: requests.CommitViewRequest
) -> answers.LoadViewResult:
    """Change the text or the properties of a view, which stays the same view.

    Raises:
        NoSuchView: it does not exist.
        CommitFailed: it is another view now.
        BadRequest: DuckLake cannot have such a view.
        CommitStateUnknown: it was changed, and cannot be loaded any more.
    """
    change = view_commit(request.updates)
    uuids = {str(requirement.uuid) for requirement in request.requirements}
    if version := chosen_version(change):
        # Before the transaction, in which other commits would wait for it.
        view_text(query(version, catalog.reader.settings.view_dialects))

    def write(snapshot: NewSnapshot) -> answers.LoadViewResult:
        lake, schema, view = _writable(catalog, snapshot, namespace, name)
        before = catalog.reader.load_view_result(lake, schema, view)
        if uuids - {view.view_uuid}:
            raise CommitFailed(
                f"Cannot commit to {dotted(*namespace, name)}: it is another view now"
            )
        dialects = catalog.reader.settings.view_dialects
        _change(snapshot, lake, schema, view, change, before["metadata"], dialects)
        catalog.finish(snapshot, view.view_uuid, f"altered_view:{view.view_id}")
        changed = lake.view(schema.namespace, view.view_name)
        return catalog.reader.load_view_result(lake, *changed)

    return catalog.commit(write, partial(_answer_again, catalog))


def drop(catalog: WritableCatalog, namespace: Namespace, name: str) -> None:
    """Drop a view.

    Raises:
        NoSuchView: it does not exist.
    """

    def write(snapshot: NewSnapshot) -> None:
        lake, _, view = _writable(catalog, snapshot, namespace, name)
        objects.drop(snapshot.con, lake.lake, snapshot.snapshot_id, view.view_id)
        catalog.finish(snapshot, view.view_uuid, f"dropped_view:{view.view_id}")

    catalog.commit(write, answer_nothing)


def rename(catalog: WritableCatalog, request: requests.RenameTableRequest) -> None:
    """Rename a view, also into another namespace.

    Raises:
        NoSuchView: it does not exist.
        NoSuchNamespace: the destination does not exist.
        AlreadyExists: a table or a view has the new name.
        BadRequest: in another namespace its text would mean other tables.
    """
    source, name = request.source, request.destination.name

    def write(snapshot: NewSnapshot) -> None:
        namespace = tuple(source.namespace)
        lake, old, view = _writable(catalog, snapshot, namespace, source.name)
        schema = destination_schema(lake, request.destination.namespace)
        check_new_name(lake, schema, name, "View", renamed=old.name_of(view.view_name))
        if schema != old:
            _check_namespace(names_are_qualified(view.sql), old.namespace, schema)
        ids = (snapshot.snapshot_id, view.view_id, schema.schema_id)
        objects.rename(snapshot.con, *ids, name)
        # DuckLake's word for it.
        catalog.finish(snapshot, view.view_uuid, f"created_view:{quoted(*schema.namespace, name)}")

    catalog.commit(write, answer_nothing)


def _answer_again(
    catalog: WritableCatalog, snapshot: NewSnapshot, row: CommitRow
) -> answers.LoadViewResult:
    """The view that this request has changed before, as it is now.

    Raises:
        CommitStateUnknown: it cannot be loaded any more.
    """
    lake = catalog.reader.readable(snapshot.con)
    with load_after_commit("the change has taken place, and the view"):
        names = queries.view_name_of_uuid(row.table_uuid).run(snapshot.con)
        if names is None or not catalog.reader.rights.may_read_table(*names):
            # Not its name: it may be one that the caller may not read.
            raise NoSuchView("it was dropped, or the caller may not read it")
        return catalog.reader.load_view_result(lake, *lake.view(*names))


def _writable(
    catalog: WritableCatalog, snapshot: NewSnapshot, namespace: Namespace, name: str
) -> tuple[AuthorizedLake, Schema, View]:
    lake = catalog.reader.readable(snapshot.con)
    schema, view = lake.view(namespace, name)
    check_may_write_table(catalog.reader.rights, schema.namespace, view.view_name)
    return lake, schema, view


def _change(
    snapshot: NewSnapshot,
    lake: AuthorizedLake,
    schema: Schema,
    view: View,
    change: ViewCommit,
    document: dict[str, Any],
    dialects: Collection[str],
) -> None:
    """Write the new rows of a view that exists.

    Args:
        document: its metadata now.
        dialects: the setting VIEW_DIALECTS.
    """
    changed = dict(tags.tags(change.properties, change.removed_properties, is_served=is_label))
    if version := current_version(change, document, dialects):
        text, record = view_text(version[0]), version[1]
        _check_namespace(text.is_qualified, record["default-namespace"], schema)
        _check_dialects(record, change, document)
        objects.end_view(snapshot.con, snapshot.snapshot_id, view.view_id)
        # These tags would hide the comments that the client gives.
        objects.end_column_tags_of_view(snapshot.con, lake.lake, snapshot.snapshot_id, view.view_id)
        ids = (snapshot.snapshot_id, schema.schema_id, view.view_id)
        objects.add_view(snapshot.con, *ids, view.view_uuid, view.view_name, text.sql)
        changed[VIEW_VERSION] = tag_text(record)
    objects.end_tags(snapshot.con, snapshot.snapshot_id, view.view_id, list(changed))
    objects.add_tags(snapshot.con, snapshot.snapshot_id, view.view_id, tags.values(changed))


def _check_namespace(is_qualified: bool, default_namespace: Sequence[str], schema: Schema) -> None:
    """Refuse a text whose tables DuckLake would look for elsewhere."""
    if tuple(default_namespace) != schema.namespace and not is_qualified:
        raise BadRequest(
            f"DuckLake looks for tables without a schema in that of the view, "
            f"{schema.full_name}, and the default namespace is {list(default_namespace)}: write "
            "the schema before each table"
        )


def _check_dialects(record: Json, change: ViewCommit, document: Json) -> None:
    """Refuse a version that lacks a dialect of the current one.

    Java checks this before it sends the request; other clients may not.
    """
    properties = {**document["properties"], **change.properties}
    is_allowed = properties.get(DROP_DIALECT, "").lower() == "true"
    if is_allowed and DROP_DIALECT not in change.removed_properties:
        return
    current = document["current-version-id"]
    [texts] = [v["representations"] for v in document["versions"] if v["version-id"] == current]
    new_texts = filter(None, record.get("representations", ()))
    dialects = {DIALECT, *(text["dialect"].lower() for text in new_texts)}
    if lost := sorted({text["dialect"].lower() for text in texts} - dialects):
        raise BadRequest(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT}=false): "
            f"{', '.join(lost)}"
        )


def view_commit(changes: Sequence[requests.ViewUpdate]) -> ViewCommit:
    """The record of a commit."""
    commit = ViewCommit()
    for change in changes:
        # A new location is ignored, because no file of a view exists, and so is a new uuid.
        match change:
            case updates.AddSchema():
                commit.schemas.append(change.schema_)
            case requests.AddViewVersion():
                commit.versions.append(change.view_version)
            case requests.SetCurrentViewVersion():
                commit.current = change.view_version_id
            case updates.SetProperties():
                commit.properties |= change.updates
            case updates.RemoveProperties():
                commit.removed_properties += change.removals
            case updates.UpgradeFormatVersion(format_version=version) if version != 1:
                raise BadRequest("views have format version 1")
    return commit


def query(version: requests.ViewVersion, more_dialects: Collection[str] = ()) -> str:
    """The SQL of a version for DuckDB.

    Args:
        more_dialects: the setting VIEW_DIALECTS: those that it may have SQL for besides.

    Raises:
        BadRequest: it has none for DuckDB, or some for another dialect.
    """
    texts = {r.dialect.lower(): r.sql for r in version.representations}
    dialects = [r.dialect.lower() for r in version.representations]
    for dialect in dialects:
        if dialects.count(dialect) > 1:
            raise IllegalArgument(
                f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            )
    if DIALECT not in texts:
        raise BadRequest(
            f"the view has SQL for {', '.join(dialects) or 'no dialect'}: DuckLake's views have "
            f"one text, which DuckDB must be able to read, so send SQL for `{DIALECT}` too"
        )
    if unserved := sorted(texts.keys() - {DIALECT} - {*more_dialects}):
        raise BadRequest(
            f"the view has SQL for {', '.join(unserved)}, which the setting VIEW_DIALECTS does not "
            f"name: add it there, or send SQL for `{DIALECT}` only"
        )
    for text in texts.values():
        check_length(text)
    return texts[DIALECT]


def tagged_version(version: requests.ViewVersion, schema: ViewSchema) -> Json:
    """The record of a version in the view's tag: all but its SQL for DuckDB."""
    record: Json = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "summary": version.summary,
        "default-namespace": version.default_namespace,
        "schema": requests.schema_json(schema),
    }
    if version.default_catalog is not None:
        record["default-catalog"] = version.default_catalog
    return record | _other_texts([r.model_dump() for r in version.representations])


def _other_texts(representations: Sequence[Json]) -> Json:
    """The entry of the tag with the SQL for other dialects, and None for DuckDB's."""
    if len(representations) == 1:
        return {}
    texts = [None if text["dialect"].lower() == DIALECT else text for text in representations]
    return {"representations": texts}


def tag_text(record: Json) -> str:
    """The text of the tag."""
    return json.dumps(record, ensure_ascii=True, sort_keys=True)


def chosen_version(commit: ViewCommit) -> requests.ViewVersion | None:
    """The new version that a commit makes current; None: no version, or an earlier one."""
    chosen = commit.versions[-1:] if commit.current == LAST_ADDED else []
    chosen = chosen or [v for v in commit.versions if v.version_id == commit.current]
    return chosen[-1] if chosen else None


def current_version(
    commit: ViewCommit, document: Json, dialects: Collection[str] = ()
) -> tuple[str, Json] | None:
    """The SQL of the version that a commit makes current, and its record in the view's tag.

    The version has the id of an equal one if there is one, otherwise an id above all others.

    Args:
        document: the view metadata before.
        dialects: the setting VIEW_DIALECTS.

    Returns:
        None if the commit does not change the version.

    Raises:
        BadRequest: the version is not there, or not DuckLake's.
    """
    if commit.current is None:
        return None
    version = chosen_version(commit)
    if version is None:
        return _earlier(commit.current, document)
    sql = query(version, dialects)
    record = tagged_version(version, _schema(version, commit, document))
    for earlier in document["versions"]:
        if _sql_and_record(earlier, document) == (
            sql,
            {**record, "version-id": 0, "timestamp-ms": 0},
        ):
            return sql, {**record, "version-id": earlier["version-id"]}
    # Another client may have taken the id since this one read the view.
    highest = max(earlier["version-id"] for earlier in document["versions"])
    return sql, {**record, "version-id": max(version.version_id, highest + 1)}


def _schema(version: requests.ViewVersion, commit: ViewCommit, document: Json) -> ViewSchema:
    added = {schema.schema_id: schema for schema in commit.schemas}
    if version.schema_id == LAST_ADDED and commit.schemas:
        return commit.schemas[-1]
    if version.schema_id in added:
        return added[version.schema_id]
    for published in document["schemas"]:
        if published["schema-id"] == version.schema_id:
            return ViewSchema.model_validate(published)
    raise BadRequest(f"the version of the view has the schema {version.schema_id}, which it lacks")


def _earlier(version_id: int, document: Json) -> tuple[str, Json]:
    for version in document["versions"]:
        if version["version-id"] == version_id:
            sql, record = _sql_and_record(version, document)
            times = {key: version[key] for key in ("version-id", "timestamp-ms")}
            return sql, {**record, **times}
    raise BadRequest(f"the view has no version {version_id}")


def _sql_and_record(version: Json, document: Json) -> tuple[str, Json]:
    """The SQL of a version of the view, and the record in its tag, without id and time."""
    # The ids of published schemas are their places in the list.
    schema = ViewSchema.model_validate(document["schemas"][version["schema-id"]])
    record = {key: version[key] for key in ("summary", "default-namespace")}
    if "default-catalog" in version:
        record["default-catalog"] = version["default-catalog"]
    record |= {"version-id": 0, "timestamp-ms": 0, "schema": requests.schema_json(schema)}
    texts = version["representations"]
    sql = next(text["sql"] for text in texts if len(texts) == 1 or text["dialect"] == DIALECT)
    return sql, record | _other_texts(texts)
