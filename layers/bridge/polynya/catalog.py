"""A DuckLake as an Iceberg catalog: what the REST routes ask for, without HTTP."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from pg8000.native import Connection

from .access.policy import EVERYTHING, Rights
from .access.vended_credentials import CredentialVending, LoadCredentialsResponse, TableScope
from .config import Config
from .ducklake import queries
from .ducklake.connection.batch import together
from .ducklake.connection.database import Database
from .ducklake.rows import Lake, NameNow, Schema, Table, View
from .errors import (
    REMEDY,
    BadRequest,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    NoSuchWarehouse,
    Refused,
)
from .files.virtual_files import VirtualFiles
from .translate.fingerprints import fingerprint
from .translate.tables import check_lake
from .translate.views import view_metadata

Item = TypeVar("Item")

ENDPOINTS = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
]
"""What is served. Without the writes, PyIceberg and Java refuse them before they upload a thing."""

VENDING_ENDPOINTS = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]

PINNED = re.compile(r"(?P<warehouse>[A-Za-z0-9_-]+)@(?P<snapshot_id>0|[1-9][0-9]{0,17})")
PINNED_PREFIX = re.compile(r"(?P<warehouse>[A-Za-z0-9_-]+)--at-(?P<snapshot_id>0|[1-9][0-9]{0,17})")
"""`warehouse=lake@12` and the prefix that carries it: clients leave `@` unescaped or not."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """The answer to loadTable."""

    body: dict[str, Any]
    etag: str | None
    """None with credentials, which are others each time."""


class Catalog:
    """One lake, as of its newest snapshot or pinned to one."""

    def __init__(self, config: Config, database: Database, virtual_files: VirtualFiles) -> None:
        self._config = config
        self._database = database
        self._virtual_files = virtual_files
        self._versions: set[str] = set()  # of the lake, as seen since we are here
        self._snapshot_id: int | None = None
        self._rights = EVERYTHING
        self._prefix = config.warehouse
        self._vending = CredentialVending(config) if config.vending_role else None

    # Which lake

    def config(self, warehouse: str | None) -> dict[str, Any]:
        """The answer to getConfig.

        Raises:
            NoSuchWarehouse: another lake is asked for, or a snapshot that is not there.
        """
        prefix = self._config.warehouse
        if match := PINNED.fullmatch(warehouse or ""):
            prefix = f"{match['warehouse']}--at-{match['snapshot_id']}"
        elif warehouse:
            prefix = warehouse
        self.at_prefix(prefix)._read(lambda con, lake, snapshot_id: None)
        endpoints = [*ENDPOINTS, *(VENDING_ENDPOINTS if self._vending else [])]
        return {"defaults": {}, "overrides": {"prefix": prefix}, "endpoints": endpoints}

    def at_prefix(self, prefix: str, rights: Rights = EVERYTHING) -> Catalog:
        """The catalog that the path prefix of a route names, as one caller may see it.

        Raises:
            NoSuchWarehouse: it names another lake.
        """
        match = PINNED_PREFIX.fullmatch(prefix)
        warehouse = match["warehouse"] if match else prefix
        if warehouse != self._config.warehouse:
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {warehouse}; this catalog serves "
                f"{self._config.warehouse!r}"
            )
        catalog = Catalog(self._config, self._database, self._virtual_files)
        catalog._snapshot_id = int(match["snapshot_id"]) if match else None
        catalog._versions = self._versions
        catalog._rights = rights
        catalog._prefix = prefix
        return catalog

    def health(self) -> dict[str, Any]:
        """That the catalog database answers, and its newest snapshot."""
        return {"status": "ok", "snapshot-id": self._read(lambda con, lake, at: at)}

    # Namespaces: a DuckLake schema is a namespace of one level

    def list_namespaces(
        self, parent: str | None, page_token: str | None, page_size: int | None
    ) -> dict[str, Any]:
        def question(con: Connection, lake: Lake, snapshot_id: int) -> list[Schema]:
            if parent:
                self._schema_at(con, snapshot_id, parent)
                return []
            return self._schemas_at(con, snapshot_id)

        page, more = _page(self._read(question), _schema_name, page_token, page_size)
        return {"namespaces": [[schema.schema_name] for schema in page], **more}

    def load_namespace_metadata(self, namespace: str) -> dict[str, Any]:
        schema = self._read(lambda con, lake, at: self._schema_at(con, at, namespace))
        return {"namespace": [schema.schema_name], "properties": {}}

    # Tables

    def list_tables(
        self, namespace: str, page_token: str | None, page_size: int | None
    ) -> dict[str, Any]:
        def question(con: Connection, lake: Lake, snapshot_id: int) -> tuple[Schema, list[Table]]:
            schema = self._schema_at(con, snapshot_id, namespace)
            return schema, self._tables_at(con, snapshot_id, schema)

        schema, tables = self._read(question)
        page, more = _page(tables, _table_name, page_token, page_size)
        names = [{"namespace": [schema.schema_name], "name": table.table_name} for table in page]
        return {"identifiers": names, **more}

    def load_table(
        self,
        namespace: str,
        table: str,
        snapshots: str | None = None,
        with_credentials: bool = False,
    ) -> LoadedTable:
        """The table metadata; with `snapshots="refs"` of the current snapshot alone.

        `with_credentials`: for the files of this table, if any are vended here.

        Raises:
            NoSuchTable: also when the namespace is missing.
            Refused: the table cannot be served exactly.
        """
        if snapshots not in {None, "all", "refs"}:
            raise BadRequest("snapshots must be one of: all, refs")

        def question(
            con: Connection, lake: Lake, snapshot_id: int, schema: Schema, found: Table
        ) -> tuple[dict[str, Any], TableScope | None]:
            files = self._virtual_files.table_files(con, lake, schema, found, snapshot_id)
            document = files.metadata()
            self._virtual_files.materialize(files, document)
            body = {
                "metadata-location": files.metadata_location(document),
                "metadata": document.json(refs_only=snapshots == "refs"),
                "config": {},
            }
            vends = with_credentials and self._vending is not None
            return body, self._grant(con, lake, schema, found) if vends else None

        body, granted = self._read_table(namespace, table, question)
        if granted is None or self._vending is None:
            # The location holds the fingerprint of the document, of which this is all, or the end.
            of = (body["metadata-location"], len(body["metadata"]["snapshots"]))
            return LoadedTable(body, etag=f'"{fingerprint(*of)}"')
        at = f"v1/{self._prefix}/namespaces/{_escaped(namespace)}/tables/{_escaped(table)}"
        return LoadedTable(body | self._vending.for_table(granted, f"{at}/credentials"), etag=None)

    def load_credentials(self, namespace: str, table: str) -> LoadCredentialsResponse:
        """New credentials for the files of a table.

        Raises:
            NoSuchTable: also when the namespace is missing, or where nothing is vended: then the
                path can only mean a table of that name.
        """
        if self._vending is None:
            raise NoSuchTable(f"Table does not exist: {namespace}.{table}/credentials")

        def question(
            con: Connection, lake: Lake, snapshot_id: int, schema: Schema, found: Table
        ) -> TableScope:
            return self._grant(con, lake, schema, found)

        return self._vending.refresh_credentials(self._read_table(namespace, table, question))

    def table_exists(self, namespace: str, table: str) -> None:
        """Nothing where the table exists.

        Raises:
            NoSuchTable: it does not.
        """
        self._read_table(namespace, table, lambda *_: None)

    # Views

    def list_views(
        self, namespace: str, page_token: str | None, page_size: int | None
    ) -> dict[str, Any]:
        def question(con: Connection, lake: Lake, snapshot_id: int) -> tuple[Schema, list[View]]:
            schema = self._schema_at(con, snapshot_id, namespace)
            return schema, self._views_at(con, snapshot_id, schema)

        schema, views = self._read(question)
        page, more = _page(views, _view_name, page_token, page_size)
        names = [{"namespace": [schema.schema_name], "name": view.view_name} for view in page]
        return {"identifiers": names, **more}

    def load_view(self, namespace: str, view: str) -> dict[str, Any]:
        """The view metadata. It is in no file: clients read what the answer holds.

        Raises:
            NoSuchView: also when the namespace is missing.
        """

        def question(con: Connection, lake: Lake, snapshot_id: int) -> dict[str, Any]:
            schema = _named(self._schemas_at(con, snapshot_id), _schema_name, namespace)
            views = self._views_at(con, snapshot_id, schema) if schema else []
            found = _named(views, _view_name, view)
            if schema is None or found is None:
                raise NoSuchView(f"View does not exist: {namespace}.{view}")
            tags = queries.tags_at(con, snapshot_id, found.view_id)
            return view_metadata(schema, found, tags, self._virtual_files.location)

        metadata = self._read(question)
        location = f"{metadata['location']}/{metadata['current-version-id']}.metadata.json"
        return {"metadata-location": location, "metadata": metadata, "config": {}}

    def _read(self, question: Callable[[Connection, Lake, int], Item]) -> Item:
        """Ask within one transaction, as of the pinned or the newest snapshot."""

        def asked(con: Connection) -> Item:
            lake, snapshot_id = self._opened(con)
            return question(con, lake, snapshot_id)

        return self._database.read(asked)

    def _read_table(
        self,
        namespace: str,
        name: str,
        question: Callable[[Connection, Lake, int, Schema, Table], Item],
    ) -> Item:
        """The same of one table.

        Raises:
            NoSuchTable: it is not there, or not to be read.
        """

        def asked(con: Connection) -> Item:
            lake, snapshot_id, found = self._opened(
                con, lambda con: queries.table_at(con, self._snapshot_id, namespace, name)
            )
            schema, table = self._table(con, snapshot_id, namespace, name, found)
            return question(con, lake, snapshot_id, schema, table)

        return self._database.read(asked)

    def _opened(self, con: Connection, *questions: Callable[[Connection], Any]) -> list[Any]:
        """The lake, the snapshot as of which it is read, and the answers, in one statement."""
        pinned = self._snapshot_id
        if not self._versions:
            # Other versions have other tables, of which nothing must be asked before this check.
            lake = queries.lake(con)
            check_lake(lake.version, lake.encrypted)
            self._versions.add(lake.version)

        def is_there(con: Connection) -> bool:
            return pinned is None or queries.snapshot_exists(con, pinned)

        lake, exists, *answers = together(con, queries.lake, is_there, *questions)
        check_lake(lake.version, lake.encrypted)
        if not exists:
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {self._config.warehouse}@{pinned}; the lake has "
                f"no snapshot {pinned}, or it has expired"
            )
        return [lake, lake.snapshot_id if pinned is None else pinned, *answers]

    # What the caller may not read is as if it were not there

    def _schemas_at(self, con: Connection, snapshot_id: int) -> list[Schema]:
        schemas = queries.schemas_at(con, snapshot_id)
        if self._rights.all_tables:
            return schemas
        seen = {found.schema_id for found in self._readable(con, snapshot_id)}
        return [
            schema
            for schema in schemas
            if schema.schema_id in seen or self._rights.may_read_namespace(schema.schema_name)
        ]

    def _tables_at(self, con: Connection, snapshot_id: int, schema: Schema) -> list[Table]:
        tables = queries.tables_at(con, snapshot_id, schema.schema_id)
        if self._rights.all_tables:
            return tables
        seen = {(found.kind, found.object_id) for found in self._readable(con, snapshot_id)}
        return [table for table in tables if ("table", table.table_id) in seen]

    def _views_at(self, con: Connection, snapshot_id: int, schema: Schema) -> list[View]:
        views = queries.views_at(con, snapshot_id, schema.schema_id)
        if self._rights.all_tables:
            return views
        seen = {(found.kind, found.object_id) for found in self._readable(con, snapshot_id)}
        return [view for view in views if ("view", view.view_id) in seen]

    def _readable(self, con: Connection, snapshot_id: int) -> list[NameNow]:
        """The tables and views of a snapshot that may be read, by the names that they have now:
        rights do not change with the snapshot, and are the same for the files of a table."""
        return [
            found
            for found in queries.names_now(con, snapshot_id)
            if self._rights.may_read_table(found.schema_name, found.name)
        ]

    def _schema_at(self, con: Connection, snapshot_id: int, namespace: str) -> Schema:
        schema = _named(self._schemas_at(con, snapshot_id), _schema_name, namespace)
        if schema is None:
            raise NoSuchNamespace(f"Namespace does not exist: {namespace}")
        return schema

    def _table(
        self,
        con: Connection,
        snapshot_id: int,
        namespace: str,
        name: str,
        found: tuple[Schema, Table] | None,
    ) -> tuple[Schema, Table]:
        """The table of this very name, if it may be read; or the one that Java means by it."""
        if "+" in namespace + name:
            schema = _named(self._schemas_at(con, snapshot_id), _schema_name, namespace)
            tables = self._tables_at(con, snapshot_id, schema) if schema else []
            table = _named(tables, _table_name, name)
            found = (schema, table) if schema and table else None
        if found is None or not self._may_read(con, *found):
            raise NoSuchTable(f"Table does not exist: {namespace}.{name}")
        return found

    def _grant(self, con: Connection, lake: Lake, schema: Schema, table: Table) -> TableScope:
        assert self._vending is not None
        virtual = f"{self._virtual_files.location}/{table.table_uuid}"
        return self._vending.scope(con, lake, schema, table, virtual)

    def _may_read(self, con: Connection, schema: Schema, table: Table) -> bool:
        """The same of one table."""
        if self._snapshot_id is not None:
            schema, table = queries.table_of_uuid(con, table.table_uuid) or (schema, table)
        return self._rights.may_read_table(schema.schema_name, table.table_name)


def _escaped(name: str) -> str:
    return quote(name, safe="")


def _named(items: Sequence[Item], name_of: Callable[[Item], str], name: str) -> Item | None:
    """The item of this name, or that Java means by it: in a path it writes a space as `+`.

    API Gateway has decoded the path, so that this cannot be told from a `+` any more.

    Raises:
        BadRequest: it could be two; the wrong one would have the wrong rows.
        Refused: two rows of the catalog have the name.
    """
    found = [one for one in items if name in {name_of(one), name_of(one).replace(" ", "+")}]
    if len({name_of(one) for one in found}) < len(found):
        raise Refused(f"{name!r} is {len(found)} times in DuckLake's catalog{REMEDY}")
    if len(found) > 1:
        names = " and ".join(repr(name_of(one)) for one in found)
        raise BadRequest(f"{name!r} may be {names}: Java writes a space as +; rename one of them")
    return found[0] if found else None


def _schema_name(schema: Schema) -> str:
    return schema.schema_name


def _view_name(view: View) -> str:
    return view.view_name


def _table_name(table: Table) -> str:
    return table.table_name


def _page(
    items: Sequence[Item],
    name_of: Callable[[Item], str],
    page_token: str | None,
    page_size: int | None,
) -> tuple[Sequence[Item], dict[str, str]]:
    """A page in the order of names; the token is the last name, so it outlives other changes."""
    items = sorted(items, key=name_of)
    if page_token:
        after = _decoded(page_token)
        items = [item for item in items if name_of(item) > after]
    if page_size is None or len(items) <= page_size:
        return items, {}
    page = items[:page_size]
    token = base64.urlsafe_b64encode(name_of(page[-1]).encode()).decode()
    return page, {"next-page-token": token}


def _decoded(page_token: str) -> str:
    try:
        return base64.b64decode(page_token, altchars=b"-_", validate=True).decode()
    except ValueError:  # not base64, not even ASCII, or not UTF-8 inside
        raise BadRequest("pageToken is not one that this catalog gave out") from None
