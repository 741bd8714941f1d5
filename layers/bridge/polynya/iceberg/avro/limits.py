"""Limits on Avro files that others wrote: a few bytes must not become gigabytes of memory.

https://avro.apache.org/docs/current/specification/#object-container-files
"""

import io
import zlib

from .malformed import Malformed
from .untrusted_schema import check_schema

MAGIC = b"Obj\x01"
LONGEST_FILE = 16 * 1024 * 1024
"""Java writes manifests of 8 MB."""
MOST_BYTES = 128 * 1024 * 1024
"""The largest size of all blocks together, without compression."""
MOST_RECORDS = 200_000
"""Also the largest number of entries of one manifest that is read."""
SYNC = 16


def check_container(body: bytes) -> dict[str, bytes]:
    """Check the blocks of a file before anything is decoded; gives the metadata of its header.

    Raises:
        Malformed: it is no Avro file, its codec is unknown, or it is too large.
    """
    if len(body) > LONGEST_FILE:
        raise Malformed("it is too large: commit fewer files at a time")
    stream = io.BytesIO(body)
    if stream.read(4) != MAGIC:
        raise Malformed("it is no Avro file")
    metadata = _metadata(stream)
    check_schema(metadata.get("avro.schema", b""))
    codec = metadata.get("avro.codec", b"null")
    if codec not in {b"null", b"deflate"}:
        raise Malformed("its codec is neither null nor deflate; set write.manifest.compression")
    stream.seek(SYNC, io.SEEK_CUR)
    size = records = 0
    while stream.tell() < len(body):
        records += max(0, _long(stream))
        block = stream.read(_length(stream, len(body)))
        size += len(block) if codec == b"null" else _inflated(block, MOST_BYTES - size)
        if size > MOST_BYTES or records > MOST_RECORDS:
            raise Malformed("it is too large: commit fewer files at a time")
        stream.seek(SYNC, io.SEEK_CUR)
    return metadata


def _inflated(block: bytes, most: int) -> int:
    """The size of a block without compression, up to one more than `most`."""
    inflate = zlib.decompressobj(wbits=-15)
    size = 0
    try:
        while block and size <= most:
            size += len(inflate.decompress(block, 1_000_000))
            block = inflate.unconsumed_tail
    except zlib.error:
        raise Malformed("a block of it is broken") from None
    return size


def _metadata(stream: io.BytesIO) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    total = len(stream.getvalue())
    while count := _long(stream):
        if count < 0:
            count = -count
            _long(stream)
        for _ in range(min(count, total)):
            key = stream.read(_length(stream, total)).decode(errors="replace")
            metadata[key] = stream.read(_length(stream, total))
    return metadata


def _length(stream: io.BytesIO, most: int) -> int:
    length = _long(stream)
    if not 0 <= length <= most - stream.tell():
        raise Malformed("it is cut off")
    return length


def _long(stream: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = stream.read(1)
        if not byte or shift > 63:
            raise Malformed("it is cut off")
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return (value >> 1) ^ -(value & 1)
