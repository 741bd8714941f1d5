"""The entries of a data manifest column by column: what `columnar` encodes.

The words are those of `manifest.DataFile` and `manifest.ManifestEntry`; row i of every column is
about entry i.
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
    """In bytes; 0 where absent."""
    present: NDArray[np.bool_] | None = None
    """None: all."""


@dataclass(frozen=True, slots=True)
class Integers:
    """n numbers; what stands where one is absent does not matter."""

    values: NDArray[np.int64]
    present: NDArray[np.bool_] | None = None
    """None: all."""


@dataclass(frozen=True, slots=True)
class ColumnMetrics:
    """Of one field, over n files; None: no file has it."""

    field_id: int
    column_sizes: Integers | None = None
    value_counts: Integers | None = None
    null_value_counts: Integers | None = None
    nan_value_counts: Integers | None = None
    lower_bounds: Texts | None = None
    """As the specification serializes single values."""
    upper_bounds: Texts | None = None


@dataclass(frozen=True, slots=True)
class DataFiles:
    """n entries; none of the columns is null unless it says so."""

    status: NDArray[np.int64]
    """`manifest.Status`."""
    snapshot_id: NDArray[np.int64]
    sequence_number: NDArray[np.int64]
    """The file_sequence_number is the same."""
    file_path: Texts
    record_count: NDArray[np.int64]
    file_size_in_bytes: NDArray[np.int64]
    partition: Sequence[Sequence[Any]]
    """The values of n files, for each field of the spec; None is null. Without files also ()."""
    metrics: Sequence[ColumnMetrics]
    """Ascending by field_id."""
