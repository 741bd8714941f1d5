"""Entries of manifests: status, sequence numbers, and bounds in the type of the schema."""

import pytest
from polynya.ducklake.rows import Column, ColumnStats, DataFile
from polynya.iceberg import manifest
from polynya.iceberg.manifest import FileContent, ManifestEntry, Status
from polynya.translate.manifests import data_entries, delete_entry, rows_entry
from polynya.translate.rows_files import OLDER, RowsFile
from polynya.translate.schemas import schemas

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


PLAIN = manifest.DataFile(FileContent.DATA, "s3://b/7.parquet", 10, 700, partition=(7, None))
"""The data file 7 without statistics."""


def entries(files, snapshot_id, stats=()) -> list[ManifestEntry]:
    return data_entries(
        files,
        stats,
        SCHEMAS,
        location=lambda file: f"s3://b/{file.path}",
        partition=lambda file: (file.data_file_id, None),
        snapshot_id=snapshot_id,
    )


# Specification, "Manifest Entry Fields": the snapshot that added the file, or that deleted it.
# (begin, end, asked at, status, snapshot id, sequence number)
STATUSES = [
    (3, None, 3, ADDED, 3, 3),
    (3, None, 4, EXISTING, 3, 3),
    (3, 9, 3, ADDED, 3, 3),
    (3, 9, 8, EXISTING, 3, 3),
    (3, 9, 9, DELETED, 9, 3),
]


@pytest.mark.parametrize(("begin", "end", "at", "status", "snapshot_id", "sequence"), STATUSES)
def test_data_file_is_added_existing_or_deleted(begin, end, at, status, snapshot_id, sequence):
    [entry] = entries([data_file(begin=begin, end=end)], at)
    assert (entry.status, entry.snapshot_id) == (status, snapshot_id)
    # Both explicit: only those of ADDED entries may be left out.
    assert (entry.sequence_number, entry.file_sequence_number) == (sequence, sequence)


def test_data_file_is_under_its_location_with_its_own_numbers():
    [entry] = entries([data_file()], 3)
    assert entry.data_file == PLAIN


def test_each_file_has_its_own_statistics_in_the_order_of_the_files():
    files = [data_file(9, begin=6), data_file(7, begin=6)]
    stats = [known(7, 1, "1", "1"), known(9, 1, "2", "2"), known(8, 1, "3", "3")]
    found = [entry.data_file for entry in entries(files, 6, stats)]
    assert [file.file_path for file in found] == ["s3://b/9.parquet", "s3://b/7.parquet"]
    assert [file.lower_bounds[1][0] for file in found] == [2, 1]


def test_bounds_are_in_the_type_that_the_snapshot_shows():
    """The file was written with an int; the column is a long from snapshot 5 on."""
    for at, width in ((4, 4), (5, 8)):
        [entry] = entries([data_file(begin=3)], at, [known()])
        assert entry.data_file.lower_bounds == {1: (1).to_bytes(width, "little")}


def test_column_that_the_file_or_the_schema_lacks_has_no_metrics():
    later = known(column_id=2, minimum="x", maximum="y")  # hive files have such statistics
    dropped = known(column_id=5)
    [entry] = entries([data_file(begin=3)], 6, [known(), later, dropped, known(column_id=99)])
    assert entry.data_file.lower_bounds.keys() == {1}
    assert entry.data_file.column_sizes.keys() == {1}


def test_leaf_in_a_list_has_no_metrics():
    [entry] = entries([data_file(begin=3)], 3, [known(column_id=4)])
    assert entry.data_file == PLAIN


@pytest.mark.parametrize(("changed_at", "at", "status"), [(5, 5, ADDED), (4, 5, EXISTING)])
def test_rows_file_has_the_sequence_number_of_its_last_change(changed_at, at, status):
    rows = RowsFile(OLDER, 3, changed_at)
    assert rows_entry("s3://b/rows.parquet", rows, 500, at) == ManifestEntry(
        status=status,
        snapshot_id=changed_at,
        sequence_number=changed_at,
        file_sequence_number=changed_at,
        data_file=manifest.DataFile(FileContent.DATA, "s3://b/rows.parquet", 3, 500),
    )


@pytest.mark.parametrize(("changed_at", "at", "status"), [(5, 5, ADDED), (4, 5, EXISTING)])
def test_delete_file_names_the_one_data_file_it_is_for(changed_at, at, status):
    """Specification, "Delete Formats": equal bounds of file_path, or `referenced_data_file`."""
    path = "s3://b/ünï.parquet"
    assert delete_entry(
        "s3://b/d.parquet", path, (7, None), 2, 500, changed_at, at
    ) == ManifestEntry(
        status=status,
        snapshot_id=changed_at,
        sequence_number=changed_at,
        file_sequence_number=changed_at,
        data_file=manifest.DataFile(
            content=FileContent.POSITION_DELETES,
            file_path="s3://b/d.parquet",
            record_count=2,
            file_size_in_bytes=500,
            lower_bounds={2147483546: path.encode()},
            upper_bounds={2147483546: path.encode()},
            referenced_data_file=path,
            partition=(7, None),  # of the data file: a delete of another partition is not applied
        ),
    )
