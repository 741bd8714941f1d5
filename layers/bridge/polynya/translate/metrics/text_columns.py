"""Parses columns that PostgreSQL has concatenated, and aligns them with the files."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...ducklake.rows.file_columns import Texts

Numbers = NDArray[np.int64]
Item = TypeVar("Item")

UNKNOWN = -1


def numbers(text: str) -> Numbers:
    """Parse numbers that are separated by commas."""
    return np.fromstring(text, np.int64, sep=",")


def texts(column: Texts) -> list[str | None]:
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
