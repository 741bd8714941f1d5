"""Deletion vectors as DuckLake stores them, those of virtual files, and sets of positions.

A stored vector is a bare blob, or one of several in a Puffin file. A virtual file is a Puffin file
with one vector, from `VECTOR_OFFSET` on. https://iceberg.apache.org/puffin-spec/

A blob `deletion-vector-v1` is: its length (u32, big-endian), the magic, a 64-bit Roaring bitmap in
the portable format, and a CRC-32 (u32, big-endian) of magic and bitmap.
https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type

Positions of rows ascend, each once. A commit can delete millions of rows, so they are in arrays of
the standard library, with eight bytes for each. Numpy is imported when it is needed, because the
REST catalog has none.
"""

import json
import zlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..runtime.isolation import isolated

if TYPE_CHECKING:
    from pyroaring import BitMap64

MAGIC = bytes.fromhex("D1D33964")
PUFFIN = b"PFA1"

FOOTER_TAIL = 12
"""Bytes after the footer's JSON: its length (little-endian), flags, magic."""

SNAPSHOT_PROPERTY = "ducklake-snapshot-id"

LAST_POSITION = 2**63 - 1
"""A position is a long; a Roaring bitmap has numbers without a sign."""

VECTOR_OFFSET = len(PUFFIN)
"""Where the vector of a virtual file begins."""

POSITION_ID = 2147483645
"""The field id of `_pos`, of whose values a vector is the set."""


def puffin_file(data_file: str, positions: Collection[int]) -> bytes:
    """A Puffin file with one deletion vector: the rows of `data_file` that are deleted."""
    from pyroaring import BitMap64

    bitmap = BitMap64(numbers(positions))
    bitmap.run_optimize()
    vector = MAGIC + bitmap.serialize()
    blob = len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
    footer = {
        "blobs": [
            {
                "type": "deletion-vector-v1",
                "fields": [POSITION_ID],
                # Not known when a vector is written: the Puffin specification requires -1 for both.
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": VECTOR_OFFSET,
                "length": len(blob),
                "properties": {
                    "referenced-data-file": data_file,
                    "cardinality": str(len(bitmap)),
                },
            }
        ]
    }
    payload = json.dumps(footer, ensure_ascii=False, separators=(",", ":")).encode()
    tail = len(payload).to_bytes(4, "little") + bytes(4) + PUFFIN
    return PUFFIN + blob + PUFFIN + payload + tail


def vector_summary(body: bytes) -> Mapping[str, Any]:
    """The fields of a manifest's entry for a file of `puffin_file`, under Iceberg's names."""
    [blob] = _footer(body)["blobs"]
    return {
        "record_count": int(blob["properties"]["cardinality"]),
        "file_size_in_bytes": len(body),
        "content_size_in_bytes": blob["length"],
    }


@isolated
def deletion_vector_positions(stored: bytes, snapshot_id: int | None = None) -> Sequence[int]:
    """The positions that a stored deletion vector deletes, ascending.

    Args:
        snapshot_id: in a file of several vectors, each with the deletes up to one snapshot, the
            newest vector up to this snapshot is read; None: the newest vector.

    Raises:
        ValueError: it is no deletion vector, or damaged.
    """
    blob = _blob_at(stored, snapshot_id) if stored[:4] == PUFFIN else stored
    return _positions(_bitmap(blob))


@isolated
def dated_vectors(stored: bytes) -> dict[int | None, Sequence[int]]:
    """The positions that each vector of a stored file deletes, by the snapshot that wrote it.

    A vector has also the positions of those before it. The key of a bare vector is None.

    Raises:
        ValueError: it is no deletion vector, or damaged.
    """
    if stored[:4] != PUFFIN:
        return {None: deletion_vector_positions(stored)}
    return {key or None: _positions(_bitmap(blob)) for key, blob in _blobs(stored).items()}


@isolated
def vector_positions(blob: bytes, most: int) -> Sequence[int]:
    """The positions in a bare deletion vector that a client wrote, ascending.

    Args:
        most: the largest number of positions: a few bytes can stand for billions.

    Raises:
        ValueError: it is no deletion vector, damaged, or has more positions.
    """
    bitmap = _bitmap(blob)
    if len(bitmap) > most:
        raise ValueError("a deletion vector of too many positions")
    if bitmap and bitmap.max() > LAST_POSITION:
        raise ValueError("a deletion vector with a position of 2^63 or more")
    return _positions(bitmap)


def _positions(bitmap: "BitMap64") -> Sequence[int]:
    # Eight bytes for each; a list takes five times as many.
    return array("q", bitmap.to_array().tobytes())


def _blob_at(puffin: bytes, snapshot_id: int | None) -> bytes:
    blobs = _blobs(puffin)
    snapshot_ids = [key for key in blobs if snapshot_id is None or key <= snapshot_id]
    if not snapshot_ids:
        raise ValueError("no deletion vector is old enough")
    return blobs[max(snapshot_ids)]


def _blobs(puffin: bytes) -> dict[int, bytes]:
    """The vectors, by the snapshot up to which they have the deletes; 0: the file has none."""
    return {
        int(blob.get("properties", {}).get(SNAPSHOT_PROPERTY, 0)): puffin[
            blob["offset"] : blob["offset"] + blob["length"]
        ]
        for blob in _footer(puffin)["blobs"]
    }


def _footer(puffin: bytes) -> Any:
    length = int.from_bytes(puffin[-FOOTER_TAIL:-8], "little")
    # The flag is set if the footer is compressed.
    if puffin[-4:] != PUFFIN or puffin[-8:-4] != bytes(4):
        raise ValueError("not a Puffin file with a plain footer")
    return json.loads(puffin[-FOOTER_TAIL - length : -FOOTER_TAIL])


def _bitmap(blob: bytes) -> "BitMap64":
    from pyroaring import BitMap64

    length = int.from_bytes(blob[:4], "big")
    vector = blob[4 : 4 + length]
    if vector[:4] != MAGIC or len(vector) != length:
        raise ValueError("not a deletion vector")
    if zlib.crc32(vector) != int.from_bytes(blob[4 + length : 8 + length], "big"):
        raise ValueError("a deletion vector whose checksum is wrong")
    try:
        return BitMap64.deserialize(vector[4:])
    except LookupError:
        raise ValueError("not a Roaring bitmap") from None


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def union(parts: Iterable[Collection[int]]) -> "array[int]":
    """The positions that are in any of the parts; the parts may be in any order."""
    import numpy as np

    positions = np.concatenate([numbers(()), *map(numbers, parts)])
    is_ascending = bool(np.all(positions[1:] > positions[:-1]))
    return positions_of_array(positions if is_ascending else np.unique(positions))


def difference(positions: Collection[int], removed: Collection[int]) -> "array[int]":
    """The positions without those that are removed."""
    import numpy as np

    return positions_of_array(
        np.setdiff1d(numbers(positions), numbers(removed), assume_unique=True)
    )


def numbers(positions: Collection[int]) -> "NDArray[np.int64]":
    """Positions as a numpy array, in their order; an `array` is not copied."""
    import numpy as np

    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    if isinstance(positions, array) and positions:
        return np.frombuffer(positions, np.int64)
    return np.fromiter(positions, np.int64, len(positions))


def positions_of_array(values: "NDArray[Any]") -> "array[int]":
    """Positions from a numpy array, in their order."""
    import numpy as np

    positions = array("q")
    positions.frombytes(np.ascontiguousarray(values, np.int64).view(np.uint8).data)
    return positions
