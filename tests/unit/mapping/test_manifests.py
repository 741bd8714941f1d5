"""Manifest entries of inlined rows and deletes: status and sequence numbers."""

import pytest
from polynya.ducklake.rows.objects import own_changes
from polynya.iceberg import manifest
from polynya.iceberg.manifest import FileContent, ManifestEntry, Status
from polynya.mapping.manifests import delete_entry, rows_entry
from polynya.mapping.rows_files import OLDER, RowsFile

ADDED, EXISTING, DELETED = Status.ADDED, Status.EXISTING, Status.DELETED


@pytest.mark.parametrize(("changed_at", "at", "status"), [(5, 5, ADDED), (4, 5, EXISTING)])
def test_rows_file_has_the_sequence_number_of_its_last_change(changed_at, at, status):
    rows = RowsFile(OLDER, 3, changed_at, changed_at, 0)
    assert rows_entry("s3://b/rows.parquet", rows, (7,), 500, own_changes(at)) == ManifestEntry(
        status=status,
        snapshot_id=changed_at,
        sequence_number=changed_at,
        file_sequence_number=changed_at,
        data_file=manifest.DataFile(
            FileContent.DATA, "s3://b/rows.parquet", 3, 500, partition=(7,)
        ),
    )


TWO_DELETES = {"record_count": 2, "file_size_in_bytes": 500}


@pytest.mark.parametrize(("changed_at", "at", "status"), [(5, 5, ADDED), (4, 5, EXISTING)])
def test_delete_file_names_its_one_data_file(changed_at, at, status):
    """Specification, "Delete Formats": equal bounds of file_path, or `referenced_data_file`."""
    path = "s3://b/ünï.parquet"
    assert delete_entry(
        "s3://b/d.parquet", TWO_DELETES, path, (7, None), changed_at, own_changes(at)
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
            partition=(7, None),  # the data file's: readers ignore deletes of another partition
        ),
    )


def test_deleted_entry_has_the_snapshot_of_its_end_and_keeps_its_sequence_number():
    """Specification, "Manifest Entry Fields": the snapshot id is that of the deletion."""
    at = own_changes(6)
    gone = [
        rows_entry("s3://b/r.parquet", RowsFile(OLDER, 3, 4, 4, 0), (), 500, at, is_gone=True),
        delete_entry("s3://b/d.parquet", TWO_DELETES, "s3://b/f.parquet", (), 4, at, is_gone=True),
    ]
    for entry in gone:
        assert (entry.status, entry.snapshot_id, entry.sequence_number) == (DELETED, 6, 4)
