"""Generates virtual files in this process; nothing is served, stored or written.

`connect_to_s3` lets the DuckDB of `polynya doctor` and of the page reach S3; `secrets_of` and
`redacted` keep what it says of the catalog database free of passwords.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import boto3
import duckdb
from duckdb import DuckDBPyConnection
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database, retried
from polynya.ducklake.history import TableHistory, state_at
from polynya.ducklake.rows.lifetimes import UnservableRange
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.iceberg.table_metadata import TableMetadata
from polynya.runtime.settings import SETTINGS, Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.names import Name, is_virtual, parse
from polynya.virtual_files.virtual_files import VirtualFiles, VirtualTable

from ..clients.duckdb import connect, literal
from ..lakes.files import ALIAS
from .row_counts import Counts, FileHistories, RowCounts

FIRST_SNAPSHOT = 1
"""`since` of a table with its whole history, also what is older than the listed snapshots."""

KEPT_BYTES = 512 * 1024 * 1024
TIMEOUT_SECONDS = 300  # no gateway limits it
DEFAULTS = {"VIRTUAL_BUCKET": ALIAS, "BUILD_SECONDS": "3600"}


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A table as of a snapshot, within one transaction."""

    con: Connection
    history: TableHistory
    unservable: list[UnservableRange]
    """The ranges of snapshots that cannot be served exactly."""
    metadata: TableMetadata
    _files: VirtualTable
    _generator: "Generator"

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return self.history.full_name

    def row_counts(self, snapshot_ids: Iterable[int]) -> RowCounts:
        """Counts its rows at these snapshots."""
        return self._generator.row_counts(self.con, self.history, snapshot_ids)

    def unservable_defaults(self) -> dict[str, list[UnservableRange]]:
        """Snapshots with files that lack a column which has a default, by its dotted name."""
        return self._files.unservable_defaults()

    def virtual_name(self, location: str) -> Name | None:
        """The parsed name of a virtual file; None: the location is that of a real file."""
        key, prefix = self._generator.key(location), self._generator.config.files.virtual_prefix
        return parse(key, prefix) if is_virtual(key, prefix) else None

    def body(self, location: str) -> bytes:
        """The bytes of a virtual file, as a client gets them."""
        key, cache = self._generator.key(location), self._generator.cache
        body = cache.get(key)
        if body is None:
            name = parse(key, self._generator.config.files.virtual_prefix)
            body = cache.put(key, self._files.kinds[name.kind].build(name))
        return body


Result = TypeVar("Result")


class Generator:
    """Generates what the Lambda functions serve with the settings of this environment."""

    def __init__(self, database: str, metadata_schema: str, s3_endpoint: str | None) -> None:
        """Read the settings; no connection is opened. `s3_endpoint` is set in the environment.

        Raises:
            Misconfigured: a setting of the environment, or the URL, is not usable.
        """
        os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"  # they would go to stdout
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
        if s3_endpoint:
            os.environ["AWS_ENDPOINT_URL_S3"] = s3_endpoint
        settings = {s.name: os.environ[s.name] for s in SETTINGS if s.name in os.environ}
        options = {"DATABASE_URL": database, "METADATA_SCHEMA": metadata_schema}
        self.config = Config.from_env(DEFAULTS | settings | options)
        self.database = Database(database, metadata_schema, TIMEOUT_SECONDS)
        self.cache = FileCache(None, MemoryCache(KEPT_BYTES))
        reader = object_reader()
        self._virtual_files = VirtualFiles(self.config, self.database, self.cache, reader)
        self._file_histories = FileHistories(reader)

    @property
    def virtual_location(self) -> str:
        """Where all virtual files are."""
        return self._virtual_files.location

    @retried
    def read(self, question: Callable[[Connection], Result]) -> Result:
        """The result of a function of a connection, within one transaction.

        Raises:
            PolynyaError: the database cannot be read.
        """
        with self.database.transaction() as con:
            return question(con)

    def key(self, location: str) -> str:
        """The key of a location in the bucket of the virtual files."""
        return location.removeprefix(self.config.storage.location(""))

    def open_table(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        snapshot_id: int | None = None,
        *,
        since: int = FIRST_SNAPSHOT,
    ) -> OpenedTable:
        """Open a table.

        Args:
            snapshot_id: the reader's; None: the lake's newest.
            since: the first snapshot that is read; 0: as many as clients see.

        Raises:
            Refused: the table cannot be served exactly.
        """
        then = lake.snapshot_id if snapshot_id is None else snapshot_id
        files = self._virtual_files.table_files(con, lake, schema, table, then, since=since)
        return self.opened(con, files)

    def table_files(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        snapshot_id: int,
        limit: int,
    ) -> VirtualTable:
        """What the catalog says of a table as of a snapshot, whether it is served or not.

        Args:
            limit: how many of its snapshots are read, newest first.

        Raises:
            Refused: the table's own row is broken.
        """
        return self._virtual_files.table_files(con, lake, schema, table, snapshot_id, limit=limit)

    def row_counts(
        self, con: Connection, history: TableHistory, snapshot_ids: Iterable[int]
    ) -> RowCounts:
        """Counts the rows of a table at these snapshots."""
        return RowCounts(con, history, self._file_histories, snapshot_ids)

    def counts_at(self, con: Connection, history: TableHistory, snapshot_id: int) -> Counts:
        """What a table has at a snapshot."""
        rows = self.row_counts(con, history, [snapshot_id])
        return rows.counts(snapshot_id, state_at(history.events, snapshot_id))

    def opened(self, con: Connection, files: VirtualTable) -> OpenedTable:
        """The table of these files.

        Raises:
            Refused: it cannot be served exactly.
        """
        return OpenedTable(con, files.history, files.unservable, files.metadata(), files, self)


def tables_of(con: Connection, lake: Lake) -> list[tuple[Schema, Table]]:
    """All tables of the newest snapshot."""
    return [
        (schema, table)
        for schema in queries.schemas_at(lake.snapshot_id).run(con)
        for table in queries.tables_at(lake.snapshot_id, schema.schema_id).run(con)
    ]


LONGEST_MESSAGE = 300  # characters


def connect_to_s3(
    s3_endpoint: str | None, extensions: tuple[str, ...] = ("httpfs",)
) -> DuckDBPyConnection:
    """A DuckDB that reads S3 with boto3's credentials, which DuckDB does not look for, and no
    local file."""
    con = connect(extensions)
    session = boto3.Session()
    options = {"REGION": session.region_name or "us-east-1"}
    if credentials := session.get_credentials():
        keys = credentials.get_frozen_credentials()
        options |= {"KEY_ID": keys.access_key, "SECRET": keys.secret_key}
        options |= {"SESSION_TOKEN": keys.token} if keys.token else {}
    if s3_endpoint:
        scheme, _, host = s3_endpoint.rstrip("/").rpartition("://")
        options |= {"ENDPOINT": host, "URL_STYLE": "path"}
        options |= {"USE_SSL": "true" if scheme == "https" else "false"}
    words = [f"{name} {literal(text)}" for name, text in options.items()]
    con.execute(f"CREATE SECRET (TYPE s3, PROVIDER config, {', '.join(words)})")
    # A catalog may name any file of this machine as one of its tables'.
    con.execute("SET disabled_filesystems = 'LocalFileSystem'")
    return con


OTHER_VERSION = re.compile(r"catalog version is ([\d.]+)\S*, but .* requires version ([\d.]+\d)")
"""DuckDB advises to migrate, also where the catalog is the newer one."""


def _number(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def secrets_of(url: str) -> list[str]:
    """The parts of a URL that no message may hold."""
    return [url, *filter(None, [urlsplit(url).password])]


def redacted(error: Exception, secrets: Iterable[str]) -> str:
    """An error's message in one line, replaced if it shows how we connect to the database."""
    words = " ".join(str(error).split())
    if (versions := OTHER_VERSION.search(words)) and _number(versions[1]) > _number(versions[2]):
        return (
            f"the installed DuckDB {duckdb.__version__} reads DuckLake natively up to catalog "
            f"version {versions[2]}, and this catalog has {versions[1]}: the comparison with "
            "native DuckLake is left out"
        )
    if any(secret in words for secret in secrets) or "postgres:" in words:
        return "DuckDB cannot attach the lake"
    return words if len(words) <= LONGEST_MESSAGE else f"{words[:LONGEST_MESSAGE]}…"
