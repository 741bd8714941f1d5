"""The metadata.json of an Iceberg table of another catalog: the parts that a registration reads.

https://iceberg.apache.org/spec/#table-metadata-and-snapshots
"""

import json
import zlib
from typing import Any

from ..runtime.isolation import isolated


class NotMetadata(ValueError):
    """The file is no metadata file that can be registered; the message says why."""


LONGEST_FILE = 16 * 1024 * 1024
"""Also without compression; ten thousand snapshots take 10 MB."""

LONGEST_PARTS = 4 * 1024 * 1024
"""The longest parts that are read, as JSON: schemas and properties."""

LITTLE = 64 * 1024
"""Files of up to so many bytes are read in this process: to ask another one takes longer."""

GZIP = b"\x1f\x8b"

FORMAT_VERSIONS = {1, 2, 3}

SAME = (
    *("format-version", "last-column-id", "current-schema-id", "schemas", "default-spec-id"),
    *("partition-specs", "default-sort-order-id", "sort-orders", "properties"),
)
"""The keys that are read as they are."""


def parts_of(metadata_file: bytes) -> bytes:
    """The parts of a metadata file that a registration reads, as JSON: among others the current
    snapshot, the number of snapshots, and the names of references.

    Raises:
        NotMetadata: it is no metadata file, is too large, or has an unknown version.
    """
    is_little = len(metadata_file) <= LITTLE and not metadata_file.startswith(GZIP)
    return (_parts_of if is_little else _parts_of_large)(metadata_file)


@isolated
def _parts_of_large(metadata_file: bytes) -> bytes:
    return _parts_of(metadata_file)


def _parts_of(metadata_file: bytes) -> bytes:
    try:
        document = json.loads(_inflated(metadata_file))
        parts = json.dumps(_parts(document)).encode()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, NotMetadata):
            raise
        raise NotMetadata("it is not Iceberg table metadata") from None
    if len(parts) > LONGEST_PARTS:
        raise _too_large()
    return parts


def _inflated(body: bytes) -> bytes:
    """The text of a file that may be compressed."""
    if body.startswith(GZIP):
        inflate = zlib.decompressobj(wbits=31)
        try:
            body = inflate.decompress(body, LONGEST_FILE + 1)
        except zlib.error:
            raise NotMetadata("it is cut off or broken") from None
        if not inflate.eof and len(body) <= LONGEST_FILE:
            raise NotMetadata("it is cut off or broken")
    if len(body) > LONGEST_FILE:
        raise _too_large()
    return body


def _too_large() -> NotMetadata:
    return NotMetadata(f"it has more than {LONGEST_FILE >> 20} MB, or schemas of more than 4 MB")


def _parts(document: dict[str, Any]) -> dict[str, Any]:
    version = document["format-version"]
    if version not in FORMAT_VERSIONS:
        raise NotMetadata(f"its format version is not 1, 2 or 3: {str(version)[:20]}")
    parts = {key: document[key] for key in SAME if document.get(key) is not None}
    if "schemas" not in parts:  # version 1, as are the next ones
        parts |= {"schemas": [document["schema"] | {"schema-id": 0}], "current-schema-id": 0}
    if "partition-specs" not in parts:
        specs = [{"spec-id": 0, "fields": document.get("partition-spec") or []}]
        parts |= {"partition-specs": specs, "default-spec-id": 0}
    snapshots, references = document.get("snapshots") or [], document.get("refs") or {}
    current = document.get("current-snapshot-id")
    current = None if current == -1 else current
    return parts | {
        "snapshot": _snapshot(snapshots, current),
        "snapshots": len(snapshots),
        "references": [name for name in references if name != "main"],
        "has-encryption": bool(document.get("encryption-keys")),
        "has-statistics": bool(document.get("statistics") or document.get("partition-statistics")),
    }


def _snapshot(snapshots: list[dict[str, Any]], current: int | None) -> dict[str, Any] | None:
    """The current snapshot; None: the table has none."""
    if current is None:
        return None
    for snapshot in snapshots:
        if snapshot["snapshot-id"] == current:
            if "manifest-list" not in snapshot:
                raise NotMetadata(
                    "its current snapshot has no manifest list, as in very old tables"
                )
            return {"summary": {}, **snapshot}
    raise NotMetadata("it lacks the snapshot that it names as current")
