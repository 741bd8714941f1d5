"""Merged data files of catalogs up to 0.4: their rows are in the order of their snapshots."""

from .rows.data_files import DataFile


def rows_until(file: DataFile, snapshot_id: int) -> int:
    """The number of rows, from the beginning of the file, that existed at the snapshot.

    `partial_file_info` reads 'snapshot:rows so far|…', ascending.
    """
    rows = 0
    for part in (file.partial_file_info or "").split("|"):
        snapshot, _, rows_so_far = part.partition(":")
        if int(snapshot) <= snapshot_id:
            rows = int(rows_so_far)
    return rows
