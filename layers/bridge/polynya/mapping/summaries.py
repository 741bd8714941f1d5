"""Ancestors of the current snapshot that have only a summary left: the newest of each sink.

A sink finds in the summaries of main's snapshots what it has committed, also when it comes back
after weeks, and DuckLake's snapshots expire. The rows and the changes of such a snapshot cannot be
read, so it is listed under DuckLake's id: a client that has read up to the snapshot continues from
the id that the sink chose, gets the answer that this has expired, and misses nothing.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..ducklake.rows.objects import ClientSnapshot
from ..iceberg.table_metadata import Snapshot
from .snapshots import client_summary

NO_SCHEMA = 2_147_483_647
"""The schema of such a snapshot, which the table does not have. So Java and DuckDB refuse to read
its rows with a message; otherwise DuckDB 1.5.5 aborts, because the manifest in the list does not
exist."""

SUMMARY_ONLY = "polynya.summary-only"
"""The key of the summary of such a snapshot."""


def add_summaries(
    snapshots: Sequence[Snapshot],
    sink_commits: Iterable[ClientSnapshot],
    manifest_list: Callable[[int], str],
) -> tuple[list[Snapshot], list[Snapshot]]:
    """The snapshots of main with their parents, and those that have only a summary left.

    Args:
        snapshots: that are listed, ascending.
        sink_commits: the newest commit of each sink, in order.
        manifest_list: the location of a manifest list that says that the rows are gone.
    """
    line = _line(snapshots)
    ids = [snapshot.sequence_number for snapshot in line]
    commits: dict[int, list[ClientSnapshot]] = defaultdict(list)
    for commit in sink_commits:
        commits[commit.snapshot_id].append(commit)
    # A client may choose any number for its id.
    missing = commits.keys() - set(ids) - {snapshot.snapshot_id for snapshot in snapshots}
    linked, summaries = list(snapshots), list[Snapshot]()
    for snapshot_id in sorted(missing):
        place = bisect_left(ids, snapshot_id)
        if place == len(ids):
            continue  # the table lists no snapshot
        number = len(snapshots) - len(line) + place
        after = linked[number]
        parent = after.parent_snapshot_id
        if parent in missing and parent not in {s.snapshot_id for s in summaries}:
            parent = None
        summaries.append(
            Snapshot(
                snapshot_id=snapshot_id,
                sequence_number=snapshot_id,
                # Whoever reads changes since a snapshot that is not listed gets an error.
                parent_snapshot_id=parent,
                # When it was committed is not known. No snapshot of an earlier time can be read.
                timestamp_ms=max(after.timestamp_ms - 1, 0),
                manifest_list=manifest_list(snapshot_id),
                schema_id=NO_SCHEMA,
                # Readers of changes skip this operation.
                summary=client_summary(commits[snapshot_id], snapshot_id)
                | {"operation": "replace", SUMMARY_ONLY: "true"},
                first_row_id=None if after.first_row_id is None else 0,
                added_rows=None if after.first_row_id is None else 0,
            )
        )
        linked[number] = replace(after, parent_snapshot_id=snapshot_id)
    return linked, summaries


def _line(snapshots: Sequence[Snapshot]) -> Sequence[Snapshot]:
    """The listed ancestors of the last snapshot, and itself."""
    first = max(len(snapshots) - 1, 0)
    while first and snapshots[first].parent_snapshot_id == snapshots[first - 1].snapshot_id:
        first -= 1
    return snapshots[first:]
