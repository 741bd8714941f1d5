"""Merged data files of catalogs up to 0.4: their rows are in the order of their snapshots."""

from collections.abc import Iterator

from .rows.data_files import DataFile


def rows_until(file: DataFile, snapshot_id: int) -> int:
    """The number of rows, from the beginning of the file, that existed at the snapshot."""
    rows = 0
    for snapshot, rows_so_far in _parts(file):
        if snapshot <= snapshot_id:
            rows = rows_so_far
    return rows


def snapshots_of_rows(file: DataFile) -> list[int]:
    """The snapshot of each row, in the order of the rows."""
    found: list[int] = []
    for snapshot, rows_so_far in _parts(file):
        found += [snapshot] * (rows_so_far - len(found))
    return found


def _parts(file: DataFile) -> Iterator[tuple[int, int]]:
    """The parts of `partial_file_info`, which reads 'snapshot:rows so far|…', ascending."""
    for part in (file.partial_file_info or "").split("|"):
        snapshot, _, rows_so_far = part.partition(":")
        yield int(snapshot), int(rows_so_far)
