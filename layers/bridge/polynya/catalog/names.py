"""Names of namespaces, tables and views in requests: which are permitted, and what they mean."""

from collections.abc import Sequence

from ..access.authorized_lake import (
    AuthorizedLake,
    check_may_write_table,
    no_right_to_namespace,
    no_right_to_table,
)
from ..ducklake import queries
from ..ducklake.connection.catalog_connection import run_batched
from ..ducklake.rows.objects import Schema
from ..runtime.errors import AlreadyExists, BadRequest
from ..runtime.namespaces import Namespace, dotted


def new_namespace(levels: Sequence[str]) -> Namespace:
    """The name of a namespace to create.

    Raises:
        BadRequest: it has a name that DuckLake cannot have.
    """
    for level in levels:
        check_usable(level, "namespace")
    return tuple(levels)


def check_can_nest(lake: AuthorizedLake, namespace: Namespace) -> None:
    """Check that the lake can have a namespace of so many levels.

    Raises:
        BadRequest: it has several, and the catalog is older than nested schemas.
    """
    if len(namespace) > 1 and not lake.has_nested_schemas:
        raise BadRequest(
            f"the namespace {dotted(*namespace)} has {len(namespace)} levels, and the catalog of "
            f"version {lake.lake.version} has schemas of one level: migrate the lake to DuckLake "
            "1.1 (ATTACH with AUTOMATIC_MIGRATION)"
        )


def check_usable(name: str, what: str) -> None:
    """Refuse a name that DuckLake cannot have.

    Raises:
        BadRequest: it is empty or has a NUL.
    """
    if not name or "\0" in name:
        raise BadRequest(f"the name of a {what} is empty or has a NUL")


def check_namespace_is_free(lake: AuthorizedLake, namespace: Namespace) -> None:
    """Check that a namespace can be created, also one that the caller may not see.

    Raises:
        AlreadyExists: it exists.
        BadRequest: the name differs from another one in letter case only.
        Forbidden: the name differs in letter case from one that the caller may not see.
    """
    *parents, name = namespace
    schemas = queries.schemas_at(lake.snapshot_id).run(lake.con)
    names = [schema.schema_name for schema in schemas if schema.parents == tuple(parents)]
    if name in names:
        raise AlreadyExists(f"Namespace already exists: {dotted(*namespace)}")
    if other := _same_name(names, name):
        if (*parents, other) not in {schema.namespace for schema in lake.schemas()}:
            # The other refusal would name an object that the caller may not see.
            raise no_right_to_namespace(lake.rights, namespace)
        raise _same_name_refusal(name, other)


def check_new_name(
    lake: AuthorizedLake, schema: Schema, name: str, kind: str = "Table", renamed: str | None = None
) -> None:
    """Check that the caller may give a name to a table or a view, and that no other one has it.

    Args:
        kind: of what is to have the name, `Table` or `View`.
        renamed: the full name that it has now.

    Raises:
        AlreadyExists: a table or a view has the name; the sentences are those of Iceberg's server.
        BadRequest: the name differs from another one in letter case only, or is not usable.
        Forbidden: the caller may not write the name, or not see the other one.
    """
    check_may_write_table(lake.rights, schema.namespace, name)
    check_usable(name, kind.lower())
    ids = (lake.snapshot_id, schema.schema_id)
    tables, views = run_batched(lake.con, queries.tables_at(*ids), queries.views_at(*ids))
    full_name = schema.name_of(name)
    for existing, names in (
        ("Table", [table.table_name for table in tables]),
        ("View", [view.view_name for view in views]),
    ):
        if name in names and renamed is not None:
            raise AlreadyExists(
                f"Cannot rename {renamed} to {full_name}. {existing} already exists"
            )
        if name in names:
            same = "" if existing == kind else " with same name"
            raise AlreadyExists(f"{existing}{same} already exists: {full_name}")
        if other := _same_name(names, name):
            if not lake.rights.may_read_table(schema.namespace, other):
                # As in `check_namespace_is_free`: without the name of an object that the caller may
                # not see.
                raise no_right_to_table(lake.rights, schema.namespace, name)
            raise _same_name_refusal(name, other)


def _same_name(names: Sequence[str], name: str) -> str | None:
    """The name that differs in letter case only."""
    return next((other for other in names if other.casefold() == name.casefold()), None)


def _same_name_refusal(name: str, other: str) -> BadRequest:
    return BadRequest(
        f"{name} and {other} are the same name for DuckLake, which does not distinguish letter case"
    )


def destination_schema(lake: AuthorizedLake, levels: Sequence[str]) -> Schema:
    """The namespace that a rename names as its destination.

    Raises:
        NoSuchNamespace: it does not exist.
    """
    namespace = tuple(levels)
    namespaces = {schema.namespace for schema in lake.schemas()}
    # Spark sends the name of its own catalog as the first level (`RENAME TO ice.ns.t`), which the
    # server does not know. It can mean nothing else where no namespace has this name.
    if len(namespace) > 1 and not namespaces & {lake.namespace_meant(namespace), namespace[:1]}:
        return lake.schema(namespace[1:])
    return lake.schema(namespace)
