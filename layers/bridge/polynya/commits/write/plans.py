"""Writes plans as the rows of one snapshot, within its transaction.

The rows are those that DuckLake's own statements write, ALTER TABLE for example.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.column_tree import ColumnNode, NewColumn, greatest_id, leaves
from ...ducklake.connection.catalog_connection import Statement, constant, run_batched
from ...ducklake.rows.objects import Lake, NewName, quoted
from ...ducklake.writes import (
    changed_uploads,
    inlined,
    new_files,
    new_snapshot,
    objects,
    staged_files,
    stats,
    tables,
)
from ...ducklake.writes.new_files import NewDataFile
from ...ducklake.writes.new_snapshot import NewSnapshot
from ...ducklake.writes.stats import widened
from ...mapping.properties import COMMENT, is_unknown_to_ducklake
from ...runtime.errors import BadRequest, ConcurrentCommit
from ..attempts import RequestKey
from ..client_locations import normalised, spellings
from ..plan.table_plan import Alteration, NewTable, SchemaChange, TablePlan
from .partition_ids import partition_ids, set_specs


def end_rows(snapshot: NewSnapshot, table_id: int, plan: TablePlan) -> None:
    """End the data files and the inlined rows of a plan.

    Raises:
        ConcurrentCommit: some of them have ended already.
    """
    if plan.ends_all:
        _end_all(snapshot, table_id)
        return
    con, snapshot_id = snapshot.con, snapshot.snapshot_id
    if ids := list(plan.deletes.files):
        _check(new_files.end(con, snapshot_id, ids), len(ids))
        snapshot.change(f"deleted_from_table:{table_id}")
    for table, row_ids in plan.deletes.rows.items():
        _check(inlined.end_rows_of(con, snapshot_id, table, row_ids), len(row_ids))
        snapshot.change(f"inlined_delete:{table_id}")


def delete_rows(
    snapshot: NewSnapshot, table_id: int, plan: TablePlan, added_ids: Sequence[int]
) -> None:
    """Delete single rows of data files.

    Args:
        added_ids: the ids of the files that the commit adds.

    Raises:
        ConcurrentCommit: a data file has another delete file than it had.
    """
    deletes = plan.deletes
    if deletes.large:
        _add_delete_files(snapshot, table_id, plan, added_ids)
    of_added = {added_ids[n]: positions for n, positions in deletes.of_added.items()}
    positions: Mapping[int, Sequence[int]] = {**deletes.positions, **of_added}
    if not any(positions.values()):
        return
    new_files.add_inlined_deletes(snapshot.con, snapshot.snapshot_id, table_id, positions)
    # With `inlined_delete` alone, a native merge that began before brings the rows back.
    snapshot.change(f"deleted_from_table:{table_id}", f"inlined_delete:{table_id}")


def _add_delete_files(
    snapshot: NewSnapshot, table_id: int, plan: TablePlan, added_ids: Sequence[int]
) -> None:
    con, large = snapshot.con, plan.deletes.large
    ids = [added_ids[d.data_file] if d.is_added else d.data_file for d in large]
    replaced = [d.replaces for d in large if d.replaces is not None]
    paths = {r.file.delete_file_id: r.path for r in replaced}
    if new_files.remove_delete_files(con, table_id, ids) != paths.keys():
        raise ConcurrentCommit("other delete files were added to the table; load it again")
    if flushed := [d.data_file for d in large if d.flushed]:
        new_files.remove_inlined_deletes(con, table_id, flushed)
        # Otherwise a native flush that began before writes a second file of the same deletes.
        snapshot.change(f"altered_table:{table_id}")
    if paths:
        new_files.schedule_deletion(con, paths)
        # A delete file that replaces another has the begin_snapshot of that one. Native
        # transactions which began before do not see it, and add a second one: rows return, or are
        # doubled. Native writers do this to each other, too; a change of the table is a conflict
        # for all of them.
        snapshot.change(f"altered_table:{table_id}")
    new = list(zip(ids, plan.delete_files, strict=True))
    first_id = snapshot.file_ids(len(new))
    new_files.add_delete_files(con, snapshot.snapshot_id, table_id, first_id, new, snapshot.layout)
    snapshot.change(f"deleted_from_table:{table_id}")


def _end_all(snapshot: NewSnapshot, table_id: int) -> None:
    con, snapshot_id = snapshot.con, snapshot.snapshot_id
    if new_files.end_all(con, snapshot_id, table_id):
        snapshot.change(f"deleted_from_table:{table_id}")
    if inlined.end_rows(con, snapshot_id, queries.inlined_table_names(table_id).run(con)):
        snapshot.change(f"inlined_delete:{table_id}")


def _check(ended: int, expected: int) -> None:
    if ended != expected:
        raise ConcurrentCommit("rows of the table have changed; load it again")


def alter(snapshot: NewSnapshot, table_id: int, plan: TablePlan) -> int | None:
    """Write the alteration of a table; returns the id of its partitioning afterwards."""
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
    if alteration.partition_fields is not None and partition_id is not None:
        # With the earlier ones: the files of the table keep their partitionings.
        specs = {**alteration.former_specs, partition_id: alteration.partition_fields}
        set_specs(snapshot, table_id, specs)
    if alteration.sort_keys is not None:
        _sort(snapshot, table_id, alteration)
    is_reshaped = alteration.schema is not None and alteration.schema.is_reshaped
    if is_reshaped or alteration.partition_keys is not None:
        inlined.add_missing_versions(snapshot.con, table_id)
        inlined.add_table(snapshot.con, snapshot.row, table_id, plan.columns, snapshot.layout)
    return partition_id


def _change_schema(snapshot: NewSnapshot, table_id: int, change: SchemaChange) -> None:
    con, snapshot_id = snapshot.con, snapshot.snapshot_id
    if change.changed or change.dropped or change.added:
        snapshot.change_schema_of(table_id)
    tables.change(con, snapshot_id, table_id, change.changed)
    tables.drop(con, snapshot_id, table_id, change.dropped, snapshot.layout)
    tables.add_columns(con, snapshot_id, table_id, change.added)
    if change.comments:
        tables.set_comments(con, snapshot_id, table_id, change.comments)
    if change.widened_floats:
        stats.widen_floats(con, table_id, change.widened_floats)


def _partition(snapshot: NewSnapshot, table_id: int, alteration: Alteration) -> int | None:
    con, snapshot_id, keys = snapshot.con, snapshot.snapshot_id, alteration.partition_keys or ()
    snapshot.change_schema_of(table_id)
    tables.end_partitioning(con, snapshot_id, table_id)
    partition_id = snapshot.catalog_id()
    is_of_clients = bool(alteration.partition_fields and not keys)
    tables.add_partitioning(
        con, snapshot_id, table_id, partition_id, keys, is_of_clients=is_of_clients
    )
    return partition_id if keys or alteration.partition_fields else None


def _sort(snapshot: NewSnapshot, table_id: int, alteration: Alteration) -> None:
    con, snapshot_id = snapshot.con, snapshot.snapshot_id
    tables.end_sort_order(con, snapshot_id, table_id)
    if alteration.sort_keys:
        tables.add_sort_order(
            con, snapshot_id, table_id, snapshot.catalog_id(), alteration.sort_keys
        )


def write_plans(
    snapshot: NewSnapshot, plans: Iterable[TablePlan], key: RequestKey | None = None
) -> None:
    """Write the rows of all tables that a commit changes.

    Args:
        key: of the request.
    """
    plans = [*plans]
    for plan in plans:
        if isinstance(plan.table, NewTable):
            table_id, partition_id = _create(snapshot, plan.table)
        else:
            table_id = plan.table
            partition_id = alter(snapshot, table_id, plan)
        _set_tags(snapshot, table_id, plan)
        end_rows(snapshot, table_id, plan)
        added_ids = _add_files(snapshot, table_id, partition_id, plan)
        delete_rows(snapshot, table_id, plan, added_ids)
        if files := plan.staged_files.added:
            first_id = snapshot.file_ids(len(files))
            staged_files.add(snapshot.con, snapshot.snapshot_id, table_id, first_id, files)
        rows = key.rows_with_key(plan.commits) if key else plan.commits
        new_snapshot.add(snapshot.con, snapshot.snapshot_id, rows)
        is_there = isinstance(plan.table, int) and not plan.is_empty
        if len(plans) > 1 and is_there and not snapshot.changes_table(table_id):
            # Iceberg's tags, statistics, and snapshots without a change. If the commit changes rows
            # of other tables, readers would take this table as unchanged.
            snapshot.change(f"altered_table:{table_id}")


def _create(snapshot: NewSnapshot, new: NewTable) -> tuple[int, int | None]:
    """The ids of the new table and of its partitioning."""
    con, snapshot_id = snapshot.con, snapshot.snapshot_id
    table_id = snapshot.catalog_id()
    names = (new.table_uuid, new.table_name)
    path = (new.path, new.path_is_relative)
    tables.add(con, snapshot_id, new.schema_id, table_id, *names, path)
    tables.add_columns(
        con, snapshot_id, table_id, (NewColumn(c, None, c.column_name) for c in new.columns)
    )
    if new.last_column_id > greatest_id(new.columns):
        dropped = ColumnNode(new.last_column_id, "dropped", "int32")
        tables.add_columns(con, snapshot_id, table_id, [NewColumn(dropped, None, "dropped")])
        tables.drop(con, snapshot_id, table_id, [new.last_column_id], snapshot.layout)
    comments = {c.column_id: c.comment for c in new.columns if c.comment is not None}
    tables.add_comments(con, snapshot_id, table_id, comments)
    objects.add_tags(con, snapshot_id, table_id, new.tags)
    snapshot.change_schema_of(table_id)
    snapshot.change(f"created_table:{quoted(*new.namespace, new.table_name)}")
    partition_id = None
    if new.partition_keys or new.partition_fields:
        partition_id = snapshot.catalog_id()
        tables.add_partitioning(
            con,
            snapshot_id,
            table_id,
            partition_id,
            new.partition_keys,
            is_of_clients=not new.partition_keys,
        )
    if partition_id is not None and new.partition_fields:
        set_specs(snapshot, table_id, {partition_id: new.partition_fields})
    if new.sort_keys:
        tables.add_sort_order(con, snapshot_id, table_id, snapshot.catalog_id(), new.sort_keys)
    inlined.add_table(con, snapshot.row, table_id, new.columns, snapshot.layout)
    return table_id, partition_id


def _set_tags(snapshot: NewSnapshot, table_id: int, plan: TablePlan) -> None:
    if plan.tags:
        objects.end_tags(snapshot.con, snapshot.snapshot_id, table_id, list(plan.tags))
        # DuckDB writes a comment that is removed as NULL.
        new = {key: v for key, v in plan.tags.items() if v is not None or key == COMMENT}
        objects.add_tags(snapshot.con, snapshot.snapshot_id, table_id, new)
        # Otherwise a concurrent INSERT would be a conflict.
        if not all(map(is_unknown_to_ducklake, plan.tags)):
            snapshot.change_names()
            snapshot.change(f"altered_table:{table_id}")


def _add_files(
    snapshot: NewSnapshot, table_id: int, partition_id: int | None, plan: TablePlan
) -> list[int]:
    """Add the files of a plan; returns their ids, in order."""
    if not plan.added:
        return []
    con = snapshot.con
    table_stats = stats.table_stats(table_id).run(con)
    ids_of_partitionings = partition_ids(snapshot, table_id, partition_id, plan.added)
    in_order = sorted(range(len(plan.added)), key=lambda n: _none_last(ids_of_partitionings[n]))
    row_id = next_row_id = table_stats[1] if table_stats else 0
    mapping_ids = _mapping_ids(snapshot, table_id, plan.added)
    ids: list[int] = []
    for id_, places in groupby(in_order, key=ids_of_partitionings.__getitem__):
        group = [plan.added[n] for n in places]
        first_file_id = snapshot.file_ids(len(group))
        group = [replace(f, mapping_id=mapping_ids[f.names]) if f.names else f for f in group]
        new_files.add(
            con, snapshot.snapshot_id, table_id, id_, first_file_id, row_id, group, snapshot.layout
        )
        row_id += sum(file.new_row_ids for file in group)
        ids += range(first_file_id, first_file_id + len(group))
    size = sum(file.file_size_bytes for file in plan.added)
    sums = stats.wider(table_stats, _rows(plan.added), row_id - next_row_id, size)
    stats.set_table_stats(con, table_id, sums, is_new=table_stats is None)
    before = queries.table_column_stats(table_id).run(con)
    schema = plan.alteration.schema
    added = leaves(new.column for new in schema.added) if schema else []
    new_ids = {leaf.column_id for leaf in added}
    wider = widened(before, plan.columns, plan.added, had_rows=next_row_id > 0, new_ids=new_ids)
    stats.set_column_stats(con, table_id, wider, snapshot.layout)
    snapshot.change(f"inserted_into_table:{table_id}")
    # Deletes name the files that the commit adds by their index in the plan.
    return [id_ for _, id_ in sorted(zip(in_order, ids, strict=True))]


def _none_last(id_: int | None) -> tuple[bool, int]:
    return id_ is None, id_ or 0


def _mapping_ids(
    snapshot: NewSnapshot, table_id: int, added: Sequence[NewDataFile]
) -> dict[tuple[NewName, ...], int | None]:
    """The ids of the mappings of files without field ids, by their names; new ones are written."""
    ids = {file.names: file.mapping_id for file in added if file.names}
    for names in [names for names, id_ in ids.items() if id_ is None]:
        # DuckLake numbers mappings with the files, not with tables and partitionings.
        ids[names] = mapping_id = snapshot.file_ids(1)
        new_files.add_mapping(snapshot.con, table_id, mapping_id, names, snapshot.layout)
    return ids


def _rows(added: Sequence[NewDataFile]) -> int:
    return sum(file.record_count for file in added)


def check_files(snapshot: NewSnapshot, lake: Lake, plan: TablePlan, settled: set[str]) -> None:
    """Check the files of a commit, after the claim of the snapshot.

    Args:
        settled: the changes of uploads that had ended when the commit began to read its files;
            those that have ended by now are added.

    Raises:
        BadRequest: as `check_paths_are_new`.
        ConcurrentCommit: clients have removed a file, or uploaded it again, since the commit began
            to read its files, or may still do so: it has to read them again.
    """
    if plan.staged_files.removed != () and isinstance(plan.table, int):
        staged_files.remove(snapshot.con, plan.table, plan.staged_files.removed)
    locations = _locations(plan)
    staged = {normalised(plan.location + file.path) for file in plan.staged_files.added}
    changes: Statement[list[changed_uploads.UploadChange]] = constant([])
    if (locations or staged) and changed_uploads.are_recorded(snapshot.layout):
        changes = changed_uploads.changes_of(locations | staged)
    existing, changed = run_batched(snapshot.con, _existing(lake, locations), changes)
    _check_are_new(locations, existing)
    unsettled = {change.change for change in changed} - settled
    settled |= {change.change for change in changed if change.is_done}
    if unsettled:
        raise ConcurrentCommit("a file of the commit was removed, or uploaded again, meanwhile")


def check_paths_are_new(con: Connection, lake: Lake, plan: TablePlan) -> None:
    """Check the added files; those that were staged may be added.

    Raises:
        BadRequest: the catalog has, or has had, one of the files; whichever table it belongs to.
    """
    locations = _locations(plan)
    _check_are_new(locations, _existing(lake, locations).run(con))


def _locations(plan: TablePlan) -> set[str]:
    return {normalised(plan.location_of(file)) for file in plan.added}


def _existing(lake: Lake, locations: set[str]) -> Statement[set[str]]:
    if not locations:
        return constant(set())
    paths = {path for location in locations for path in spellings(location)}
    return queries.known_locations(lake, paths)


def _check_are_new(locations: set[str], existing: set[str]) -> None:
    # A file that belongs to two tables, or to one table twice, is deleted while one of them needs
    # it.
    for location in locations.intersection(map(normalised, existing)):
        raise BadRequest(
            f"the file {location.rpartition('/')[2]} is in the catalog already, or was; files that "
            "DuckLake has removed cannot be added again"
        )
