"""Statistics files that clients have written (Puffin), as tags of the table that DuckLake ignores.

Of each kind the newest one is kept, which is the one that clients read: Trino and Spark take the
numbers of distinct values from what the table metadata says of the file.
"""

import json
from collections.abc import Iterable
from typing import Any

from ..ducklake.rows.named_objects import Tag
from .client_properties import PARTITION_STATISTICS, STATISTICS

Json = dict[str, Any]

KINDS = {"statistics": STATISTICS, "partition-statistics": PARTITION_STATISTICS}
"""The keys of tags, by the names in the table metadata."""

SHOWN_MS = 28 * 24 * 3600 * 1000
"""The file is among those that a commit reads once, which the template deletes after 30 days. Trino
fails in INSERT if it cannot read the file that the table metadata names."""


def kept_file(kind: str, tags: Iterable[Tag]) -> tuple[Json, int] | None:
    """The file of a kind, and when it was set (milliseconds since 1970); None if there is none."""
    for tag in tags:
        if tag.key == KINDS[kind] and tag.value is not None:
            try:
                kept = json.loads(tag.value)
                file: Json = kept["file"]
                return file | {"snapshot-id": int(file["snapshot-id"])}, int(kept["at"])
            except (ValueError, TypeError, KeyError):
                return None  # somebody has changed the tag by hand
    return None


def file_text(file: Json, set_ms: int) -> str:
    """The value of the tag that keeps a file."""
    return json.dumps({"at": set_ms, "file": file})


def shown_files(tags: Iterable[Tag], now_ms: int) -> dict[str, list[Json]]:
    """The lists of the table metadata, by their names; without those that are empty."""
    tags = list(tags)
    files = {kind: kept_file(kind, tags) for kind in KINDS}
    return {kind: [kept[0]] for kind, kept in files.items() if kept and now_ms - kept[1] < SHOWN_MS}
