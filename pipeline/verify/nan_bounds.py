"""Row groups whose bounds exclude NaN: DuckDB, which orders NaN above every number, skips them.

DuckDB writes no bounds if there is a NaN. PyArrow and Java write the bounds of the numbers, so
`f > 100` and `f = 'nan'` do not find the NaN, whatever the catalog says.
"""

from collections.abc import Iterator, Mapping

import pyarrow.parquet as pq

from .catalog import CatalogFile
from .findings import Problem

FLOATS = {"FLOAT", "DOUBLE"}
"""Parquet's physical types."""


def check(
    file: CatalogFile,
    footer: pq.FileMetaData,
    ids: Mapping[int, int],
    contains_nan: Mapping[int, bool | None],
) -> Iterator[Problem]:
    """Findings (`nan-bounds`), and notes (`nan-unknown`) if the catalog does not count NaN.

    Args:
        ids: column ids by the index of the leaf column; empty for a file that was added.
        contains_nan: by column id, from the catalog; None: it does not say.
    """
    if (footer.created_by or "").startswith("DuckDB"):
        return
    for index in range(footer.num_columns):
        if footer.schema.column(index).physical_type not in FLOATS:
            continue
        groups = sum(_has_bounds(footer, group, index) for group in range(footer.num_row_groups))
        has_nan = contains_nan.get(ids[index]) if index in ids else None
        if not groups or has_nan is False:
            continue
        path = footer.schema.column(index).path
        if has_nan:
            yield (
                "nan-bounds",
                f"the column {path} of {file.location} holds NaN, and {groups} of its "
                f"{footer.num_row_groups} row groups have bounds, which exclude NaN: DuckDB "
                "skips these rows; an UPDATE of all rows of the table rewrites them correctly",
            )
        else:
            yield (
                "nan-unknown",
                f"the column {path} has bounds in files that DuckDB did not write, and the catalog "
                "does not say whether it holds NaN there: DuckDB would skip these rows",
            )


def _has_bounds(footer: pq.FileMetaData, group: int, index: int) -> bool:
    statistics = footer.row_group(group).column(index).statistics
    return statistics is not None and bool(statistics.has_min_max)
