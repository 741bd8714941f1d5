"""Sums over the rows of a table, by snapshot or by chunk of data files."""

from dataclasses import dataclass

from .data_files import FileGroup


@dataclass(frozen=True, slots=True)
class Event:
    """Sums over the rows of one table that begin (`sign` 1) or end (-1) at one snapshot."""

    snapshot_id: int
    kind: str
    """One of `queries.lifetimes.KINDS`."""
    sign: int
    files: int
    rows: int
    bytes: int
    hash: int
    """Sum of 64-bit hashes: equal for equal sets of rows, in any order."""
    past: int = 0
    """Sum of 64-bit hashes of the rows that ended, and when."""


@dataclass(frozen=True, slots=True)
class ChunkSum:
    """What is visible at a snapshot: of one kind, in one chunk and one group of data files."""

    kind: str
    """One of `queries.lifetimes.KINDS`."""
    first_id: int
    last_id: int
    """The data_file_ids of the chunk, both included."""
    version: int
    """The last snapshot, up to the requested one, at which a row of this kind began or ended."""
    group: FileGroup
    files: int
    hash: int
    """Sum of 64-bit hashes of the visible rows."""
    ended: int
    """Sum of 64-bit hashes of the rows that ended at `version`."""
