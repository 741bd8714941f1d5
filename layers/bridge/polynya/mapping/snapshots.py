"""Snapshots that Iceberg clients committed, as they are listed: under the clients' ids.

One commit may hold several Iceberg snapshots (PyIceberg's overwrite deletes and then appends), and
is one snapshot in DuckLake. The last of them is listed, with the changes of all: DuckLake has no
state between them.
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


def listed(
    snapshot: Snapshot, commits: Sequence[ClientSnapshot], *, shows_others: bool = False
) -> Snapshot:
    """One DuckLake snapshot as the Iceberg snapshot that a client committed, under its id.

    Args:
        snapshot: as it follows from the changes.
        commits: what the client committed; empty if no client did.
        shows_others: it also shows the changes of snapshots that have expired, of which the
            client's operation says nothing.
    """
    chosen = [commit for commit in commits if commit.client_snapshot_id is not None]
    if not chosen:
        return snapshot
    client_snapshot_id = chosen[-1].client_snapshot_id
    assert client_snapshot_id is not None
    summary = _merged(snapshot.summary, chosen, snapshot.sequence_number)
    if not shows_others and chosen[-1].operation in FITTING[snapshot.summary["operation"]]:
        summary["operation"] = str(chosen[-1].operation)
    return replace(snapshot, snapshot_id=client_snapshot_id, summary=summary)


def _merged(
    summary: Mapping[str, str], commits: Sequence[ClientSnapshot], ducklake_id: int
) -> dict[str, str]:
    """Our operation and numbers with all other keys of the client."""
    theirs: dict[str, str] = {}
    for commit in commits:
        theirs |= json.loads(commit.summary or "{}")
    others = {key: text for key, text in theirs.items() if key not in COUNTS and key != "operation"}
    return {**others, **summary, DUCKLAKE_ID: str(ducklake_id)}
