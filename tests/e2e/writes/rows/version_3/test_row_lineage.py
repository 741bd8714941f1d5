"""What DuckLake makes of files with Iceberg's row lineage: why Polynya copies them without it."""

from typing import NamedTuple

import pyarrow as pa
import pytest
from duckdb import Error
from polynya.commits.plan import added_files
from polynya.commits.plan.added_files import RowLineage

from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.starts import DO_NOT_INLINE

pytestmark = pytest.mark.versions("1.1", "1.0")

ROW_ID, LAST_UPDATED = ("_row_id", 2147483540), ("_last_updated_sequence_number", 2147483539)
NULLS = pa.nulls(2, pa.int64())
MAPPED = (
    "INSERT INTO ducklake_column_mapping VALUES (:id, :table_id, 'map_by_name')",
    "INSERT INTO ducklake_name_mapping VALUES (:id, 0, 'id', 1, NULL, false)",
    "UPDATE ducklake_data_file SET mapping_id = :id WHERE data_file_id = :file_id",
)
ALONE = ("INSERT INTO ducklake_file_partition_value VALUES (:file_id, :table_id, 0, 'alone')",)


class Snapshots(NamedTuple):
    before: int
    commit: int


@pytest.fixture
def made(twin, served, moto, monkeypatch):
    """A function that commits a file with columns of row lineage, as it is."""
    monkeypatch.setattr(added_files, "row_lineage", lambda file, next_row_id: RowLineage(False, ()))
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id BIGINT)", "INSERT INTO {t} VALUES (1), (2)")

    def make(columns, statements=()):
        before = twin.newest()
        status, message = HandMade(served[1], moto).commit(
            twin.name, parquet({("id", 1): pa.array([11, 12]), **columns})
        )
        assert status == 200, message
        run = twin.lake.database.run
        [[table_id, file_id]] = run(
            "SELECT table_id, max(data_file_id) FROM ducklake_data_file JOIN ducklake_table "
            "USING (table_id) WHERE table_name = :name GROUP BY 1",
            name=twin.name,
        )
        for sql in statements:
            given = {"id": 10**6 + file_id, "table_id": table_id, "file_id": file_id}
            run(sql, **{name: value for name, value in given.items() if f":{name}" in sql})
        twin.con.execute(f"INSERT INTO {twin.source} VALUES (3)")
        return Snapshots(before, before + 1)

    return make


def ids(twin, at):
    rows = twin.con.execute(f"SELECT id FROM {twin.source} AT (VERSION => {at}) ORDER BY id")
    return [id_ for (id_,) in rows.fetchall()]


def merge(twin):
    twin.con.execute(f"CALL ducklake_merge_adjacent_files('lake', '{twin.name}')")


def test_rows_have_no_row_ids(twin, made):
    made({ROW_ID: NULLS})
    found = twin.con.execute(f"SELECT rowid FROM {twin.source} WHERE id > 10").fetchall()
    assert found == [(None,), (None,)]


def test_rows_are_missing_after_a_merge(twin, made):
    at = made({LAST_UPDATED: NULLS})
    assert ids(twin, at.commit) == [1, 2, 11, 12]
    merge(twin)
    assert ids(twin, at.commit) == [1, 2]


def test_rows_are_surplus_after_a_merge(twin, made):
    at = made({LAST_UPDATED: pa.array([1, 1])})
    merge(twin)
    assert ids(twin, at.before) == [1, 2, 11, 12]


@pytest.mark.parametrize("statements", [(), ALONE])
def test_the_change_feed_has_no_snapshot(twin, made, statements):
    """Also where the file has other partition values than all others, and is never merged."""
    at = made({LAST_UPDATED: NULLS}, statements)
    feed = twin.con.execute(
        "SELECT snapshot_id, id FROM ducklake_table_changes("
        f"'lake', 'main', '{twin.name}', {at.commit}, {at.commit}) ORDER BY id"
    )
    assert feed.fetchall() == [(None, 11), (None, 12)]


def test_with_a_column_mapping_row_ids_cannot_be_read(twin, made):
    made({ROW_ID: NULLS}, MAPPED)
    with pytest.raises(Error, match='column "2147483540" was read from the original file'):
        twin.con.execute(f"SELECT rowid FROM {twin.source}").fetchall()
