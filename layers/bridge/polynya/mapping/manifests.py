"""Manifest entries of inlined rows and deletes, the columns with metrics, and fingerprints.

`data_files` makes the entries of data files.

A fingerprint is a short text that is equal if and only if the rows that a virtual file comes from
are equal. It is part of the file's name, so that a name never changes its bytes: when DuckLake has
rewritten its history, today's rows have another fingerprint than the requested name, and the answer
is "no such key".
"""

import hashlib
import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from ..ducklake.rows.objects import Window
from ..iceberg import manifest
from ..iceberg.manifest import FileContent, ManifestEntry, Status
from ..iceberg.types import primitives
from .partitions import Partitions
from .rows_files import RowsFile
from .schemas import Schemas
from .snapshots import SAME, SnapshotIds

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
    summary: Mapping[str, Any],
    data_file: str,
    partition: tuple[Any, ...],
    changed_at: int,
    window: Window,
    ids: SnapshotIds = SAME,
    *,
    is_gone: bool = False,
) -> ManifestEntry:
    """The entry of the delete file of a data file.

    Args:
        summary: record_count and file_size_in_bytes of the file, and content_size_in_bytes, the
            size of the vector, of a Puffin file.
        is_gone: it is DELETED in the window.
    """
    # Bounds also for a vector: by them PyIceberg finds the deletes of a data file.
    bounds = {FILE_PATH_ID: data_file.encode()}
    file = manifest.DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        record_count=summary["record_count"],
        file_size_in_bytes=summary["file_size_in_bytes"],
        lower_bounds=bounds,
        upper_bounds=bounds,
        referenced_data_file=data_file,
        partition=partition,
        vector_size=summary.get("content_size_in_bytes"),
    )
    return _entry(file, changed_at, window, ids, is_gone)


def _entry(
    file: manifest.DataFile, begin_snapshot: int, window: Window, ids: SnapshotIds, is_gone: bool
) -> ManifestEntry:
    is_added = begin_snapshot > window.base_id
    status = Status.ADDED if is_added else Status.EXISTING
    return ManifestEntry(
        status=Status.DELETED if is_gone else status,
        snapshot_id=ids.iceberg_id(window.snapshot_id if is_gone or is_added else begin_snapshot),
        # A delete then applies to exactly the data files that existed before it.
        sequence_number=begin_snapshot,
        file_sequence_number=begin_snapshot,
        data_file=file,
    )


MOST_COLUMNS = 100
"""The default number of columns with metrics in Iceberg (write.metadata.metrics)."""


def columns_with_metrics(schemas: Schemas, partitions: Partitions, snapshot_id: int) -> set[int]:
    """The ids of the columns whose statistics are needed."""
    return _first(schemas, snapshot_id) | partitions.source_ids


def late_columns(schemas: Schemas, partitions: Partitions, snapshot_id: int) -> list[int]:
    """The ids of the columns that have metrics only because a partition spec uses them.

    The content of a manifest depends on them, also if the spec is newer than the manifest.
    """
    late = partitions.source_ids - _first(schemas, snapshot_id)
    return sorted(late & primitives(schemas.schema_at(snapshot_id).fields).keys())


def _first(schemas: Schemas, snapshot_id: int) -> set[int]:
    return set(islice(primitives(schemas.schema_at(snapshot_id).fields), MOST_COLUMNS))


LENGTH = 20


def fingerprint(*parts: Any) -> str:
    """20 hexadecimal digits (80 bits) of a hash of the parts as JSON."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return fingerprint_of_bytes(text.encode())


def fingerprint_of_bytes(body: bytes) -> str:
    """20 hexadecimal digits (80 bits) of a hash of the bytes."""
    return hashlib.sha256(body).hexdigest()[:LENGTH]
