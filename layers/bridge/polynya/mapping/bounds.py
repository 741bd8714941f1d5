"""Lower and upper bounds of columns: from DuckLake's texts to Iceberg's bytes.

A bound that is not certain is absent: an absent one costs time, a wrong one costs rows.

Parses columns that PostgreSQL has concatenated, and aligns them with the files.
"""

import math
import struct
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..ducklake.rows.files import Texts as CatalogTexts
from ..iceberg.avro.row_encoder import Texts
from ..iceberg.manifest import LITTLE_ENDIAN, to_bytes
from .types import value

NO_BOUNDS = {
    # Java's UUID.compareTo is signed, DuckDB's order is unsigned: a bound would be ambiguous.
    "uuid",
}


class Leaf(NamedTuple):
    """A column with statistics: the type that Iceberg shows and the one the file was written in."""

    type_name: str
    written_type: str


def bounds(
    texts: Sequence[str | None],
    leaves: Sequence[Leaf | None],
    wanted: NDArray[np.bool_],
    zero: float,
) -> Texts:
    """The bound of a column in each of n files, absent if it is not certain.

    Args:
        texts: DuckLake's statistics; None if unknown.
        leaves: the types of the column in each file.
        wanted: the files that may have a bound.
        zero: the zero that a bound of either zero becomes.
    """
    known = wanted
    if None in texts:
        known = wanted & np.array([text is not None for text in texts], np.bool_)
    is_known = known.tolist()
    found = _known_bounds(
        [text for text in compress(texts, is_known) if text is not None],
        [leaf for leaf in compress(leaves, is_known) if leaf is not None],
        zero,
    )
    if known.all():
        return found
    lengths, present = np.zeros(len(known), np.int64), known.copy()
    lengths[known] = found.lengths
    present[known] = True if found.present is None else found.present
    return Texts(found.data, lengths, present)


def _known_bounds(texts: list[str], leaves: list[Leaf], zero: float) -> Texts:
    """The bound of each text, absent if it is not certain; equal texts are read once."""
    # Mostly all files have the same type; `count` compares by identity first.
    if not leaves or leaves.count(leaves[0]) < len(leaves):
        pairs = list(zip(texts, leaves, strict=True))
        read = {pair: _bound(*pair, zero) for pair in dict.fromkeys(pairs)}
        return joined([read[pair] for pair in pairs])
    leaf = leaves[0]
    fixed = _fixed(texts, leaf, zero)
    if fixed is not None:
        return Texts(fixed.reshape(-1), np.full(len(texts), fixed.shape[1]))
    bound_of = {text: _bound(text, leaf, zero) for text in dict.fromkeys(texts)}
    return joined([bound_of[text] for text in texts])


def joined(found: Sequence[bytes | None]) -> Texts:
    """Byte strings as a column."""
    present = None
    if None in found:
        present = np.array([one is not None for one in found], np.bool_)
    texts = [one or b"" for one in found]
    lengths = np.array([len(text) for text in texts], np.int64)
    return Texts(np.frombuffer(b"".join(texts), np.uint8), lengths, present)


def _bound(text: str, leaf: Leaf, zero: float) -> bytes | None:
    """The bound as bytes of the type that Iceberg shows now; None if it is not certain."""
    promoted_float = leaf.written_type == "float" and leaf.type_name == "double"
    if leaf.type_name in NO_BOUNDS or promoted_float:
        # The text of a float32 is shorter than its value: 0.1 for 0.10000000149.
        return None
    try:
        return to_bytes(leaf.type_name, _widest(value(leaf.written_type, text), zero))
    except (ValueError, OverflowError, struct.error):
        return None


def _widest(read: Any, zero: float) -> Any:
    """The statistics of {-0.0, 0.0} have only one of the two, and Iceberg orders -0.0 first."""
    if isinstance(read, float) and read == 0.0:
        return math.copysign(0.0, zero)
    return read


NUMBERS = {
    ("int", "int"): np.int64,
    ("int", "long"): np.int64,
    ("long", "long"): np.int64,
    ("float", "float"): np.float64,
    ("double", "double"): np.float64,
}
"""By (written type, shown type): the numpy type to parse, and the one to write."""


def _fixed(texts: list[str], leaf: Leaf, zero: float) -> NDArray[np.uint8] | None:
    """The bounds as n rows of bytes, by numpy; None if the result might differ from `_bound`."""
    read_as = NUMBERS.get((leaf.written_type, leaf.type_name))
    if read_as is None:
        return None
    try:
        read = np.array(texts, dtype=read_as)
    except (ValueError, OverflowError):
        return None
    if not np.isfinite(read).all():
        return None
    with np.errstate(over="ignore"):
        written = read.astype(LITTLE_ENDIAN[leaf.type_name])
    if read_as is np.int64:
        if (written != read).any():
            return None
    elif np.isfinite(written).all():
        written[read == 0] = zero
    else:
        return None
    return written.view(np.uint8).reshape(len(texts), -1)


Numbers = NDArray[np.int64]
Item = TypeVar("Item")

UNKNOWN = -1


def numbers(text: str) -> Numbers:
    """Parse numbers that are separated by commas."""
    return np.fromstring(text, np.int64, sep=",")


def texts(column: CatalogTexts) -> list[str | None]:
    """Split the texts of a column; None for NULL."""
    text, lengths = column.text, numbers(column.lengths)
    sizes = np.maximum(lengths, 0)
    ends = np.cumsum(sizes)
    starts = (ends - sizes).tolist()
    found: list[str | None] = [
        text[start:end] for start, end in zip(starts, ends.tolist(), strict=True)
    ]
    for place in np.flatnonzero(lengths == UNKNOWN).tolist():
        found[place] = None
    return found


class FileAligner:
    """Aligns values of some files, by their ids, with the order of all files."""

    def __init__(self, ids: Numbers, file_ids: Numbers) -> None:
        """Both arrays ascend. Values of other files are ignored, and so are two values of one file,
        which may contradict each other."""
        self._files = len(file_ids)
        at = np.searchsorted(file_ids, ids)
        self._is_one = at < len(file_ids)
        self._is_one[self._is_one] = file_ids[at[self._is_one]] == ids[self._is_one]
        is_repeated = ids[1:] == ids[:-1]
        self._is_one[1:] &= ~is_repeated
        self._is_one[:-1] &= ~is_repeated
        self._at = at[self._is_one]
        self._is_same = len(ids) == len(file_ids) and bool(self._is_one.all())

    def numbers(self, values: Numbers) -> Numbers:
        """UNKNOWN for files of which nothing is known."""
        if self._is_same:
            return values
        found = np.full(self._files, UNKNOWN, np.int64)
        found[self._at] = values[self._is_one]
        return found

    def items(self, values: Sequence[Item], unknown: Item) -> Sequence[Item]:
        """`unknown` for files of which nothing is known."""
        if self._is_same:
            return values
        found = [unknown] * self._files
        for at, index in zip(self._at.tolist(), np.flatnonzero(self._is_one).tolist(), strict=True):
            found[at] = values[index]
        return found
