"""Avro files that others wrote, within limits, because a few bytes can stand for gigabytes.

https://avro.apache.org/docs/current/specification/#object-container-files
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...runtime import budget
from .untrusted_schema import Fields, Malformed, cut_off, length_at, long_at, record_reader

MAGIC = b"Obj\x01"
LONGEST_FILE = 16 * 1024 * 1024
"""Java writes manifests of 8 MB."""
MOST_BYTES = 128 * 1024 * 1024
"""The largest size of all blocks together, without compression."""
LONGEST_BLOCK = 64 * 1024 * 1024
"""Without compression; ours have 32 MB at most, those of clients 64 KB and one record."""
MOST_RECORDS = 200_000
"""Also the largest number of entries in the new manifests of a commit."""
MOST_MEMORY = 256 * 1024 * 1024
"""For all that is read of the new manifests of a commit; 200,000 entries take 100 MB."""
MOST_KEYS = 1000
"""In a file's header; clients write seven."""
SYNC = 16


class Allowance:
    """The records and the memory that are left for several files together."""

    def __init__(self) -> None:
        self.records, self.memory = MOST_RECORDS, MOST_MEMORY

    def take(self, records: int = 0, memory: int = 0) -> None:
        """Count records and bytes of memory.

        Raises:
            Malformed: they are more than what is left.
        """
        self.records -= records
        self.memory -= memory
        if self.records < 0:
            raise Malformed(
                f"there are more than {MOST_RECORDS:,} entries in all: commit fewer files at a time"
            )
        if self.memory < 0:
            raise _too_large()


@dataclass(frozen=True, slots=True)
class Container:
    """An Avro file whose header has been read."""

    body: bytes
    metadata: dict[str, bytes]
    start: int
    """Where the first block begins."""
    sync: bytes

    @classmethod
    def from_bytes(cls, body: bytes) -> "Container":
        """The file that has these bytes.

        Raises:
            Malformed: it is not an Avro file, its codec is unknown, or it is too large.
        """
        if len(body) > LONGEST_FILE:
            raise _too_large()
        if not body.startswith(MAGIC):
            raise Malformed("it is not an Avro file")
        try:
            metadata, start = _metadata(body, len(MAGIC))
        except IndexError:
            raise cut_off() from None
        if metadata.get("avro.codec", b"null") not in {b"null", b"deflate"}:
            raise Malformed("its codec is neither null nor deflate; set write.manifest.compression")
        return cls(body, metadata, start + SYNC, body[start : start + SYNC])

    def records(self, fields: Fields, allowance: Allowance) -> Iterator[dict[str, Any]]:
        """Read these fields of each record; a field that the schema lacks is absent.

        Raises:
            Malformed: the file is broken, too large, or its schema is not one of Iceberg's.
            OutOfTime: no time is left in the budget.
        """
        read = record_reader(self.metadata.get("avro.schema", b""), fields)
        try:
            for count, block in self._blocks(allowance):
                offset = 0
                for _ in range(count):
                    budget.check()
                    record, offset = read(block, offset)
                    yield record
                if offset != len(block):
                    raise Malformed("a block of it is broken")
        except (IndexError, UnicodeDecodeError):
            # The readers index single bytes without a check of the length.
            raise cut_off() from None

    def _blocks(self, allowance: Allowance) -> Iterator[tuple[int, bytes]]:
        """The number of records in each block, and their bytes."""
        offset, left = self.start, MOST_BYTES
        while offset < len(self.body):
            budget.check()
            count, offset = long_at(self.body, offset)
            length, offset = length_at(self.body, offset)
            block = self._inflated(self.body[offset : offset + length], min(left, LONGEST_BLOCK))
            offset += length
            if self.body[offset : offset + SYNC] != self.sync:
                raise cut_off()
            offset += SYNC
            left -= len(block)
            if not 0 <= count <= len(block):  # a record has a byte
                raise Malformed("a block of it is broken")
            allowance.take(records=count)
            yield count, block

    def _inflated(self, block: bytes, most: int) -> bytes:
        if self.metadata.get("avro.codec") == b"deflate":
            # Avro's deflate has no header and no checksum (RFC 1951). One byte more than is
            # accepted shows that a block is too long.
            inflate = zlib.decompressobj(wbits=-15)
            try:
                block = inflate.decompress(block, most + 1)
            except zlib.error:
                raise Malformed("a block of it is broken") from None
            if not inflate.eof and len(block) <= most:
                raise cut_off()
        if len(block) > most:
            raise _too_large()
        return block


def _too_large() -> Malformed:
    return Malformed("it is too large: commit fewer files at a time")


def _metadata(body: bytes, offset: int) -> tuple[dict[str, bytes], int]:
    """The keys and values of the header, and where it ends."""
    metadata: dict[str, bytes] = {}
    keys = 0
    while True:
        count, offset = long_at(body, offset)
        # Negative: the size of the block in bytes follows, for readers that skip it.
        if count < 0:
            count, offset = -count, length_at(body, offset)[1]
        if count == 0:
            return metadata, offset
        keys += count
        if keys > MOST_KEYS:
            raise Malformed("its header has too many keys")
        for _ in range(count):
            length, offset = length_at(body, offset)
            key, offset = body[offset : offset + length], offset + length
            length, offset = length_at(body, offset)
            metadata[key.decode(errors="replace")], offset = (
                body[offset : offset + length],
                offset + length,
            )
