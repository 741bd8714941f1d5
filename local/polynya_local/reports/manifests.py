"""Manifest lists and manifests as readable records, decoded from their bytes.

fastavro and PyIceberg decode them, as clients do, not the code that wrote them.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np
from polynya.iceberg.table_metadata import Snapshot
from polynya.runtime.errors import BadRequest
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.types import PrimitiveType, StringType, TimestampNanoType, TimestamptzNanoType

from .generator import OpenedTable

STATUS = {0: "existing", 1: "added", 2: "deleted"}
LONGEST_BOUND = 40  # characters


@dataclass(frozen=True, slots=True)
class Bounds:
    """The metrics of one column of a file; None: the manifest does not have it."""

    lower: str | None
    upper: str | None
    nulls: int | None


@dataclass(frozen=True, slots=True)
class File:
    """An entry of a manifest; sizes are in bytes."""

    status: str
    path: str
    rows: int
    """Rows of a data file, or positions in a delete file."""
    bytes: int
    snapshot_id: int
    sequence_number: int
    partition: dict[str, str | None]
    columns: dict[str, Bounds]
    """Columns with metrics, by dotted name."""
    deletes_of: str | None
    """The data file whose rows a delete file deletes; None: this is a data file."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest and its record in the manifest list."""

    path: str
    kind: str
    """`data`, `inlined rows` or `deletes`."""
    bytes: int
    spec_id: int
    sequence_number: int
    files: dict[str, int]
    """How many are added, existing, deleted."""
    rows: dict[str, int]
    """How many rows are in those."""
    partitions: list[str]
    """The summary of each partition field."""
    entries: list[File]


@dataclass(frozen=True, slots=True)
class ManifestList:
    """A manifest list and its manifests."""

    path: str
    bytes: int
    manifests: list[Manifest]

    def files(self) -> Iterator[File]:
        """The entries of all manifests."""
        return (file for manifest in self.manifests for file in manifest.entries)

    def live_files(self) -> Iterator[File]:
        """The entries of files that the snapshot has, without those that mark a file as deleted."""
        return (file for file in self.files() if file.status != "deleted")

    def deleted_rows(self) -> dict[str, int]:
        """The number of deleted rows of each data file that has a delete file, by its path."""
        return {file.deletes_of: file.rows for file in self.live_files() if file.deletes_of}


def manifest_list(
    table: OpenedTable, location: str, *, with_entries: bool = True, with_values: bool = True
) -> ManifestList:
    """The manifest list at a location, and its manifests, with or without their entries.

    Args:
        with_values: read the partitions and the metrics of the files; otherwise they are empty.
    """
    body = table.body(location)

    def manifest(record: dict[str, Any]) -> Manifest:
        opened = _Opened.open(table, record)
        return opened.manifest(opened.reader if with_entries else (), with_values=with_values)

    return ManifestList(location, len(body), [manifest(record) for record in _records(body)])


def decode_entries(table: OpenedTable, location: str, most: int) -> int:
    """Decode entries of the manifests in a list, as a client does; returns their number.

    Args:
        most: after so many entries no further manifest is decoded.
    """
    number = 0
    for record in _records(table.body(location)):
        if number >= most:
            break
        number += sum(1 for _ in _Opened.open(table, record).reader)
    return number


def manifest_page(
    table: OpenedTable, list_location: str, path: str, first: int, most: int
) -> tuple[Manifest, int]:
    """One manifest of a list with a page of its entries, and how many it has.

    Raises:
        BadRequest: the list has no such manifest.
    """
    records = _records(table.body(list_location))
    record = next((record for record in records if record["manifest_path"] == path), None)
    if record is None:
        raise BadRequest(f"the manifest list has no manifest {path}")
    opened = _Opened.open(table, record)
    entries = list(opened.reader)
    return opened.manifest(entries[first : first + most]), len(entries)


def changed_paths(table: OpenedTable, snapshots: Iterable[Snapshot]) -> set[str]:
    """The data files that entries of these snapshots add, remove, or delete rows of."""
    paths = set()
    for snapshot in snapshots:
        for record in _records(table.body(snapshot.manifest_list)):
            if record["added_snapshot_id"] == snapshot.snapshot_id:
                for entry in fastavro.reader(io.BytesIO(table.body(record["manifest_path"]))):
                    assert isinstance(entry, dict)
                    if entry["snapshot_id"] == snapshot.snapshot_id:
                        file = entry["data_file"]
                        paths.add(file["referenced_data_file"] or file["file_path"])
    return paths


def _records(body: bytes) -> Iterable[Any]:
    records: Iterable[Any] = fastavro.reader(io.BytesIO(body))
    return records


@dataclass(frozen=True, slots=True)
class _Opened:
    """A manifest whose header is read."""

    record: dict[str, Any]
    """Its record in the manifest list."""
    kind: str
    schema: Schema
    spec: list[dict[str, Any]]
    reader: Iterable[Any]

    @classmethod
    def open(cls, table: OpenedTable, record: dict[str, Any]) -> "_Opened":
        path = record["manifest_path"]
        reader = fastavro.reader(io.BytesIO(table.body(path)))
        name = table.virtual_name(path)
        is_inlined = name is not None and "rows" in name.kind
        return cls(
            record=record,
            kind="deletes" if record["content"] == 1 else "inlined rows" if is_inlined else "data",
            schema=Schema.model_validate_json(reader.metadata["schema"]),
            spec=json.loads(reader.metadata["partition-spec"]),
            reader=reader,
        )

    def manifest(self, entries: Iterable[Any], *, with_values: bool = True) -> Manifest:
        """The manifest with the given entries of it."""
        record = self.record
        values = (self.schema, self.spec) if with_values else None
        return Manifest(
            path=record["manifest_path"],
            kind=self.kind,
            bytes=record["manifest_length"],
            spec_id=record["partition_spec_id"],
            sequence_number=record["sequence_number"],
            files={status: record[f"{status}_files_count"] for status in STATUS.values()},
            rows={status: record[f"{status}_rows_count"] for status in STATUS.values()},
            partitions=_summaries(record["partitions"] or [], self.spec, self.schema),
            entries=[_file(entry, values) for entry in entries],
        )


def _file(entry: dict[str, Any], values: tuple[Schema, Sequence[dict[str, Any]]] | None) -> File:
    """An entry of a manifest.

    Args:
        values: the schema and the spec, if the partition and the metrics are read too.
    """
    file = entry["data_file"]
    is_delete = file["content"] != 0
    return File(
        status=STATUS[entry["status"]],
        path=file["file_path"],
        rows=file["record_count"],
        bytes=file["file_size_in_bytes"],
        snapshot_id=entry["snapshot_id"],
        sequence_number=entry["sequence_number"],
        partition=_partition(file, *values) if values else {},
        columns=_columns(file, values[0]) if values and not is_delete else {},
        deletes_of=file["referenced_data_file"] if is_delete else None,
    )


def _partition(
    file: dict[str, Any], schema: Schema, spec: Sequence[dict[str, Any]]
) -> dict[str, str | None]:
    return {
        field["name"]: _partition_text(field, schema, value)
        for field, value in zip(spec, file["partition"].values(), strict=True)
    }


def _columns(file: dict[str, Any], schema: Schema) -> dict[str, Bounds]:
    lower, upper, nulls = (
        {pair["key"]: pair["value"] for pair in file[name] or []}
        for name in ("lower_bounds", "upper_bounds", "null_value_counts")
    )
    return {
        schema.find_column_name(field_id) or str(field_id): Bounds(
            _text(schema, field_id, lower.get(field_id)),
            _text(schema, field_id, upper.get(field_id)),
            nulls.get(field_id),
        )
        for field_id in sorted(lower.keys() | upper.keys() | nulls.keys())
    }


def _text(schema: Schema, field_id: int, bound: bytes | None) -> str | None:
    return None if bound is None else _value_text(_primitive(schema, field_id), bound)


def _primitive(schema: Schema, field_id: int) -> PrimitiveType:
    type_ = schema.find_type(field_id)
    assert isinstance(type_, PrimitiveType)
    return type_


def _value_text(type_: PrimitiveType, bound: bytes) -> str:
    value = from_bytes(type_, bound)
    identity: IdentityTransform[Any] = IdentityTransform()
    text = identity.to_human_string(type_, value)
    if isinstance(type_, StringType):
        text = json.dumps(text, ensure_ascii=False)
    elif isinstance(type_, TimestampNanoType | TimestamptzNanoType):  # PyIceberg returns a number
        text = str(np.datetime64(value, "ns"))
        text += "+00:00" if isinstance(type_, TimestamptzNanoType) else ""
    return (
        text if len(text) <= LONGEST_BOUND else f"{text[:LONGEST_BOUND]}… ({len(text)} characters)"
    )


def _partition_text(field: dict[str, Any], schema: Schema, value: Any) -> str | None:
    if value is None:
        return None
    transform = parse_transform(field["transform"])
    if isinstance(transform, IdentityTransform):  # fastavro has decoded it, for example to a date
        is_plain = isinstance(value, str | bool)
        return json.dumps(value, ensure_ascii=False) if is_plain else str(value)
    return transform.to_human_string(schema.find_type(field["source-id"]), value)


def _summaries(
    summaries: list[dict[str, Any]], spec: list[dict[str, Any]], schema: Schema
) -> list[str]:
    return [
        _summary(field, summary, schema) for field, summary in zip(spec, summaries, strict=True)
    ]


def _summary(field: dict[str, Any], summary: dict[str, Any], schema: Schema) -> str:
    source = schema.find_type(field["source-id"])
    transform = parse_transform(field["transform"])
    type_ = transform.result_type(source)
    assert isinstance(type_, PrimitiveType)
    values = [
        transform.to_human_string(source, from_bytes(type_, summary[name]))
        for name in ("lower_bound", "upper_bound")
        if summary[name] is not None
    ]
    words = " … ".join(dict.fromkeys(values)) or "no value"
    return f"{field['name']}: {words}" + (", with NULL" if summary["contains_null"] else "")
