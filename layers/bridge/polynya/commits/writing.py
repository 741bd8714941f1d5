"""Writes plans as the rows of one snapshot, within its transaction."""

from collections.abc import Iterable, Sequence

from ...ducklake import queries
from ...ducklake.changes import quoted
from ...ducklake.column_tree import NewColumn, leaves
from ...ducklake.writes import commits, files, stats
from ...ducklake.writes.files import NewDataFile
from ...ducklake.writes.new_snapshot import NewSnapshot
from ...ducklake.writes.objects import tables, tags
from ...ducklake.writes.widening import widened
from ...translate.client_properties import COMMENT
from ...translate.statistics_files import KINDS
from ..plans.plan import NewTable, TablePlan
from ..request_key import RequestKey
from .alterations import alter
from .ended_rows import delete_rows, end_rows


def write_plans(
    snapshot: NewSnapshot, plans: Iterable[TablePlan], key: RequestKey | None = None
) -> None:
    """Write the rows of all tables that a commit changes.

    Args:
        key: of the request.
    """
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
        rows = key.on(plan.commits) if key else plan.commits
        commits.add(snapshot.con, snapshot.snapshot_id, rows)


def _create(snapshot: NewSnapshot, new: NewTable) -> tuple[int, int | None]:
    """The ids of the new table and of its partitioning."""
    con, at = snapshot.con, snapshot.snapshot_id
    table_id = snapshot.catalog_id()
    tables.add(con, at, new.schema_id, table_id, new.table_uuid, new.table_name, new.path)
    tables.add_columns(con, at, table_id, (NewColumn(c, None, c.column_name) for c in new.columns))
    tables.add_comments(con, at, table_id, None, new.columns)
    tags.add(con, at, table_id, new.tags)
    snapshot.change_schema_of(table_id)
    snapshot.change(f"created_table:{quoted(*new.namespace, new.table_name)}")
    partition_id = None
    if new.partition_keys:
        partition_id = snapshot.catalog_id()
        tables.add_partitioning(con, at, table_id, partition_id, new.partition_keys)
    if new.sort_keys:
        tables.add_sort_order(con, at, table_id, snapshot.catalog_id(), new.sort_keys)
    return table_id, partition_id


def _set_tags(snapshot: NewSnapshot, table_id: int, plan: TablePlan) -> None:
    if plan.tags:
        tags.end(snapshot.con, snapshot.snapshot_id, table_id, list(plan.tags))
        # DuckDB writes a comment that is removed as NULL.
        new = {key: v for key, v in plan.tags.items() if v is not None or key == COMMENT}
        tags.add(snapshot.con, snapshot.snapshot_id, table_id, new)
        # Not those that DuckLake does not know: a concurrent INSERT would be a conflict.
        if not plan.tags.keys() <= set(KINDS.values()):
            snapshot.change_names()
            snapshot.change(f"altered_table:{table_id}")


def _add_files(
    snapshot: NewSnapshot, table_id: int, partition_id: int | None, plan: TablePlan
) -> list[int]:
    """Add the files of a plan; gives their ids, in order."""
    if not plan.added:
        return []
    con = snapshot.con
    known = stats.of_table(table_id).run(con)
    # A file without partition values has no partitioning.
    in_order = sorted(range(len(plan.added)), key=lambda n: not plan.added[n].partition_values)
    partitioned = [plan.added[n] for n in in_order if plan.added[n].partition_values]
    plain = [plan.added[n] for n in in_order if not plan.added[n].partition_values]
    row_id = next_row_id = known[1] if known else 0
    ids: list[int] = []
    for group, id_ in ((partitioned, partition_id), (plain, None)):
        first_file_id = snapshot.file_ids(len(group))
        files.add(
            con, snapshot.snapshot_id, table_id, id_, first_file_id, row_id, group, snapshot.layout
        )
        row_id += sum(file.new_row_ids for file in group)
        ids += range(first_file_id, first_file_id + len(group))
    size = sum(file.file_size_bytes for file in plan.added)
    sums = stats.wider(known, _rows(plan.added), row_id - next_row_id, size)
    stats.set_of_table(con, table_id, sums, is_new=known is None)
    before = queries.table_column_stats(table_id).run(con)
    schema = plan.alteration.schema
    added = leaves(new.column for new in schema.added) if schema else []
    new_ids = {leaf.column_id for leaf in added}
    wider = widened(before, plan.columns, plan.added, had_rows=next_row_id > 0, new_ids=new_ids)
    stats.set_of_columns(con, table_id, wider, snapshot.layout)
    snapshot.change(f"inserted_into_table:{table_id}")
    return [id_ for _, id_ in sorted(zip(in_order, ids, strict=True))]


def _rows(added: Sequence[NewDataFile]) -> int:
    return sum(file.record_count for file in added)
