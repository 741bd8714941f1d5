"""Inlined rows and deletes as entries of Iceberg manifests; `metrics.data_files` has the rest.

The sequence number of a file is the DuckLake snapshot at which it began, so that a delete applies
to exactly the data files that existed before it.
"""

from typing import Any

from ..ducklake.rows.lake import Window
from ..iceberg import manifest
from ..iceberg.manifest import FileContent, ManifestEntry, Status
from .inlined.rows_files import RowsFile
from .snapshot_ids import SAME, SnapshotIds

FILE_PATH_ID = 2147483546
"""Reserved field id of `file_path` in position delete files."""


def rows_entry(
    location: str,
    rows: RowsFile,
    partition: tuple[Any, ...],
    size: int,
    window: Window,
    ids: SnapshotIds = SAME,
    *,
    is_gone: bool = False,
) -> ManifestEntry:
    """The entry of a Parquet file of inlined rows; `is_gone`: DELETED in the window."""
    file = manifest.DataFile(
        FileContent.DATA, location, rows.record_count, size, partition=partition
    )
    return _entry(file, rows.begin_snapshot, window, ids, is_gone)


def delete_entry(
    location: str,
    data_file: str,
    partition: tuple[Any, ...],
    positions: int,
    size: int,
    changed_at: int,
    window: Window,
    ids: SnapshotIds = SAME,
    *,
    is_gone: bool = False,
) -> ManifestEntry:
    """The entry of the position delete file of a data file; `is_gone`: DELETED in the window."""
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
    return _entry(file, changed_at, window, ids, is_gone)


def _entry(
    file: manifest.DataFile, begin_snapshot: int, window: Window, ids: SnapshotIds, is_gone: bool
) -> ManifestEntry:
    is_added = begin_snapshot > window.base_id
    status = Status.ADDED if is_added else Status.EXISTING
    return ManifestEntry(
        status=Status.DELETED if is_gone else status,
        snapshot_id=ids.of(window.snapshot_id if is_gone or is_added else begin_snapshot),
        sequence_number=begin_snapshot,
        file_sequence_number=begin_snapshot,
        data_file=file,
    )
