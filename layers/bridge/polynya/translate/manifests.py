"""Data files, inlined rows and deletes of a table as entries of Iceberg manifests.

The sequence number of everything is the DuckLake snapshot it began at, so that a delete applies to
exactly the data files that were there before it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..ducklake.rows import ColumnStats, DataFile
from ..iceberg import manifest
from ..iceberg.manifest import FileContent, ManifestEntry, Status
from ..iceberg.types import primitives
from .bounds import Leaf, metrics
from .rows_files import RowsFile
from .schemas import Schemas

FILE_PATH_ID = 2147483546
"""Reserved field id of `file_path` in position delete files."""


def data_entries(
    files: Iterable[DataFile],
    stats: Iterable[ColumnStats],
    schemas: Schemas,
    location: Callable[[DataFile], str],
    partition: Callable[[DataFile], tuple[Any, ...]],
    snapshot_id: int,
) -> list[ManifestEntry]:
    """Entries of the data files that are visible at `snapshot_id` or ended at it."""
    stats_of = by_file(stats)
    shown = primitives(schemas.at(snapshot_id).fields)
    entries = []
    for file in files:
        written = primitives(schemas.at(file.begin_snapshot).fields)
        leaves = {i: Leaf(shown[i], written[i]) for i in shown.keys() & written.keys()}
        found = metrics(stats_of.get(file.data_file_id, []), file.record_count, leaves)
        data_file = manifest.DataFile(
            content=FileContent.DATA,
            file_path=location(file),
            record_count=file.record_count,
            file_size_in_bytes=file.file_size_bytes,
            partition=partition(file),
            column_sizes=found.column_sizes,
            value_counts=found.value_counts,
            null_value_counts=found.null_value_counts,
            nan_value_counts=found.nan_value_counts,
            lower_bounds=found.lower_bounds,
            upper_bounds=found.upper_bounds,
        )
        ended = file.end_snapshot == snapshot_id
        entries.append(_entry(data_file, file.begin_snapshot, snapshot_id, ended))
    return entries


def by_file(stats: Iterable[ColumnStats]) -> dict[int, list[ColumnStats]]:
    """Statistics by data_file_id."""
    stats_of: dict[int, list[ColumnStats]] = defaultdict(list)
    for column in stats:
        stats_of[column.data_file_id].append(column)
    return stats_of


def rows_entry(
    location: str, rows: RowsFile, size: int, snapshot_id: int, *, is_gone: bool = False
) -> ManifestEntry:
    """The entry of a Parquet file that holds inlined rows; `is_gone`: until `snapshot_id`."""
    file = manifest.DataFile(FileContent.DATA, location, rows.record_count, size)
    return _entry(file, rows.begin_snapshot, snapshot_id, is_gone)


def delete_entry(
    location: str,
    data_file: str,
    partition: tuple[Any, ...],
    positions: int,
    size: int,
    changed_at: int,
    snapshot_id: int,
    *,
    is_gone: bool = False,
) -> ManifestEntry:
    """The entry of the position delete file of one data file; `is_gone`: until `snapshot_id`."""
    path = data_file.encode()
    file = manifest.DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        record_count=positions,
        file_size_in_bytes=size,
        lower_bounds={FILE_PATH_ID: path},
        upper_bounds={FILE_PATH_ID: path},
        referenced_data_file=data_file,
        partition=partition,
    )
    return _entry(file, changed_at, snapshot_id, is_gone)


def _entry(
    file: manifest.DataFile, begin_snapshot: int, snapshot_id: int, is_gone: bool
) -> ManifestEntry:
    return ManifestEntry(
        status=Status.DELETED if is_gone else _status(begin_snapshot, snapshot_id),
        snapshot_id=snapshot_id if is_gone else begin_snapshot,
        sequence_number=begin_snapshot,
        file_sequence_number=begin_snapshot,
        data_file=file,
    )


def _status(begin_snapshot: int, snapshot_id: int) -> Status:
    return Status.ADDED if begin_snapshot == snapshot_id else Status.EXISTING
