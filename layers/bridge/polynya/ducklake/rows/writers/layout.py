"""The versions of the catalog that can be written, and the columns that not all of them have.

What a catalog has decides, not what its version says: 1.1-dev1 may have any of the additions.
https://ducklake.select/docs/stable/duckdb/maintenance/upgrading
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..inlined_tables import INLINED_COLUMNS
from ..lake import MARK_OF_1_1

WRITABLE_VERSIONS = ("1.0", "1.1-dev1", "1.1")
"""The versions of DuckLake's catalog that Polynya can write to."""

VERSIONS = f"{', '.join(WRITABLE_VERSIONS[:-1])} and {WRITABLE_VERSIONS[-1]}"
"""The versions, for messages."""

ADDED = (
    *(MARK_OF_1_1, "ducklake_delete_file.row_group_count"),
    *("ducklake_file_column_stats.min_is_exact", "ducklake_file_column_stats.max_is_exact"),
    *("ducklake_table_column_stats.min_is_exact", "ducklake_table_column_stats.max_is_exact"),
)
"""The columns of 1.1 that commits fill, as `table.column`."""

PREFIX = "_ducklake_"
"""Of the system columns in tables of inlined rows since 1.1; no column of a user has it there."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a catalog has."""

    added: frozenset[str]
    """Those of ADDED that it has."""

    @property
    def is_1_1(self) -> bool:
        """Whether DuckLake treats the catalog as one of version 1.1.

        The migration renames the system columns of inlined tables before it adds a column.
        """
        return MARK_OF_1_1 in self.added

    @property
    def inlined_columns(self) -> tuple[str, ...]:
        """The system columns of a new table of inlined rows."""
        return tuple(PREFIX * self.is_1_1 + name for name in INLINED_COLUMNS)

    def lacks(self, table: str, column: str) -> bool:
        """Whether a column is one of those that this catalog does not have."""
        name = f"{table}.{column}"
        return name in ADDED and name not in self.added

    def rows(
        self, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        """The columns of a table that this catalog has, and the rows without the others."""
        places = [n for n, name in enumerate(names) if not self.lacks(table, name)]
        if len(places) == len(names):
            return names, rows
        return [names[n] for n in places], [[row[n] for n in places] for row in rows]


ALL = Layout(frozenset(ADDED))
"""That of the newest version."""
