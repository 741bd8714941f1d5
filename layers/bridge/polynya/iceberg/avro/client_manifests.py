"""Manifest lists and manifests that clients wrote, as records.

https://iceberg.apache.org/spec/#manifest-lists
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...runtime.isolation import isolated
from .limits import Allowance, Container
from .untrusted_schema import LONGEST_SCHEMA, Fields, Malformed, ReadAs


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """An entry of a manifest list."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int | None = None
    """None in format version 1."""


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
    """Source id, transform and value of each partition field, as in the manifest itself, because a
    spec's id may mean another spec by the time of the commit. Empty if the manifest has no spec.
    The value is None if it is neither a whole number nor a text."""
    without_nan: frozenset[int]
    """Ids of the columns that have no NaN; about the others nothing is known."""
    referenced_data_file: str | None
    content_offset: int | None
    content_size_in_bytes: int | None
    equality_ids: tuple[int, ...] = ()
    """The columns of the keys, in an equality delete file."""
    sequence_number: int | None = None
    """The data sequence number; None if neither the entry nor the manifest has one."""


LISTED: Fields = dict.fromkeys(
    ("manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number"),
    ReadAs.VALUE,
)
ENTRY: Fields = {
    "status": ReadAs.VALUE,
    "sequence_number": ReadAs.VALUE,
    "data_file": {
        **dict.fromkeys(
            (
                *("content", "file_path", "file_format", "record_count", "file_size_in_bytes"),
                *("referenced_data_file", "content_offset", "content_size_in_bytes"),
            ),
            ReadAs.VALUE,
        ),
        "partition": ReadAs.TUPLE,
        "nan_value_counts": ReadAs.PAIRS,
        "equality_ids": ReadAs.LIST,
    },
}
"""What is read of manifest lists and of manifests."""

OBJECT, COLUMN_ID = 500, 100
"""Bytes of memory that an entry takes without its texts, and an id in a set."""


LITTLE = 64 * 1024
"""Manifests of up to so many bytes are read in this process: to ask another one takes longer."""


def manifests_in(manifest_list: bytes) -> list[ListedManifest]:
    """The manifests of a manifest list.

    Raises:
        Malformed: the file is no manifest list, or too large.
        OutOfTime: no time is left in the budget.
    """
    read = _manifests_in if len(manifest_list) <= LITTLE else _manifests_in_large
    return read(manifest_list)


def _manifests_in(manifest_list: bytes) -> list[ListedManifest]:
    allowance = Allowance()
    listed: list[ListedManifest] = []
    try:
        for record in Container.from_bytes(manifest_list).records(LISTED, allowance):
            listed.append(_listed(record))
            allowance.take(memory=OBJECT + len(listed[-1].manifest_path))
    except (KeyError, TypeError, ValueError) as error:
        raise _no_form(error) from None
    return listed


@isolated
def _manifests_in_large(manifest_list: bytes) -> list[ListedManifest]:
    return _manifests_in(manifest_list)


def _no_form(error: Exception) -> Malformed:
    return error if isinstance(error, Malformed) else Malformed("it is not in Iceberg's format")


def _listed(record: dict[str, Any]) -> ListedManifest:
    return ListedManifest(
        manifest_path=_text(record["manifest_path"]),
        manifest_length=_count(record["manifest_length"]),
        partition_spec_id=_count(record["partition_spec_id"]),
        # Absent in format version 1, which has data only (specification, "Reading v1 metadata for
        # v2").
        content=_count(record.get("content") or 0),
        sequence_number=_optional(_count, record.get("sequence_number")),
    )


def files_in(
    manifest: bytes,
    partition_spec_id: int,
    allowance: Allowance | None = None,
    sequence_number: int | None = None,
) -> list[WrittenFile]:
    """The entries of a manifest, deleted ones included.

    Args:
        sequence_number: that of the manifest.
        allowance: what several manifests may take together; None: this one alone.

    Raises:
        Malformed: the file is no manifest, or too large.
        OutOfTime: no time is left in the budget.
    """
    container = Container.from_bytes(manifest)
    fields = _spec_fields(container.metadata.get("partition-spec") or b"[]")
    allowance = allowance or Allowance()
    same: dict[frozenset[int], frozenset[int]] = {}
    files: list[WrittenFile] = []
    try:
        for record in container.records(ENTRY, allowance):
            file = _file(record, partition_spec_id, fields, same, sequence_number)
            files.append(file)
            texts = (file.file_path, file.file_format, file.referenced_data_file or "")
            allowance.take(memory=OBJECT + sum(map(len, texts)) + _size(file.partition))
            if file.without_nan not in same:
                same[file.without_nan] = file.without_nan
                allowance.take(memory=COLUMN_ID * len(file.without_nan))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _no_form(error) from None
    return files


@dataclass(frozen=True, slots=True)
class ManifestBody:
    """A manifest as a client wrote it."""

    body: bytes
    partition_spec_id: int
    sequence_number: int | None = None


def files_in_all(
    manifests: Sequence[ManifestBody], allowance: Allowance
) -> tuple[list[WrittenFile], Allowance]:
    """The entries of manifests, in order, and what is left of the allowance.

    Raises: as `files_in`.
    """
    is_little = sum(len(manifest.body) for manifest in manifests) <= LITTLE
    return (_files_in_all if is_little else _files_in_large)(manifests, allowance)


def _files_in_all(
    manifests: Sequence[ManifestBody], allowance: Allowance
) -> tuple[list[WrittenFile], Allowance]:
    files = [
        file
        for m in manifests
        for file in files_in(m.body, m.partition_spec_id, allowance, m.sequence_number)
    ]
    return files, allowance


@isolated
def _files_in_large(
    manifests: Sequence[ManifestBody], allowance: Allowance
) -> tuple[list[WrittenFile], Allowance]:
    return _files_in_all(manifests, allowance)


def _size(partition: tuple[tuple[int, str, Any], ...]) -> int:
    """The bytes of memory that partition values take."""
    return sum(OBJECT + (len(value) if isinstance(value, str) else 0) for *_, value in partition)


def _spec_fields(text: bytes) -> list[tuple[int, str]]:
    """Source id and transform of the fields of the manifest's spec."""
    if len(text) > LONGEST_SCHEMA:
        raise Malformed("its partition spec is too long")
    try:
        return [(int(field["source-id"]), str(field["transform"])) for field in json.loads(text)]
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        raise Malformed("its partition spec is not in Iceberg's format") from None


def _file(
    record: dict[str, Any],
    partition_spec_id: int,
    fields: Sequence[tuple[int, str]],
    same: dict[frozenset[int], frozenset[int]],
    sequence_number: int | None,
) -> WrittenFile:
    file = record["data_file"]
    own = record.get("sequence_number")
    # By position: Java replaces the characters of names that Avro does not have.
    values = file.get("partition") or ()
    source_fields = fields if len(fields) == len(values) else []
    counts = file.get("nan_value_counts") or {}
    without_nan = frozenset(id_ for id_, count in counts.items() if count == 0)
    return WrittenFile(
        status=_count(record["status"]),
        content=_count(file.get("content") or 0),
        file_path=_text(file["file_path"]),
        # The specification writes the names of formats in lower case, Java in capitals.
        file_format=_text(file["file_format"]).upper(),
        record_count=_count(file["record_count"]),
        file_size_in_bytes=_count(file["file_size_in_bytes"]),
        partition_spec_id=partition_spec_id,
        partition=tuple(
            (*source, value) for source, value in zip(source_fields, values, strict=False)
        ),
        without_nan=same.get(without_nan, without_nan),  # most files have the same
        referenced_data_file=_optional(_text, file.get("referenced_data_file")),
        content_offset=_optional(_count, file.get("content_offset")),
        content_size_in_bytes=_optional(_count, file.get("content_size_in_bytes")),
        equality_ids=tuple(map(_count, file.get("equality_ids") or ())),
        # https://iceberg.apache.org/spec/#sequence-number-inheritance
        sequence_number=sequence_number if own is None else _count(own),
    )


# A file has the schema that its writer chose, so each value is checked.
def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("a value in it is not a text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise Malformed("a value in it is not a count")
    return value


Value = TypeVar("Value")


def _optional(read: Callable[[Any], Value], value: Any) -> Value | None:
    return None if value is None else read(value)
