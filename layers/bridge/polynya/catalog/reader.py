"""A DuckLake as an Iceberg catalog: the answers to the REST operations that read, without HTTP."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote

from pg8000.native import Connection

from ..access.authorized_lake import AuthorizedLake, schema_name, table_name, view_name
from ..access.policy import EVERYTHING, Rights
from ..access.vended_credentials import CredentialVending, TableScope, s3_properties
from ..ducklake import queries
from ..ducklake.connection.catalog_connection import Statement, known, run_batched
from ..ducklake.connection.database import Database, retried
from ..ducklake.paths import schema_location
from ..ducklake.rows.objects import Lake, Schema, Table, View
from ..mapping.manifests import fingerprint
from ..mapping.properties import is_label
from ..mapping.tables import check_lake, properties
from ..mapping.views import view_metadata
from ..rest import answers
from ..runtime.errors import BadRequest, NoSuchTable, NoSuchWarehouse
from ..runtime.namespaces import Namespace, dotted, in_path
from ..runtime.settings import Config
from ..storage import aws
from ..virtual_files.virtual_files import VirtualFiles, VirtualTable

Item = TypeVar("Item")


def page_of(
    items: Sequence[Item],
    name_of: Callable[[Item], str],
    page_token: str | None,
    page_size: int | None,
) -> tuple[Sequence[Item], dict[str, str]]:
    """One page, ordered by name, and the part of the answer that leads to the next page.

    The token is the last name of the page, so that it survives other changes of the list.

    Args:
        page_token: of the page before; None for the first page.
        page_size: None for all that is left.

    Raises:
        BadRequest: the token is not one that this catalog gave out.
    """
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


SNAPSHOT_ID = "(?P<snapshot_id>0|[1-9][0-9]{0,17})"

PINNED_NAME = re.compile(rf"(?P<name>[A-Za-z0-9_-]+)@{SNAPSHOT_ID}")
PINNED_PREFIX = re.compile(rf"(?P<name>[A-Za-z0-9_-]+)--at-{SNAPSHOT_ID}")
"""Another form than the name's, because some clients escape `@` in a path and some do not."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A lake, at its newest snapshot or pinned to one, and its names.

    They are `warehouse` of getConfig, and the path prefix of all other routes.
    """

    name: str
    snapshot_id: int | None = None
    """The snapshot that every table is pinned to; None for the newest."""

    @classmethod
    def of_name(cls, name: str) -> Warehouse:
        """Read `lake` or `lake@12`."""
        return cls._parse(PINNED_NAME, name)

    @classmethod
    def of_prefix(cls, prefix: str) -> Warehouse:
        """Read `lake` or `lake--at-12`."""
        return cls._parse(PINNED_PREFIX, prefix)

    @classmethod
    def _parse(cls, pinned: re.Pattern[str], text: str) -> Warehouse:
        match = pinned.fullmatch(text)
        return cls(match["name"], int(match["snapshot_id"])) if match else cls(text)

    @property
    def prefix(self) -> str:
        """`lake` or `lake--at-12`."""
        return self.name if self.snapshot_id is None else f"{self.name}--at-{self.snapshot_id}"

    def __str__(self) -> str:
        return self.name if self.snapshot_id is None else f"{self.name}@{self.snapshot_id}"


ENDPOINTS = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
]
"""What is served. Without the writes, PyIceberg and Java refuse them before they upload a thing."""

WRITE_ENDPOINTS = [
    "POST /v1/{prefix}/namespaces",
    "DELETE /v1/{prefix}/namespaces/{namespace}",
    "POST /v1/{prefix}/namespaces/{namespace}/properties",
    "POST /v1/{prefix}/namespaces/{namespace}/tables",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    "POST /v1/{prefix}/namespaces/{namespace}/views",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/views/rename",
]
"""What the function `commits` serves."""

KEY_LIFETIME = "PT24H"
"""How long clients may send a request again under its `Idempotency-Key`; it is kept for ever."""

WRITER_OVERRIDES = {"s3.delete-enabled": "false"}
"""Java's clients delete no file, whatever they believe about a commit. It is no configuration of a
table: there DuckDB takes any key for vended credentials, and hides the user's own behind them."""

ANY_CREDENTIALS = {"s3.access-key-id": "any", "s3.secret-access-key": "any"}
"""What a stand-in for S3 accepts. Java's clients send no request without."""

SCAN_PLANNING_MODE = "scan-planning-mode"
"""The property by which clients choose; the config of a table has the last word (Java)."""
CLIENT_PLANS = "client"
MOST_PLAN_KEYS = 100
"""Files of a plan for which a session policy is tried; some twenty fit."""

VENDING_ENDPOINTS = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """The answer to loadTable."""

    body: answers.LoadTableResult = field(repr=False)
    """It may contain vended credentials."""
    etag: str | None
    """None for an answer with credentials, because they are new each time."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One table, within the transaction that found it."""

    readable: AuthorizedLake
    schema: Schema
    table: Table


@dataclass(frozen=True)
class Catalog:
    """One lake, as of its newest snapshot or pinned to one, as one caller may read it."""

    settings: Config
    database: Database
    virtual_files: VirtualFiles
    snapshot_id: int | None = None
    """The snapshot that every table is pinned to; None for the newest."""
    rights: Rights = EVERYTHING
    _checked_versions: set[str] = field(default_factory=set)
    """Versions of the lake that this process has read and can serve."""

    # Which lake

    @retried
    def get_config(self, warehouse: str | None) -> answers.CatalogConfig:
        """The answer to getConfig.

        Raises:
            NoSuchWarehouse: the warehouse is another lake, or a snapshot that does not exist.
        """
        prefix = Warehouse.of_name(warehouse or self.settings.warehouse).prefix
        with self.at_prefix(prefix)._lake():
            pass
        more: dict[str, str] = {}
        endpoints = [*ENDPOINTS, *(VENDING_ENDPOINTS if self.settings.vending_role else [])]
        if self.settings.writes and Warehouse.of_prefix(prefix).snapshot_id is None:
            endpoints += WRITE_ENDPOINTS
            more = {"idempotency-key-lifetime": KEY_LIFETIME}
        mode = self.settings.scan_planning
        defaults = {} if mode == CLIENT_PLANS else {SCAN_PLANNING_MODE: mode}
        defaults |= self._stand_in_properties()
        overrides = {"prefix": prefix, **(WRITER_OVERRIDES if self.settings.writes else {})}
        return {"defaults": defaults, "overrides": overrides, "endpoints": endpoints, **more}  # type: ignore[typeddict-item]

    def _stand_in_properties(self) -> dict[str, str]:
        """How clients reach a stand-in for S3; none on AWS, where credentials differ.

        A client's own properties win over them. So there are credentials only if all clients have
        to use the stand-in: others may send theirs to an S3 of their own.
        """
        endpoint, storage = self.settings.object_lambda_endpoint, self.settings.storage
        if not endpoint:
            return {}
        properties = s3_properties(endpoint, aws.client("s3").meta.region_name)
        return properties | ({} if storage.is_materialized else ANY_CREDENTIALS)

    def at_prefix(self, prefix: str, rights: Rights = EVERYTHING) -> Catalog:
        """The catalog that the path prefix of a route names, as one caller may read it.

        Raises:
            NoSuchWarehouse: it names another lake.
        """
        warehouse = Warehouse.of_prefix(prefix)
        if warehouse.name != self.settings.warehouse:
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {warehouse.name}; this catalog serves "
                f"{self.settings.warehouse!r}"
            )
        return replace(self, snapshot_id=warehouse.snapshot_id, rights=rights)

    @retried
    def health(self) -> dict[str, Any]:
        """The status `ok` and the newest snapshot, if the catalog database answers.

        Raises:
            ServiceUnavailable: it does not.
        """
        with self._lake() as lake:
            return {"status": "ok", "snapshot-id": lake.snapshot_id}

    # Namespaces: DuckLake's schemas, which are in others since its version 1.1

    @retried
    def list_namespaces(
        self, parent: Namespace, page_token: str | None, page_size: int | None
    ) -> answers.ListNamespacesResponse:
        """The namespaces directly in another one, by name.

        Args:
            parent: empty for the outermost namespaces.

        Raises:
            NoSuchNamespace: the parent does not exist.
            BadRequest: the page token is not one that this catalog gave out.
        """
        with self._lake() as lake:
            within = lake.schema(parent).namespace if parent else ()
            schemas = [schema for schema in lake.schemas() if schema.parents == within]
        page, more = page_of(schemas, schema_name, page_token, page_size)
        return {"namespaces": [list(schema.namespace) for schema in page], **more}  # type: ignore[typeddict-item]

    @retried
    def load_namespace_metadata(self, namespace: Namespace) -> answers.GetNamespaceResponse:
        """One namespace. DuckLake has no properties of schemas: they are tags that it ignores.

        Where clients may write, its directory is a property: without it Trino 476 creates a
        table at once, finds its metadata in its location, and fails (trinodb/trino#26742).

        Raises:
            NoSuchNamespace: it does not exist.
        """
        with self._lake() as lake:
            schema = lake.schema(namespace)
            tags = queries.tags_at(lake.snapshot_id, schema.schema_id).run(lake.con)
            labels = properties(tags, is_label)
            if self.settings.writes and self.snapshot_id is None:
                labels["location"] = schema_location(lake.lake, schema).rstrip("/")
        return {"namespace": list(schema.namespace), "properties": labels}

    # Tables

    @retried
    def list_tables(
        self, namespace: Namespace, page_token: str | None, page_size: int | None
    ) -> answers.ListTablesResponse:
        """The tables of a namespace, by name.

        Raises:
            NoSuchNamespace: the namespace does not exist.
            BadRequest: the page token is not one that this catalog gave out.
        """
        with self._lake() as lake:
            schema = lake.schema(namespace)
            tables = lake.tables(schema)
        page, more = page_of(tables, table_name, page_token, page_size)
        return _identifiers(schema, [table.table_name for table in page], more)

    @retried
    def load_table(
        self,
        namespace: Namespace,
        table: str,
        snapshots: str | None = None,
        with_credentials: bool = False,
    ) -> LoadedTable:
        """The table metadata.

        Args:
            snapshots: `refs` for the current snapshot alone.
            with_credentials: vend credentials for the files of this table, if the settings do so;
                those of a writer to callers who may write it.

        Raises:
            NoSuchTable: the table or its namespace does not exist.
            Refused: the table cannot be served exactly.
        """
        if snapshots not in {None, "all", "refs"}:
            raise BadRequest("snapshots must be one of: all, refs")
        with self._table(namespace, table) as opened:
            body = self.load_table_result(opened, refs_only=snapshots == "refs")
            scope = self.credentials_scope(opened) if with_credentials else None
        if with_credentials and scope is None:
            body = without_config(body)
        if scope is None:
            # The location holds the fingerprint of the document, of which this is all, or the end.
            shown = (body["metadata-location"], len(body["metadata"]["snapshots"]))
            return LoadedTable(body, etag=f'"{fingerprint(*shown)}"')
        return LoadedTable(self.with_credentials(body, scope, namespace, table), etag=None)

    @retried
    def load_credentials(self, namespace: Namespace, table: str) -> answers.LoadCredentialsResponse:
        """New credentials for the files of a table.

        Raises:
            NoSuchTable: the table or its namespace does not exist; or nothing is vended, and the
                path can only mean a table of that name.
        """
        if not self.settings.vending_role:
            raise NoSuchTable(f"Table does not exist: {dotted(*namespace, table)}/credentials")
        with self._table(namespace, table) as opened:
            scope = self._scope(opened)
        return self._vending.refresh_credentials(scope)

    @retried
    def check_table_exists(self, namespace: Namespace, table: str) -> None:
        """Do nothing if the table exists.

        Raises:
            NoSuchTable: it does not.
        """
        with self._table(namespace, table):
            pass

    # Views

    @retried
    def list_views(
        self, namespace: Namespace, page_token: str | None, page_size: int | None
    ) -> answers.ListTablesResponse:
        """The views of a namespace, by name. Raises: as `list_tables`."""
        with self._lake() as lake:
            schema = lake.schema(namespace)
            views = lake.views(schema)
        page, more = page_of(views, view_name, page_token, page_size)
        return _identifiers(schema, [view.view_name for view in page], more)

    @retried
    def load_view(self, namespace: Namespace, view: str) -> answers.LoadViewResult:
        """The view metadata. No file holds it: clients read what the answer holds.

        Raises:
            NoSuchView: the view or its namespace does not exist.
        """
        with self._lake() as lake:
            return self.load_view_result(lake, *lake.view(namespace, view))

    def load_view_result(
        self, lake: AuthorizedLake, schema: Schema, view: View
    ) -> answers.LoadViewResult:
        """The answer to loadView."""
        ids = (lake.snapshot_id, view.view_id)
        tags = queries.tags_at(*ids).run(lake.con)
        texts = queries.view_texts(*ids).run(lake.con)
        comments = queries.view_column_comments_at(lake.lake, *ids).run(lake.con)
        location = self.virtual_files.location
        metadata = view_metadata(schema, view, texts, tags, comments, location)
        # Java keeps the metadata that it has as long as this is the same.
        name = f"{metadata['current-version-id']}-{fingerprint(metadata)}.metadata.json"
        metadata_location = f"{metadata['location']}/{name}"
        return {"metadata-location": metadata_location, "metadata": metadata, "config": {}}

    # Transactions

    @contextmanager
    def _lake(self) -> Iterator[AuthorizedLake]:
        """A transaction, at the pinned or the newest snapshot.

        Raises:
            NoSuchWarehouse: the lake does not have the pinned snapshot.
        """
        with self.database.transaction() as con:
            yield self.readable(con)

    @contextmanager
    def _table(self, namespace: Namespace, name: str) -> Iterator[OpenTable]:
        """A transaction on one table. Raises: as `_lake`.

        Raises:
            NoSuchTable: there is none that the caller may read.
        """
        with self.database.transaction() as con:
            yield self.find_table(con, namespace, name)

    def readable(self, con: Connection) -> AuthorizedLake:
        """The lake within a transaction.

        Raises:
            NoSuchWarehouse: the lake does not have the pinned snapshot.
        """
        lake, _ = self._read_lake(con, known(None))
        return self._readable(con, lake)

    def find_table(self, con: Connection, namespace: Namespace, name: str) -> OpenTable:
        """A table within a transaction.

        Raises:
            NoSuchTable: there is none that the caller may read.
            NoSuchWarehouse: the lake does not have the pinned snapshot.
        """
        of_this_name = queries.table_at(self.snapshot_id, namespace, name)
        lake, match = self._read_lake(con, of_this_name)
        readable = self._readable(con, lake)
        return OpenTable(readable, *readable.table(namespace, name, match))

    def _read_lake(self, con: Connection, statement: Statement[Any]) -> tuple[Lake, Any]:
        """The lake and the result of another statement, in one round trip."""
        if not self._checked_versions:
            # Another version has other tables, so no other statement may run before this check.
            lake = queries.lake().run(con)
            check_lake(lake.version, lake.encrypted)
            self._checked_versions.add(lake.version)
        pinned = self.snapshot_id
        exists = known(True) if pinned is None else queries.snapshot_exists(pinned)
        lake, is_there, result = run_batched(con, queries.lake(), exists, statement)
        check_lake(lake.version, lake.encrypted)
        if not is_there:
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {self._warehouse}; the lake has no snapshot {pinned}, "
                "or it has expired"
            )
        return lake, result

    def _readable(self, con: Connection, lake: Lake) -> AuthorizedLake:
        snapshot_id = lake.snapshot_id if self.snapshot_id is None else self.snapshot_id
        return AuthorizedLake(con, lake, snapshot_id, self.rights)

    def table_files(self, opened: OpenTable) -> VirtualTable:
        """The virtual files of a table.

        Raises:
            Refused: the table's own rows in the catalog are broken.
        """
        lake = opened.readable
        return self.virtual_files.table_files(
            lake.con, lake.lake, opened.schema, opened.table, lake.snapshot_id
        )

    def load_table_result(
        self, opened: OpenTable, *, refs_only: bool = False, is_staged: bool = False
    ) -> answers.LoadTableResult:
        """The answer to loadTable; with the delivery `materialize` its files are put.

        Args:
            opened: the table.
            refs_only: list only the newest snapshot.
            is_staged: the transaction will be rolled back: put no files.

        Raises:
            Refused: the table cannot be served exactly.
        """
        files = self.table_files(opened)
        document = files.metadata()
        if not is_staged:
            files.materialize(document)
        return {
            "metadata-location": files.metadata_location(document),
            "metadata": document.json(refs_only=refs_only),
            "config": self._table_config(opened, files),
        }

    def _table_config(self, opened: OpenTable, files: VirtualTable) -> dict[str, str]:
        planned_by_client = self.planned_by_client(opened, files, files.history.snapshot_id)
        return {SCAN_PLANNING_MODE: CLIENT_PLANS} if planned_by_client else {}

    def planned_by_client(
        self, opened: OpenTable, files: VirtualTable, snapshot_id: int
    ) -> str | None:
        """Why clients have to plan the scans of a snapshot; None: they need not."""
        scans = files.scan_files()
        if scans.has_hive_partitions:
            return "files that were added to it have a column in their path"
        if scans.inlined_rows_renamed(snapshot_id) and self._may_write(opened):
            return "writers have to name its inlined rows as its manifests do"
        return None

    # Credentials

    def credentials_scope(self, opened: OpenTable) -> TableScope | None:
        """What credentials for a table allow to the caller; None if the settings vend none."""
        return self._scope(opened) if self.settings.vending_role else None

    def with_credentials(
        self,
        body: answers.LoadTableResult,
        scope: TableScope,
        namespace: Namespace,
        table: str,
        *,
        is_committed: bool = False,
    ) -> answers.LoadTableResult:
        """An answer with new credentials for its table; outside of a transaction, for it asks STS.

        Args:
            is_committed: the request has changed the lake; if STS fails it is answered without
                credentials.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        refresh = self._refresh_path(namespace, table)
        credentials = self._vending.for_table(scope, refresh, is_committed=is_committed)
        if not credentials:
            return without_config(body)
        config = {**body["config"], **credentials["config"]}
        return {**body, **credentials, "config": config}  # type: ignore[typeddict-item]

    def plan_scope(self, opened: OpenTable, locations: Collection[str]) -> TableScope | None:
        """What credentials for these files of a table allow.

        None if the settings vend none, or if they would not be narrower than those of the table.
        """
        if not (self.settings.vending_role and len(locations) <= MOST_PLAN_KEYS):
            return None
        return self._vending.file_scope(self._scope(opened, may_write=False), locations)

    def plan_credentials(
        self, scope: TableScope, namespace: Namespace, table: str
    ) -> list[answers.StorageCredential]:
        """The field `storage-credentials` of a plan; outside of a transaction, for it asks STS.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        return self._vending.for_plan(scope, self._refresh_path(namespace, table))

    def _refresh_path(self, namespace: Namespace, table: str) -> str:
        names = f"namespaces/{in_path(namespace)}/tables/{quote(table, safe='')}"
        return f"v1/{self._warehouse.prefix}/{names}/credentials"

    @property
    def _vending(self) -> CredentialVending:
        return CredentialVending(self.settings)

    def _scope(self, opened: OpenTable, *, may_write: bool = True) -> TableScope:
        virtual = f"{self.virtual_files.location}/{opened.table.table_uuid}"
        lake = opened.readable
        may_write = may_write and self._may_write(opened)
        return self._vending.scope(
            lake.con, lake.lake, opened.schema, opened.table, virtual, may_write=may_write
        )

    def _may_write(self, opened: OpenTable) -> bool:
        """Whether the caller may write a table. A pinned lake is read-only."""
        names = opened.schema.namespace, opened.table.table_name
        may = self.settings.writes and self.snapshot_id is None
        return may and opened.readable.rights.may_write_table(*names)

    @property
    def _warehouse(self) -> Warehouse:
        return Warehouse(self.settings.warehouse, self.snapshot_id)


def without_config(body: answers.LoadTableResult) -> answers.LoadTableResult:
    """The answer to a client that asked for credentials and gets none.

    DuckDB takes a table's configuration for vended credentials, whatever keys it has: it demands a
    region, and uses no others. Only Java's clients read what is left out, and ask for credentials
    only if their user wants some.
    """
    return {**body, "config": {}}


def _identifiers(
    schema: Schema, names: list[str], more: dict[str, str]
) -> answers.ListTablesResponse:
    identifiers = [{"namespace": list(schema.namespace), "name": name} for name in names]
    return {"identifiers": identifiers, **more}  # type: ignore[typeddict-item]
