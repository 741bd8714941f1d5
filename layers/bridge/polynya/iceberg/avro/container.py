"""Avro object container files, the same bytes every time.

Codec `deflate`: the only one besides `null` that every client reads.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro


def container(
    schema: dict[str, Any],
    records: Iterable[Mapping[str, Any]],
    metadata: Mapping[str, str],
    codec: str = "deflate",
) -> bytes:
    """A file with these records; without records it is the header, which blocks can follow."""
    out = io.BytesIO()
    fastavro.writer(
        out,
        _in_order(fastavro.parse_schema(schema)),
        records,
        codec=codec,
        metadata=dict(metadata),
        sync_marker=sync_marker(metadata),
    )
    return out.getvalue()


def sync_marker(metadata: Mapping[str, str]) -> bytes:
    """The 16 bytes after the header and after each block.

    fastavro's own are random: two instances would serve different bytes for one key.
    """
    return hashlib.sha256(json.dumps(metadata).encode()).digest()[:16]


def _in_order(schema: Any) -> Any:
    """The schema with sorted keys: parse_schema's order of "doc" and "field-id" changes with
    PYTHONHASHSEED, and it is written into the file."""
    if isinstance(schema, dict):
        return {key: _in_order(schema[key]) for key in sorted(schema)}
    return [_in_order(item) for item in schema] if isinstance(schema, list) else schema
