"""Sums over the rows of all data files of a table, which grow by the rows that are new."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..connection.catalog_connection import Rows, Statement
from ..faults import DATA_FILE_FAULTS, any_of
from ..rows.files import Event, FileGroup, FileGroups, GroupSums
from ..rows.lifetimes import Lifetime
from ..rows.objects import Lake
from .catalog import sql_for_version
from .new_rows import AND_NEW, NewRows, new_rows

# One query for everything that concerns all data files: there may be a million. In the mirror of a
# SQLite catalog an id can be NULL; the table is refused then.
FILE_GROUPS = f"""
SELECT f.partition_id, {{mapping_id}}, coalesce(min(f.data_file_id), 0), min(f.begin_snapshot),
  CASE WHEN bool_and(f.end_snapshot IS NOT NULL) THEN max(f.end_snapshot) END,
  count(*), coalesce(sum(hashint8extended(f.data_file_id, 0)), 0),
  coalesce(bool_or({{data_partial_max}} > f.begin_snapshot), false),
  coalesce(bool_or({any_of(DATA_FILE_FAULTS)}), false),
  coalesce(bool_or(
    greatest(f.begin_snapshot, f.end_snapshot, {{data_partial_max}}) > :snapshot_id), false),
  coalesce(bool_or({{mapping_id}} IS NOT NULL OR NOT f.path_is_relative), false)
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL{{and_new}}
GROUP BY 1, 2"""


def file_groups(
    lake: Lake, table_id: int, snapshot_id: int, new: NewRows | None = None
) -> Statement[FileGroups]:
    """Data files grouped by partitioning and name mapping: all of them, or the new ones."""
    sql = sql_for_version(lake, FILE_GROUPS, and_new=AND_NEW.format("f") if new else "")
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id}
    return Statement(sql, parameters | (new.parameters if new else {}), _file_groups)


def _file_groups(rows: Rows) -> FileGroups:
    return FileGroups(
        sums={
            FileGroup(*row[:2]): GroupSums(row[2], Lifetime(*row[3:5]), row[5], int(row[6]))
            for row in rows
        },
        has_partial=any(row[7] for row in rows),
        has_faults=any(row[8] for row in rows),
        has_later=any(row[9] for row in rows),
        has_added=any(row[10] for row in rows),
    )


LEAST_FILES = 10_000
"""Sums over fewer files are read again: that costs less than to look for new ones."""

OF_DATA_FILES = frozenset({"data", "partial"})
"""The kinds of events that follow from rows of data files alone."""


@dataclass(frozen=True, slots=True)
class FileSums:
    """The sums over the rows of all data files of a table, for a reader at a snapshot."""

    snapshot_id: int
    since: int
    """As in `TableLifetimes.events`."""
    groups: FileGroups
    events: Sequence[Event]
    """Those `OF_DATA_FILES`."""

    @property
    def can_grow(self) -> bool:
        """Whether a later reader saves anything if it begins with them."""
        # The events do not include what comes later.
        return self.groups.files >= LEAST_FILES and not self.groups.has_later

    def can_grow_to(self, snapshot_id: int, since: int) -> bool:
        """Whether a later reader may add the sums of new rows to these."""
        return self.snapshot_id <= snapshot_id and self.since <= since


def file_sums(
    snapshot_id: int, since: int, groups: FileGroups, events: Iterable[Event]
) -> FileSums:
    """The sums of a reader, from all events of the table."""
    of_files = [event for event in events if event.kind in OF_DATA_FILES]
    return FileSums(snapshot_id, since, groups, of_files)


def new_data_files(table_id: int, transactions: Sequence[str]) -> Statement[NewRows]:
    """Data files that some transactions have written, among those that `file_groups` counts."""
    counted = " AND r.begin_snapshot IS NOT NULL"
    return new_rows("ducklake_data_file", table_id, transactions, counted)


def summed(events: Iterable[Event], since: int) -> list[Event]:
    """Events of disjoint rows as one list of events, as `TableLifetimes.events` gives them."""
    events = [*events]
    last: dict[str, int] = {}
    for event in events:
        if event.snapshot_id < since:
            last[event.kind] = max(event.snapshot_id, last.get(event.kind, 0))
    groups: dict[tuple[int, str, int], list[Event]] = defaultdict(list)
    for event in events:
        is_old = event.snapshot_id < last.get(event.kind, 0) and event.kind != "inlined"
        groups[0 if is_old else event.snapshot_id, event.kind, event.sign].append(event)
    return [
        Event(
            *key,
            files=sum(event.files for event in group),
            rows=sum(event.rows for event in group),
            bytes=sum(event.bytes for event in group),
            hash=sum(event.hash for event in group),
            past=sum(event.past for event in group),
        )
        for key, group in sorted(groups.items())
    ]
