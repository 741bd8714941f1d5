"""Delete files and inlined deletes: the deleted rows of data files."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A row of ducklake_delete_file."""

    delete_file_id: int
    data_file_id: int
    begin_snapshot: int
    path: str
    path_is_relative: bool
    format: str
    """`parquet`, or `puffin`: a deletion vector."""
    delete_count: int
    partial_max: int | None


@dataclass(frozen=True, slots=True)
class InlinedDelete:
    """A row of ducklake_inlined_delete_<table_id>: one deleted row of a data file."""

    data_file_id: int
    position: int | None
    """None in broken rows."""
    begin_snapshot: int
