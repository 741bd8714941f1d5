"""Position delete files as clients write them: by PyArrow here."""

import io
from resource import RUSAGE_SELF, getrusage

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet import delete_files
from polynya.iceberg.parquet.delete_files import TooManyPositions, client_positions
from polynya.iceberg.sandbox import OutOfMemory, Unreadable


def delete_file(*rows, **more):
    columns = {
        "file_path": pa.array([path for path, _ in rows], pa.string()),
        "pos": pa.array([position for _, position in rows], pa.int64()),
    }
    body = io.BytesIO()
    pq.write_table(pa.table(columns | more), body)
    return body.getvalue()


ROWS = 12_345


def saying(body, rows, *places):
    """The file with other numbers of rows, where its footer has ROWS."""

    def number(value):  # as long as ROWS
        return bytes([value << 1 & 0x7F | 0x80, value >> 6 & 0x7F | 0x80, value >> 13])

    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    pieces = body[start:].split(number(ROWS))
    numbers = [number(rows if place in places else ROWS) for place in range(len(pieces) - 1)]
    return body[:start] + b"".join(map(bytes.__add__, pieces, [*numbers, b""]))


ALIKE = delete_file(*[("a", 1)] * ROWS)
FILE, GROUP = 0, 6
"""The places of a file's number of rows, and of its row group's. The others are of columns."""


READ = [
    ([], {}),
    ([delete_file()], {}),
    ([delete_file(("a", 3), ("b", 0), ("a", 1))], {"a": [1, 3], "b": [0]}),
    ([delete_file(("a", 3)), delete_file(("a", 3), ("a", 0))], {"a": [0, 3]}),
    ([delete_file(("a", 0), ("a", 1), ("a", 2))], {"a": [0, 1, 2]}),
    ([delete_file(("a", 2), row=pa.array([1]))], {"a": [2]}),
]


@pytest.mark.parametrize(("bodies", "expected"), READ)
def test_positions_by_data_file(bodies, expected):
    found = client_positions(bodies)
    assert {path: list(positions) for path, positions in found.items()} == expected


BROKEN = {
    "no rows, and a row group of some": saying(ALIKE, 0, FILE),
    "fewer rows than its row group": saying(ALIKE, 12_344, FILE),
    "a row group of fewer rows": saying(ALIKE, 12_344, GROUP),
    "a row group of no rows": saying(ALIKE, 0, GROUP),
    "no Parquet file": b"PAR1",
    "a position that is NULL": delete_file(("a", None)),
    "a path that is NULL": delete_file((None, 1)),
    "a negative position": delete_file(("a", -1)),
    "other columns": delete_file()[:-200] + b"PAR1",
    "a path that is not UTF-8": delete_file(("path", 1)).replace(b"path", b"pat\xff"),
    "a name that is not UTF-8": delete_file(("a", 1)).replace(b"file_path", b"file_pat\xff"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_refused(what):
    with pytest.raises(Unreadable):
        client_positions([BROKEN[what]])


def test_numbers_of_rows_are_changed_where_arrow_reads_them():
    said = [pq.read_metadata(io.BytesIO(saying(ALIKE, 5, place))) for place in (FILE, GROUP)]
    assert [(one.num_rows, one.row_group(0).num_rows) for one in said] == [(5, ROWS), (ROWS, 5)]


def test_positions_are_limited(monkeypatch):
    whole = [("a", position) for position in range(10)]
    monkeypatch.setattr(delete_files, "MOST_POSITIONS", 10)
    assert list(client_positions([delete_file(*whole)])["a"]) == list(range(10))
    monkeypatch.setattr(delete_files, "MOST_POSITIONS", 9)
    with pytest.raises(TooManyPositions):
        client_positions([delete_file(*whole)])


def of_one_location(length: int, rows: int) -> bytes:
    """Rows of one data file, whose location is in the dictionary once."""
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * length])
    stream = io.BytesIO()
    table = pa.table({"file_path": paths, "pos": np.arange(rows)})
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()


BOMBS = {
    "a million locations of a megabyte": (
        lambda: of_one_location(10**6, 10**6),
        (Unreadable, "a location has more than 4,096 bytes"),
    ),
    "two million locations of 4 KB": (
        lambda: of_one_location(4000, 2 * 10**6),
        (TooManyPositions, "4 GB of locations"),
    ),
    "a location of 1.2 GB": (
        lambda: of_one_location(1_200_000_000, 1),
        (OutOfMemory, "more memory"),
    ),
}


@pytest.mark.parametrize(
    "case", [*list(BOMBS)[:2], pytest.param(list(BOMBS)[2], marks=pytest.mark.slow)]
)
def test_a_small_file_of_many_bytes_is_refused_at_once(case):
    make, (error, message) = BOMBS[case]
    body = make()
    assert len(body) < 4_000_000
    before = getrusage(RUSAGE_SELF)
    with pytest.raises(error, match=message):
        client_positions([body])
    after = getrusage(RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 2
    assert after.ru_maxrss - before.ru_maxrss < 300 * 1024


def test_data_files_are_limited(monkeypatch):
    of_three = delete_file(("a", 1), ("b", 1), ("c", 1))
    monkeypatch.setattr(delete_files, "MOST_LOCATIONS", 3)
    assert len(client_positions([of_three])) == 3
    monkeypatch.setattr(delete_files, "MOST_LOCATIONS", 2)
    with pytest.raises(TooManyPositions, match="2 data files"):
        client_positions([of_three])
    monkeypatch.setattr(delete_files, "MOST_LOCATIONS", 1)
    with pytest.raises(TooManyPositions, match="1 data files"):
        client_positions([of_three])
