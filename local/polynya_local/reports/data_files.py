"""The data files of a table at a snapshot: sizes, partitions, bounds, deletes.

`file_lines` describes given files; `files_report` is a page of all files, with sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pg8000.native import Connection
from polynya.ducklake.connection.catalog_connection import constant, run_batched
from polynya.ducklake.paths import file_location
from polynya.ducklake.queries.history import state_at
from polynya.ducklake.rows.files import DataFile
from polynya.mapping.partitions import client_specs, every_key
from polynya.runtime.errors import BadRequest
from polynya.types.names import iceberg_type

from ..queries.listed_files import (
    NO_OVERLAP,
    BoundsOverlap,
    SizeClass,
    deleted_in,
    listed_files,
    overlap,
    size_classes,
    stats_of,
    values_of,
)
from .advice import Advice, merge_advice, target_bytes
from .columns import ColumnLine, columns_at
from .generator import Generator, OpenedTable
from .lake import Paging
from .opened_table import TableHead, TableRef, open_at
from .row_counts import Counts, FileRows, RowCounts


@dataclass(frozen=True, slots=True)
class FileLine:
    """A data file."""

    data_file_id: int
    path: str
    """As the catalog has it."""
    location: str
    begin_snapshot: int
    """The snapshot that added it."""
    rows: int | None
    """The rows at the snapshot, deleted ones included; None: only the files tell how many, and they
    were not read."""
    deleted: int | None
    """How many of them are deleted."""
    bytes: int
    partition: dict[str, str | None]
    lower: str | None
    """The bounds of the chosen column, as DuckLake has them."""
    upper: str | None
    bounds_are_wider: bool
    """A bound is known not to be a value of the column: all values lie between the bounds."""
    nulls: int | None
    is_added: bool
    """It was added as it was; DuckLake did not write it."""
    is_merged: bool
    """It holds the rows of several snapshots."""


def file_lines(
    table: OpenedTable,
    files: Sequence[DataFile],
    snapshot_id: int,
    rows: RowCounts,
    column_id: int | None = None,
) -> list[FileLine]:
    """Describe files by what the catalog has on them besides their rows in ducklake_data_file.

    Args:
        snapshot_id: the snapshot that shows them.
        rows: counts rows at this snapshot.
        column_id: the column whose bounds are shown.
    """
    history, ids = table.history, [file.data_file_id for file in files]
    table_id = table.table_id
    values, deleted, stats = run_batched(
        table.con,
        values_of(table_id, ids),
        deleted_in(history.inlined, table_id, snapshot_id, ids),
        constant({}) if column_id is None else stats_of(history.lake, table_id, column_id, ids),
    )
    names = partition_names(table)
    uncertain = rows.files(snapshot_id, ids)

    def line(file: DataFile) -> FileLine:
        nulls, lower, upper, is_wider = stats.get(file.data_file_id, (None, None, None, False))
        keys = names.get(file.partition_id, {})
        partition = values.get(file.data_file_id, {})
        counted = uncertain.get(
            file.data_file_id, FileRows(file.record_count, deleted.get(file.data_file_id, 0))
        )
        return FileLine(
            data_file_id=file.data_file_id,
            # A row without a path is a fault (`ducklake.faults`), which the page names.
            path=file.path or "",
            location=""
            if file.path is None
            else file_location(history.lake, history.schema, history.table, file),
            begin_snapshot=file.begin_snapshot,
            rows=None if counted is None else counted.rows,
            deleted=None if counted is None else counted.deleted,
            bytes=file.file_size_bytes,
            partition={keys.get(key, str(key)): text for key, text in sorted(partition.items())},
            lower=lower,
            upper=upper,
            bounds_are_wider=is_wider,
            nulls=nulls,
            is_added=file.mapping_id is not None,
            is_merged=file.partial_max is not None,
        )

    return [line(file) for file in files]


def partition_names(table: OpenedTable) -> dict[int | None, dict[int, str]]:
    """Each partition key as DuckLake writes it, by partition_id and partition_key_index."""
    columns = {column.column_id: column.column_name for column in table.history.columns}
    every = every_key(table.history.partitioning, client_specs(table.history.tags))
    return {
        partition_id: {
            key.partition_key_index: partition_key(columns.get(key.column_id, "?"), key.transform)
            for key in keys
        }
        for partition_id, keys in every.items()
    }


def partition_key(name: str, transform: str) -> str:
    """A partition key as DuckLake writes it."""
    return name if transform == "identity" else f"{transform}({name})"


PAGE_SIZE = 50
MOST_UNASKED = 20_000
"""With more files, bounds are read only if a column is chosen, because that takes seconds."""
MOST_SPANS = 160
"""How many files the chart of the bounds shows."""


@dataclass(frozen=True, slots=True)
class FilesQuery:
    """Which files of a table are shown."""

    order: str = "newest"
    page: int = 1
    column: str = ""
    """The dotted name of the column whose bounds are shown; empty: the first comparable one."""


@dataclass(frozen=True, slots=True)
class FilesReport:
    """A page of the files of a table, and sums over all of them."""

    head: TableHead
    counts: Counts
    order: str
    paging: Paging
    most_bytes: int
    most_rows: int
    files: list[FileLine]
    sizes: list[SizeClass]
    merge: Advice | None
    """The merge that Health suggests; None: there is none, or the snapshot is not the newest."""
    target_bytes: int
    """The size in bytes up to which DuckLake merges files."""
    columns: list[str]
    """The dotted names of the columns whose bounds can be compared."""
    column: str
    overlap: BoundsOverlap
    """The bounds of the chosen column."""
    is_overlap_read: bool


def files_report(
    generator: Generator, con: Connection, ref: TableRef, files: FilesQuery
) -> FilesReport:
    """Read a page of files.

    Raises:
        NoSuchTable: the lake has none of this name at the snapshot.
        BadRequest: there is no such page or column.
    """
    table, head = open_at(generator, con, ref, limit=1)
    columns = _comparable(table)
    chosen = _chosen(columns, files.column)
    table_id, snapshot_id = table.table_id, table.snapshot_id
    first = (files.page - 1) * PAGE_SIZE
    listing = listed_files(table.lake, table_id, snapshot_id, files.order, first, PAGE_SIZE).run(
        con
    )
    rows = table.row_counts([snapshot_id])
    counts = rows.counts(snapshot_id, state_at(table.history.events, snapshot_id))
    # The total comes with the rows, and a page after the last one has none.
    paging = Paging(files.page, PAGE_SIZE, listing.total if listing.files else counts.files)
    paging.check()
    is_read = bool(files.column) or counts.files <= MOST_UNASKED
    return FilesReport(
        head=head,
        counts=counts,
        order=files.order,
        paging=paging,
        most_bytes=listing.most_bytes,
        most_rows=listing.most_rows,
        files=file_lines(
            table, listing.files, snapshot_id, rows, chosen.column_id if chosen else None
        ),
        sizes=size_classes(table_id, snapshot_id).run(con),
        merge=merge_advice(table) if snapshot_id == head.newest else None,
        target_bytes=target_bytes(con),
        columns=[column.path for column in columns],
        column=chosen.path if chosen else "",
        overlap=_overlap(table, chosen) if chosen and is_read else NO_OVERLAP,
        is_overlap_read=is_read,
    )


def _comparable(table: OpenedTable) -> list[ColumnLine]:
    """The columns by whose bounds Iceberg clients skip files; none is in a list or a map."""
    columns, inside = [], set()
    for column in columns_at(table.files.table, table.snapshot_id):
        if column.type in ("list", "map"):
            inside.add(f"{column.path}.")
        is_inside = any(column.path.startswith(path) for path in inside)
        if iceberg_type(column.iceberg_type).form and not is_inside:
            columns.append(column)
    return columns


def _chosen(columns: list[ColumnLine], path: str) -> ColumnLine | None:
    if not path:
        return columns[0] if columns else None
    matches = [column for column in columns if column.path == path]
    if not matches:
        raise BadRequest(f"the table has no column {path} whose bounds can be compared")
    return matches[0]


def _overlap(table: OpenedTable, column: ColumnLine) -> BoundsOverlap:
    form = iceberg_type(column.iceberg_type).form
    assert form is not None
    arguments = (table.table_id, column.column_id, form, table.snapshot_id)
    query = overlap(table.lake, *arguments, MOST_SPANS)
    return query.run(table.con)
