"""Merged data files of catalogs until 0.4: the rows of each snapshot stand one after the other."""

from .rows import DataFile


def rows_until(file: DataFile, snapshot_id: int) -> int:
    """How many rows at the beginning of the file are not younger than the snapshot.

    `partial_file_info` reads 'snapshot:rows so far|…', ascending.
    """
    rows = 0
    for part in (file.partial_file_info or "").split("|"):
        snapshot, _, rows_so_far = part.partition(":")
        if int(snapshot) <= snapshot_id:
            rows = int(rows_so_far)
    return rows
