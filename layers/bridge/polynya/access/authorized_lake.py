"""A lake at one snapshot, within one transaction, as far as one caller may read it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.rows.lake import Lake
from ..ducklake.rows.named_objects import NameNow, Schema, Table, View
from ..errors import REMEDY, BadRequest, NoSuchNamespace, NoSuchTable, NoSuchView, Refused
from ..namespaces import Namespace, dotted
from .policy import Rights

Item = TypeVar("Item")
Name = TypeVar("Name", str, Namespace)

NO_UUID = "00000000-0000-0000-0000-000000000000"
"""Of no table."""


@dataclass(frozen=True, slots=True)
class ReadableLake:
    """What the caller may not read is as if it did not exist."""

    con: Connection
    lake: Lake
    snapshot_id: int
    """The snapshot that is read: the newest, or the one that the client named."""
    rights: Rights

    def schemas(self) -> list[Schema]:
        """The schemas that the caller may see, by name."""
        schemas = queries.schemas_at(self.snapshot_id).run(self.con)
        if self.rights.all_tables:
            return schemas
        has_readable = {found.schema_id for found in self._readable()}
        seen = {
            schema.namespace
            for schema in schemas
            if schema.schema_id in has_readable or self.rights.may_read_namespace(schema.namespace)
        }
        # One sees what a schema is in, too, or could not find it.
        seen |= {names[:level] for names in seen for level in range(1, len(names))}
        return [schema for schema in schemas if schema.namespace in seen]

    def schema(self, namespace: Namespace) -> Schema:
        """The schema of this name.

        Raises:
            NoSuchNamespace: there is none that the caller may see.
        """
        schema = self._schema(namespace)
        if schema is None:
            raise NoSuchNamespace(f"Namespace does not exist: {dotted(*namespace)}")
        return schema

    def _schema(self, namespace: Namespace) -> Schema | None:
        return named(self.schemas(), namespace_of, self.meant(namespace))

    @property
    def has_nested_schemas(self) -> bool:
        """Whether schemas can be in others: a catalog of version 1.1 can say so."""
        return "ducklake_schema.parent_schema_id" in self.lake.layout

    def meant(self, namespace: Namespace) -> Namespace:
        """The namespace that a client means.

        DuckDB takes the dots of a name for levels. Where there are none, it can mean nothing else.
        """
        return namespace if self.has_nested_schemas else (".".join(namespace),)

    def tables(self, schema: Schema) -> list[Table]:
        """The tables of a schema that the caller may read, by name."""
        tables = queries.tables_at(self.snapshot_id, schema.schema_id).run(self.con)
        readable = self._readable_ids("table")
        return [t for t in tables if readable is None or t.table_id in readable]

    def views(self, schema: Schema) -> list[View]:
        """The views of a schema that the caller may read, by name."""
        views = queries.views_at(self.snapshot_id, schema.schema_id).run(self.con)
        readable = self._readable_ids("view")
        return [v for v in views if readable is None or v.view_id in readable]

    def table(
        self, namespace: Namespace, name: str, found: tuple[Schema, Table] | None
    ) -> tuple[Schema, Table]:
        """The table that a request means.

        Args:
            found: the table of exactly this name, if there is one. Java writes a space as `+`, so
                that a name with a `+` may mean another one.

        Raises:
            NoSuchTable: there is none that the caller may read.
        """
        if "+" in "".join((*namespace, name)):
            schema = self._schema(namespace)
            table = named(self.tables(schema) if schema else [], table_name, name)
            found = (schema, table) if schema and table else None
        elif (meant := self.meant(namespace)) != namespace:
            found = queries.table_at(self.snapshot_id, meant, name).run(self.con)
        newest = self._newest(found)
        if found is None or newest is None or not self.may_read(*newest):
            raise NoSuchTable(f"Table does not exist: {dotted(*namespace, name)}")
        return found

    def view(self, namespace: Namespace, name: str) -> tuple[Schema, View]:
        """The view of this name.

        Raises:
            NoSuchView: there is none that the caller may read.
        """
        schema = self._schema(namespace)
        view = named(self.views(schema) if schema else [], view_name, name)
        if schema is None or view is None:
            raise NoSuchView(f"View does not exist: {dotted(*namespace, name)}")
        return schema, view

    def _readable(self) -> list[NameNow]:
        """The tables and views that may be read, under the names that they have now.

        Rights do not change with the snapshot, and are the same for the files of a table.
        """
        return [
            found
            for found in queries.names_now(self.snapshot_id).run(self.con)
            if self.rights.may_read_table(found.namespace, found.name)
        ]

    def _readable_ids(self, kind: str) -> set[int] | None:
        """The ids of the tables or views that may be read; None: all may be."""
        if self.rights.all_tables:
            return None
        return {found.object_id for found in self._readable() if found.kind == kind}

    def may_read(self, schema: Schema, table: Table) -> bool:
        """Whether the caller may read a table under its newest name."""
        return self.rights.may_read_table(schema.namespace, table.table_name)

    def _newest(self, found: tuple[Schema, Table] | None) -> tuple[Schema, Table] | None:
        """A table under its newest name, which rights depend on; None if there is no table."""
        if self.snapshot_id == self.lake.snapshot_id:
            return found
        # Also if there is none: otherwise the time would tell a hidden table from a missing one.
        table_uuid = found[1].table_uuid if found else NO_UUID
        return queries.table_of_uuid(table_uuid).run(self.con) or found


def schema_name(schema: Schema) -> str:
    """The name of a schema within the one that it is in, for pages."""
    return schema.schema_name


def namespace_of(schema: Schema) -> Namespace:
    """All levels of a schema, for `named`."""
    return schema.namespace


def table_name(table: Table) -> str:
    """The name of a table, for `named` and for pages."""
    return table.table_name


def view_name(view: View) -> str:
    """The name of a view, for `named` and for pages."""
    return view.view_name


def named(items: Sequence[Item], name_of: Callable[[Item], Name], name: Name) -> Item | None:
    """The item of this name, or the one that Java means by it; None if there is none.

    In a path Java writes a space as `+`. API Gateway has decoded the path, so that a space cannot
    be told from a `+` any more.

    Raises:
        BadRequest: two items are possible; the wrong one would have the wrong rows.
        Refused: two rows of the catalog have the name.
    """
    found = [one for one in items if name in {name_of(one), _in_a_path(name_of(one))}]
    if len({name_of(one) for one in found}) < len(found):
        raise Refused(f"{_said(name)} is {len(found)} times in DuckLake's catalog{REMEDY}")
    if len(found) > 1:
        names = " and ".join(_said(name_of(one)) for one in found)
        raise BadRequest(
            f"{_said(name)} may be {names}: Java writes a space as +; rename one of them"
        )
    return found[0] if found else None


def _in_a_path(name: Name) -> Name:
    """A name as Java has it in a path."""
    if isinstance(name, str):
        return name.replace(" ", "+")
    return tuple(level.replace(" ", "+") for level in name)


def _said(name: str | Namespace) -> str:
    return repr(name if isinstance(name, str) else dotted(*name))
