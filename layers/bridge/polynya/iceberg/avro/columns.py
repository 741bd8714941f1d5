"""The entries of a data manifest column by column: what `columnar` encodes.

Names are those of `manifest.DataFile` and `manifest.ManifestEntry`; row i of every column belongs
to entry i.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
