"""A lake as a warehouse of the REST catalog: its names, its configuration, and its content."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from pg8000.native import Connection

from ..access.authorized_lake import AuthorizedLake
from ..access.policy import EVERYTHING, Rights
from ..access.vended_credentials import CredentialVending, s3_properties
from ..ducklake import queries
from ..ducklake.connection.catalog_connection import (
    Statement,
    constant,
    keeping_prepared,
    run_batched,
)
from ..ducklake.connection.database import Database, retried
from ..ducklake.paths import schema_location
from ..ducklake.rows.objects import Lake, Schema
from ..mapping.properties import is_label
from ..mapping.tables import check_lake, properties
from ..rest import answers
from ..runtime.errors import BadRequest, NoSuchWarehouse
from ..runtime.namespaces import Namespace
from ..runtime.settings import ALL, CLIENTS, NONE, NOT_MATERIALIZED, Config, words_for
from ..storage.aws import Clients
from ..virtual_files.virtual_files import VirtualFiles

Item = TypeVar("Item")


def page_of(
    items: Sequence[Item],
    name_of: Callable[[Item], str],
    page_token: str | None,
    page_size: int | None,
) -> tuple[Sequence[Item], dict[str, str]]:
    """One page, ordered by name, and the part of the answer that leads to the next page.

    Args:
        page_token: of the page before; None for the first page.
        page_size: None for all that is left.

    Raises:
        BadRequest: the token is not from this catalog.
    """
    items = sorted(items, key=name_of)
    if page_token:
        after = _decoded(page_token)
        items = [item for item in items if name_of(item) > after]
    if page_size is None or len(items) <= page_size:
        return items, {}
    page = items[:page_size]
    # The last name, not a number, so that changes of the list do not matter.
    token = base64.urlsafe_b64encode(name_of(page[-1]).encode()).decode()
    return page, {"next-page-token": token}


def _decoded(page_token: str) -> str:
    try:
        return base64.b64decode(page_token, altchars=b"-_", validate=True).decode()
    except ValueError:  # not base64, not even ASCII, or not UTF-8 inside
        raise BadRequest("the pageToken is not from this catalog: list again without it") from None


SNAPSHOT_ID = "(?P<snapshot_id>0|[1-9][0-9]{0,17})"

WORDS = "|".join(sorted(("v3", ALL, NONE, *CLIENTS), reverse=True))
"""What may follow the name of a lake."""

NAME = re.compile(rf"(?P<name>[A-Za-z0-9_-]+)(?P<words>(?:[+ ](?:{WORDS}))*)(?:@{SNAPSHOT_ID})?")
"""In a query, `+` is a space for who does not escape it."""
PREFIX = re.compile(
    rf"(?P<name>[A-Za-z0-9_-]+?)(?P<words>(?:[.](?:{WORDS}))*)(?:--at-{SNAPSHOT_ID})?"
)
"""Another form than the name's, because some clients escape `@` and `+` in a path, some do not."""


def no_such_warehouse(name: str, more: str = "") -> NoSuchWarehouse:
    """The answer if there is no lake, or if the caller has no rights in it.

    Args:
        more: the end of the message.
    """
    if re.search("[+ ]", name):
        more += (
            f"; what follows a + may be v3, {ALL}, {NONE}, or some of {', '.join(sorted(CLIENTS))}"
        )
    return NoSuchWarehouse(f"Warehouse does not exist: {name}{more}")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A lake, at its newest snapshot or pinned to one, with all columns or not, for all clients or
    for some, and its names.

    They are `warehouse` of getConfig, and the path prefix of all other routes.
    """

    name: str
    snapshot_id: int | None = None
    """The snapshot that every table is pinned to; None for the newest."""
    shows_version_3: bool = False
    """Tables show columns that need Iceberg's format version 3, whatever the settings say."""
    clients: frozenset[str] | None = None
    """The clients whose faults are made up for; None: those of the settings."""

    @classmethod
    def parse_name(cls, name: str) -> Warehouse:
        """Read `lake`, `lake@12`, `lake+v3`, `lake+spark+trino` or `lake+v3+spark@12`."""
        return cls._parse(NAME, name)

    @classmethod
    def parse_prefix(cls, prefix: str) -> Warehouse:
        """Read `lake`, `lake--at-12`, `lake.v3`, `lake.spark.trino` or `lake.v3.spark--at-12`."""
        return cls._parse(PREFIX, prefix)

    @classmethod
    def _parse(cls, pattern: re.Pattern[str], text: str) -> Warehouse:
        match = pattern.fullmatch(text)
        if match is None:
            return cls(text)
        snapshot_id = None if match["snapshot_id"] is None else int(match["snapshot_id"])
        words = re.split("[+ .]", match["words"])[1:]
        names = {*words} - {"v3"}
        is_one_set = len(names) <= 1 or not names & {ALL, NONE}
        if len({*words}) < len(words) or not is_one_set:
            return cls(text)
        clients = frozenset(names) if names else None
        if clients and clients <= {ALL, NONE}:
            clients = CLIENTS if ALL in clients else frozenset()
        return cls(match["name"], snapshot_id, "v3" in words, clients)

    @property
    def prefix(self) -> str:
        """As `parse_prefix` reads it."""
        return self._written(".", "--at-")

    def __str__(self) -> str:
        return self._written("+", "@")

    def _written(self, separator: str, pin: str) -> str:
        words = ["v3"] if self.shows_version_3 else []
        words += [] if self.clients is None else words_for(self.clients)
        name = separator.join([self.name, *words])
        return name if self.snapshot_id is None else f"{name}{pin}{self.snapshot_id}"


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
"""The operations of a lake that is read-only: PyIceberg and Java refuse others before they upload
anything."""

WRITE_ENDPOINTS = [
    "POST /v1/{prefix}/namespaces",
    "DELETE /v1/{prefix}/namespaces/{namespace}",
    "POST /v1/{prefix}/namespaces/{namespace}/properties",
    "POST /v1/{prefix}/namespaces/{namespace}/tables",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/register",
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    "POST /v1/{prefix}/namespaces/{namespace}/views",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/views/rename",
]
"""The operations of the function `commits`."""

KEY_LIFETIME = "PT24H"
"""How long clients may send a request again under its `Idempotency-Key`; it is kept for ever."""

WRITER_OVERRIDES = {"s3.delete-enabled": "false"}
"""Java's clients then delete no file, even if they take a commit for failed. It is not in the
configuration of a table, where DuckDB takes any key for vended credentials, which replace the
user's own."""

ANY_CREDENTIALS = {"s3.access-key-id": "any", "s3.secret-access-key": "any"}
"""Credentials for a stand-in for S3, which accepts any. Java's clients send no request without
some."""

# Only for large lakes, because Polars before 2.1 cannot read a table of PyIceberg's with it:
# `failed to parse "60" as Duration`. And no `s3.connect-timeout`, which iceberg-go refused until
# June 2026: what takes long is not the connection.
PATIENCE = {"s3.request-timeout": "60"}
"""PyIceberg waits for an object for three seconds. The first plan of a table generates its metadata
files meanwhile."""

SCAN_PLANNING_MODE = "scan-planning-mode"
"""The property by which clients choose; the config of a table has the last word (Java)."""
CLIENT_PLANS = "client"

VENDING_ENDPOINTS = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]


@dataclass(frozen=True)
class LakeCatalog:
    """One lake, as of its newest snapshot or pinned to one, as one caller may list it."""

    settings: Config
    database: Database
    virtual_files: VirtualFiles
    snapshot_id: int | None = None
    """The snapshot that every table is pinned to; None for the newest."""
    shows_version_3: bool = False
    """Tables show columns that need Iceberg's format version 3, whatever the settings say."""
    clients: frozenset[str] | None = None
    """The clients whose faults are made up for; None: those of the settings."""
    rights: Rights = EVERYTHING
    vending: CredentialVending | None = field(default=None, repr=False)
    """Vends credentials for the files of a table; None: nothing does."""
    client_properties: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)
    """Gives what getConfig tells clients of the host."""
    aws: Clients = field(default_factory=Clients, repr=False)
    _checked_versions: set[str] = field(default_factory=set)
    """The catalog versions that this process has seen in the lake and can serve."""

    @retried
    def get_config(self, warehouse: str | None) -> answers.CatalogConfig:
        """The answer to getConfig.

        Raises:
            NoSuchWarehouse: the warehouse is another lake, or a snapshot that does not exist.
        """
        prefix = Warehouse.parse_name(warehouse or self.settings.warehouse).prefix
        with self.open_prefix(prefix)._lake() as readable:
            is_large = readable.lake.is_large
        more: dict[str, str] = {}
        endpoints = [*ENDPOINTS, *(VENDING_ENDPOINTS if self.vending else [])]
        if self.settings.writes and Warehouse.parse_prefix(prefix).snapshot_id is None:
            endpoints += WRITE_ENDPOINTS
            more = {"idempotency-key-lifetime": KEY_LIFETIME}
        mode = self.settings.scan_planning
        defaults = {} if mode == CLIENT_PLANS else {SCAN_PLANNING_MODE: mode}
        defaults |= {**self._stand_in_properties(), **self.client_properties()}
        if is_large and not self.settings.storage.is_materialized:
            defaults |= PATIENCE
        overrides = {"prefix": prefix, **(WRITER_OVERRIDES if self.settings.writes else {})}
        return {"defaults": defaults, "overrides": overrides, "endpoints": endpoints, **more}  # type: ignore[typeddict-item]

    def _stand_in_properties(self) -> dict[str, str]:
        """The properties to reach a stand-in for S3; empty on AWS, where credentials differ."""
        endpoint, storage = self.settings.object_lambda_endpoint, self.settings.storage
        if not endpoint:
            return {}
        properties = s3_properties(endpoint, self.aws.region())
        # A client's own properties take precedence. Credentials are included only if all clients
        # have to use the stand-in, which accepts any: otherwise clients may have an S3 of their
        # own, to which they would send these.
        is_given = storage.is_materialized or self.vending is not None
        return properties | ({} if is_given else ANY_CREDENTIALS)

    def open_prefix(self, prefix: str, rights: Rights = EVERYTHING) -> Self:
        """The catalog that the path prefix of a route names, as one caller may read it.

        Raises:
            NoSuchWarehouse: it names another lake.
            BadRequest: it names clients whose faults nothing makes up for with the delivery.
        """
        warehouse = Warehouse.parse_prefix(prefix)
        if warehouse.name != self.settings.warehouse:
            serves = f"; this catalog serves {self.settings.warehouse!r}"
            raise no_such_warehouse(warehouse.name, serves)
        if warehouse.clients and not self.settings.storage.can_adapt:
            raise BadRequest(f"the warehouse {warehouse}: {NOT_MATERIALIZED}")
        return replace(
            self,
            snapshot_id=warehouse.snapshot_id,
            shows_version_3=warehouse.shows_version_3,
            clients=warehouse.clients,
            rights=rights,
        )

    @retried
    def health(self) -> dict[str, Any]:
        """The status `ok` and the newest snapshot, if the catalog database answers.

        Raises:
            ServiceUnavailable: it does not.
        """
        with self._lake() as lake:
            return {"status": "ok", "snapshot-id": lake.snapshot_id}

    @retried
    def list_namespaces(
        self, parent: Namespace, page_token: str | None, page_size: int | None
    ) -> answers.ListNamespacesResponse:
        """The namespaces directly in another one, by name.

        Args:
            parent: empty for the outermost namespaces.

        Raises:
            NoSuchNamespace: the parent does not exist.
            BadRequest: the page token is not from this catalog.
        """
        with self._lake() as lake:
            within = lake.schema(parent).namespace if parent else ()
            schemas = [schema for schema in lake.schemas() if schema.parents == within]
        page, more = page_of(schemas, lambda s: s.schema_name, page_token, page_size)
        return {"namespaces": [list(schema.namespace) for schema in page], **more}  # type: ignore[typeddict-item]

    @retried
    def load_namespace_metadata(self, namespace: Namespace) -> answers.GetNamespaceResponse:
        """One namespace. DuckLake has no properties of schemas: they are tags that it ignores.

        Raises:
            NoSuchNamespace: it does not exist.
        """
        with self._lake() as lake:
            schema = lake.schema(namespace)
            tags = queries.tags_at(lake.snapshot_id, schema.schema_id).run(lake.con)
            labels = properties(tags, is_label)
            if self.settings.writes and self.snapshot_id is None:
                # Without it Trino 476 creates a table at once, finds its metadata in its location,
                # and fails (trinodb/trino#26742).
                labels["location"] = schema_location(lake.lake, schema).rstrip("/")
        return {"namespace": list(schema.namespace), "properties": labels}

    @retried
    def list_tables(
        self, namespace: Namespace, page_token: str | None, page_size: int | None
    ) -> answers.ListTablesResponse:
        """The tables of a namespace, by name.

        Raises:
            NoSuchNamespace: the namespace does not exist.
            BadRequest: the page token is not from this catalog.
        """
        with self._lake() as lake:
            schema = lake.schema(namespace)
            names = [table.table_name for table in lake.tables(schema)]
        return _identifiers(schema, names, page_token, page_size)

    @retried
    def list_views(
        self, namespace: Namespace, page_token: str | None, page_size: int | None
    ) -> answers.ListTablesResponse:
        """The views of a namespace, by name. Raises: as `list_tables`."""
        with self._lake() as lake:
            schema = lake.schema(namespace)
            names = [view.view_name for view in lake.views(schema)]
        return _identifiers(schema, names, page_token, page_size)

    @contextmanager
    def _lake(self) -> Iterator[AuthorizedLake]:
        """A transaction, at the pinned or the newest snapshot.

        Raises:
            NoSuchWarehouse: the lake does not have the pinned snapshot.
        """
        with self.database.transaction() as con:
            yield self.readable(con)

    def readable(self, con: Connection) -> AuthorizedLake:
        """The lake within a transaction.

        Raises:
            NoSuchWarehouse: the lake does not have the pinned snapshot.
        """
        lake, _ = self._read_lake(con, constant(None))
        return self._readable(con, lake)

    def _read_lake(self, con: Connection, statement: Statement[Any]) -> tuple[Lake, Any]:
        """The lake and the result of another statement, in one round trip."""
        if not self._checked_versions:
            # Another version has other tables, so no other statement may run before this check.
            lake = queries.lake().run(con)
            check_lake(lake)
            self._checked_versions.add(lake.version)
        pinned = self.snapshot_id
        exists = constant(True) if pinned is None else queries.snapshot_exists(pinned)
        with keeping_prepared(con):
            lake, is_there, result = run_batched(con, queries.lake(), exists, statement)
        check_lake(lake)
        self.settings.check_data_path(lake.data_path)
        # PostgreSQL plans a prepared statement without the values of its parameters. With one large
        # table beside small ones such a plan scans the files of all, where an index would do.
        self.database.keep_prepared(lake.is_small)
        if not is_there:
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {self._warehouse}; the lake has no snapshot {pinned}, "
                "or it has expired"
            )
        return lake, result

    def _readable(self, con: Connection, lake: Lake) -> AuthorizedLake:
        snapshot_id = lake.snapshot_id if self.snapshot_id is None else self.snapshot_id
        return AuthorizedLake(con, lake, snapshot_id, self.rights)

    @property
    def _warehouse(self) -> Warehouse:
        own = (self.snapshot_id, self.shows_version_3, self.clients)
        return Warehouse(self.settings.warehouse, *own)


def _identifiers(
    schema: Schema, names: Sequence[str], page_token: str | None, page_size: int | None
) -> answers.ListTablesResponse:
    names, more = page_of(names, str, page_token, page_size)
    identifiers = [{"namespace": list(schema.namespace), "name": name} for name in names]
    return {"identifiers": identifiers, **more}  # type: ignore[typeddict-item]
