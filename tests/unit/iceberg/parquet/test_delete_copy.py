"""The copy of a DuckLake delete file: it differs only in two field ids, or there is no copy."""

import io

import duckdb
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.delete_files import delete_copy
from polynya_local.clients.duckdb import connect

FILE_PATH, POS, SNAPSHOT = 2147483646, 2147483645, 2147483539
"""The field ids that DuckLake writes (`ducklake_delete.cpp`)."""
DATA_FILE = "s3://bucket/lake//main/t/ducklake-0198.parquet"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A delete file written by DuckDB's COPY, as DuckLake does."""
    path = tmp_path_factory.mktemp("deletes") / "deletes.parquet"
    with duckdb.connect() as con:

        def write(
            data_file=DATA_FILE,
            positions="range(0, 10, 3)",
            third=False,
            file_path_id=FILE_PATH,
            pos_id=POS,
            options="",
        ) -> bytes:
            third_column, third_id = ("", "")
            if third:
                third_column = ", 7::BIGINT AS _ducklake_internal_snapshot_id"
                third_id = f", _ducklake_internal_snapshot_id: {SNAPSHOT}"
            con.execute(
                f"COPY (SELECT '{data_file}' AS file_path, r.range::BIGINT AS pos{third_column} "
                f"FROM {positions} AS r) TO '{path}' (FORMAT parquet{options}, "
                f"FIELD_IDS {{file_path: {file_path_id}, pos: {pos_id}{third_id}}})"
            )
            return path.read_bytes()

        yield write


def ids(parquet: bytes) -> dict[str, int]:
    schema = pq.read_schema(io.BytesIO(parquet))
    return {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema}


def rows(parquet: bytes) -> list:
    return pq.read_table(io.BytesIO(parquet)).to_pylist()


def assert_is_copy(copy: bytes | None, stored: bytes) -> None:
    assert copy is not None
    assert len(copy) == len(stored)
    different = [i for i, pair in enumerate(zip(copy, stored, strict=True)) if pair[0] != pair[1]]
    # Two varints of five bytes each, of which only some bytes differ.
    assert len(different) <= 10
    assert min(different) > len(stored) - 8 - int.from_bytes(stored[-8:-4], "little")
    assert ids(stored) | {"file_path": 2147483546, "pos": 2147483545} == ids(copy)
    assert rows(copy) == rows(stored)


FORMS = [
    {},
    {"third": True},
    {"positions": "range(1)"},
    {"positions": "range(300000)"},  # several row groups, and a file_path in each one's statistics
    {"options": ", COMPRESSION zstd"},
    {"options": ", COMPRESSION uncompressed"},
    {"data_file": "s3://b/ünï cødé/%2F/x.parquet"},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_copy_is_the_stored_file_with_icebergs_field_ids(form, written):
    stored = written(**form)
    assert_is_copy(delete_copy(stored, form.get("data_file", DATA_FILE)), stored)


def test_ids_take_ten_bytes_in_the_footer(written):
    """The premise of the copy: each id is in it once, as a zigzag varint of five bytes."""
    stored = written(third=True)
    copy = delete_copy(stored, DATA_FILE)
    for ducklake, iceberg in ((FILE_PATH, 2147483546), (POS, 2147483545)):
        old, new = varint(ducklake), varint(iceberg)
        assert (len(old), len(new)) == (5, 5)
        assert (stored.count(old), copy.count(old)) == (1, 0)
        assert (stored.count(new), copy.count(new)) == (0, 1)
        assert stored.index(old) == copy.index(new)


def varint(number: int) -> bytes:
    """An independent implementation of Thrift's compact protocol: LEB128 of the zigzag."""
    zigzag, out = (number << 1) ^ (number >> 31), bytearray()
    while True:
        out.append(zigzag & 0x7F | (0x80 if zigzag > 0x7F else 0))
        zigzag >>= 7
        if not zigzag:
            return bytes(out)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Files that DuckLake itself has written: (delete file, data file, does it hold snapshots)."""
    folder = tmp_path_factory.mktemp("lake")
    with connect(("ducklake",)) as con:
        con.execute(
            f"ATTACH 'ducklake:{folder}/catalog.ducklake' AS lake "
            f"(DATA_PATH '{folder}/data', DATA_INLINING_ROW_LIMIT 0)"
        )
        con.execute("CREATE TABLE lake.t AS SELECT i, 'v' || i AS s FROM range(1000) AS r(i)")
        con.execute("DELETE FROM lake.t WHERE i % 7 = 0")  # one file, one snapshot
        con.execute("CREATE TABLE lake.u AS SELECT i FROM range(1000) AS r(i)")
        con.execute("DELETE FROM lake.u WHERE i < 5")
        con.execute("DELETE FROM lake.u WHERE i > 990")  # the same file again: a third column
        found = con.execute("""
            SELECT d.path, f.path, t.table_name
            FROM __ducklake_metadata_lake.ducklake_delete_file AS d
            JOIN __ducklake_metadata_lake.ducklake_data_file AS f USING (data_file_id)
            JOIN __ducklake_metadata_lake.ducklake_table AS t ON t.table_id = f.table_id
            WHERE d.end_snapshot IS NULL ORDER BY t.table_name""").fetchall()
    stored = {}
    for delete_path, data_path, name in found:
        directory = folder / "data" / "main" / name
        stored[name] = ((directory / delete_path).read_bytes(), str(directory / data_path))
    assert sorted(stored) == ["t", "u"]
    return stored


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("t", ["file_path", "pos"]),
        ("u", ["file_path", "pos", "_ducklake_internal_snapshot_id"]),
    ],
)
def test_copy_of_a_real_ducklake_file_differs_only_in_its_ids(table, columns, lake):
    stored, data_file = lake[table]
    assert list(ids(stored)) == columns
    assert_is_copy(delete_copy(stored, data_file), stored)


def test_there_is_no_copy_if_the_deletes_name_another_location(written):
    stored = written()
    assert delete_copy(stored, "s3://moved/lake//main/t/ducklake-0198.parquet") is None
    assert delete_copy(stored, DATA_FILE + ".parquet") is None


def test_there_is_no_copy_if_an_id_is_not_in_the_footer_exactly_once(written):
    assert delete_copy(written(pos_id=1), DATA_FILE) is None
    assert delete_copy(written(file_path_id=1), DATA_FILE) is None
    assert delete_copy(written(file_path_id=2147483546, pos_id=2147483545), DATA_FILE) is None


@pytest.mark.parametrize("id_", [FILE_PATH, POS])
def test_there_is_no_copy_if_a_text_in_the_footer_holds_the_bytes_of_an_id(id_, written):
    stored = written(data_file="<<<<<" + DATA_FILE)
    assert_is_copy(delete_copy(stored, "<<<<<" + DATA_FILE), stored)
    assert delete_copy(stored.replace(b"<<<<<", varint(id_)), DATA_FILE) is None


def test_there_is_no_copy_if_the_deletes_are_of_two_data_files(tmp_path):
    path = tmp_path / "two.parquet"
    duckdb.sql(
        f"COPY (SELECT '{DATA_FILE}' || n AS file_path, 0::BIGINT AS pos FROM range(2) AS r(n)) "
        f"TO '{path}' (FORMAT parquet, FIELD_IDS {{file_path: {FILE_PATH}, pos: {POS}}})"
    )
    for number in (0, 1):
        assert delete_copy(path.read_bytes(), f"{DATA_FILE}{number}") is None


BROKEN = {
    "empty": lambda stored: b"",
    "garbage": lambda stored: bytes(range(256)) * 8,
    "only the magic": lambda stored: b"PAR1",
    "two magics": lambda stored: b"PAR1PAR1",
    "no magic at the end": lambda stored: stored[:-4] + b"PAR2",
    "an encrypted footer": lambda stored: stored[:-4] + b"PARE",
    "cut at the end": lambda stored: stored[:-1],
    "cut in the middle": lambda stored: stored[: len(stored) // 2],
    "cut at the front": lambda stored: stored[len(stored) // 2 :],
    "a footer longer than the file": lambda stored: stored[:-8] + b"\xff\xff\xff\x7fPAR1",
    "a footer of no length": lambda stored: stored[:-8] + b"\x00\x00\x00\x00PAR1",
    "an html page": lambda stored: b"<html>PAR1</html>",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_there_is_no_copy_of_an_invalid_delete_file(broken, written):
    assert delete_copy(BROKEN[broken](written()), DATA_FILE) is None
