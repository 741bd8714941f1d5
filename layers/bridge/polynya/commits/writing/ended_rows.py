"""Writes what a plan ends: data files, inlined rows, and single rows of data files."""

from collections.abc import Mapping, Sequence

from ...ducklake import queries
from ...ducklake.writes import delete_files, deletes, files, inlined
from ...ducklake.writes.new_snapshot import NewSnapshot
from ...errors import Overtaken
from ..plans.plan import TablePlan


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
    snapshot: NewSnapshot, table_id: int, plan: TablePlan, added_ids: Sequence[int]
) -> None:
    """Delete single rows of data files.

    Args:
        added_ids: the ids of the files that the commit adds.

    Raises:
        Overtaken: a data file has another delete file than it had.
    """
    removals = plan.removals
    if removals.large:
        _add_delete_files(snapshot, table_id, plan, added_ids)
    of_added = {added_ids[n]: positions for n, positions in removals.of_added.items()}
    positions: Mapping[int, Sequence[int]] = {**removals.positions, **of_added}
    if not any(positions.values()):
        return
    deletes.add(snapshot.con, snapshot.snapshot_id, table_id, positions)
    # With `inlined_delete` alone, a native merge that began before brings the rows back.
    snapshot.change(f"deleted_from_table:{table_id}", f"inlined_delete:{table_id}")


def _add_delete_files(
    snapshot: NewSnapshot, table_id: int, plan: TablePlan, added_ids: Sequence[int]
) -> None:
    con, large = snapshot.con, plan.removals.large
    ids = [added_ids[one.data_file] if one.is_added else one.data_file for one in large]
    replaced = [one.replaces for one in large if one.replaces is not None]
    paths = {one.file.delete_file_id: one.path for one in replaced}
    if delete_files.remove(con, table_id, ids) != paths.keys():
        raise Overtaken("other delete files of the table have come; load it again")
    if flushed := [one.data_file for one in large if one.flushed]:
        deletes.remove(con, table_id, flushed)
        # Else a native flush that began before writes a second file of the same deletes.
        snapshot.change(f"altered_table:{table_id}")
    if paths:
        delete_files.schedule_deletion(con, paths)
        # A delete file that replaces another begins where that began, so that native transactions
        # which began before do not see it, and add a second one: rows return, and are doubled.
        # They do so among themselves; a change of the table is a conflict for all of them.
        snapshot.change(f"altered_table:{table_id}")
    new = list(zip(ids, plan.delete_files, strict=True))
    first_id = snapshot.file_ids(len(new))
    delete_files.add(con, snapshot.snapshot_id, table_id, first_id, new, snapshot.layout)
    snapshot.change(f"deleted_from_table:{table_id}")


def _end_all(snapshot: NewSnapshot, table_id: int) -> None:
    con, at = snapshot.con, snapshot.snapshot_id
    if files.end_all(con, at, table_id):
        snapshot.change(f"deleted_from_table:{table_id}")
    if inlined.end_rows(con, at, queries.inlined_table_names(table_id).run(con)):
        snapshot.change(f"inlined_delete:{table_id}")


def _check(ended: int, wanted: int) -> None:
    if ended != wanted:
        raise Overtaken("rows of the table have changed; load it again")
