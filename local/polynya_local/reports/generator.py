"""Generates virtual files in this process; nothing is served, stored or written.

`OpenedTable` is a table whose files `Generator` generates.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from pg8000.native import Connection
from polynya.catalog.lakes_document import lakes_of
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database, retried
from polynya.ducklake.queries.history import TableHistory, state_at, unservable_reason
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.iceberg.table_metadata import TableMetadata
from polynya.mapping.properties import REASONS_NOTE
from polynya.mapping.tables import check_lake
from polynya.runtime.errors import PolynyaError, Refused
from polynya.runtime.settings import Config, settings_in
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import ObjectReader, object_reader
from polynya.virtual_files.names import Name
from polynya.virtual_files.virtual_files import VirtualFiles, VirtualTable

from ..lakes.lake_files import ALIAS
from .row_counts import Counts, FileHistories, RowCounts
from .sight import Sight

FIRST_SNAPSHOT = 1
"""The `since` with which a table's whole history is read, beyond the listed snapshots."""

KEPT_BYTES = 512 * 1024 * 1024
TIMEOUT_SECONDS = 300  # no gateway limits it
NULL_READERS = ("Trino", "Flink", "Daft", "ClickHouse")
"""The clients that read NULL where a file lacks a column with a default."""
LACKED_IN_PAST = "files of past snapshots lack it"
DEFAULTS = {"VIRTUAL_BUCKET": ALIAS, "BUILD_SECONDS": "3600"}


Result = TypeVar("Result")


class Generator:
    """Generates what the application serves with these settings."""

    def __init__(
        self,
        database: str,
        metadata_schema: str,
        aws: AwsSettings,
        lake: str = "",
        *,
        settings: Mapping[str, str] = os.environ,
        objects: ObjectReader | None = None,
        sight: Sight | None = None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """Read the settings; no connection is opened.

        Args:
            aws: where the data is.
            lake: the name of one of several lakes, whose settings are in LAKES.
            settings: as in docs/settings.md.
            objects: reads the data; None: from S3.
            sight: what the reader may see of the lake; None: all.
            kept_bytes: how many bytes of generated files are cached.

        Raises:
            Misconfigured: a setting, or the URL, is not usable.
        """
        self.aws, self._sight = aws, sight
        settings = settings_in(settings)
        options = {"DATABASE_URL": database, "METADATA_SCHEMA": metadata_schema}
        if lake and (document := settings.get("LAKES")):
            config = lakes_of(document, DEFAULTS | settings)[lake]
            if isinstance(config, PolynyaError):
                raise config
            self.config = config
        else:
            self.config = Config.from_env(DEFAULTS | settings | options)
        self.database = Database(database, metadata_schema, TIMEOUT_SECONDS)
        self.cache = FileCache(None, MemoryCache(kept_bytes))
        objects = objects or object_reader(Clients(aws))
        self._virtual_files = VirtualFiles(self.config, self.database, self.cache, objects)
        self.file_histories = FileHistories(objects)

    @property
    def virtual_location(self) -> str:
        """The location below which all virtual files are."""
        return self._virtual_files.location

    @retried
    def read(self, question: Callable[[Connection], Result]) -> Result:
        """Call a function with a connection, within one transaction, and return its result.

        Raises:
            PolynyaError: the database cannot be read.
        """
        with self.database.transaction() as con:
            return question(self._sight.limited(con) if self._sight else con)

    def open_table(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        snapshot_id: int | None = None,
        *,
        since: int = FIRST_SNAPSHOT,
        limit: int | None = None,
    ) -> "OpenedTable":
        """Open a table, whether it is served or not.

        Args:
            snapshot_id: the snapshot at which it is read; None: the lake's newest.
            since: the first of its snapshots that is read; 0: as many as clients see.
            limit: how many of its snapshots are read, newest first; `since` is then ignored.

        Raises:
            Refused: the table's own row is broken.
        """
        if snapshot_id is None:
            snapshot_id = lake.snapshot_id
        since = since if limit is None else 0
        files = self._virtual_files.table_files(con, lake, schema, table, snapshot_id, since, limit)
        return OpenedTable(con, files, self)


@dataclass(frozen=True)
class OpenedTable:
    """A table as of a snapshot, within one transaction, whether Iceberg clients get it or not."""

    con: Connection
    files: VirtualTable
    generator: Generator

    @property
    def history(self) -> TableHistory:
        """What the catalog has on it."""
        return self.files.history

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return self.history.full_name

    @property
    def lake(self) -> Lake:
        """The lake at its newest snapshot."""
        return self.history.lake

    @property
    def table_id(self) -> int:
        """DuckLake's."""
        return self.history.table.table_id

    @property
    def snapshot_id(self) -> int:
        """The snapshot at which it is read."""
        return self.history.snapshot_id

    @cached_property
    def _document(self) -> TableMetadata | Refused:
        try:
            return self.files.metadata()
        except Refused as error:
            return error

    @property
    def is_served(self) -> bool:
        """Whether Iceberg clients get it."""
        return not isinstance(self._document, Refused)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata document.

        Raises:
            Refused: Iceberg clients do not get the table, because it cannot be served exactly.
        """
        if isinstance(self._document, Refused):
            raise self._document
        return self._document

    @cached_property
    def hidden_columns(self) -> dict[str, str]:
        """The reason that clients get for each hidden column, by dotted name."""
        hidden: dict[str, str] = json.loads(self.metadata.properties.get(REASONS_NOTE, "{}"))
        return hidden

    @cached_property
    def with_version_3(self) -> "OpenedTable | None":
        """The table as the warehouse `lake+v3` has it; None if it shows no other columns there."""
        files = VirtualTable(self.con, self.history, self.files.table.context, True)
        return replace(self, files=files) if self._gained(files) else None

    @property
    def gained_columns(self) -> list[str]:
        """Hidden columns that the warehouse `lake+v3` shows, by dotted name."""
        return self._gained(self.with_version_3.files) if self.with_version_3 else []

    def _gained(self, files: VirtualTable) -> list[str]:
        shown, hidden = files.table.schemas, self.files.table.schemas.hidden
        return [name for name in hidden if name not in shown.hidden]

    @cached_property
    def default_columns(self) -> dict[str, str]:
        """Columns with a default that files lack, and what clients read there, by dotted name."""
        defaults = {}
        *first, last = NULL_READERS
        readers = f"{', '.join(first)} and {last}"
        for name, unservable in self.files.unservable_defaults().items():
            if unservable:
                is_now = unservable_reason(unservable, self.snapshot_id) is not None
                files = "files lack it" if is_now else LACKED_IN_PAST
                defaults[name] = f"{files}, and {readers} read NULL there"
        return defaults

    def left_out_snapshots(self) -> dict[int, str]:
        """Snapshots that touched the table and are not listed, and why."""
        listed = {snapshot.sequence_number for snapshot in self.metadata.snapshots}
        older = f"older than the newest {len(listed)} (SNAPSHOT_LIMIT)"
        if self.history.since > FIRST_SNAPSHOT:
            older += f"; those before snapshot {self.history.since} are not counted"
        accounted = listed | self.history.unlisted
        return {
            s.snapshot_id: unservable_reason(self.files.unservable, s.snapshot_id) or older
            for s in self.history.snapshots
            if s.snapshot_id not in accounted
        }

    def row_counts(self, snapshot_ids: Iterable[int]) -> RowCounts:
        """A counter of its rows at these snapshots."""
        return RowCounts(self.con, self.history, self.generator.file_histories, snapshot_ids)

    def counts(self, snapshot_id: int | None = None) -> Counts:
        """Its counts at a snapshot that was read; None: its own."""
        if snapshot_id is None:
            snapshot_id = self.snapshot_id
        state = state_at(self.history.events, snapshot_id)
        return self.row_counts([snapshot_id]).counts(snapshot_id, state)

    def open_at(self, snapshot_id: int, limit: int) -> "OpenedTable":
        """The same row of ducklake_table, opened at another snapshot.

        Args:
            limit: how many of its snapshots are read, newest first.
        """
        history = self.history
        return self.generator.open_table(
            self.con, self.lake, history.schema, history.table, snapshot_id, limit=limit
        )

    def virtual_name(self, location: str) -> Name | None:
        """The parsed name of a virtual file; None: the location is that of a real file."""
        return self.files.name_at(location)

    def body(self, location: str) -> bytes:
        """The bytes of a virtual file, as a client gets them."""
        body = self.files.body_at(location)
        assert body is not None, location
        return body


def served_lake(con: Connection) -> Lake:
    """The lake as a whole.

    Raises:
        Refused: it cannot be served.
    """
    lake = queries.lake().run(con)
    check_lake(lake)
    return lake


def tables_of(con: Connection, lake: Lake) -> list[tuple[Schema, Table]]:
    """All tables of the newest snapshot."""
    return [
        (schema, table)
        for schema in queries.schemas_at(lake.snapshot_id).run(con)
        for table in queries.tables_at(lake.snapshot_id, schema.schema_id).run(con)
    ]
