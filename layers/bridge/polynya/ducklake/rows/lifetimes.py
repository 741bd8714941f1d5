"""Ranges of snapshots: of visible rows, and of states that cannot be served."""

from dataclasses import dataclass
from typing import NamedTuple


class Lifetime(NamedTuple):
    """The snapshots at which something is visible: [begin_snapshot, end_snapshot)."""

    begin_snapshot: int
    end_snapshot: int | None

    def intersection(self, other: "Lifetime") -> "Lifetime | None":
        """The snapshots of both; None if there are none."""
        begin = max(self.begin_snapshot, other.begin_snapshot)
        ends = [end for end in (self.end_snapshot, other.end_snapshot) if end is not None]
        return None if ends and min(ends) <= begin else Lifetime(begin, min(ends, default=None))


@dataclass(frozen=True, slots=True)
class UnservableRange:
    """A table cannot be shown exactly as it was at a snapshot in [begin_snapshot, end_snapshot)."""

    begin_snapshot: int
    end_snapshot: int | None
    reason: str
