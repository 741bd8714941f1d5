"""Positions of rows: ascending, each once. A commit can delete millions of rows.

They are in arrays of the standard library, which have eight bytes for each. Numpy is imported when
it is needed, because the REST catalog has none.
"""

from array import array
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def union(parts: Iterable[Collection[int]]) -> "array[int]":
    """The positions that are in any of the parts, which may be in any order."""
    import numpy as np

    found = np.concatenate([numbers(()), *map(numbers, parts)])
    is_ascending = bool(np.all(found[1:] > found[:-1]))
    return of_numbers(found if is_ascending else np.unique(found))


def difference(some: Collection[int], others: Collection[int]) -> "array[int]":
    """The positions that are in `some` and not in `others`."""
    import numpy as np

    return of_numbers(np.setdiff1d(numbers(some), numbers(others), assume_unique=True))


def numbers(positions: Collection[int]) -> "NDArray[np.int64]":
    """Positions for numpy, in their order; those of an array are not copied."""
    import numpy as np

    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    if isinstance(positions, array) and positions:
        return np.frombuffer(positions, np.int64)
    return np.fromiter(positions, np.int64, len(positions))


def of_numbers(found: "NDArray[Any]") -> "array[int]":
    """The positions in an array of numpy, in their order."""
    import numpy as np

    positions = array("q")
    positions.frombytes(np.ascontiguousarray(found, np.int64).view(np.uint8).data)
    return positions
