"""Manifest lists and manifests as Avro files.

Field ids and names are the specification's (https://iceberg.apache.org/spec/#manifests); the files
are of format version 2, or 3 with row ids.
"""

import base64
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import fastavro

from ...runtime.metrics import observe_seconds
from ..deletion_vector import VECTOR_OFFSET
from ..manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionField,
    PartitionSpec,
    Status,
    avro_type,
    summaries,
)
from ..types import TableSchema
from .container import container


def _field(field_id: int, name: str, type_: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": type_, "doc": doc, "field-id": field_id}


def _optional(field_id: int, name: str, type_: Any, doc: str) -> dict[str, Any]:
    return _field(field_id, name, ["null", type_], doc) | {"default": None}


def _map(field_id: int, name: str, key_id: int, value_id: int, value: str, doc: str) -> Any:
    # Avro's maps have string keys, so a map is an array of key/value records.
    record = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key_id},
            {"name": "value", "type": value, "field-id": value_id},
        ],
    }
    array = {"type": "array", "items": record, "logicalType": "map"}
    return _optional(field_id, name, array, doc)


MANIFEST_FILE: dict[str, Any] = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field(500, "manifest_path", "string", "Location URI with FS scheme"),
        _field(501, "manifest_length", "long", "Total file size in bytes"),
        _field(502, "partition_spec_id", "int", "Spec ID used to write"),
        _field(517, "content", "int", "Contents of the manifest: 0=data, 1=deletes"),
        _field(515, "sequence_number", "long", "Sequence number when the manifest was added"),
        _field(516, "min_sequence_number", "long", "Lowest sequence number in the manifest"),
        _field(503, "added_snapshot_id", "long", "Snapshot ID that added the manifest"),
        _field(504, "added_files_count", "int", "Added entry count"),
        _field(505, "existing_files_count", "int", "Existing entry count"),
        _field(506, "deleted_files_count", "int", "Deleted entry count"),
        _field(512, "added_rows_count", "long", "Added rows count"),
        _field(513, "existing_rows_count", "long", "Existing rows count"),
        _field(514, "deleted_rows_count", "long", "Deleted rows count"),
        _optional(
            507,
            "partitions",
            {
                "type": "array",
                "element-id": 508,
                "items": {
                    "type": "record",
                    "name": "r508",
                    "fields": [
                        _field(509, "contains_null", "boolean", "True if any file has a null"),
                        _optional(518, "contains_nan", "boolean", "True if any file has a NaN"),
                        _optional(510, "lower_bound", "bytes", "Lowest value of all files"),
                        _optional(511, "upper_bound", "bytes", "Highest value of all files"),
                    ],
                },
            },
            "Summary for each partition field",
        ),
    ],
}


FIRST_ROW_ID = _optional(520, "first_row_id", "long", "Starting row ID of files without one")


def _manifest_file(format_version: int) -> dict[str, Any]:
    if format_version < 3:
        return MANIFEST_FILE
    return MANIFEST_FILE | {"fields": [*MANIFEST_FILE["fields"], FIRST_ROW_ID]}


def _data_file(partition: dict[str, Any], format_version: int) -> dict[str, Any]:
    fields = [
        _field(134, "content", "int", "Contents of the file: 0=data, 1=position deletes"),
        _field(100, "file_path", "string", "Location URI with FS scheme"),
        _field(101, "file_format", "string", "File format name: avro, orc, or parquet"),
        _field(102, "partition", partition, "Partition data tuple, schema based on the spec"),
        _field(103, "record_count", "long", "Number of records in the file"),
        _field(104, "file_size_in_bytes", "long", "Total file size in bytes"),
        _map(108, "column_sizes", 117, 118, "long", "Map of column id to total size on disk"),
        _map(109, "value_counts", 119, 120, "long", "Map of column id to count, with nulls, NaNs"),
        _map(110, "null_value_counts", 121, 122, "long", "Map of column id to null value count"),
        _map(137, "nan_value_counts", 138, 139, "long", "Map of column id to NaN value count"),
        _map(125, "lower_bounds", 126, 127, "bytes", "Map of column id to lower bound"),
        _map(128, "upper_bounds", 129, 130, "bytes", "Map of column id to upper bound"),
        _optional(143, "referenced_data_file", "string", "Data file that all deletes are in"),
    ]
    if format_version > 2:
        fields += [
            _optional(144, "content_offset", "long", "Offset of the deletion vector"),
            _optional(145, "content_size_in_bytes", "long", "Length of the deletion vector"),
            _optional(142, "first_row_id", "long", "Row ID of the first row"),
        ]
    return {"type": "record", "name": "r2", "fields": fields}


def partition_schema(spec: PartitionSpec) -> dict[str, Any]:
    """The Avro schema of partition tuples."""
    values = [_optional(f.field_id, _avro_name(f), avro_type(f), f.name) for f in spec.fields]
    return {"type": "record", "name": "r102", "fields": values}


def partition_record(spec: PartitionSpec, values: Iterable[Any]) -> dict[str, Any]:
    """A partition tuple as a record of `partition_schema`."""
    return dict(zip(map(_avro_name, spec.fields), values, strict=True))


def manifest_entry_schema(spec: PartitionSpec, format_version: int = 2) -> dict[str, Any]:
    """The Avro schema of the entries of a manifest: the partition tuple differs by spec."""
    data_file = _data_file(partition_schema(spec), format_version)
    fields = [
        _field(0, "status", "int", "0: existing, 1: added, 2: deleted"),
        _optional(1, "snapshot_id", "long", "Snapshot that added, or deleted, the file"),
        _optional(3, "sequence_number", "long", "Data sequence number of the file"),
        _optional(4, "file_sequence_number", "long", "Sequence number when the file was added"),
        _field(2, "data_file", data_file, "The file and its statistics"),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


SUMMARY = "polynya.manifest-file"
"""Key of a manifest's summary in its own metadata: a manifest list can be written from cached
manifests without decoding their entries."""


@observe_seconds("Encoding")
def manifest_list_bytes(
    manifests: Iterable[ManifestFile],
    sequence_number: int,
    snapshot_id: int | None = None,
    format_version: int = 2,
) -> bytes:
    """The manifest list of one snapshot.

    Args:
        snapshot_id: None: the same as its sequence number.
        format_version: 2, or 3 with row ids.

    The list has no "parent-snapshot-id", which no client reads and which would change when the
    parent expires.
    """
    metadata = {
        "snapshot-id": str(sequence_number if snapshot_id is None else snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    return container(_manifest_file(format_version), map(asdict, manifests), metadata)


@observe_seconds("Encoding")
def manifest_bytes(
    entries: list[ManifestEntry],
    content: ManifestContent,
    schema: TableSchema,
    spec: PartitionSpec,
    sequence_number: int,
    codec: str = "deflate",
    snapshot_id: int | None = None,
    format_version: int = 2,
) -> bytes:
    """A manifest of one partition spec.

    Args:
        schema: that of the snapshot that added the manifest, with the types of the spec's columns.
        sequence_number: that of the snapshot that added the manifest.
        snapshot_id: the id of that snapshot; None: the same as its sequence number.
        format_version: 2, or 3 with row ids.
    """
    spec = spec.bind(schema)
    live = [entry.sequence_number for entry in entries if entry.status != Status.DELETED]
    rows = {
        status: [entry.data_file.record_count for entry in entries if entry.status == status]
        for status in Status
    }
    tuples = [entry.data_file.partition for entry in entries]
    partition = [[values[place] for values in tuples] for place, _ in enumerate(spec.fields)]
    added_by = (sequence_number, snapshot_id)
    summary = manifest_summary(content, spec, *added_by, live, rows, partition)
    if format_version > 2 and content == ManifestContent.DATA:
        summary["first_row_id"] = lowest_row_id(entry.data_file.first_row_id for entry in entries)
    records = (_entry(entry, spec) for entry in entries)
    metadata = manifest_metadata(content, schema, spec, summary, format_version)
    return container(manifest_entry_schema(spec, format_version), records, metadata, codec)


def lowest_row_id(first_row_ids: Iterable[int | None]) -> int:
    """The first_row_id of a data manifest.

    Clients ignore the ids of its files if it is null. Nothing else depends on it: the rows of files
    without a first_row_id carry their ids.
    """
    return min((row_id for row_id in first_row_ids if row_id is not None), default=0)


def manifest_metadata(
    content: ManifestContent,
    schema: TableSchema,
    spec: PartitionSpec,
    summary: Mapping[str, Any],
    format_version: int = 2,
) -> dict[str, str]:
    """The metadata in the header of a manifest."""
    return {
        "schema": json.dumps(schema.json(), ensure_ascii=False, separators=(",", ":")),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(spec.json()["fields"], ensure_ascii=False),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
        "content": content.name.lower(),
        SUMMARY: json.dumps(summary),
    }


def summary_of(manifest: bytes) -> dict[str, Any]:
    """The entry of a manifest list for a manifest that `manifest_bytes` made, without its path.

    A JSON object: bytes are base64.
    """
    metadata = fastavro.reader(io.BytesIO(manifest)).metadata
    return {"manifest_length": len(manifest), **json.loads(metadata[SUMMARY])}


def manifest_file(manifest_path: str, summary: Mapping[str, Any]) -> ManifestFile:
    """The entry of a manifest in a manifest list, from its `summary_of`."""
    partitions = [
        {key: _decoded(value) for key, value in partition.items()}
        for partition in summary["partitions"] or ()
    ]
    return ManifestFile(manifest_path=manifest_path, **{**summary, "partitions": partitions})


def manifest_paths(manifest_list: bytes) -> list[str]:
    """The locations of the manifests in a manifest list."""
    records: Any = fastavro.reader(io.BytesIO(manifest_list))
    return [record["manifest_path"] for record in records]


def file_paths(manifest: bytes) -> list[str]:
    """The locations of the files in a manifest, deleted entries included."""
    records: Any = fastavro.reader(io.BytesIO(manifest))
    return [record["data_file"]["file_path"] for record in records]


LIVE_PATHS = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int"},
            {
                "name": "data_file",
                "type": {
                    "type": "record",
                    "name": "r2",
                    "fields": [{"name": "file_path", "type": "string"}],
                },
            },
        ],
    }
)
"""What `live_file_paths` decodes; it skips the statistics."""


def live_file_paths(manifest: bytes) -> list[str]:
    """The locations of the files in a manifest, without deleted entries."""
    records: Any = fastavro.reader(io.BytesIO(manifest), LIVE_PATHS)
    return [r["data_file"]["file_path"] for r in records if r["status"] != Status.DELETED]


def _decoded(value: Any) -> Any:
    return base64.b64decode(value) if isinstance(value, str) else value


def manifest_summary(
    content: ManifestContent,
    spec: PartitionSpec,
    sequence_number: int,
    snapshot_id: int | None,
    live: Iterable[int],
    rows: Mapping[Status, Sequence[int]],
    partition: Sequence[Sequence[Any]],
) -> dict[str, Any]:
    """The fields of ManifestFile that follow from the entries.

    Args:
        live: sequence numbers of the entries that are not deleted.
        rows: record counts of the entries, by status.
        partition: for each field of the spec the values of all entries.
    """
    summary = {
        "content": int(content),
        "partition_spec_id": spec.spec_id,
        # Empty, not null: Spark's metadata table `manifests` fails on null.
        "partitions": summaries(spec, partition),
        "sequence_number": sequence_number,
        "min_sequence_number": min(live, default=sequence_number),
        "added_snapshot_id": sequence_number if snapshot_id is None else snapshot_id,
    }
    for status in Status:
        summary[f"{status.name.lower()}_files_count"] = len(rows[status])
        summary[f"{status.name.lower()}_rows_count"] = sum(rows[status])
    return summary


def _avro_name(field: PartitionField) -> str:
    """The field's name if Avro allows it: Sail reads partition values by name, not by id."""
    is_plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", field.name)
    # A name such as p1000 is reserved for the field with this id.
    numbered = f"p{field.field_id}"
    return field.name if is_plain and not re.fullmatch("p[0-9]+", field.name) else numbered


def _entry(entry: ManifestEntry, spec: PartitionSpec) -> dict[str, Any]:
    file = entry.data_file
    # Not asdict, whose deep copies took half of the time.
    return {
        "status": entry.status,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": {
            "content": file.content,
            "file_path": file.file_path,
            "file_format": file.file_format,
            "partition": partition_record(spec, file.partition),
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            "column_sizes": _pairs(file.column_sizes),
            "value_counts": _pairs(file.value_counts),
            "null_value_counts": _pairs(file.null_value_counts),
            "nan_value_counts": _pairs(file.nan_value_counts),
            "lower_bounds": _pairs(file.lower_bounds),
            "upper_bounds": _pairs(file.upper_bounds),
            "referenced_data_file": file.referenced_data_file,
            "content_offset": None if file.vector_size is None else VECTOR_OFFSET,
            "content_size_in_bytes": file.vector_size,
            "first_row_id": file.first_row_id,
        },
    }


def _pairs(values: Mapping[int, Any]) -> tuple[str, list[dict[str, Any]]]:
    """A map as an array; empty, not null: PyIceberg's inspect.entries() cannot read null.

    With the name of the branch, fastavro need not try each branch of the union on every pair.
    """
    return "array", [{"key": key, "value": values[key]} for key in sorted(values)]
