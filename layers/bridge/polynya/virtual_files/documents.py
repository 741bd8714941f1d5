"""The metadata document of a table, and which of its snapshots cannot be served exactly.

`NameMappedFiles` checks the files that ducklake_add_data_files added. DuckLake finds their columns
by name; an Iceberg reader finds them by field id if the file has field ids, and does not round
times. The file's footer says whether both read the same; its columns are cached.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from ..ducklake import queries
from ..ducklake.connection.catalog_connection import run_batched
from ..ducklake.paths import table_location
from ..ducklake.rows.files import DataFile
from ..ducklake.rows.lifetimes import UnservableRange
from ..iceberg.parquet.footer import NotParquet
from ..iceberg.parquet.new_footer import LARGEST_FOOTER
from ..iceberg.table_metadata import TableMetadata
from ..mapping.properties import write_properties
from ..mapping.schemas import default_columns, unservable_defaults
from ..mapping.snapshots import NextRowIds
from ..mapping.tables import MappedTable, Publication, check_table, metadata
from ..runtime.errors import REMEDY, NoSuchKey, Refused
from ..storage.s3_locations import is_s3
from .added_file_columns import footer_columns
from .cached_files import FileKind, rewritten
from .contexts import RowIds, TableContext
from .names import Name

OUTSIDE = (
    "the added file {location} is neither in S3 nor below the lake's data path, and clients can "
    "read nothing else: copy it below the data path and add it from there, or insert its rows"
)
"""Such a file is not served even if it exists: a catalog could name any file on this machine."""

UPWARDS = (
    "the added file {location} has /../ in its path, which clients take for a part of the key: add "
    "it by its plain path to a new table, or insert its rows"
)


@dataclass(frozen=True, slots=True)
class NameMappedFiles:
    """The added files of one table."""

    table: TableContext

    def check(self, file: DataFile) -> None:
        """Check that Iceberg's readers find the same columns in a file as DuckLake.

        Raises:
            Refused: they do not.
        """
        if reason := self._contradiction(file):
            history = self.table.history
            name = history.schema.name_of(history.table.table_name)
            raise Refused(f"the table {name} is not served: {reason}")

    def unservable(self) -> Iterator[UnservableRange]:
        """The ranges of snapshots that show files which Iceberg's readers would read differently.

        A file that differs from others of its name mapping is found when its manifest is built.
        """
        history = self.table.history
        mapping_ids = {row.mapping_id for row in history.mapped_names}
        for group, lifetime in history.partitioning.groups.items():
            if group.mapping_id is not None and group.mapping_id not in mapping_ids:
                problem = f"the name mapping {group.mapping_id} of added files names no column"
                yield UnservableRange(*lifetime, problem + REMEDY)
        if not self.table.mappings.paths:
            return
        # One file of each name mapping: loadTable cannot wait for the footers of all.
        first_files = queries.first_added_files(
            history.lake, history.table.table_id, history.snapshot_id
        )
        for file in first_files.run(self.table.con):
            if reason := self._contradiction(file):
                yield UnservableRange(file.begin_snapshot, file.end_snapshot, reason)

    def _contradiction(self, file: DataFile) -> str | None:
        """Why Iceberg's readers would read a file differently; None if they do not."""
        if file.mapping_id is None:
            return None
        location, context = self.table.location_of(file), self.table.context
        if "/../" in location:
            return UPWARDS.format(location=location)
        if not is_s3(location):
            return OUTSIDE.format(location=location)
        try:
            columns = footer_columns(
                location, file, self.table.prefix, context.cache, context.object_reader
            )
        except (NoSuchKey, NotParquet) as error:
            return f"an added file is missing or damaged ({error}): restore it from a backup"
        history = self.table.history
        column_types = {column.column_id: column.column_type for column in history.columns}
        hidden, own = self.table.converted, self.table.mappings.paths.get(file.mapping_id, {})
        if self.table.hidden_ids:  # clients get the file without all others
            mapped = {path[0] for path in own}
            columns = [column for column in columns if column.path[0] in mapped]
        return self.table.mappings.contradiction(file.mapping_id, columns, column_types, hidden)


class Documents(FileKind):
    """The metadata document, as of the table's own last snapshot."""

    kind = "table"

    @cached_property
    def unservable(self) -> list[UnservableRange]:
        """The ranges of snapshots that cannot be served exactly, with the most basic reasons first.

        Raises:
            ServiceUnavailable: an added file cannot be read now.
        """
        table, settings = self.table, self.table.context.settings
        ranges = [
            *table.schemas.faults,
            *table.history.unservable,
            *table.partitions.unservable,
            *NameMappedFiles(table).unservable(),
        ]
        if settings.inexact_columns == "refuse":
            ranges += table.schemas.unservable
        if settings.column_defaults == "refuse":
            ranges += chain.from_iterable(self.unservable_defaults().values())
        return ranges

    def unservable_defaults(self) -> dict[str, list[UnservableRange]]:
        """The snapshots that show clients files without a column that has a default, by its dotted
        name."""
        history = self.table.history
        columns = default_columns(self.table.schemas, history.columns)
        begin_snapshots = {column.column_id: column.born for column in columns}
        of_table, names = (history.lake, history.table.table_id), self.table.names
        fills_added = bool(columns and names.filled_in and names.adapts_added) and (
            queries.have_short_footers(*of_table, LARGEST_FOOTER).run(self.table.con)
        )
        lacking = queries.lacking_files(
            *of_table,
            begin_snapshots,
            names.filled_in,
            LARGEST_FOOTER,
            fills_added=fills_added,
        )
        groups = history.partitioning.groups
        return unservable_defaults(
            columns,
            lacking.run(self.table.con),
            # For a column in a list or a map, the files that lack it are read one by one.
            {group: life for group, life in groups.items() if group.mapping_id is None}
            if fills_added and names.filled_in.issuperset(column.column_id for column in columns)
            else groups,
            history.mapped_names,
        )

    def metadata(self) -> TableMetadata:
        """The document; that of the same history is built once in a process.

        Raises:
            Refused: the table cannot be served exactly.
        """
        table = self.table
        check_table(table.history, self.unservable, table.schemas, table.mappings)
        documents = table.context.documents
        row_ids = self._row_ids() if table.has_row_ids else None
        source = table.history, table.published, self.unservable
        build = partial(self._metadata, row_ids)
        own = row_ids, table.clients, table.hidden_ids
        return documents.get_or_build(*source, build, *own)

    def _row_ids(self) -> RowIds:
        history = self.table.history
        assigned, next_row_id = run_batched(
            self.table.con,
            history.lifetimes.row_ids(),
            queries.next_row_id(history.table.table_id),
        )
        return RowIds(assigned, next_row_id or 0)  # NULL in a broken catalog

    def _metadata(self, row_ids: RowIds | None, now_ms: int) -> TableMetadata:
        table = self.table
        mapped = MappedTable(
            history=table.history,
            unservable=self.unservable,
            schemas=table.published,
            partitions=table.partitions,
            mappings=table.mappings,
            ids=table.snapshot_ids,
            rows=table.names.rows_files,
            row_ids=row_ids and NextRowIds(*row_ids),
            has_vectors=table.has_vectors,
        )
        publication = Publication(
            location=table.location,
            manifest_list=lambda *args: table.virtual_location(table.names.manifest_list(*args)),
            expired_list=lambda id_: table.virtual_location(table.names.expired_list(id_)),
            snapshot_limit=table.context.settings.snapshot_limit,
            client_snapshot_limit=table.context.settings.client_snapshot_limit,
            own_properties=self._write_properties(),
            adapted=table.names.adapted_at(table.history.snapshot_id),
            is_served=table.context.is_served,
            earlier_locations=self._earlier_locations(),
        )
        return metadata(mapped, publication, now_ms)

    def _earlier_locations(self) -> Callable[[TableMetadata], list[str]] | None:
        """Where clients find the documents of earlier states; None: they cannot.

        It outlives the transaction.
        """
        names, context = self.table.names, self.table.context
        if not context.generates_when_read:
            return None
        location, prefix = context.location, context.settings.virtual_prefix
        return lambda document: [location(name.key(prefix)) for name in names.earlier(document)]

    def _write_properties(self) -> dict[str, str]:
        staging = self.table.context.staging_location
        if staging is None or self.table.hidden_ids:  # who does not see a column writes no rows
            return {}
        history = self.table.history
        location = table_location(history.lake, history.schema, history.table)
        return write_properties(location, history.table.table_uuid, staging, history.lake.data_path)

    def build(self, name: Name) -> bytes:
        """The document. Raises: as `metadata`, and `FileKind.build`."""
        document = self.metadata()
        if name != self.table.names.document(document):
            raise rewritten()
        return document.body


class EarlierDocuments(FileKind):
    """The documents in the metadata log of the document as of the table's own last snapshot."""

    kind = "earlier"

    def build(self, name: Name) -> bytes:
        """The document. Raises: as `Documents.build`."""
        document = self.files.files_of(Documents).metadata()
        earlier = document.as_of(name.numbers[0])
        if earlier is None or name not in self.table.names.earlier(document):
            raise rewritten()
        return earlier.body
