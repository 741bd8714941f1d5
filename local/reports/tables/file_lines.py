"""Data files of a table as lines of a list."""

from collections.abc import Sequence
from dataclasses import dataclass

from polynya.ducklake.connection.statements import known, run_batched
from polynya.ducklake.paths import file_location
from polynya.ducklake.queries.listing.data_files import deleted_in, stats_of, values_of
from polynya.ducklake.rows.data_files import DataFile

from ..row_counts import FileRows, RowCounts
from .opened import TableAt


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
    """Those that the snapshot shows, deleted ones included; None: only the files say, and they were
    not read."""
    deleted: int | None
    """How many of them are deleted."""
    bytes: int
    partition: dict[str, str | None]
    lower: str | None
    """The bounds of the chosen column, as DuckLake has them."""
    upper: str | None
    bounds_are_wider: bool
    """A bound is known to be none of the values: they are between the bounds."""
    nulls: int | None
    is_added: bool
    """Somebody has added it as it was; DuckLake did not write it."""
    is_merged: bool
    """It holds the rows of several snapshots."""


def file_lines(
    table: TableAt,
    files: Sequence[DataFile],
    at: int,
    rows: RowCounts,
    column_id: int | None = None,
) -> list[FileLine]:
    """Read what is known of these files besides their rows in ducklake_data_file.

    Args:
        at: the snapshot that shows them.
        rows: counts rows at this snapshot.
        column_id: the column whose bounds are shown.
    """
    history, ids = table.files.history, [file.data_file_id for file in files]
    table_id = history.table.table_id
    values, deleted, stats = run_batched(
        table.con,
        values_of(table_id, ids),
        deleted_in(history.inlined, table_id, at, ids),
        known({}) if column_id is None else stats_of(history.lake, table_id, column_id, ids),
    )
    names = partition_names(table)
    uncertain = rows.files(at, ids)

    def line(file: DataFile) -> FileLine:
        nulls, lower, upper, is_wider = stats.get(file.data_file_id, (None, None, None, False))
        keys = names.get(file.partition_id, {})
        found = values.get(file.data_file_id, {})
        counted = uncertain.get(
            file.data_file_id, FileRows(file.record_count, deleted.get(file.data_file_id, 0))
        )
        return FileLine(
            data_file_id=file.data_file_id,
            path=file.path,
            location=file_location(history.lake, history.schema, history.table, file),
            begin_snapshot=file.begin_snapshot,
            rows=None if counted is None else counted.rows,
            deleted=None if counted is None else counted.deleted,
            bytes=file.file_size_bytes,
            partition={keys.get(key, str(key)): text for key, text in sorted(found.items())},
            lower=lower,
            upper=upper,
            bounds_are_wider=is_wider,
            nulls=nulls,
            is_added=file.mapping_id is not None,
            is_merged=file.partial_max is not None,
        )

    return [line(file) for file in files]


def partition_names(table: TableAt) -> dict[int | None, dict[int, str]]:
    """The words of each partition key, by partition_id and index."""
    columns = {one.column_id: one.column_name for one in table.files.history.columns}
    return {
        partition_id: {
            key.partition_key_index: partition_key(columns.get(key.column_id, "?"), key.transform)
            for key in keys
        }
        for partition_id, keys in table.files.history.partitioning.columns.items()
    }


def partition_key(name: str, transform: str) -> str:
    """A partition key as DuckLake writes it."""
    return name if transform == "identity" else f"{transform}({name})"
