"""Rows of bytes that are put together column by column, without a loop over the rows.

n rows are a matrix of bytes, in which each part of a row has columns of its own, as many as its
longest value among the n has bytes, and a mask that says which bytes are really there. Read row by
row, the bytes under the mask are the rows, one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .columns import Texts

Octets = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filled:
    """One part of n rows, w bytes wide. Where all rows are alike, one stands for all."""

    octets: Octets
    """(n or 1, w)."""
    real: Mask
    """(n or 1, w or 1)."""


class Part(Protocol):
    """One part of all rows."""

    def width(self, rows: slice) -> int:
        """The most bytes that it can have in one of `rows`."""

    def filled(self, rows: slice) -> Filled: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same bytes in every row that has them."""

    value: bytes
    present: Mask | None = None

    def width(self, rows: slice) -> int:
        return len(self.value)

    def filled(self, rows: slice) -> Filled:
        return Filled(np.frombuffer(self.value, np.uint8)[np.newaxis], _real(self.present, rows))


@dataclass(frozen=True, slots=True)
class Varints:
    """Numbers as Avro writes them."""

    values: NDArray[np.int64]
    present: Mask | None = None

    def width(self, rows: slice) -> int:
        return 10

    def filled(self, rows: slice) -> Filled:
        octets, used = varints(self.values[rows])
        real = _real(self.present, rows)
        return Filled(octets, used if real is EVERYWHERE else used & real)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes of the same number in every row."""

    octets: Octets
    """(all rows, w)."""

    def width(self, rows: slice) -> int:
        return int(self.octets.shape[1])

    def filled(self, rows: slice) -> Filled:
        return Filled(self.octets[rows], EVERYWHERE)


class Bytes:
    """Byte strings, without their lengths."""

    def __init__(self, texts: Texts) -> None:
        self._data = texts.data
        self._lengths = texts.lengths
        self._ends = np.concatenate([[0], np.cumsum(texts.lengths)])

    def width(self, rows: slice) -> int:
        return int(self._lengths[rows].max())

    def filled(self, rows: slice) -> Filled:
        lengths, width = self._lengths[rows], self.width(rows)
        start, end = self._ends[rows.start], self._ends[rows.stop]
        data = self._data[start:end]
        # A window on each string; what follows it is under no mask.
        windows = sliding_window_view(np.concatenate([data, np.zeros(width, np.uint8)]), width)
        octets = windows[self._ends[rows] - start]
        return Filled(octets, np.arange(width) < lengths[:, np.newaxis])


def joined(parts: Sequence[Part], rows: slice) -> memoryview:
    """The bytes of these rows."""
    filled = [part.filled(rows) for part in parts]
    ends = list(accumulate(part.octets.shape[1] for part in filled))
    columns = list(map(slice, [0, *ends], ends))
    shape = (rows.stop - rows.start, ends[-1])
    octets, real = np.empty(shape, np.uint8), np.empty(shape, np.bool_)
    _fill(octets, columns, [part.octets for part in filled])
    _fill(real, columns, [part.real for part in filled])
    return octets[real].data


def _fill(matrix: NDArray[Any], columns: list[slice], pieces: list[NDArray[Any]]) -> None:
    for place, piece in zip(columns, pieces, strict=True):
        matrix[0, place] = piece[0]
    # All that is alike in all rows is written at once.
    matrix[1:] = matrix[0]
    for place, piece in zip(columns, pieces, strict=True):
        if len(piece) > 1:
            matrix[:, place] = piece


EVERYWHERE = np.ones((1, 1), np.bool_)


def _real(present: Mask | None, rows: slice) -> Mask:
    return EVERYWHERE if present is None or present[rows].all() else present[rows, np.newaxis]


def varints(values: NDArray[np.int64]) -> tuple[Octets, Mask]:
    """The bytes (n, w) of n numbers and which of them are used: zigzag, then 7 bits to a byte.

    https://avro.apache.org/docs/1.12.0/specification/#primitive-types-1
    """
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    width = max(1, -(-int(zigzag.max()).bit_length() // 7))
    # A row for each byte of all numbers: numpy is fast along what lies together.
    rest = zigzag >> (7 * np.arange(width, dtype=np.uint64))[:, np.newaxis]
    used = rest != 0
    used[0] = True
    octets = rest.astype(np.uint8) & np.uint8(127)
    octets[:-1] |= used[1:].view(np.uint8) << 7
    return octets.T, used.T
