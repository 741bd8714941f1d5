"""Writes what a plan ends: data files, inlined rows, and single rows of data files."""

from collections.abc import Mapping, Sequence

from ...ducklake import queries
from ...ducklake.writes import deletes, files, inlined
from ...ducklake.writes.new_snapshot import NewSnapshot
from ...errors import Overtaken
from ..plans.plan import TablePlan
from ..plans.removals import Removals


def end_rows(snapshot: NewSnapshot, table_id: int, plan: TablePlan) -> None:
    """End the data files and the inlined rows of a plan.

    Raises:
        Overtaken: some of them have ended already.
    """
    if plan.ends_all:
        _end_all(snapshot, table_id)
        return
    con, at = snapshot.con, snapshot.snapshot_id
    if ids := list(plan.removals.files):
        _check(files.end(con, at, ids), len(ids))
        snapshot.change(f"deleted_from_table:{table_id}")
    for table, row_ids in plan.removals.rows.items():
        _check(inlined.end_rows_of(con, at, table, row_ids), len(row_ids))
        snapshot.change(f"inlined_delete:{table_id}")


def delete_rows(
    snapshot: NewSnapshot, table_id: int, removals: Removals, added_ids: Sequence[int]
) -> None:
    """Delete single rows of data files.

    Args:
        added_ids: the ids of the files that the commit adds.
    """
    of_added = {added_ids[n]: positions for n, positions in removals.of_added.items()}
    positions: Mapping[int, Sequence[int]] = {**removals.positions, **of_added}
    if not any(positions.values()):
        return
    deletes.add(snapshot.con, snapshot.snapshot_id, table_id, positions)
    # With `inlined_delete` alone, a native merge that began before brings the rows back.
    snapshot.change(f"deleted_from_table:{table_id}", f"inlined_delete:{table_id}")


def _end_all(snapshot: NewSnapshot, table_id: int) -> None:
    con, at = snapshot.con, snapshot.snapshot_id
    if files.end_all(con, at, table_id):
        snapshot.change(f"deleted_from_table:{table_id}")
    if inlined.end_rows(con, at, queries.inlined_table_names(table_id).run(con)):
        snapshot.change(f"inlined_delete:{table_id}")


def _check(ended: int, wanted: int) -> None:
    if ended != wanted:
        raise Overtaken("rows of the table have changed; load it again")
