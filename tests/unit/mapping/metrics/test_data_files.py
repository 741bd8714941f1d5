"""Data files as entries of manifests: status, sequence numbers, and bounds in the schema's type."""

from dataclasses import replace

import pytest
from polynya.ducklake.rows.files import ChunkColumns, ColumnStats, DataFile, FileGroup
from polynya.ducklake.rows.lifetimes import Lifetime
from polynya.ducklake.rows.objects import Column, PartitionColumn, Partitioning, Window, own_changes
from polynya.iceberg.manifest import Status
from polynya.mapping.data_files import data_files
from polynya.mapping.manifests import MOST_COLUMNS, columns_with_metrics, late_columns
from polynya.mapping.partitions import partitions
from polynya.mapping.schemas import schemas

from tests.unit.mapping.as_columns import Row, file_columns, key_column, rows_of, stats_columns

ADDED, EXISTING, DELETED = Status.ADDED, Status.EXISTING, Status.DELETED
COLUMNS = [
    Column(1, 1, 5, "a", "int32", None, None),
    Column(1, 5, None, "a", "int64", None, None),
    Column(2, 5, None, "b", "varchar", None, None),
    Column(3, 1, None, "l", "list", None, None),
    Column(4, 1, None, "element", "int32", None, 3),
    Column(5, 1, 5, "gone", "int32", None, None),
]
SCHEMAS = schemas(COLUMNS, 1, 100)


def data_file(data_file_id=7, begin=3, end=None) -> DataFile:
    return DataFile(
        data_file_id=data_file_id,
        begin_snapshot=begin,
        end_snapshot=end,
        path=f"{data_file_id}.parquet",
        path_is_relative=True,
        record_count=10,
        file_size_bytes=700,
        partial_max=None,
        partial_file_info=None,
        partition_id=None,
        mapping_id=None,
    )


def known(data_file_id=7, column_id=1, minimum="1", maximum="9") -> ColumnStats:
    return ColumnStats(data_file_id, column_id, 40, 10, 0, minimum, maximum, None)


PARTITIONING = Partitioning(
    columns={5: [PartitionColumn(0, 2, "identity")]},
    column_types={1: frozenset({"int32", "int64"}), 2: frozenset({"varchar"})},
    constants={8: {2: "p"}},
    groups={
        FileGroup(None, None): Lifetime(1, None),
        FileGroup(5, None): Lifetime(6, None),
        FileGroup(None, 8): Lifetime(6, None),
    },
    current=5,
    mapped={8: frozenset({1, 2})},
)
PARTITIONS = partitions(PARTITIONING, SCHEMAS, 100)


def entries(files, snapshot, stats=(), keys=(), again=()) -> list[Row]:
    """`snapshot`: its id, or its window; `again`: the ids of files that show other rows since."""
    found = data_files(
        ChunkColumns(file_columns(files, again), [*keys], stats_columns(stats)),
        SCHEMAS,
        PARTITIONS,
        lambda path, is_relative: f"s3://b/{path}" if is_relative else path,
        snapshot if isinstance(snapshot, Window) else own_changes(snapshot),
    )
    return [row for of_spec in found.values() for row in rows_of(of_spec)]


# Specification, "Manifest Entry Fields": the snapshot that added the file, or that deleted it.
# (begin, end, requested snapshot, status, snapshot id)
STATUSES = [
    (3, None, 3, ADDED, 3),
    (3, None, 4, EXISTING, 3),
    (3, 9, 3, ADDED, 3),
    (3, 9, 8, EXISTING, 3),
    (3, 9, 9, DELETED, 9),
]


@pytest.mark.parametrize(("begin", "end", "at", "status", "snapshot_id"), STATUSES)
def test_data_file_is_added_existing_or_deleted(begin, end, at, status, snapshot_id):
    [entry] = entries([data_file(begin=begin, end=end)], at)
    assert (entry.status, entry.snapshot_id, entry.sequence_number) == (status, snapshot_id, 3)


# Snapshots between 5 and 9 have expired: 9 shows what they did.
IN_A_WINDOW = [
    (5, None, EXISTING, 5),
    (6, None, ADDED, 9),
    (9, None, ADDED, 9),
    (5, 6, DELETED, 9),
    (5, 9, DELETED, 9),
    (5, 10, EXISTING, 5),
    (8, 10, ADDED, 9),
]


@pytest.mark.parametrize(("begin", "end", "status", "snapshot_id"), IN_A_WINDOW)
def test_a_snapshot_shows_the_changes_of_those_that_have_expired(begin, end, status, snapshot_id):
    [entry] = entries([data_file(begin=begin, end=end)], Window(5, 9))
    assert (entry.status, entry.snapshot_id, entry.sequence_number) == (status, snapshot_id, begin)


def test_a_file_that_shows_other_rows_is_deleted_and_added_again():
    files = [data_file(1), data_file(22, begin=2), data_file(333)]
    partitioned = [replace(file, partition_id=5) for file in files]
    rows = entries(
        partitioned, 9, [known(22)], [key_column(0, {1: "x", 22: "ü", 333: "z"})], again=[22]
    )
    assert [(row.file_path, row.status, row.snapshot_id, row.sequence_number) for row in rows] == [
        ("s3://b/1.parquet", EXISTING, 3, 3),
        ("s3://b/22.parquet", DELETED, 9, 2),
        ("s3://b/22.parquet", ADDED, 9, 2),
        ("s3://b/333.parquet", EXISTING, 3, 3),
    ]
    assert rows[1].metrics == rows[2].metrics != rows[0].metrics
    assert [row.partition for row in rows] == [("x",), ("ü",), ("ü",), ("z",)]


def test_data_file_has_its_location_and_its_own_numbers():
    away = replace(data_file(9), path="s3://elsewhere/ü%20x.parquet", path_is_relative=False)
    inside, outside = entries([data_file(), away], 3)
    assert (inside.file_path, inside.record_count, inside.file_size_in_bytes) == (
        "s3://b/7.parquet",
        10,
        700,
    )
    assert outside.file_path == "s3://elsewhere/ü%20x.parquet"
    assert not any(inside.metrics.values())


def test_each_file_has_its_own_statistics():
    files = [data_file(9, begin=6), data_file(7, begin=6), data_file(11, begin=6)]
    stats = [known(7, 1, "1", "1"), known(9, 1, "2", "2"), known(8, 1, "3", "3")]
    found = {row.file_path: row.metrics["lower_bounds"] for row in entries(files, 6, stats)}
    assert {path: {i: b[0] for i, b in of.items()} for path, of in found.items()} == {
        "s3://b/7.parquet": {1: 1},
        "s3://b/9.parquet": {1: 2},
        "s3://b/11.parquet": {},
    }


def test_bounds_are_in_the_type_of_the_snapshot():
    """The file was written with an int; the column is a long from snapshot 5 on."""
    for at, width in ((4, 4), (5, 8)):
        [entry] = entries([data_file(begin=3)], at, [known()])
        assert entry.metrics["lower_bounds"] == {1: (1).to_bytes(width, "little")}


def test_files_of_several_snapshots_are_in_one_manifest():
    files, stats = [data_file(7, begin=3), data_file(8, begin=6)], [known(7), known(8, 1, "-1")]
    old, new = entries(files, 6, stats)
    assert old.metrics["lower_bounds"] == {1: (1).to_bytes(8, "little")}
    assert new.metrics["lower_bounds"] == {1: (-1).to_bytes(8, "little", signed=True)}


def test_column_that_is_not_in_the_file_or_the_schema_has_no_metrics():
    later = known(column_id=2, minimum="x", maximum="y")  # hive files have such statistics
    dropped = known(column_id=5)
    [entry] = entries([data_file(begin=3)], 6, [known(), later, dropped, known(column_id=99)])
    assert {kind: set(of) for kind, of in entry.metrics.items() if of} == {
        "column_sizes": {1},
        "value_counts": {1},
        "null_value_counts": {1},
        "lower_bounds": {1},
        "upper_bounds": {1},
    }


def test_leaf_in_a_list_has_no_metrics():
    [entry] = entries([data_file(begin=3)], 3, [known(column_id=4)])
    assert not any(entry.metrics.values())


def test_files_are_separated_by_their_spec():
    """The second has an invalid date as partition value, the last has its value in its path."""
    files = [
        data_file(1, begin=6),
        replace(data_file(2, begin=6), partition_id=5),
        replace(data_file(3, begin=6), partition_id=5),
        replace(data_file(4, begin=6), partition_id=5),
        replace(data_file(5, begin=6), mapping_id=8),
    ]
    stats = [*(known(n, 1, str(n), str(n)) for n in range(1, 6)), known(5, 2, "y", "y")]
    found = entries(files, 6, stats, [key_column(0, {2: "x", 3: None})])
    assert {row.file_path: row.partition for row in found} == {
        "s3://b/1.parquet": (),
        "s3://b/2.parquet": ("x",),
        "s3://b/3.parquet": (None,),
        "s3://b/4.parquet": (),  # no value is recorded
        "s3://b/5.parquet": ("y",),
    }
    for row in found:
        number = int(row.file_path.removeprefix("s3://b/").removesuffix(".parquet"))
        assert row.metrics["lower_bounds"][1] == number.to_bytes(8, "little")


def test_in_a_wide_table_the_first_columns_and_the_partition_columns_have_metrics():
    wide = [Column(n, 1, None, f"c{n}", "int32", None, None) for n in range(1, 200)]
    groups = {FileGroup(5, None): Lifetime(1, None)}
    types = {n: frozenset({"int32"}) for n in range(1, 200)}
    partitioning = Partitioning({5: [PartitionColumn(0, 150, "identity")]}, types, {}, groups, 5)
    shown = schemas(wide, 1, 9)
    wanted = columns_with_metrics(shown, partitions(partitioning, shown, 9), 9)
    assert wanted == {*range(1, MOST_COLUMNS + 1), 150}
    assert late_columns(shown, partitions(partitioning, shown, 9), 9) == [150]
