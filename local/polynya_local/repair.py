"""`polynya writes --repair`: repairs rows with which native DuckLake fails, in one snapshot.

They are those of `queries/repairs.py`. No row of a table changes at any snapshot.
"""

from collections.abc import Iterator

from pg8000.native import Connection
from polynya.commits.write.partition_ids import ensure_partitionings, keys_of
from polynya.ducklake import queries
from polynya.ducklake.directories import directory_kind
from polynya.ducklake.rows.objects import Lake, Tag
from polynya.ducklake.writes import inlined, partitionings
from polynya.ducklake.writes.new_snapshot import NewSnapshot
from polynya.mapping.partitions import client_specs
from polynya.mapping.properties import PARTITION_SPECS

from .queries import repairs
from .queries.repairs import LiveTable


def surplus_values(con: Connection, table_id: int) -> dict[tuple[int, int], int]:
    """How many files have more partition values than keys: by partition_id and number of keys.

    If there are several surplus values, the one that most files have is counted.
    """
    texts = repairs.tag_texts(table_id, PARTITION_SPECS).run(con)
    specs = client_specs(Tag(table_id, PARTITION_SPECS, text) for text in texts)
    keys = queries.partition_columns(table_id).run(con)
    # Where DuckLake has no keys, a client's spec has them.
    counts: dict[int | None, int] = {id_: len(fields) for id_, fields in specs.items()}
    counts |= {id_: len(columns) for id_, columns in keys.items()}
    surplus: dict[tuple[int, int], int] = {}
    for group in repairs.value_counts(table_id).run(con):
        keys_of_group = counts.get(group.partition_id)
        if keys_of_group is not None and group.key_index >= keys_of_group:
            of_keys = group.partition_id, keys_of_group
            surplus[of_keys] = max(group.files, surplus.get(of_keys, 0))
    return surplus


def repair(snapshot: NewSnapshot, lake: Lake) -> Iterator[str]:
    """Repair all tables; yields what was done, for the user."""
    for table in repairs.live_tables().run(snapshot.con):
        done = [*_repair(snapshot, lake, table)]
        if done:
            snapshot.change(f"altered_table:{table.table_id}")
        yield from (f"{table.table_name}: {what}" for what in done)


def _repair(snapshot: NewSnapshot, lake: Lake, table: LiveTable) -> Iterator[str]:
    con, table_id = snapshot.con, table.table_id
    surplus = surplus_values(con, table_id)
    for partition_id, keys in surplus:
        _remove_surplus_values(snapshot, table_id, partition_id, keys)
    if surplus:
        number = sum(surplus.values())
        yield f"{number:,} data files have a partition value for each key now, and no more"
    if repairs.unversioned_inlined_tables(table_id).run(con):
        inlined.add_missing_versions(con, table_id)
        yield "DuckLake knows which columns the inlined rows have"
    if queries.has_commits(lake) and repairs.lacks_inlined_table(table).run(con):
        columns = queries.columns_now(table_id).run(con)
        if inlined.is_inlined(con, table_id, columns):
            snapshot.change_schema_of(table_id)
            inlined.add_table(con, snapshot.row, table_id, columns, snapshot.layout)
            yield "DuckLake knows which columns rows have that it inlines next"


def _remove_surplus_values(
    snapshot: NewSnapshot, table_id: int, partition_id: int, count: int
) -> None:
    """Remove the values beyond the first `count` of each file.

    In a catalog of version 1.0, the files of each kind of directory get a partitioning of their
    own, so that DuckLake does not merge them with others.
    """
    con = snapshot.con
    files = partitionings.remove_surplus_values(con, table_id, partition_id, count)
    if snapshot.layout.is_1_1:
        return
    keys = keys_of(snapshot, table_id, partition_id)
    by_kind: dict[str, list[int]] = {}
    for file_id, path, values in files:
        by_kind.setdefault(directory_kind(path, keys, values), []).append(file_id)
    new_ids = ensure_partitionings(snapshot, table_id, partition_id, by_kind)
    for kind, file_ids in by_kind.items():
        partitionings.move(con, file_ids, new_ids[kind])
