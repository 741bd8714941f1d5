"""The lake as a whole and its snapshots."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Lake:
    """The lake as a whole: options, newest snapshot, layout of the metadata tables."""

    version: str
    data_path: str
    encrypted: bool
    snapshot_id: int
    layout: frozenset[str]
    """`table.column` of the metadata tables whose columns differ between catalog versions."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of ducklake_snapshot, with its row of ducklake_snapshot_changes."""

    snapshot_id: int
    snapshot_time: datetime
    changes_made: str
