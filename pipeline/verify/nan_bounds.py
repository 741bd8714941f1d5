"""Row groups whose bounds leave NaN out: DuckDB orders NaN above every number, and skips them.

DuckDB writes no bounds where there is NaN. PyArrow and Java write those of the numbers, so
`f > 100` and `f = 'nan'` find nothing there, whatever the catalog says.
"""

from collections.abc import Iterator, Mapping

import pyarrow.parquet as pq

from .catalog import CatalogFile

FLOATS = {"FLOAT", "DOUBLE"}
"""Parquet's physical types."""


def check(
    file: CatalogFile,
    footer: pq.FileMetaData,
    ids: Mapping[int, int],
    contains_nan: Mapping[int, bool | None],
) -> Iterator[tuple[str, str]]:
    """Findings (`nan-bounds`), and notes (`nan-unknown`) where nobody has counted NaN.

    Args:
        ids: column ids by the number of the leaf column; empty for a file that was added.
        contains_nan: what the catalog says, by column id.
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
                f"{footer.num_row_groups} row groups have bounds, which leave NaN out: DuckDB "
                "passes over these rows; an UPDATE of all rows of the table writes them anew",
            )
        else:
            yield (
                "nan-unknown",
                f"the column {path} has bounds in files that DuckDB did not write, and the catalog "
                "does not say whether it holds NaN there: DuckDB would pass over these rows",
            )


def _has_bounds(footer: pq.FileMetaData, group: int, index: int) -> bool:
    statistics = footer.row_group(group).column(index).statistics
    return statistics is not None and bool(statistics.has_min_max)
