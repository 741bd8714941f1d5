"""The lake and its virtual files as one caller may see them, and checks of the right to write.

A commit checks the right to write before anything else: a rename needs it on both names, a
transaction on every table in it. Tables that the caller may not read do not exist for the caller
(`AuthorizedLake`), so that they are refused before this check.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.connection.database import Database, retried
from ..ducklake.rows.objects import Lake, NameNow, Schema, Table, View
from ..runtime import errors
from ..runtime.namespaces import Namespace, dotted
from ..runtime.settings import Config
from ..storage.objects import ObjectReader
from ..storage.operator_documents import REFRESH_SECONDS
from ..virtual_files.names import DATA_FILE, parse
from ..virtual_files.virtual_files import VirtualFiles
from .caller import Caller
from .policy import ALL, AccessResolver, Rights, TableName

Item = TypeVar("Item")
Name = TypeVar("Name", str, Namespace)

MOST_HIDDEN = 64
"""The most hidden columns of a table: names of files have their ids."""

NO_UUID = "00000000-0000-0000-0000-000000000000"
"""A uuid that no table has; rows of `polynya_commits` about namespaces have it."""


@dataclass(frozen=True, slots=True)
class AuthorizedLake:
    """The part of a lake that one caller may read, at one snapshot, within one transaction.

    The rest does not exist for the caller.
    """

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
        has_readable = {entry.schema_id for entry in self._readable()}
        visible = {
            schema.namespace
            for schema in schemas
            if schema.schema_id in has_readable or self.rights.may_read_namespace(schema.namespace)
        }
        # The parents of a visible schema are visible too: clients find it through them.
        visible |= {names[:level] for names in visible for level in range(1, len(names))}
        return [schema for schema in schemas if schema.namespace in visible]

    def schema(self, namespace: Namespace) -> Schema:
        """The schema of this name.

        Raises:
            NoSuchNamespace: there is none that the caller may see.
        """
        schema = self._schema(namespace)
        if schema is None:
            raise errors.NoSuchNamespace(f"Namespace does not exist: {dotted(*namespace)}")
        return schema

    def _schema(self, namespace: Namespace) -> Schema | None:
        return named(self.schemas(), lambda s: s.namespace, self.namespace_meant(namespace))

    @property
    def has_nested_schemas(self) -> bool:
        """Whether schemas can be in others, as in catalogs of version 1.1."""
        return "ducklake_schema.parent_schema_id" in self.lake.layout

    def namespace_meant(self, namespace: Namespace) -> Namespace:
        """The namespace that a client means."""
        # DuckDB takes the dots in a name for separators of levels. Without nested schemas they can
        # only be a part of the name.
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
        self, namespace: Namespace, name: str, match: tuple[Schema, Table] | None
    ) -> tuple[Schema, Table]:
        """The table that a request means.

        Args:
            match: the table of exactly this name, if there is one. Java writes a space as `+`, so a
                name with a `+` may mean another table.

        Raises:
            NoSuchTable: there is none that the caller may read.
        """
        if "+" in "".join((*namespace, name)):
            schema = self._schema(namespace)
            table = named(self.tables(schema) if schema else [], lambda t: t.table_name, name)
            match = (schema, table) if schema and table else None
        elif (levels := self.namespace_meant(namespace)) != namespace:
            match = queries.table_at(self.snapshot_id, levels, name).run(self.con)
        newest = self._newest(match)
        if match is None or newest is None or not self.may_read(*newest):
            raise errors.NoSuchTable(f"Table does not exist: {dotted(*namespace, name)}")
        return match

    def view(self, namespace: Namespace, name: str) -> tuple[Schema, View]:
        """The view of this name.

        Raises:
            NoSuchView: there is none that the caller may read.
        """
        schema = self._schema(namespace)
        view = named(self.views(schema) if schema else [], lambda v: v.view_name, name)
        if schema is None or view is None:
            raise errors.NoSuchView(f"View does not exist: {dotted(*namespace, name)}")
        return schema, view

    def _readable(self) -> list[NameNow]:
        """The tables and views that may be read, under the names that they have now.

        Rights do not change with the snapshot, and are the same for the files of a table.
        """
        return [
            entry
            for entry in queries.names_now(self.snapshot_id).run(self.con)
            if self.rights.may_read_table(entry.namespace, entry.name)
        ]

    def _readable_ids(self, kind: str) -> set[int] | None:
        """The ids of the tables or views that may be read; None: all may be."""
        if self.rights.all_tables:
            return None
        return {entry.object_id for entry in self._readable() if entry.kind == kind}

    def may_read(self, schema: Schema, table: Table) -> bool:
        """Whether the caller may read a table under its newest name."""
        return self.rights.may_read_table(schema.namespace, table.table_name)

    def hidden_ids(self, schema: Schema, table: Table) -> tuple[int, ...]:
        """The columns of a table that the caller does not see, by column_id, ascending.

        They are all that have, or have had, a name of the policy. A name that no column has now may
        be one that somebody has renamed.

        Raises:
            HiddenFromCaller: the policy names a column that the table does not have.
        """
        hidden = {name.casefold() for name in self._hidden_columns(schema, table)}
        if not hidden:
            return ()
        namings = queries.top_level_names(table.table_id).run(self.con)
        named = [naming for naming in namings if (naming.column_name or "").casefold() in hidden]
        has_all = {(n.column_name or "").casefold() for n in named if n.is_last} == hidden
        ids = tuple(sorted({naming.column_id for naming in named}))
        if not has_all or len(ids) > MOST_HIDDEN:
            reason = "a column that this table does not have" if not has_all else "too many columns"
            raise errors.HiddenFromCaller(
                f"the table {schema.name_of(table.table_name)} is not served to you: the "
                f"authorization policy hides {reason}; who writes the policy has to correct it"
            )
        return ids

    def check_may_write(self, schema: Schema, table: Table) -> None:
        """Check that the caller may change and drop a table.

        Raises:
            Forbidden: the caller may not.
        """
        check_may_write_table(self.rights, schema.namespace, table.table_name)
        if self._hidden_columns(schema, table):
            raise _sees_not_all(schema.namespace, table.table_name)

    def _hidden_columns(self, schema: Schema, table: Table) -> frozenset[str]:
        """The names that the policy has for a table, also by its earlier names."""
        if not self.rights.hidden:
            return frozenset()
        names = queries.names_of_table(table.table_id).run(self.con)
        if names is None:
            raise errors.HiddenFromCaller(
                f"the table {schema.name_of(table.table_name)} is not served to you: the "
                "authorization policy hides columns, and the catalog has lost a name of the table"
            )
        return self.rights.hidden_columns(names)

    def _newest(self, match: tuple[Schema, Table] | None) -> tuple[Schema, Table] | None:
        """A table under its newest name, which rights depend on; None if there is no table."""
        if self.snapshot_id == self.lake.snapshot_id:
            return match
        # Also if there is no table: otherwise the time would distinguish a hidden table from a
        # missing one.
        table_uuid = match[1].table_uuid if match else NO_UUID
        return queries.table_of_uuid(table_uuid).run(self.con) or match


def named(items: Sequence[Item], name_of: Callable[[Item], Name], name: Name) -> Item | None:
    """The item of this name, or the one that Java means by it; None if there is none.

    Raises:
        BadRequest: two items are possible; the wrong one would have the wrong rows.
        Refused: two rows of the catalog have the name.
    """
    # In a path Java writes a space as `+`. API Gateway has decoded the path, so a space can no
    # longer be distinguished from a `+`.
    matches = [item for item in items if name in {name_of(item), _java_path_name(name_of(item))}]
    if len({name_of(item) for item in matches}) < len(matches):
        raise errors.Refused(
            f"{_quoted(name)} is {len(matches)} times in DuckLake's catalog{errors.REMEDY}"
        )
    if len(matches) > 1:
        names = " and ".join(_quoted(name_of(item)) for item in matches)
        raise errors.BadRequest(
            f"{_quoted(name)} may be {names}: Java writes a space as +; rename one of them"
        )
    return matches[0] if matches else None


def _java_path_name(name: Name) -> Name:
    """A name as Java writes it in a path."""
    if isinstance(name, str):
        return name.replace(" ", "+")
    return tuple(level.replace(" ", "+") for level in name)


def _quoted(name: str | Namespace) -> str:
    return repr(name if isinstance(name, str) else dotted(*name))


class AuthorizedFiles:
    """Reads virtual files for callers who may read their tables.

    Other files do not exist for the caller, so that keys cannot be guessed.
    """

    def __init__(
        self, config: Config, database: Database, files: VirtualFiles, access: AccessResolver
    ) -> None:
        """Nothing is read before it is needed."""
        self._prefix = config.files.virtual_prefix
        self._lake = config.lake
        self.database = database
        self._files = files
        self._access = access
        self._names: dict[str, tuple[float, TableName]] = {}
        """The current name of a table that a caller may read, and when it was read."""

    @property
    def object_reader(self) -> ObjectReader:
        """Reads the lake's own files."""
        return self._files.object_reader

    def is_data_file(self, key: str) -> bool:
        """Whether a virtual file is one of `DATA_FILE`. Raises: as `names.parse`."""
        return parse(key, self._prefix).kind == DATA_FILE

    def read(self, key: str, caller: Caller) -> bytes:
        """The bytes of a virtual file, or what `FileEnd.encoded` gives of one of `DATA_FILE`.

        Raises:
            NoSuchKey: there is no such file, or the caller may not read its table.
            Misconfigured, ServiceUnavailable: the policy cannot be read; or as
                `VirtualFiles.read`.
        """
        name = parse(key, self._prefix)
        rights = self._access.file_rights(caller, self._lake)
        # Each set of hidden columns has files of its own.
        if name.hidden_ids != rights.hidden_ids or not self._may_read(name.table_uuid, rights):
            raise errors.NoSuchKey("the catalog holds no such table or snapshot")
        with errors.hiding_reasons(bool(name.hidden_ids)):
            return self._files.read(key)

    def _may_read(self, table_uuid: str, rights: Rights) -> bool:
        if rights.table_uuid not in {None, table_uuid}:
            return False
        if rights.hidden and self._hides_columns(table_uuid, rights):
            return False
        if rights.all_tables:
            return True
        if table_uuid in self._names:
            read_at, name = self._names[table_uuid]
            is_fresh = time.monotonic() - read_at <= REFRESH_SECONDS
            if is_fresh and rights.may_read_table(*name):
                return True
        # A refused name is read each time, so that a hidden table takes as long as a missing one.
        current = self._read_name(table_uuid)
        if current is None or not rights.may_read_table(*current):
            return False
        self._names[table_uuid] = (time.monotonic(), current)
        return True

    @retried
    def _hides_columns(self, table_uuid: str, rights: Rights) -> bool:
        """Whether the caller does not see columns of a table, or that is not known."""
        with self.database.transaction() as con:
            row = queries.table_of_uuid(table_uuid).run(con)
            names = queries.names_of_table(row[1].table_id).run(con) if row else None
        return names is None or bool(rights.hidden_columns(names))

    @retried
    def _read_name(self, table_uuid: str) -> TableName | None:
        with self.database.transaction() as con:
            row = queries.table_of_uuid(table_uuid).run(con)
        return (row[0].namespace, row[1].table_name) if row else None


def check_may_write_table(rights: Rights, namespace: Namespace, name: str) -> None:
    """Check that the caller may create, change and drop a table or a view of this name.

    Raises:
        Forbidden: the caller may not.
    """
    if rights.hidden_columns([(namespace, name)]):
        raise _sees_not_all(namespace, name)
    if not rights.may_write_table(namespace, name):
        raise no_right_to_table(rights, namespace, name)


def _sees_not_all(namespace: Namespace, name: str) -> errors.Forbidden:
    return errors.Forbidden(
        f"no right to write {dotted(*namespace, name)}: the authorization policy hides columns of "
        "it from you, and rows have all columns"
    )


def no_right_to_table(rights: Rights, namespace: Namespace, name: str) -> errors.Forbidden:
    """The error for a name that the caller may not write, or that an object has which the caller
    may not see: DuckLake does not distinguish letter case, and the policy does."""
    return errors.Forbidden(
        f"no right to write {dotted(*namespace, name)}: it takes the table's name, or a pattern of "
        f"it, {_where(rights.may_read_table(namespace, name))}; and the right to read whatever has "
        "the same name in other letter case"
    )


def check_may_write_namespace(rights: Rights, namespace: Namespace) -> None:
    """Check that the caller may create and drop a namespace, and set its properties.

    Raises:
        Forbidden: the caller may not.
    """
    if not rights.may_write_namespace(namespace):
        raise no_right_to_namespace(rights, namespace)


def no_right_to_namespace(rights: Rights, namespace: Namespace) -> errors.Forbidden:
    """The error for a namespace, as `no_right_to_table`."""
    return errors.Forbidden(
        f"no right to change the namespace {dotted(*namespace)}: it takes all tables of it, "
        f"`{_rule(namespace)}`, {_where(rights.may_read_namespace(namespace))}; and the right to "
        "read whatever has the same name in other letter case"
    )


def _rule(namespace: Namespace) -> str:
    """All tables of a namespace, as in a rule: `"sales": [{"europe": ["*"]}]`."""
    start: list[Any] = [ALL]
    tables = reduce(lambda inner, level: [{level: inner}], reversed(namespace), start)
    return json.dumps(tables[0], ensure_ascii=False)[1:-1]


def _where(may_read: bool) -> str:
    keys = "the key `write`" if may_read else "the keys `tables` and `write`"
    return f"under {keys} of a rule of the authorization policy"
