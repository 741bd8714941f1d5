"""Ranges of snapshots (visible rows, states that cannot be served), and tables of inlined rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

INLINED_COLUMNS = ("row_id", "begin_snapshot", "end_snapshot")
"""The system columns of inlined rows before version 1.1."""


@dataclass(frozen=True, slots=True)
class InlinedTable:
    """A PostgreSQL table of inlined rows, with the user's column names of its schema version.

    The schema version is that of the snapshot that created the table, if the snapshot has only one.
    """

    table_name: str
    schema_version: int
    schema_begin: int
    """The first snapshot that can have made the table, whose columns are those of its maker."""
    schema_until: int | None
    """The last such snapshot; None for the newest. Equal to the first if the catalog names it."""
    system_columns: tuple[str, str, str]
    """row_id, begin_snapshot, end_snapshot; their names differ between catalog versions."""
    user_columns: tuple[str, ...]
    user_types: tuple[str, ...]
    """The names of their types in PostgreSQL."""


NESTED_ZERO = r"^[{[].*-0[.]0[],}=]"
"""A regular expression for the text of a nested value with -0.0, in PostgreSQL and in Python."""

NEGATIVE_ZERO = {
    **dict.fromkeys(("real", "double precision"), re.compile("^-0$")),
    "character varying": re.compile(NESTED_ZERO, re.DOTALL),
}
"""The regular expressions for texts of values that have -0.0, by PostgreSQL's type."""


def has_negative_zero(postgres_type: str, texts: Sequence[str | bytes | None]) -> bool:
    """Whether a value of an inlined column is -0.0, or contains one."""
    pattern = NEGATIVE_ZERO.get(postgres_type)
    return pattern is not None and any(isinstance(t, str) and pattern.search(t) for t in texts)


MOST_BYTES = 63
"""PostgreSQL cuts longer names."""


def postgres_name(name: str | None) -> str:
    """A name as PostgreSQL stores it: cut after 63 bytes."""
    # PostgreSQL does not cut a character in two: it drops the whole character.
    return (name or "").encode()[:MOST_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class InlinedOrigin:
    """Snapshots around the one that made an inlined table; None for those that do not exist."""

    before: int | None
    """The newest snapshot of an earlier schema version."""
    same: int | None
    """The oldest snapshot of its own schema version."""
    after: int | None
    """The oldest snapshot of a later schema version."""
    first_row: int | None
    """When the oldest of its rows began; None if it has no rows."""
    last_row: int | None
    """When the last of its rows ended; None if some rows are live."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """Where a table's inlined rows and inlined deletes are in PostgreSQL."""

    tables: tuple[InlinedTable, ...]
    delete_columns: tuple[str, ...]
    """Columns of ducklake_inlined_delete_<table_id>: data file, position, begin. Empty if the table
    does not exist."""


def is_visible(begin_snapshot: int, end_snapshot: int | None, snapshot_id: int) -> bool:
    """Whether [begin_snapshot, end_snapshot) contains a snapshot."""
    return begin_snapshot <= snapshot_id and (end_snapshot is None or snapshot_id < end_snapshot)


class Lifetime(NamedTuple):
    """The snapshots at which something is visible: [begin_snapshot, end_snapshot)."""

    begin_snapshot: int
    end_snapshot: int | None

    def intersection(self, other: "Lifetime") -> "Lifetime | None":
        """The snapshots of both; None if there are none."""
        begin = max(self.begin_snapshot, other.begin_snapshot)
        ends = [end for end in (self.end_snapshot, other.end_snapshot) if end is not None]
        return None if ends and min(ends) <= begin else Lifetime(begin, min(ends, default=None))

    def hull(self, other: "Lifetime") -> "Lifetime":
        """The snapshots from the first of both to the last."""
        ends = self.end_snapshot, other.end_snapshot
        end = None if ends[0] is None or ends[1] is None else max(ends[0], ends[1])
        return Lifetime(min(self.begin_snapshot, other.begin_snapshot), end)


@dataclass(frozen=True, slots=True)
class UnservableRange:
    """A table cannot be shown exactly as it was at a snapshot in [begin_snapshot, end_snapshot)."""

    begin_snapshot: int
    end_snapshot: int | None
    reason: str
