"""One table in the transaction of the driver: what the steps of `publish` read and record."""

from dataclasses import dataclass, field
from functools import cached_property

from pg8000.native import Connection
from polynya.ducklake import history
from polynya.ducklake.history import TableHistory
from polynya.ducklake.rows.lake import Lake
from polynya.ducklake.rows.named_objects import Schema, Table
from polynya.files.names import Name
from polynya.files.table_files import TableFiles
from polynya.files.table_names import Manifest
from polynya.iceberg.table_metadata import TableMetadata

from .destinations import Destination
from .published_files import PublishedFiles
from .report import TableResult


@dataclass
class PublishedTable:
    destination: Destination
    history: TableHistory
    files: TableFiles
    store: PublishedFiles
    result: TableResult
    snapshot_limit: int | None
    """How many snapshots to publish, newest first; None: as many as are listed."""
    incomplete: list[int] = field(default_factory=list)
    """The snapshots whose list, or a manifest in it, is missing. Set by `missing_lists`."""
    plans: dict[int, list[Manifest]] = field(default_factory=dict)
    """The manifests of the missing lists, by snapshot. Set by `plan_manifests`."""

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
        limit = destination.settings.snapshot_limit
        read = history.read(con, lake, schema, table, lake.snapshot_id, limit=limit)
        store = destination.files(writes=writes)
        files = TableFiles(con, read, destination.build_context(store))
        result = TableResult(schema.name_of(table.table_name))
        return cls(destination, read, files, store, result, snapshot_limit)

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
        # Several snapshots of one commit have the same list.
        snapshots = self.document.snapshots
        ids = list(dict.fromkeys(snapshot.sequence_number for snapshot in snapshots))
        return self.files.lists(ids[-self.snapshot_limit :] if self.snapshot_limit else ids)

    def key(self, name: Name) -> str:
        """The key of a file of this table."""
        return name.key(self.destination.settings.virtual_prefix)
