"""Writes what changes in a table beside its rows, as DuckLake's own ALTER TABLE writes it."""

from ...ducklake.writes import inlined, stats
from ...ducklake.writes.new_snapshot import NewSnapshot
from ...ducklake.writes.objects import columns, tables
from ...translate.commits.schema.change import SchemaChange
from ..plans.plan import Alteration, TablePlan


def alter(snapshot: NewSnapshot, table_id: int, plan: TablePlan) -> int | None:
    """Write the alteration of a table; gives the id of its partitioning afterwards."""
    alteration, partition_id = plan.alteration, plan.partition_id
    if alteration.is_empty:
        return partition_id
    # DuckDB keeps what it knows of the tables by the schema version.
    snapshot.change_names()
    snapshot.change(f"altered_table:{table_id}")
    if alteration.schema is not None:
        _change_schema(snapshot, table_id, alteration.schema)
    if alteration.partition_keys is not None:
        partition_id = _partition(snapshot, table_id, alteration)
    if alteration.sort_keys is not None:
        _sort(snapshot, table_id, alteration)
    is_reshaped = alteration.schema is not None and alteration.schema.is_reshaped
    if is_reshaped or alteration.partition_keys is not None:
        before = inlined.newest_table(snapshot.con, table_id)
        if before is not None:
            inlined.add_table(
                snapshot.con, snapshot.row, table_id, before, plan.columns, snapshot.layout
            )
    return partition_id


def _change_schema(snapshot: NewSnapshot, table_id: int, change: SchemaChange) -> None:
    con, at = snapshot.con, snapshot.snapshot_id
    if change.changed or change.dropped or change.added:
        snapshot.change_schema_of(table_id)
    columns.change(con, at, table_id, change.changed)
    columns.drop(con, at, table_id, change.dropped, snapshot.layout)
    tables.add_columns(con, at, table_id, change.added)
    if change.comments:
        columns.set_comments(con, at, table_id, change.comments)
    if change.widened_floats:
        stats.widen_floats(con, table_id, change.widened_floats)


def _partition(snapshot: NewSnapshot, table_id: int, alteration: Alteration) -> int | None:
    con, at, keys = snapshot.con, snapshot.snapshot_id, alteration.partition_keys or ()
    snapshot.change_schema_of(table_id)
    tables.end_partitioning(con, at, table_id)
    partition_id = snapshot.catalog_id()
    tables.add_partitioning(con, at, table_id, partition_id, keys)
    return partition_id if keys else None


def _sort(snapshot: NewSnapshot, table_id: int, alteration: Alteration) -> None:
    con, at = snapshot.con, snapshot.snapshot_id
    tables.end_sort_order(con, at, table_id)
    if alteration.sort_keys:
        tables.add_sort_order(con, at, table_id, snapshot.catalog_id(), alteration.sort_keys)
