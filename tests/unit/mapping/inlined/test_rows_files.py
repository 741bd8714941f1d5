"""The files of inlined rows: which rows share one, and which changes keep their names."""

import pytest
from polynya.ducklake.rows.files import Event
from polynya.mapping.rows_files import MOST_NEW, NEW, OLDER, rows_files


def added(at: int, rows: int) -> Event:
    return Event(at, "inlined", 1, rows, rows, 0, at * 1000)


def ended(at: int, rows: int, hash_: int) -> Event:
    return Event(at, "inlined", -1, rows, rows, 0, hash_)


# (events, snapshots that changed the columns, a snapshot, its files as (part, rows, written at,
# sum of the hashes))
CASES = [
    ([], [], 9, []),
    ([], [4], 9, []),
    ([added(3, 2)], [], 2, []),
    ([added(3, 2)], [], 3, [(NEW, 2, 3, 3000)]),
    ([added(3, 2), added(5, 1)], [], 9, [(NEW, 2, 3, 3000), (NEW, 1, 5, 5000)]),
    # Rows that end move the others; what the same snapshot adds is apart.
    ([added(3, 2), ended(5, 1, 1000)], [], 9, [(OLDER, 1, 5, 2000)]),
    (
        [added(3, 2), added(5, 7), ended(5, 1, 1000)],
        [],
        9,
        [(OLDER, 1, 5, 2000), (NEW, 7, 5, 5000)],
    ),
    ([added(3, 2), ended(5, 2, 3000)], [], 9, []),
    # So do other columns.
    ([added(3, 2), added(6, 1)], [5], 9, [(OLDER, 2, 5, 3000), (NEW, 1, 6, 6000)]),
    ([added(3, 2), added(5, 1)], [5], 9, [(OLDER, 2, 5, 3000), (NEW, 1, 5, 5000)]),
    ([added(3, 2), added(6, 1)], [5], 4, [(NEW, 2, 3, 3000)]),
]


@pytest.mark.parametrize(("events", "moves", "at", "expected"), CASES)
def test_files_of_inlined_rows(events, moves, at, expected):
    files = rows_files(events, moves, table_begin=1).files_at(at)
    assert [(f.part, f.record_count, f.written_at, f.hash) for f in files] == expected
    assert all(file.begin_snapshot == file.written_at for file in files)


def test_a_file_keeps_its_name_while_other_snapshots_add_rows():
    files = rows_files([added(at, 1) for at in range(2, 2 + MOST_NEW)], [], table_begin=1)
    for at in range(2, 2 + MOST_NEW):
        assert files.files_at(at)[: at - 2] == files.files_at(at - 1)


def test_the_files_are_never_many():
    files = rows_files([added(at, 1) for at in range(2, 200)], [], table_begin=1)
    for at in range(2, 200):
        assert len(files.files_at(at)) <= MOST_NEW + 1
        assert sum(file.record_count for file in files.files_at(at)) == at - 1
        assert sum(file.hash for file in files.files_at(at)) == sum(range(2, at + 1)) * 1000
        # They are no new rows: they keep the sequence number of older ones.
        assert all(file.begin_snapshot == 1 for file in files.files_at(at) if file.part == OLDER)
