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

    @property
    def has_epoch_partitions(self) -> bool:
        """Whether the lake's own writers know partitions that count from 1970: since 1.1."""
        return "ducklake_data_file.row_group_count" in self.layout


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of ducklake_snapshot, with its row of ducklake_snapshot_changes."""

    snapshot_id: int
    snapshot_time: datetime
    changes_made: str
    previous_id: int
    """The snapshot before it that has not expired, of any table; one less if there is none."""
    first_file_id: int
    end_file_id: int
    """The files that were made after the previous snapshot have ids in [first, end)."""


@dataclass(frozen=True, slots=True)
class Window:
    """The snapshots whose changes one listed snapshot shows: after `base_id`, up to `snapshot_id`.

    They are more than one if snapshots in between have expired.
    """

    base_id: int
    snapshot_id: int
    first_file_id: int = 0
    end_file_id: int = 0
    """The files that were made in the window have ids in [first, end)."""
    adds_rows: bool = False
    """Files that were there before may hold rows that were added in the window."""

    @property
    def has_gap(self) -> bool:
        """Whether it shows changes of snapshots that have expired, too."""
        return self.base_id < self.snapshot_id - 1


def own_changes(snapshot_id: int) -> Window:
    """The window of a snapshot that shows no change but those that name it."""
    return Window(snapshot_id - 1, snapshot_id)


def no_changes(snapshot_id: int) -> Window:
    """The state at a snapshot, as later ones show it."""
    return Window(snapshot_id, snapshot_id)
