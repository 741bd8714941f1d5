"""Avro object container files, the same bytes every time.

One release of libdeflate gives the same bytes on every processor.
docs/developers/decisions/0008-libdeflate.md compares it with others, whose bytes depend on the
processor.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import deflate
import fastavro

LEVEL = 1
"""Higher levels take more time to save few bytes: level 2 a third more time for 3 %."""

COMPRESSOR = f"deflate {deflate.__version__}, level {LEVEL}"
"""The compressor on which the bytes of a block depend. It is part of the names of Avro files:
another release of libdeflate gives other bytes."""

Block = bytes | bytearray | memoryview

CODECS: dict[str, Callable[[Block], Block]] = {
    "null": lambda block: block,
    "deflate": lambda block: deflate.deflate_compress(block, LEVEL),
}
"""By the name in the header. `deflate` is the only one besides `null` that every client reads."""


BLOCK_BYTES = 16_000
"""A block ends after the record with which it reaches this size, which is fastavro's."""


def container(
    schema: dict[str, Any],
    records: Iterable[Mapping[str, Any]],
    metadata: Mapping[str, str],
    codec: str = "deflate",
) -> bytes:
    """A file with these records."""
    parsed = _parsed(json.dumps(schema))
    out = io.BytesIO()
    out.write(header(schema, metadata, codec))
    entries, content = 0, io.BytesIO()
    for record in records:
        fastavro.schemaless_writer(content, parsed, record)
        entries += 1
        if content.tell() >= BLOCK_BYTES:
            out.write(block(entries, content.getvalue(), metadata, codec))
            entries, content = 0, io.BytesIO()
    if entries:
        out.write(block(entries, content.getvalue(), metadata, codec))
    return out.getvalue()


def header(schema: dict[str, Any], metadata: Mapping[str, str], codec: str) -> bytes:
    """The beginning of a file, which blocks follow."""
    out = io.BytesIO()
    fastavro.writer(
        out,
        _parsed(json.dumps(schema)),
        (),
        codec=codec,
        metadata=dict(metadata),
        sync_marker=_sync_marker(metadata),
    )
    return out.getvalue()


def block(entries: int, content: Block, metadata: Mapping[str, str], codec: str) -> bytes:
    """A block of a file.

    Args:
        content: the entries, one after the other.
        metadata: of the file.
    """
    # Not by fastavro: its bytes depend on the zlib that Python was built with.
    body = CODECS[codec](content)
    return b"".join((long(entries), long(len(body)), body, _sync_marker(metadata)))


def long(value: int) -> bytes:
    """One number as Avro writes it."""
    zigzag = (value << 1) ^ (value >> 63)
    octets = bytearray()
    while zigzag > 127:
        octets.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*octets, zigzag])


def _sync_marker(metadata: Mapping[str, str]) -> bytes:
    """The 16 bytes after the header and after each block.

    fastavro's own are random: two instances would serve different bytes for one key.
    """
    return hashlib.sha256(json.dumps(metadata).encode()).digest()[:16]


@lru_cache(64)
def _parsed(schema: str) -> Any:
    """The schema in fastavro's form. Each has some hundred parts, and a process has few schemas."""
    return _sort_keys(fastavro.parse_schema(json.loads(schema)))


def _sort_keys(schema: Any) -> Any:
    """The schema with sorted keys: parse_schema's order of "doc" and "field-id" changes with
    PYTHONHASHSEED, and it is written into the file."""
    if isinstance(schema, dict):
        return {key: _sort_keys(schema[key]) for key in sorted(schema)}
    return [_sort_keys(item) for item in schema] if isinstance(schema, list) else schema
