"""Operations that change namespaces: a namespace is a schema of DuckLake."""

import json
from collections.abc import Mapping
from uuid import uuid4

from ..access.authorized_lake import NO_UUID, check_may_write_namespace
from ..commits import table_updates
from ..ducklake import queries
from ..ducklake.paths import schema_directory
from ..ducklake.rows.objects import quoted
from ..ducklake.writes import objects
from ..ducklake.writes.commits import CommitRow, NewSnapshot
from ..mapping.properties import is_label, tag_key
from ..rest import answers
from ..rest.requests import CreateNamespaceRequest, UpdateNamespacePropertiesRequest
from ..runtime.errors import BadRequest, NamespaceNotEmpty, Unprocessable
from ..runtime.namespaces import Namespace
from .names import check_can_nest, check_namespace_is_free, new_namespace
from .writer import WritableCatalog, no_answer


def create(
    catalog: WritableCatalog, request: CreateNamespaceRequest
) -> answers.GetNamespaceResponse:
    """Create a namespace.

    Raises:
        AlreadyExists: it exists.
        NoSuchNamespace: the one that it is in does not.
        BadRequest: DuckLake cannot have such a namespace.
    """
    namespace = new_namespace(request.namespace)
    new_tags = _changed_tags(request.properties, [])
    check_may_write_namespace(catalog.reader.rights, namespace)

    def write(snapshot: NewSnapshot) -> None:
        lake = catalog.reader.readable(snapshot.con)
        check_can_nest(lake, namespace)
        parent_id = lake.schema(namespace[:-1]).schema_id if len(namespace) > 1 else None
        check_namespace_is_free(lake, namespace)
        schema_id, schema_uuid = snapshot.catalog_id(), str(uuid4())
        ids = (snapshot.snapshot_id, schema_id)
        path = schema_directory(namespace, schema_uuid)
        objects.add_schema(snapshot.con, *ids, schema_uuid, namespace[-1], path, parent_id)
        objects.add_tags(snapshot.con, *ids, table_updates.values(new_tags))
        catalog.finish(snapshot, schema_uuid, f"created_schema:{quoted(*namespace)}")

    catalog.commit(write, no_answer)
    served = {
        table_updates.served_name(key, is_label): value for key, value in request.properties.items()
    }
    return {"namespace": list(namespace), "properties": served}


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

    catalog.commit(write, no_answer)


def update_properties(
    catalog: WritableCatalog, namespace: Namespace, request: UpdateNamespacePropertiesRequest
) -> answers.UpdateNamespacePropertiesResponse:
    """Set and remove properties of a namespace.

    Raises:
        NoSuchNamespace: it does not exist.
        Unprocessable: a property is to be set and removed.
        BadRequest: a property cannot be kept.
    """
    if both := request.updates.keys() & set(request.removals):
        raise Unprocessable(f"properties to be set and removed: {', '.join(sorted(both))}")
    changed = _changed_tags(request.updates, request.removals)

    def write(snapshot: NewSnapshot) -> list[str]:
        """Write the changes; gives the properties to be removed that were not there."""
        lake = catalog.reader.readable(snapshot.con)
        schema = lake.schema(namespace)
        check_may_write_namespace(catalog.reader.rights, schema.namespace)
        tags = queries.tags_at(lake.snapshot_id, schema.schema_id).run(snapshot.con)
        keys = {tag.key for tag in tags}
        missing = [key for key in dict.fromkeys(request.removals) if tag_key(key) not in keys]
        ids = (snapshot.snapshot_id, schema.schema_id)
        objects.end_tags(snapshot.con, *ids, list(changed))
        objects.add_tags(snapshot.con, *ids, table_updates.values(changed))
        if changed.keys() & keys or request.updates:
            # DuckLake has no change of a schema, so the snapshot lists none.
            catalog.finish(snapshot, NO_UUID, None, json.dumps(missing))
        else:
            snapshot.con.run("ROLLBACK")  # nothing changes: no snapshot
        return missing

    def missing_again(_: NewSnapshot, row: CommitRow) -> list[str]:
        missing: list[str] = json.loads(row.summary or "[]")
        return missing

    missing = catalog.commit(write, missing_again)
    removed = [key for key in dict.fromkeys(request.removals) if key not in missing]
    return {"updated": list(request.updates), "removed": removed, "missing": missing}


def _changed_tags(updates: Mapping[str, str], removals: list[str]) -> Mapping[str, str | None]:
    if "location" in updates:
        raise BadRequest("DuckLake chooses the location of a namespace: do not set it")
    return table_updates.tags(updates, removals, is_served=is_label)
