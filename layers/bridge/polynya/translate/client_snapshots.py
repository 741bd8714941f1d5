"""Snapshots that Iceberg clients committed, as they are listed: under the clients' ids.

One commit may hold several Iceberg snapshots (PyIceberg's overwrite deletes and then appends), and
is one snapshot in DuckLake. All of its ids are listed, because PyIceberg looks for each of them;
the changes belong to the last.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ducklake.rows.commits import ClientSnapshot
from ..iceberg.table_metadata import Snapshot

FITTING = {
    "append": {"append", "overwrite"},
    "delete": {"delete", "overwrite"},
    "overwrite": {"overwrite", "replace"},
    "replace": {"append", "delete", "overwrite", "replace"},
}
"""The operations that a client may give, by the operation that follows from the changes."""

COUNTS = {
    *(
        f"{what}-{files}"
        for what in ("added", "total", "deleted", "removed")
        for files in (
            "data-files",
            "records",
            "files-size",
            "delete-files",
            "position-deletes",
            "equality-deletes",
            "position-delete-files",
            "equality-delete-files",
            "dvs",
        )
    ),
    *("manifests-created", "manifests-kept", "manifests-replaced", "entries-processed"),
    *("changed-partition-count", "partition-summaries-included", "deleted-duplicate-files"),
}
"""Numbers of a summary: they are ours, because we have seen the net change alone.
https://iceberg.apache.org/spec/#optional-snapshot-summary-fields"""

DUCKLAKE_ID = "ducklake.snapshot-id"


def listed(snapshot: Snapshot, commits: Sequence[ClientSnapshot]) -> list[Snapshot]:
    """The Iceberg snapshots of one DuckLake snapshot, in order.

    Args:
        snapshot: the state after all of them, with the parent of the first.
        commits: what the client committed; empty if no client did.
    """
    found: list[Snapshot] = []
    chosen = [commit for commit in commits if commit.client_snapshot_id is not None]
    for commit in chosen:
        assert commit.client_snapshot_id is not None
        is_last, ducklake_id = commit is chosen[-1], snapshot.sequence_number
        summary = snapshot.summary if is_last else _without_changes(snapshot.summary)
        found.append(
            replace(
                snapshot,
                snapshot_id=commit.client_snapshot_id,
                parent_snapshot_id=found[-1].snapshot_id if found else snapshot.parent_snapshot_id,
                summary=_merged(
                    summary, commit if is_last else replace(commit, operation=None), ducklake_id
                ),
            )
        )
    return found or [snapshot]


def _without_changes(summary: Mapping[str, str]) -> dict[str, str]:
    totals = {key: text for key, text in summary.items() if key.startswith("total-")}
    return {"operation": "replace", **totals}


def _merged(summary: Mapping[str, str], commit: ClientSnapshot, ducklake_id: int) -> dict[str, str]:
    """Our operation and numbers with all other keys of the client."""
    theirs: dict[str, str] = json.loads(commit.summary or "{}")
    others = {key: text for key, text in theirs.items() if key not in COUNTS and key != "operation"}
    merged = {**others, **summary, DUCKLAKE_ID: str(ducklake_id)}
    if commit.operation in FITTING[summary["operation"]]:
        merged["operation"] = commit.operation
    return merged
