"""DuckLake's statistics of one column as Iceberg's metrics, over many files at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...ducklake.rows.file_columns import StatsColumn
from ...iceberg.avro.columns import ColumnMetrics, Integers, Texts
from .bounds import Leaf, bounds
from .text_columns import FileAligner, Numbers, numbers, texts

CUT = {"string", "binary"}
"""The types whose bounds clients know to be cut."""


def column_metrics(
    stats: StatsColumn, file_ids: Numbers, record_counts: Numbers, leaves: Sequence[Leaf | None]
) -> ColumnMetrics:
    """The metrics of a column in n files.

    Args:
        file_ids: n data_file_ids, ascending.
        record_counts: the number of rows of each file.
        leaves: the types of the column in each file; None if the file does not have the column,
            even if it has statistics of it.
    """
    order = FileAligner(numbers(stats.data_file_id), file_ids)
    sizes, values, nulls, nans = (
        order.numbers(numbers(text))
        for text in (
            stats.column_size_bytes,
            stats.value_count,
            stats.null_count,
            stats.contains_nan,
        )
    )
    is_in = np.fromiter((leaf is not None for leaf in leaves), np.bool_, len(file_ids))
    # value_count excludes NULLs. Counts that do not add up are wrong: those of timetz and
    # interval are all 0, and of a merged file seen at an older snapshot too large.
    is_sum = is_in & (values >= 0) & (nulls >= 0) & (values + nulls == record_counts)
    no_nan = is_in & (nans == 0)
    # DuckDB and Spark order NaN above every number and prune by the bound: without certainty
    # that there is none, `x >= 1` would lose the NaN rows.
    is_float = any(leaf and leaf.type_name in {"float", "double"} for leaf in set(leaves))
    lower = order.items(texts(stats.min_value), None)
    upper = order.items(texts(stats.max_value), None)
    is_lower = is_in & ~_mistaken(stats.min_is_inexact, file_ids, leaves)
    is_upper = (no_nan if is_float else is_in) & ~_mistaken(stats.max_is_inexact, file_ids, leaves)
    return ColumnMetrics(
        field_id=stats.column_id,
        column_sizes=_integers(sizes, is_in & (sizes >= 0)),
        value_counts=_integers(record_counts, is_sum),
        null_value_counts=_integers(nulls, is_sum),
        nan_value_counts=_integers(np.zeros_like(nans), no_nan),
        lower_bounds=_some(bounds(lower, leaves, is_lower, zero=-0.0)),
        upper_bounds=_some(bounds(upper, leaves, is_upper, zero=0.0)),
    )


def _mistaken(inexact: str, file_ids: Numbers, leaves: Sequence[Leaf | None]) -> NDArray[np.bool_]:
    """The files whose bound a client would take for a value, although it is none.

    Spark answers MIN and MAX with the bounds of the manifests, but for texts, whose bounds are cut.

    Args:
        inexact: the data_file_ids of which the bound is no value.
    """
    if not inexact:
        return np.zeros(len(file_ids), np.bool_)
    is_other = [leaf is not None and leaf.type_name not in CUT for leaf in leaves]
    return np.isin(file_ids, numbers(inexact)) & np.array(is_other, np.bool_)


def _integers(values: Numbers, present: NDArray[np.bool_]) -> Integers | None:
    if present.all():
        return Integers(values)
    return Integers(values, present) if present.any() else None


def _some(found: Texts) -> Texts | None:
    if found.present is None or found.present.all():
        return Texts(found.data, found.lengths)
    return found if found.present.any() else None
