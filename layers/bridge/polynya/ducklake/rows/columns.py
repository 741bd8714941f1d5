"""Columns, name mappings and sort keys of a table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A row of ducklake_column: one version of a column."""

    column_id: int
    begin_snapshot: int
    end_snapshot: int | None
    column_name: str
    column_type: str
    initial_default: str | None
    parent_column: int | None
    nulls_allowed: bool = True
    """False is certain only at the top level: DuckLake writes it for nested columns too."""

    def visible_at(self, snapshot_id: int) -> bool:
        """Whether this version of the column is visible at a snapshot."""
        ended = self.end_snapshot is not None and self.end_snapshot <= snapshot_id
        return self.begin_snapshot <= snapshot_id and not ended


@dataclass(frozen=True, slots=True)
class MappedName:
    """A row of ducklake_name_mapping: a column in the files that were added with the mapping."""

    mapping_id: int
    column_id: int
    """An ordinal within the mapping, to which `parent_column` refers; no column of the table."""
    source_name: str
    target_field_id: int
    parent_column: int | None
    is_partition: bool | None
    """Its value is in the path of the files (`part=1/…`), not in the files."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A row of ducklake_sort_expression."""

    expression: str
    sort_direction: str
    null_order: str
