"""Position delete files as clients write them: by PyArrow here."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet import delete_files
from polynya.iceberg.parquet.delete_files import TooManyPositions, client_positions
from polynya.iceberg.sandbox import Unreadable


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


def by_dictionary(locations: list[str], rows: int) -> bytes:
    """A small file of many rows: it has each location once."""
    places = pa.array([row % len(locations) for row in range(rows)], pa.int32())
    body = io.BytesIO()
    columns = {
        "file_path": pa.DictionaryArray.from_arrays(places, pa.array(locations)),
        "pos": pa.array(range(rows), pa.int64()),
    }
    pq.write_table(pa.table(columns), body, compression="zstd")
    return body.getvalue()


TOO_MUCH = {
    "a location of many bytes": (["x" * 5000], 3, {}, Unreadable),
    "many bytes of locations": (
        ["x" * 100],
        200,
        {"MOST_LOCATION_BYTES": 10_000},
        TooManyPositions,
    ),
    "many locations": (list(map(str, range(50))), 50, {"MOST_LOCATIONS": 20}, TooManyPositions),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_dictionary_hides_no_work(what, monkeypatch):
    """DuckDB compares the location of each row, however small the file is."""
    locations, rows, limits, error = TOO_MUCH[what]
    for name, limit in limits.items():
        monkeypatch.setattr(delete_files, name, limit)
    with pytest.raises(error):
        client_positions([by_dictionary(locations, rows)])
