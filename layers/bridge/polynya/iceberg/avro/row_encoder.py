"""Encodes rows of bytes column by column, without a loop over the rows.

A part is written to its place in n rows at once, in words of eight bytes. The bytes of a word that
do not belong to the part are overwritten by the parts after it.

`DataFiles` is what `columnar` encodes: the entries of a data manifest column by column. Names are
those of `manifest.DataFile` and `manifest.ManifestEntry`; row i of every column belongs to entry i.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Texts:
    """n byte strings, one after the other."""

    data: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    """Lengths in bytes; 0 if absent."""
    present: NDArray[np.bool_] | None = None
    """Which are present; None: all."""


@dataclass(frozen=True, slots=True)
class Integers:
    """n numbers; the value of an absent number does not matter."""

    values: NDArray[np.int64]
    present: NDArray[np.bool_] | None = None
    """Which are present; None: all."""


@dataclass(frozen=True, slots=True)
class ColumnMetrics:
    """The metrics of one field over n files; None if no file has them."""

    field_id: int
    column_sizes: Integers | None = None
    value_counts: Integers | None = None
    null_value_counts: Integers | None = None
    nan_value_counts: Integers | None = None
    lower_bounds: Texts | None = None
    """Single values as the specification serializes them (Appendix D)."""
    upper_bounds: Texts | None = None


@dataclass(frozen=True, slots=True)
class DataFiles:
    """n entries; no column is null unless its type says so."""

    status: NDArray[np.int64]
    """`manifest.Status`."""
    snapshot_id: NDArray[np.int64]
    sequence_number: NDArray[np.int64]
    """The file_sequence_number is the same number."""
    file_path: Texts
    record_count: NDArray[np.int64]
    file_size_in_bytes: NDArray[np.int64]
    partition: Sequence[Sequence[Any]]
    """The values of n files, for each field of the spec; None is null. Without files also ()."""
    metrics: Sequence[ColumnMetrics]
    """Ascending by field_id."""
    first_row_id: Integers | None = None
    """The row id of the first row; absent for files whose rows carry their ids. None: format
    version 2, which has no row ids."""


Octets = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
"""Offsets in a buffer, one for each of n rows."""
Lengths = NDArray[np.int64]
"""Bytes of each row: shape (n,), or (1,) if all rows have the same length."""
Words = NDArray[np.uint64]
"""Little-endian words."""

WORD = 8
FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], "<u8")
"""Masks of a word, by the number of its bytes that are used."""

MANY = 512
"""Longer byte strings are copied one by one, so that a few long rows do not slow all others."""


def words_of(octets: Octets) -> Words:
    """View the bytes as overlapping words: one begins at each position but the last seven."""
    return np.ndarray(len(octets) - WORD + 1, "<u8", octets, strides=(1,))


class Rows:
    """The buffer that n rows are written to."""

    def __init__(self, lengths: Lengths) -> None:
        self.ends: Places = np.cumsum(lengths)
        self.starts: Places = self.ends - lengths
        # A word may begin at the end of the last row, so the buffer is longer.
        self.octets: Octets = np.empty(int(self.ends[-1]) + WORD, np.uint8)
        self.words = words_of(self.octets)


@dataclass(frozen=True, slots=True)
class Short:
    """Up to eight bytes of each row."""

    words: Words
    """Shape (n,) or (1,); bytes after the length are 0."""
    lengths: Lengths
    width: int
    """The largest length, or more."""

    def put(self, rows: Rows, places: Places) -> None:
        rows.words[places] = self.words


@dataclass(frozen=True, slots=True)
class Long:
    """Any bytes of each row, copied from another buffer."""

    source: Octets
    """The buffer, with MANY more bytes after the last."""
    starts: Places
    lengths: Lengths
    width: int

    def put(self, rows: Rows, places: Places) -> None:
        source = words_of(self.source)
        for offset in range(0, min(self.width, MANY), WORD):
            to, of = places + offset, self.starts + offset
            if (to > rows.ends).any():
                longer = self.lengths > offset
                to, of = to[longer], of[longer]
            rows.words[to] = source[of]
        for row in np.flatnonzero(self.lengths > MANY).tolist():
            to, of, length = places[row], self.starts[row], self.lengths[row]
            rows.octets[to : to + length] = self.source[of : of + length]


Piece = Short | Long


class Part(Protocol):
    """One part of every row."""

    def width(self, rows: slice) -> int:
        """The largest number of bytes that it has in one of `rows`."""

    def pieces(self, rows: slice) -> Iterator[Piece]:
        """The pieces of the part in these rows, in order."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A part with the same bytes in every row, or in the rows that have it."""

    value: bytes
    present: Mask | None = None

    def width(self, rows: slice) -> int:
        return len(self.value)

    def pieces(self, rows: slice) -> Iterator[Piece]:
        for start in range(0, len(self.value), WORD):
            octets = self.value[start : start + WORD]
            word = np.array([int.from_bytes(octets, "little")], "<u8")
            yield _where(self.present, rows, word, np.array([len(octets)]))


@dataclass(frozen=True, slots=True)
class Varints:
    """Numbers in Avro's variable-length encoding."""

    values: NDArray[np.int64]
    present: Mask | None = None

    def width(self, rows: slice) -> int:
        return 10

    def pieces(self, rows: slice) -> Iterator[Piece]:
        for words, lengths in varints(self.values[rows]):
            yield _where(self.present, rows, words, lengths)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes of the same length in every row."""

    octets: Octets
    """Shape (all rows, length)."""

    def width(self, rows: slice) -> int:
        return int(self.octets.shape[1])

    def pieces(self, rows: slice) -> Iterator[Piece]:
        for start in range(0, self.width(rows), WORD):
            octets = self.octets[rows, start : start + WORD]
            width = octets.shape[1]
            if width < WORD:
                octets = np.pad(octets, ((0, 0), (0, WORD - width)))
            yield Short(octets.view("<u8")[:, 0], np.array([width]), width)


class Bytes:
    """Byte strings, without their lengths."""

    def __init__(self, texts: Texts) -> None:
        self._data, self._lengths = texts.data, texts.lengths
        self._ends = np.cumsum(texts.lengths)

    def width(self, rows: slice) -> int:
        return int(self._lengths[rows].max())

    def pieces(self, rows: slice) -> Iterator[Piece]:
        lengths, width = self._lengths[rows], self.width(rows)
        starts = self._ends[rows] - lengths
        first, last = int(starts[0]), int(starts[-1] + lengths[-1])
        source = self._data[first : last + MANY + WORD]
        if len(source) < last - first + MANY + WORD:
            source = np.concatenate([source, np.zeros(MANY + WORD, np.uint8)])
        starts -= first
        if width > WORD:
            yield Long(source, starts, lengths, width)
        elif width:
            yield Short(words_of(source)[starts] & FIRST_BYTES[lengths], lengths, width)


def joined(parts: Sequence[Part], rows: slice) -> memoryview:
    """The bytes of these rows.

    A word that is written near the end of a row runs over into the next row, whose beginning is
    corrected at the end.
    """
    pieces = list(_together(piece for part in parts for piece in part.pieces(rows)))
    lengths = np.zeros(rows.stop - rows.start, np.int64)
    for piece in pieces:
        lengths += piece.lengths
    out = Rows(lengths)
    places = out.starts.copy()
    beginnings: Words | None = None
    for piece in pieces:
        piece.put(out, places)
        places += piece.lengths
        if beginnings is None and (places - out.starts).min() >= WORD:
            beginnings = out.words[out.starts]
    if beginnings is None:
        raise ValueError("a row is too short")
    # The end of each row has overwritten the beginning of the next one.
    out.words[out.starts] = beginnings
    return out.octets[:-WORD].data


def _together(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same bytes in fewer pieces: adjacent short pieces are merged."""
    last: Short | None = None
    for piece in pieces:
        if isinstance(piece, Long):
            if last is not None:
                yield last
            last = None
            yield piece
        elif last is None:
            last = piece
        elif last.width + piece.width <= WORD:
            words = last.words | piece.words << (last.lengths << 3).view(np.uint64)
            last = Short(words, last.lengths + piece.lengths, last.width + piece.width)
        else:
            yield last
            last = piece
    if last is not None:
        yield last


def _where(present: Mask | None, rows: slice, words: Words, lengths: Lengths) -> Short:
    width = int(lengths.max())
    if present is None or present[rows].all():
        return Short(words, lengths, width)
    mask = present[rows]
    return Short(words * mask, lengths * mask, width)


# Steps that spread groups of 7 bits over bytes: threshold in bits, shift, and masks.
SPREAD = [
    tuple(map(np.uint64, step))
    for step in (
        (28, 4, 0x0000_0000_0FFF_FFFF, 0x00FF_FFFF_F000_0000),
        (14, 2, 0x0000_3FFF_0000_3FFF, 0x0FFF_C000_0FFF_C000),
        (7, 1, 0x007F_007F_007F_007F, 0x3F80_3F80_3F80_3F80),
    )
]
LOW_BITS, HIGH_BIT = np.uint64(0x7F7F_7F7F_7F7F_7F7F), np.uint64(0x8080_8080_8080_8080)
"""The high bit of each byte of a word, which says that another byte follows."""
MOST = np.uint64((1 << 56) - 1)
"""The largest number whose bytes are one word."""


def varints(values: NDArray[np.int64]) -> Iterator[tuple[Words, Lengths]]:
    """The bytes of n numbers: zigzag, then 7 bits per byte; a ninth and tenth byte are separate.

    https://avro.apache.org/docs/1.12.0/specification/#primitive-types-1
    """
    zigzag: Words = ((values << 1) ^ (values >> 63)).view(np.uint64)
    largest = zigzag.max()
    words = zigzag & MOST
    for bits, shift, low, high in SPREAD:
        if largest >> bits:
            words = words & low | (words & high) << shift
    # Every byte that has a byte other than 0 after it.
    before = words >> np.uint64(8)
    for shift in map(np.uint64, (8, 16, 32)):
        before |= before >> shift
    followed = before + LOW_BITS & HIGH_BIT
    if largest > MOST:
        followed[zigzag > MOST] = HIGH_BIT
    # Each byte but the last says that another one follows.
    yield words | followed, np.minimum(np.bitwise_count(followed) + np.int64(1), WORD)
    if largest > MOST:
        ninth, tenth = zigzag >> np.uint64(56) & np.uint64(127), zigzag >> np.uint64(63)
        words = ninth | tenth << np.uint64(7) | tenth << np.uint64(8)
        yield words, np.add(zigzag > MOST, tenth, dtype=np.int64)
