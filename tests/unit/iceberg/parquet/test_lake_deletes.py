"""Delete files as DuckLake writes them: read by PyArrow here, and by DuckLake in tests/e2e."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.delete_files import (
    LakeDeletes,
    StoredDeletes,
    delete_copy,
    lake_delete_files,
)
from polynya.iceberg.sandbox import Unreadable

DATA_FILE = "s3://b/lake/main/it's/ducklake-1.parquet"
SNAPSHOT = "_ducklake_internal_snapshot_id"
IDS = {"file_path": 2147483646, "pos": 2147483645, SNAPSHOT: 2147483539}


def stored(*positions, **columns):
    table = pa.table({"file_path": ["x"] * len(positions), "pos": list(positions), **columns})
    body = io.BytesIO()
    pq.write_table(table, body)
    return body.getvalue()


MERGED = [
    # What is deleted now, at snapshot 9; the stored file; position and snapshot of each row.
    ([1, 5], StoredDeletes(stored(0, 3, 7), 4), [(0, 4), (1, 9), (3, 4), (5, 9), (7, 4)]),
    ([4], StoredDeletes(stored(2, 6, **{SNAPSHOT: [4, 5]}), 4), [(2, 4), (4, 9), (6, 5)]),
    (range(2, 4), StoredDeletes([0, 8], 4), [(0, 4), (2, 9), (3, 9), (8, 4)]),
    ([0], StoredDeletes(stored(1), 4), [(0, 9), (1, 4)]),
]


@pytest.mark.parametrize(("positions", "before", "expected"), MERGED)
def test_a_file_that_replaces_another(positions, before, expected):
    [found] = lake_delete_files([LakeDeletes(DATA_FILE, positions, 9, before)])
    table = pq.read_table(io.BytesIO(found.body))
    assert list(zip(*table.drop(["file_path"]).to_pydict().values(), strict=True)) == expected
    assert set(table["file_path"].to_pylist()) == {DATA_FILE}
    assert found.rows == len(expected) and ids_of(table) == IDS


def test_the_first_file_of_a_data_file_names_no_snapshot():
    files = list(lake_delete_files(LakeDeletes(DATA_FILE, [2, 4], 9, None) for _ in range(2)))
    assert files[0] == files[1]
    table = pq.read_table(io.BytesIO(files[0].body))
    assert table.to_pydict() == {"file_path": [DATA_FILE] * 2, "pos": [2, 4]}
    assert ids_of(table) == {name: IDS[name] for name in ("file_path", "pos")}


@pytest.mark.parametrize("before", [None, StoredDeletes(stored(0), 4)])
def test_footers(before):
    """Virtual copies have the size of the stored file only if its footer has the known pattern."""
    [found] = lake_delete_files([LakeDeletes(DATA_FILE, range(1, 300_000), 9, before)])
    assert found.footer_size == pq.read_metadata(io.BytesIO(found.body)).serialized_size
    copy = delete_copy(found.body, DATA_FILE)
    assert copy is not None and len(copy) == len(found.body)


def test_a_damaged_file_is_not_replaced():
    with pytest.raises(Unreadable):
        list(lake_delete_files([LakeDeletes(DATA_FILE, [1], 9, StoredDeletes(b"PAR1", 4))]))


def ids_of(table):
    return {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in table.schema}
