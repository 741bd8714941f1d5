"""What the files of one table are built from, and which snapshots cannot be served exactly.

`TableContext` follows from the table's history without a query.

`NameMappedFiles` checks the files that ducklake_add_data_files added. DuckLake finds their columns
by name; an Iceberg reader finds them by field id if the file has field ids, and does not round
times. The file's footer says whether both read the same; its columns are cached.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.history import TableHistory
from ..ducklake.paths import file_location
from ..ducklake.rows.files import DataFile, DeleteFile
from ..ducklake.rows.lifetimes import UnservableRange
from ..iceberg.parquet.footer import Column, NotParquet, columns_of
from ..iceberg.table_metadata import lineage_fields
from ..iceberg.types import Field
from ..mapping.manifests import fingerprint
from ..mapping.name_mappings import Mappings, mappings
from ..mapping.partitions import Partitions, partitions
from ..mapping.schemas import Schemas, default_columns, schemas, unservable_defaults
from ..mapping.snapshots import SnapshotIds, snapshot_ids
from ..runtime.errors import REMEDY, NoSuchKey, Refused
from ..runtime.settings import FileSettings
from ..storage.objects import ObjectReader, is_s3
from ..storage.stores import Cache
from .deletes import Deletes
from .names import GENERATOR, Name, VirtualFileNames


@dataclass(frozen=True, slots=True)
class TableContext:
    """What all files of a table are built from."""

    history: TableHistory
    schemas: Schemas
    partitions: Partitions
    mappings: Mappings
    snapshot_ids: SnapshotIds
    names: VirtualFileNames
    prefix: str
    """The key prefix of the table's virtual files."""
    location: str
    """The same as a location, for clients."""

    @property
    def format_version(self) -> int:
        """The format version of the table."""
        return self.schemas.format_version

    @property
    def has_row_ids(self) -> bool:
        """Whether clients know the ids of rows."""
        return self.format_version >= 3

    def written(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The columns of a file of inlined rows: the fields, and in v3 those of row lineage."""
        return (*fields, *lineage_fields(fields)) if self.has_row_ids else fields

    def location_of(self, file: DataFile | DeleteFile) -> str:
        """The location of one of the lake's own files."""
        history = self.history
        return file_location(history.lake, history.schema, history.table, file)

    def deletes_name(self, deletes: Deletes) -> Name:
        """The name of the position deletes of a data file."""
        rows = (deletes.stored, deletes.inlined)
        return self.names.deletes(deletes.data_file, deletes.changed_at, *rows)


def table_context(
    history: TableHistory, settings: FileSettings, location: Callable[[str], str]
) -> TableContext:
    """The context of a table.

    Args:
        location: gives the location of a virtual file from its key.
    """
    table = history.table
    prefix = f"{settings.virtual_prefix}/{table.table_uuid}"
    table_location = location(prefix)
    shown = schemas(
        history.columns,
        table.begin_snapshot,
        history.snapshot_id,
        settings.hidden_types,
        has_added_files=bool(history.mapped_names),
        first_added_file=history.partitioning.first_added_file,
    )
    parts = partitions(history.partitioning, shown, history.snapshot_id)
    ids = snapshot_ids(history.commits)
    lists = {column.column_id for column in history.columns if column.column_type == "list"}
    return TableContext(
        history=history,
        schemas=shown,
        partitions=parts,
        mappings=mappings(history.mapped_names, lists),
        snapshot_ids=ids,
        names=VirtualFileNames(history, shown, parts, ids, table_location, settings.chunk_files),
        prefix=prefix,
        location=table_location,
    )


OUTSIDE = (
    "the added file {location} is neither in S3 nor below the lake's data path, and clients can "
    "read nothing else: copy it below the data path and add it from there, or insert its rows"
)
"""Such a file is not served even if it exists: a catalog could name any file of this machine."""


@dataclass(frozen=True, slots=True)
class NameMappedFiles:
    """The added files of one table."""

    table: TableContext
    cache: Cache
    object_reader: ObjectReader

    def check(self, file: DataFile) -> None:
        """Check that Iceberg's readers find the same columns in a file as DuckLake.

        Raises:
            Refused: they do not.
        """
        if reason := self._contradiction(file):
            history = self.table.history
            name = history.schema.name_of(history.table.table_name)
            raise Refused(f"the table {name} is not served: {reason}")

    def unservable(self, con: Connection) -> Iterator[UnservableRange]:
        """The ranges of snapshots that show files which Iceberg's readers would read differently.

        One file of each name mapping is read, because loadTable cannot wait for the footers of all
        files. A file that differs from the others is found when its manifest is built.
        """
        history = self.table.history
        mapping_ids = {row.mapping_id for row in history.mapped_names}
        for group, lifetime in history.partitioning.groups.items():
            if group.mapping_id is not None and group.mapping_id not in mapping_ids:
                problem = f"the name mapping {group.mapping_id} of added files names no column"
                yield UnservableRange(*lifetime, problem + REMEDY)
        if not self.table.mappings.paths:
            return
        first_files = queries.first_added_files(
            history.lake, history.table.table_id, history.snapshot_id
        )
        for file in first_files.run(con):
            if reason := self._contradiction(file):
                yield UnservableRange(file.begin_snapshot, file.end_snapshot, reason)

    def _contradiction(self, file: DataFile) -> str | None:
        """Why Iceberg's readers would read a file differently; None if they do not."""
        if file.mapping_id is None:
            return None
        if not is_s3(location := self.table.location_of(file)):
            return OUTSIDE.format(location=location)
        try:
            columns = self._columns(file)
        except (NoSuchKey, NotParquet) as error:
            return f"an added file is missing or damaged ({error}): restore it from a backup"
        history = self.table.history
        column_types = {column.column_id: column.column_type for column in history.columns}
        return self.table.mappings.contradiction(file.mapping_id, columns, column_types)

    def _columns(self, file: DataFile) -> list[Column]:
        """The columns that the file's footer names, from the cache or read now."""
        location = self.table.location_of(file)
        key = f"{self.table.prefix}/{GENERATOR}/footer-{fingerprint(location)}.json"
        body = self.cache.get(key)
        if body is None:
            read = partial(self.object_reader.read_range, location)
            columns = columns_of(read, file.file_size_bytes)
            body = self.cache.put(key, json.dumps(columns).encode())
        return [Column(tuple(path), *more) for path, *more in json.loads(body)]


@dataclass(frozen=True, slots=True)
class UnservableSnapshots:
    """Finds the snapshots of one table that cannot be served, with the reasons."""

    con: Connection
    table: TableContext
    added_files: NameMappedFiles
    settings: FileSettings

    def ranges(self) -> list[UnservableRange]:
        """All ranges of snapshots that cannot be served, with the most basic reasons first.

        Raises:
            ServiceUnavailable: an added file cannot be read now.
        """
        table = self.table
        ranges = [
            *table.schemas.faults,
            *table.history.unservable,
            *table.partitions.unservable,
            *self.added_files.unservable(self.con),
        ]
        if self.settings.inexact_columns == "refuse":
            ranges += table.schemas.unservable
        if self.settings.column_defaults == "refuse":
            ranges += chain.from_iterable(self.defaults().values())
        return ranges

    def defaults(self) -> dict[str, list[UnservableRange]]:
        """The snapshots that show files without a column that has a default, by its dotted name."""
        history = self.table.history
        columns = default_columns(self.table.schemas, history.columns)
        begin_snapshots = {column.column_id: column.born for column in columns}
        lacking = queries.lacking_files(history.lake, history.table.table_id, begin_snapshots)
        return unservable_defaults(
            columns, lacking.run(self.con), history.partitioning.groups, history.mapped_names
        )
