"""Snapshots that Iceberg clients committed: rows of `polynya_commits`, which is beside DuckLake's.

DuckLake has no place for the snapshot id that a client chose: ducklake_expire_snapshots deletes
the row of ducklake_snapshot_changes, also that of a table's current snapshot.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientSnapshot:
    """An Iceberg snapshot as a client committed it."""

    snapshot_id: int
    """DuckLake's snapshot."""
    position: int
    """One commit may add several Iceberg snapshots; the last one is the state of the table."""
    client_snapshot_id: int | None
    """The id that the client chose; None: the commit added no Iceberg snapshot."""
    operation: str | None
    """None in snapshots that are not listed."""
    summary: str | None
    """The client's summary as a JSON object, without `operation`."""
