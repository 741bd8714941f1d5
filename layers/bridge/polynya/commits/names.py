"""Names of namespaces, tables and views in requests: which may be given, and what they mean."""

from collections.abc import Sequence

from ..access.readable_lake import ReadableLake
from ..access.writable import no_right_to_namespace, no_right_to_table
from ..ducklake import queries
from ..ducklake.connection.statements import run_batched
from ..ducklake.rows.named_objects import Schema
from ..errors import AlreadyExists, BadRequest


def namespace_name(levels: Sequence[str]) -> str:
    """The namespace that the body of a request names.

    DuckDB splits a name at its dots; a namespace of several levels does not exist in DuckLake.
    """
    return ".".join(levels)


def new_namespace_name(levels: Sequence[str]) -> str:
    """The name of a namespace that is to be created.

    Raises:
        BadRequest: it has several levels, or a name that DuckLake cannot have.
    """
    if len(levels) != 1:
        raise BadRequest(
            f"the namespace {namespace_name(levels)} has {len(levels)} levels: DuckLake's schemas "
            "have one"
        )
    check_usable(levels[0], "namespace")
    return levels[0]


def check_usable(name: str, what: str) -> None:
    """Refuse a name that DuckLake cannot have.

    Raises:
        BadRequest: it is empty or has a NUL.
    """
    if not name or "\0" in name:
        raise BadRequest(f"the name of a {what} is empty or has a NUL")


def check_namespace_is_free(lake: ReadableLake, name: str) -> None:
    """Check that a namespace can be created, also one that the caller may not see.

    Raises:
        AlreadyExists: it exists.
        BadRequest: the name differs from another one in letter case only.
        Forbidden: it does, and the caller may not see the other one.
    """
    schemas = queries.schemas_at(lake.snapshot_id).run(lake.con)
    names = [schema.schema_name for schema in schemas]
    if name in names:
        raise AlreadyExists(f"Namespace already exists: {name}")
    if other := _same_name(names, name):
        if other not in {schema.schema_name for schema in lake.schemas()}:
            raise no_right_to_namespace(lake.rights, name)
        raise _same_name_refusal(name, other)


def check_name_is_free(
    lake: ReadableLake, schema: Schema, name: str, kind: str = "Table", renamed: str | None = None
) -> None:
    """Check that a table or a view can have a name, also if the caller may not see the other one.

    Args:
        kind: of what is to have the name, `Table` or `View`.
        renamed: the full name that it has now.

    Raises:
        AlreadyExists: a table or a view has the name; the sentences are those of Iceberg's server.
        BadRequest: the name differs from another one in letter case only, or is not usable.
        Forbidden: it does, and the caller may not see the other one.
    """
    check_usable(name, kind.lower())
    at = (lake.snapshot_id, schema.schema_id)
    tables, views = run_batched(lake.con, queries.tables_at(*at), queries.views_at(*at))
    full_name = f"{schema.schema_name}.{name}"
    for found, names in (
        ("Table", [table.table_name for table in tables]),
        ("View", [view.view_name for view in views]),
    ):
        if name in names and renamed is not None:
            raise AlreadyExists(f"Cannot rename {renamed} to {full_name}. {found} already exists")
        if name in names:
            same = "" if found == kind else " with same name"
            raise AlreadyExists(f"{found}{same} already exists: {full_name}")
        if other := _same_name(names, name):
            if not lake.rights.may_read_table(schema.schema_name, other):
                raise no_right_to_table(lake.rights, schema.schema_name, name)
            raise _same_name_refusal(name, other)


def _same_name(names: Sequence[str], name: str) -> str | None:
    """The name that differs in letter case only."""
    return next((other for other in names if other.casefold() == name.casefold()), None)


def _same_name_refusal(name: str, other: str) -> BadRequest:
    return BadRequest(
        f"{name} and {other} are the same name for DuckLake, which does not distinguish letter case"
    )


def destination_schema(lake: ReadableLake, levels: Sequence[str]) -> Schema:
    """The namespace that a rename names as its destination.

    Spark sends the name of its own catalog as the first level (`RENAME TO ice.ns.t`), which the
    server does not know. It can mean nothing else where no namespace has this name.

    Raises:
        NoSuchNamespace: it does not exist.
    """
    schemas = {schema.schema_name for schema in lake.schemas()}
    if len(levels) == 2 and namespace_name(levels) not in schemas and levels[0] not in schemas:
        return lake.schema(levels[1])
    return lake.schema(namespace_name(levels))
