"""A commit after which its table could not be served is refused, and changes nothing."""

from contextlib import closing

import pyarrow as pa
import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

FILE = parquet({("id", 1): pa.array([1, 2])})

# One more delete file of the table's first data file, which the next snapshot will show.
OF_THE_NEXT_SNAPSHOT = """
INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id, path,
  path_is_relative, format, delete_count, file_size_bytes, footer_size)
SELECT 10000 + f.data_file_id, f.table_id, s.snapshot_id + 1, f.data_file_id, 'd.bin', TRUE,
  'unknown', 1, 1, 1
FROM ducklake_data_file AS f
JOIN ducklake_table AS t ON t.table_id = f.table_id AND t.table_name = 'planted',
  (SELECT max(snapshot_id) AS snapshot_id FROM ducklake_snapshot) AS s"""

# The statements in DuckDB and those in the catalog before the commit, and a part of the answer.
CASES = {
    "planted": (
        ["CREATE TABLE lake.main.planted (id BIGINT)", "INSERT INTO lake.main.planted VALUES (0)"],
        OF_THE_NEXT_SNAPSHOT,
        "delete files of the format unknown",
    ),
    "lacking": (
        [
            "CREATE TABLE lake.main.lacking (id BIGINT)",
            "INSERT INTO lake.main.lacking VALUES (0)",
            "DELETE FROM lake.main.lacking",
            "ALTER TABLE lake.main.lacking ADD COLUMN d BIGINT DEFAULT 7",
        ],
        None,
        "lacks the column d",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(lake, moto, name):
    native, in_catalog, reason = CASES[name]
    one = set_up_writes(lake.write(name, EMPTY))
    with judging(one, moto) as judge:
        for statement in native:
            judge.query(statement)
        rows = judge.query(f"FROM lake.main.{name}")
    with closing(one.database.connect()) as con:
        if in_catalog:
            con.run(in_catalog)
            assert con.row_count == 1
        before = con.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
        files = con.run("SELECT count(*) FROM ducklake_data_file")
        settings = {"COLUMN_DEFAULTS": "refuse"}
        with bridge(one, moto, writes=True, settings=settings) as served:
            status, message = HandMade(served, moto).commit(name, FILE)
        assert (status, reason in message) == (400, True), (status, message)
        assert con.run("SELECT max(snapshot_id) FROM ducklake_snapshot") == before
        assert con.run("SELECT count(*) FROM ducklake_data_file") == files
    with judging(one, moto) as judge:
        assert judge.query(f"FROM lake.main.{name}") == rows
