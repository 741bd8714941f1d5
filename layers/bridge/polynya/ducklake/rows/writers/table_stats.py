"""Statistics of a column in a whole table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableColumnStats:
    """A row of ducklake_table_column_stats.

    DuckDB's optimizer relies on it: a bound that is too narrow silently loses rows.
    """

    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    min_is_exact: bool | None = None
    """Whether the bound is a value that the column has, or had; None: not known."""
    max_is_exact: bool | None = None
