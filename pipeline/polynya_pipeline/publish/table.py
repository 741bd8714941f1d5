"""One table in a run of `publish`, and the snapshot of PostgreSQL that driver and executors read.

The driver's transaction exports the snapshot, and those of the executors import it.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, literal
from polynya.ducklake.connection.catalog_connection import sqlstate
from polynya.ducklake.connection.database import (
    BEGIN,
    GONE_COLUMN,
    GONE_TABLE,
    gone_table,
    text_of,
)
from polynya.ducklake.queries import history
from polynya.ducklake.queries.history import TableHistory
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.iceberg.table_metadata import TableMetadata
from polynya.virtual_files.names import Manifest, Name
from polynya.virtual_files.virtual_files import VirtualTable

from ..common.database import connect, translate_errors
from ..common.errors import ChangedMeanwhile
from .destinations import Destination
from .published_files import PublishedFiles
from .report import TableResult


@dataclass
class PublishedTable:
    """One table in the driver's transaction: what the steps of `publish` read and record."""

    destination: Destination
    history: TableHistory
    files: VirtualTable
    store: PublishedFiles
    result: TableResult
    snapshot_limit: int | None
    """How many snapshots to publish, newest first; None: as many as are listed."""
    incomplete: list[int] = field(default_factory=list)
    """The snapshots whose list, or a manifest in it, is missing. Set by `find_missing_lists`."""
    listed: list[Name] = field(default_factory=list)
    """The manifests in the lists that exist. Set by `find_missing_lists`."""
    plans: dict[int, list[Manifest]] = field(default_factory=dict)
    """The manifests of the missing lists, by snapshot. Set by `record_plans`."""

    @classmethod
    def open(
        cls,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        destination: Destination,
        snapshot_limit: int | None,
        writes: bool,
    ) -> "PublishedTable":
        """Read a table's history.

        Args:
            writes: False: nothing is written into the destination.
        """
        limit = destination.settings.client_snapshot_limit
        rows = history.read(con, lake, schema, table, lake.snapshot_id, limit=limit)
        store = destination.files(writes=writes)
        files = VirtualTable(con, rows, destination.build_context(store))
        result = TableResult(schema.name_of(table.table_name))
        return cls(destination, rows, files, store, result, snapshot_limit)

    @cached_property
    def document(self) -> TableMetadata:
        """The table metadata.

        Raises:
            Refused: the table cannot be served.
        """
        return self.files.metadata()

    @cached_property
    def lists(self) -> dict[int, Name]:
        """The names of the manifest lists to publish, by snapshot, in ascending order."""
        # A list is known by DuckLake's id, which is the sequence number.
        snapshots = self.document.snapshots
        ids = list(dict.fromkeys(snapshot.sequence_number for snapshot in snapshots))
        return self.files.lists(ids[-self.snapshot_limit :] if self.snapshot_limit else ids)

    @property
    def manifests(self) -> list[Name]:
        """The manifests in all lists to publish, each once."""
        planned = (manifest.name for plan in self.plans.values() for manifest in plan)
        return list(dict.fromkeys([*self.listed, *planned]))

    def key(self, name: Name) -> str:
        """The key of a file of this table."""
        return name.key(self.destination.settings.virtual_prefix)


@dataclass(frozen=True, slots=True)
class SharedSnapshot:
    """The catalog database, and a snapshot of it. Spark sends it to the executors."""

    database: str = field(repr=False)
    """A URL, which may contain a password, or the ARN of a secret."""
    metadata_schema: str
    exported: str | None = None
    """PostgreSQL's name of the exported snapshot; None: it cannot be exported."""


@contextmanager
def exported(database: str, metadata_schema: str) -> Iterator[tuple[Connection, SharedSnapshot]]:
    """Begin a transaction whose snapshot others can import until the block ends."""
    with _connected(database, metadata_schema) as con:
        con.run(BEGIN)
        try:
            [[name]] = con.run("SELECT pg_export_snapshot()")
        except DatabaseError:
            # Some poolers and replicas refuse it, or the role lacks the right. The error has ended
            # the transaction.
            con.run("ROLLBACK")
            con.run(BEGIN)
            name = None
        yield con, SharedSnapshot(database, metadata_schema, name)


@contextmanager
def joined(snapshot: SharedSnapshot) -> Iterator[tuple[Connection, bool]]:
    """Begin a transaction in another process; yields whether it reads the exported snapshot."""
    with _connected(snapshot.database, snapshot.metadata_schema) as con:
        con.run(BEGIN)
        is_shared = False
        if snapshot.exported is not None:
            try:
                # It takes no parameter, and must be the first statement of the transaction.
                con.run(f"SET TRANSACTION SNAPSHOT {literal(snapshot.exported)}")
                is_shared = True
            except DatabaseError:  # a pooler, or several servers behind one name: rows may be newer
                con.run("ROLLBACK")
                con.run(BEGIN)
        yield con, is_shared


@contextmanager
def _connected(database: str, metadata_schema: str) -> Iterator[Connection]:
    with closing(connect(database, metadata_schema)) as con, translate_errors(metadata_schema):
        try:
            yield con
        except DatabaseError as error:
            # Without a catalog the error means that there is none, as `translate_errors` says.
            if sqlstate(error) in (GONE_TABLE, GONE_COLUMN) and _is_catalog(con):
                is_table = sqlstate(error) == GONE_TABLE
                what = f"the table {gone_table(text_of(error))}" if is_table else "a column"
                raise ChangedMeanwhile(
                    f"the catalog lacks {what}: if DuckLake dropped it while it was read, try "
                    "again; otherwise restore it"
                ) from None
            raise


def _is_catalog(con: Connection) -> bool:
    con.run("ROLLBACK")
    [[exists]] = con.run("SELECT to_regclass('ducklake_metadata') IS NOT NULL")
    return bool(exists)
