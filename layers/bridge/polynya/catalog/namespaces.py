"""Operations that change namespaces: a namespace is a schema of DuckLake."""

import json
from collections.abc import Mapping
from contextlib import suppress
from uuid import uuid4

from ..access.authorized_lake import NO_UUID, AuthorizedLake, check_may_write_namespace
from ..commits.client_locations import RequestedLocation
from ..commits.request import tags as request_tags
from ..ducklake import queries
from ..ducklake.paths import schema_directory
from ..ducklake.rows.objects import quoted
from ..ducklake.writes import objects
from ..ducklake.writes.new_snapshot import CommitRow, NewSnapshot
from ..mapping.properties import is_label, stored_json, tag_key
from ..rest import answers
from ..rest.requests import CreateNamespaceRequest, UpdateNamespacePropertiesRequest
from ..runtime.errors import BadRequest, NamespaceNotEmpty, Unprocessable
from ..runtime.namespaces import Namespace
from .names import check_can_nest, check_namespace_is_free, new_namespace
from .writer import WritableCatalog, answer_nothing

LOCATION = "location"
"""The property that says where the files of a namespace's new tables are."""


def create(
    catalog: WritableCatalog, request: CreateNamespaceRequest
) -> answers.GetNamespaceResponse:
    """Create a namespace, and its parents if they do not exist.

    Raises:
        AlreadyExists: it exists.
        Forbidden: the caller may not create it, or a parent that does not exist.
        NoSuchNamespace: the caller may not see its parent.
        BadRequest: DuckLake cannot have such a namespace.
    """
    namespace = new_namespace(request.namespace)
    properties = {key: value for key, value in request.properties.items() if key != LOCATION}
    location = request.properties.get(LOCATION, "").rstrip("/")
    new_tags = _changed_tags(properties, [])
    check_may_write_namespace(catalog.reader.rights, namespace)

    def write(snapshot: NewSnapshot) -> None:
        lake = catalog.reader.readable(snapshot.con)
        check_can_nest(lake, namespace)
        *parents, _ = missing = _missing(lake, namespace)
        for parent in parents:
            check_may_write_namespace(catalog.reader.rights, parent)
        check_namespace_is_free(lake, missing[0])  # the others are in this one
        above = missing[0][:-1]
        parent_id = lake.schema(above).schema_id if above else None
        for parent in parents:
            parent_id, _ = _add(snapshot, parent, parent_id)
        # After the parents are written: it may not be in the directory of one of them either.
        path = _path(catalog, lake, location) if location else None
        schema_id, schema_uuid = _add(snapshot, namespace, parent_id, path)
        new_values = request_tags.values(new_tags)
        objects.add_tags(snapshot.con, snapshot.snapshot_id, schema_id, new_values)
        catalog.finish(snapshot, schema_uuid, None)

    catalog.commit(write, answer_nothing)
    served = {request_tags.served_name(key, is_label): value for key, value in properties.items()}
    served |= {LOCATION: location} if location else {}
    return {"namespace": list(namespace), "properties": served}


def _missing(lake: AuthorizedLake, namespace: Namespace) -> list[Namespace]:
    """The parents of a new namespace that do not exist, from the top, and the namespace itself."""
    schemas = queries.schemas_at(lake.snapshot_id).run(lake.con)
    existing = {schema.namespace for schema in schemas}
    parents = (namespace[:depth] for depth in range(1, len(namespace)))
    return [*(parent for parent in parents if parent not in existing), namespace]


def _add(
    snapshot: NewSnapshot, namespace: Namespace, parent_id: int | None, path: str | None = None
) -> tuple[int, str]:
    """Write a new schema; returns its id and its uuid.

    Args:
        path: relative to the lake's data path; None: as DuckLake chooses it.
    """
    schema_id, uuid = snapshot.catalog_id(), str(uuid4())
    path = path or schema_directory(namespace, uuid)
    ids = (snapshot.snapshot_id, schema_id)
    objects.add_schema(snapshot.con, *ids, uuid, namespace[-1], path, parent_id)
    snapshot.change_names()
    snapshot.change(f"created_schema:{quoted(*namespace)}")
    return schema_id, uuid


def _path(catalog: WritableCatalog, lake: AuthorizedLake, location: str) -> str:
    """The path of a schema for which a client has chosen the location, relative to the data path.

    Raises:
        BadRequest: it is not below the data path, or something else is there.
    """
    settings = catalog.reader.settings
    places = (settings.staging_location, catalog.reader.virtual_files.location)
    requested = RequestedLocation(lake, location, *places)
    path = requested.path
    if path is None:
        raise BadRequest(
            f"the location {location} is not a directory below the lake's data path, with names of "
            "letters, digits, spaces and -_.,'(): choose one there, or leave it out"
        )
    if not requested.is_free():
        raise BadRequest(f"other files of the lake are, or may be, in {location}: choose another")
    return path


def drop(catalog: WritableCatalog, namespace: Namespace) -> None:
    """Drop a namespace.

    Raises:
        NoSuchNamespace: it does not exist.
        NamespaceNotEmpty: it has tables, views, macros or namespaces, also ones that the caller may
            not see.
    """

    def write(snapshot: NewSnapshot) -> None:
        lake = catalog.reader.readable(snapshot.con)
        schema = lake.schema(namespace)
        check_may_write_namespace(catalog.reader.rights, schema.namespace)
        if queries.has_entries(schema.schema_id).run(snapshot.con):
            raise NamespaceNotEmpty(
                f"Namespace {schema.full_name} is not empty: it has tables, views, macros or "
                "namespaces"
            )
        objects.end_schema(snapshot.con, snapshot.snapshot_id, schema.schema_id)
        catalog.finish(snapshot, NO_UUID, f"dropped_schema:{schema.schema_id}")

    catalog.commit(write, answer_nothing)


def update_properties(
    catalog: WritableCatalog, namespace: Namespace, request: UpdateNamespacePropertiesRequest
) -> answers.UpdateNamespacePropertiesResponse:
    """Set and remove properties of a namespace.

    Raises:
        NoSuchNamespace: it does not exist.
        Unprocessable: the request sets and removes one property.
        BadRequest: a property cannot be kept.
    """
    if both := request.updates.keys() & set(request.removals):
        names = ", ".join(sorted(both))
        raise Unprocessable(f"the request sets and removes the same properties: {names}")
    changed = _changed_tags(request.updates, request.removals)

    def write(snapshot: NewSnapshot) -> list[str]:
        """Write the changes; returns the properties to be removed that were not there."""
        lake = catalog.reader.readable(snapshot.con)
        schema = lake.schema(namespace)
        check_may_write_namespace(catalog.reader.rights, schema.namespace)
        tags = queries.tags_at(lake.snapshot_id, schema.schema_id).run(snapshot.con)
        keys = {tag.key for tag in tags}
        missing = [key for key in dict.fromkeys(request.removals) if tag_key(key) not in keys]
        ids = (snapshot.snapshot_id, schema.schema_id)
        objects.end_tags(snapshot.con, *ids, list(changed))
        objects.add_tags(snapshot.con, *ids, request_tags.values(changed))
        if changed.keys() & keys or request.updates:
            # DuckLake has no change of a schema, so the snapshot lists none.
            catalog.finish(snapshot, NO_UUID, None, json.dumps(missing))
        else:
            snapshot.con.run("ROLLBACK")  # nothing changes: no snapshot
        return missing

    def missing_again(_: NewSnapshot, row: CommitRow) -> list[str]:
        with suppress(ValueError):  # somebody may have changed the text by hand
            stored = stored_json(row.summary or "[]")
            if isinstance(stored, list):
                return [key for key in stored if isinstance(key, str)]
        return []

    missing = catalog.commit(write, missing_again)
    removed = [key for key in dict.fromkeys(request.removals) if key not in missing]
    return {"updated": list(request.updates), "removed": removed, "missing": missing}


def _changed_tags(updates: Mapping[str, str], removals: list[str]) -> Mapping[str, str | None]:
    if LOCATION in updates:
        raise BadRequest("a namespace stays where it is: DuckLake moves no tables")
    return request_tags.tags(updates, removals, is_served=is_label)
