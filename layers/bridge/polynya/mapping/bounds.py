"""Lower and upper bounds of columns: from DuckLake's texts to Iceberg's bytes.

A bound that is not certain is absent: an absent one costs time, a wrong one costs rows.

PostgreSQL sends the values of a column as one text. `numbers` and `texts` parse it, and
`FileAligner` brings the values into the order of the files.
"""

import math
import re
import struct
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..ducklake.rows.files import Texts as CatalogTexts
from ..iceberg.avro.row_encoder import Texts
from ..types.names import iceberg_type, to_bytes, value


class Leaf(NamedTuple):
    """A column with statistics: the type that Iceberg shows and the one the file was written in."""

    type_name: str
    written_type: str


def bounds(
    texts: Sequence[str | None],
    leaves: Sequence[Leaf | None],
    allowed: NDArray[np.bool_],
    zero: float,
) -> Texts:
    """Encode the bound of a column in each of n files; one that is not certain is absent.

    Args:
        texts: DuckLake's statistics; None if unknown.
        leaves: the types of the column in each file.
        allowed: the files that may have a bound.
        zero: what a bound of 0.0 or -0.0 becomes, so that it covers both.
    """
    has_bound = allowed
    if None in texts:
        has_bound = allowed & np.array([text is not None for text in texts], np.bool_)
    selectors = has_bound.tolist()
    values = _encoded(
        [text for text in compress(texts, selectors) if text is not None],
        [leaf for leaf in compress(leaves, selectors) if leaf is not None],
        zero,
    )
    if has_bound.all():
        return values
    lengths, present = np.zeros(len(has_bound), np.int64), has_bound.copy()
    lengths[has_bound] = values.lengths
    present[has_bound] = True if values.present is None else values.present
    return Texts(values.data, lengths, present)


def _encoded(texts: list[str], leaves: list[Leaf], zero: float) -> Texts:
    """Encode each text, equal ones once; a bound that is not certain is absent."""
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


def joined(values: Sequence[bytes | None]) -> Texts:
    """Make a column of byte strings; None is an absent one."""
    present = None
    if None in values:
        present = np.array([bound is not None for bound in values], np.bool_)
    texts = [bound or b"" for bound in values]
    lengths = np.array([len(text) for text in texts], np.int64)
    return Texts(np.frombuffer(b"".join(texts), np.uint8), lengths, present)


def _bound(text: str, leaf: Leaf, zero: float) -> bytes | None:
    """The bound as bytes of the type that Iceberg shows now; None if it is not certain."""
    promoted_float = leaf.written_type == "float" and leaf.type_name == "double"
    if promoted_float or not iceberg_type(leaf.type_name).has_bounds:
        # The text of a float32 is shorter than its value: 0.1 for 0.10000000149.
        return None
    try:
        read = value(leaf.written_type, drop_utc_offset(leaf.written_type, text))
        return to_bytes(leaf.type_name, _widest(read, zero))
    except (ValueError, OverflowError, struct.error):
        return None


UTC_OFFSET = re.compile(r"\+00(:00)?$")


def drop_utc_offset(written_type: str, text: str) -> str:
    """The text of a timestamp without a zone, for which some programs write that it is UTC."""
    return UTC_OFFSET.sub("", text) if written_type == "timestamp" else text


def _widest(read: Any, zero: float) -> Any:
    """Replace either zero by `zero`."""
    # The statistics of {-0.0, 0.0} have only one of the two, and Iceberg orders -0.0 first.
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
    # A number that float32 cannot hold becomes infinite, and no bound.
    with np.errstate(over="ignore"):
        written = read.astype(iceberg_type(leaf.type_name).layout)
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
    values: list[str | None] = [
        text[start:end] for start, end in zip(starts, ends.tolist(), strict=True)
    ]
    for place in np.flatnonzero(lengths == UNKNOWN).tolist():
        values[place] = None
    return values


class FileAligner:
    """Aligns values of some files, by their ids, with the order of all files."""

    def __init__(self, ids: Numbers, file_ids: Numbers) -> None:
        """Both arrays ascend. Values of other files are ignored, and so are two values of one file,
        which may contradict each other."""
        self._files = len(file_ids)
        places = np.searchsorted(file_ids, ids)
        self._is_match = places < len(file_ids)
        self._is_match[self._is_match] = file_ids[places[self._is_match]] == ids[self._is_match]
        is_repeated = ids[1:] == ids[:-1]
        self._is_match[1:] &= ~is_repeated
        self._is_match[:-1] &= ~is_repeated
        self._places = places[self._is_match]
        self._is_same = len(ids) == len(file_ids) and bool(self._is_match.all())

    def numbers(self, values: Numbers) -> Numbers:
        """Align numbers; UNKNOWN for a file without one."""
        if self._is_same:
            return values
        aligned = np.full(self._files, UNKNOWN, np.int64)
        aligned[self._places] = values[self._is_match]
        return aligned

    def items(self, values: Sequence[Item], unknown: Item) -> Sequence[Item]:
        """Align any values; `unknown` for a file without one."""
        if self._is_same:
            return values
        aligned = [unknown] * self._files
        for place, index in zip(
            self._places.tolist(), np.flatnonzero(self._is_match).tolist(), strict=True
        ):
            aligned[place] = values[index]
        return aligned
