"""Manifest lists and manifests that clients wrote, as records.

https://iceberg.apache.org/spec/#manifest-lists
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import fastavro

from .limits import check_container
from .malformed import Malformed


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """An entry of a manifest list."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """An entry of a manifest: a data file or a delete file, and what happened to it."""

    status: int
    content: int
    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    partition_spec_id: int
    partition: tuple[tuple[int, str, Any], ...]
    """Source id, transform and value of each partition field, as the manifest itself says: a spec's
    id may mean another spec by the time of the commit. Empty if the manifest has no spec."""
    nan_value_counts: dict[int, int]
    """By field id; a column that is absent was not counted."""
    referenced_data_file: str | None
    content_offset: int | None
    content_size_in_bytes: int | None


def manifests_in(manifest_list: bytes) -> list[ListedManifest]:
    """The manifests of a manifest list.

    Raises:
        Malformed: the file is no manifest list, or too large.
    """
    try:
        return [_listed(record) for record in _records(manifest_list)]
    except (KeyError, TypeError, ValueError) as error:
        raise _no_form(error) from None


def _no_form(error: Exception) -> Malformed:
    return error if isinstance(error, Malformed) else Malformed("it is no file of Iceberg's form")


def _listed(record: dict[str, Any]) -> ListedManifest:
    return ListedManifest(
        manifest_path=_text(record["manifest_path"]),
        manifest_length=_count(record["manifest_length"]),
        partition_spec_id=_count(record["partition_spec_id"]),
        content=_count(record.get("content") or 0),
    )


def files_in(manifest: bytes, partition_spec_id: int) -> list[WrittenFile]:
    """The entries of a manifest, deleted ones included.

    Raises:
        Malformed: the file is no manifest, or too large.
    """
    fields = _spec_fields(manifest)
    try:
        return [_file(record, partition_spec_id, fields) for record in _records(manifest)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _no_form(error) from None


def _spec_fields(manifest: bytes) -> list[tuple[int, str]]:
    """Source id and transform of the fields of the manifest's spec."""
    text = check_container(manifest).get("partition-spec") or b"[]"
    try:
        return [(int(one["source-id"]), str(one["transform"])) for one in json.loads(text)]
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        raise Malformed("its partition spec is not of Iceberg's form") from None


def _file(
    record: dict[str, Any], partition_spec_id: int, fields: Sequence[tuple[int, str]]
) -> WrittenFile:
    file = record["data_file"]
    # By position: Java replaces the characters of names that Avro does not have.
    values = list((file.get("partition") or {}).values())
    known = fields if len(fields) == len(values) else []
    return WrittenFile(
        status=_count(record["status"]),
        content=_count(file.get("content") or 0),
        file_path=_text(file["file_path"]),
        file_format=_text(file["file_format"]).upper(),
        record_count=_count(file["record_count"]),
        file_size_in_bytes=_count(file["file_size_in_bytes"]),
        partition_spec_id=partition_spec_id,
        partition=tuple((*of, value) for of, value in zip(known, values, strict=False)),
        nan_value_counts={one["key"]: one["value"] for one in file.get("nan_value_counts") or ()},
        referenced_data_file=_optional(_text, file.get("referenced_data_file")),
        content_offset=_optional(_count, file.get("content_offset")),
        content_size_in_bytes=_optional(_count, file.get("content_size_in_bytes")),
    )


# A file has the schema that its writer chose.
def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("a value in it is no text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise Malformed("a value in it is no count")
    return value


Value = TypeVar("Value")


def _optional(read: Callable[[Any], Value], value: Any) -> Value | None:
    return None if value is None else read(value)


def _records(body: bytes) -> Iterator[dict[str, Any]]:
    check_container(body)
    try:
        for record in fastavro.reader(io.BytesIO(body)):
            if not isinstance(record, dict):
                raise Malformed("its records are of another kind")
            yield record
    except Malformed:
        raise
    except Exception:  # what a decoder raises for the bytes of somebody else
        raise Malformed("it is no Avro file of Iceberg's form") from None
