"""Which objects the keys of a caller permit: those of one table, as the catalog has them now."""

import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock
from typing import Any

from polynya.access.caller import Caller
from polynya.access.table_scope import (
    S3Scope,
    normalized,
    other_tables,
    read_scopes,
    upload_scopes,
    virtual_root,
)
from polynya.catalog.lakes import STATEMENT_SECONDS, Lakes
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database, retried
from polynya.ducklake.paths import table_location
from polynya.mapping.properties import staging_root, upload_location
from polynya.runtime.errors import NoSuchWarehouse, Refused
from polynya.runtime.settings import Config

from ..queries.lake_snapshots import schema_version
from .table_keys import Grant

FRESH_SECONDS = 60
"""How long a process caches the locations of a table's files."""
LOOK_SECONDS = 1
"""The age at which the catalog is read again for a file that it did not have, and for tables that
were created or renamed."""
MOST_TABLES = 1000
"""The number of tables whose locations a process caches."""

OF_DUCKDB = re.compile(r".*-deletes[.](?:parquet|puffin)", re.DOTALL)
"""The delete files that DuckDB puts beside data files."""


@dataclass(frozen=True, slots=True)
class _Scopes:
    """The locations of a table's files."""

    read_at: float
    schema_version: int | None
    """The lake's schema version at that time."""
    reads: frozenset[S3Scope] = frozenset()
    writes: frozenset[S3Scope] = frozenset()
    deletes: frozenset[S3Scope] = frozenset()

    def have_read(self, location: str) -> bool:
        return _is_within(location, self.reads) or self.have_written(location)

    def have_written(self, location: str) -> bool:
        if _is_within(location, self.writes):
            return True
        return bool(OF_DUCKDB.fullmatch(location)) and _is_within(location, self.deletes)


class GrantedFiles:
    """The locations of the files of a lake's tables."""

    def __init__(self, config: Config, database: Database, virtual_location: str) -> None:
        """Keep the settings; the catalog is read when it is needed.

        Args:
            config: of the lake.
            virtual_location: the directory of its virtual files.
        """
        self._config, self.database = config, database
        self._virtual_location = virtual_location
        self._tables: dict[tuple[str, str], _Scopes] = {}
        self._schema_version: tuple[float, int | None] = (float("-inf"), None)
        self._lock = Lock()

    def may_read(self, grant: Grant, location: str) -> bool:
        """Whether an object belongs to the table.

        Raises:
            PolynyaError: the catalog does not answer.
        """
        scopes = self._scopes(grant, FRESH_SECONDS)
        return scopes.have_read(location) or self._scopes(grant, LOOK_SECONDS).have_read(location)

    def may_write(self, grant: Grant, location: str) -> bool:
        """Whether an object is where clients write the table. Raises: as `may_read`."""
        return grant.may_write and self._scopes(grant, FRESH_SECONDS).have_written(location)

    def _scopes(self, grant: Grant, seconds: float) -> _Scopes:
        key = (grant.table.table_uuid, grant.directory)
        scopes = self._tables.get(key)
        is_fresh = (
            scopes is not None
            and time.monotonic() - scopes.read_at <= seconds
            # Another table may have this table's directory since then.
            and scopes.schema_version == self._current_schema_version()
        )
        if scopes is None or not is_fresh:
            scopes = self._read(*key)
            with self._lock:
                self._tables.pop(key, None)
                self._tables[key] = scopes
                while len(self._tables) > MOST_TABLES:
                    del self._tables[next(iter(self._tables))]
        return scopes

    def _current_schema_version(self) -> int | None:
        """The schema version of the lake, at most LOOK_SECONDS old."""
        read_at, version = self._schema_version
        if time.monotonic() - read_at > LOOK_SECONDS:
            version = self._read_schema_version()
            self._schema_version = time.monotonic(), version
        return version

    @retried
    def _read_schema_version(self) -> int | None:
        with self.database.transaction() as con:
            return schema_version().run(con)

    @retried
    def _read(self, table_uuid: str, directory: str) -> _Scopes:
        """The locations of a table's files; `directory`: as in `Grant`."""
        config, now = self._config, time.monotonic()
        with self.database.transaction() as con:
            lake = queries.lake().run(con)
            version = schema_version().run(con)
            row = queries.table_of_uuid(table_uuid).run(con)
            own = table_location(lake, *row) if row else directory
            virtual = f"{self._virtual_location}/{table_uuid}"
            root = virtual_root(virtual, config.lake)
            staging = staging_root(config.staging_location, lake.data_path)
            table_id = row[1].table_id if row else -1
            elsewhere = other_tables(con, lake, table_id, root, staging)
            reads, writes, deletes = set[S3Scope](), set[S3Scope](), set[S3Scope]()
            try:
                if row:
                    reads = read_scopes(con, lake, *row, elsewhere)
                    # Clients read what they have staged for branches.
                    staged = f"{staging}{table_uuid}/"
                    reads |= {S3Scope(staged, True)} if elsewhere.absent_from(staged) else set()
                if config.storage.is_materialized:
                    reads.add(S3Scope(f"{virtual}/", True))
                if directory:
                    beside = virtual
                    if not config.storage.is_materialized:
                        beside = upload_location(virtual, lake.data_path)
                    writes, deletes = upload_scopes(own, table_uuid, staging, beside, elsewhere)
            except Refused:
                pass  # what is known is permitted, and nothing else
        return _Scopes(now, version, frozenset(reads), frozenset(writes), frozenset(deletes))


@dataclass(frozen=True, slots=True)
class Permission:
    """What the keys of a request permit, by location: `s3://<bucket>/<key>`, decoded."""

    lakes: Lakes[GrantedFiles]
    grant: Grant

    @property
    def caller(self) -> Caller:
        """The caller for whom virtual files are read."""
        return Caller(vended_for=self.grant.table)

    def may_read(self, location: str) -> bool:
        """Whether an object may be read.

        Raises:
            PolynyaError: the catalog does not answer.
        """
        if self.grant.table.hidden_ids:
            return False  # only virtual files leave out hidden columns
        files = self._files()
        return files is not None and files.may_read(self.grant, location)

    def may_write(self, location: str) -> bool:
        """Whether an object may be uploaded, or its upload aborted. Raises: as `may_read`."""
        if self.grant.table.hidden_ids:
            return False
        files = self._files()
        return files is not None and files.may_write(self.grant, location)

    def _files(self) -> GrantedFiles | None:
        try:
            return self.lakes.named(self.grant.table.lake or None)
        except NoSuchWarehouse:
            return None


def open_granted_files(config: Config, lakes: Lakes[Any]) -> GrantedFiles:
    """The locations of a lake's files; the database is not connected yet."""
    location = lakes.virtual_files(config).location
    return GrantedFiles(config, lakes.database(config, STATEMENT_SECONDS), location)


def _is_within(location: str, scopes: Collection[S3Scope]) -> bool:
    name = normalized(location)
    return any(
        name.startswith(normalized(scope.location))
        if scope.is_directory
        else name == normalized(scope.location)
        for scope in scopes
    )
