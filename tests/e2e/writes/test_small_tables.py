"""A commit to a table of few files, beside one of many: PostgreSQL reads the rows of the few."""

from contextlib import closing

import boto3
import pyarrow as pa
import pytest
from polynya.ducklake.connection.catalog_connection import CatalogConnection, Planning
from polynya.ducklake.queries import history
from polynya.runtime.errors import ServiceUnavailable
from polynya_local.writes import writes
from pyiceberg.exceptions import RESTError

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of

MANY = 60_000
DATA = pa.table({"id": pa.array(range(10), pa.int64()), "s": ["x"] * 10})

GROW = f"""
INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
  file_format, record_count, file_size_bytes, footer_size, row_id_start)
SELECT 1000 + i, f.table_id, f.begin_snapshot, md5(i::text), true, f.file_format, f.record_count,
  f.file_size_bytes, f.footer_size, 1000 + 10 * i
FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id),
  generate_series(1, {MANY}) AS i WHERE t.table_name = 'large' ORDER BY md5(i::text);
INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes,
  value_count, null_count, min_value, max_value)
SELECT 1000 + i, s.table_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count,
  s.min_value, s.max_value
FROM ducklake_file_column_stats AS s JOIN ducklake_table AS t USING (table_id),
  generate_series(1, {MANY}) AS i WHERE t.table_name = 'large';
UPDATE ducklake_snapshot SET next_file_id = {MANY} + 2000
WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)"""

READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
WHERE relname IN ('ducklake_data_file', 'ducklake_file_column_stats')"""


@pytest.fixture
def rows_read(monkeypatch):
    """The rows about files that each transaction has read, in order."""
    counts: list[int] = []
    run = CatalogConnection.run

    def recorded(self, sql, *arguments, **parameters):
        if sql == "COMMIT":
            [[rows]] = run(self, READ)
            counts.append(int(rows))
        return run(self, sql, *arguments, **parameters)

    monkeypatch.setattr(CatalogConnection, "run", recorded)
    return counts


@pytest.mark.parametrize("analyzed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_rows_of_other_tables_are_not_read(lake, moto, rows_read, analyzed):
    """With statistics of PostgreSQL that know the large table alone, and without any."""
    one = lake.write(f"small_beside_large_{analyzed}", EMPTY)
    writes(one.database.url, setup=True)  # with the indexes
    with bridge(one, moto, writes=True) as served, closing(client_of(served)) as catalog:
        catalog.create_table("main.large", DATA.schema).append(DATA)
        with closing(one.database.connect()) as con:
            for statement in [*GROW.split(";"), "ANALYZE"][: 4 if analyzed else 3]:
                con.run(statement)
        catalog.create_table("main.small", DATA.schema)
        for _ in range(4):
            catalog.load_table("main.small").append(DATA)
        del rows_read[:]
        for _ in range(2):
            catalog.load_table("main.small").append(DATA)
        assert len(catalog.load_table("main.small").scan().to_arrow()) == 60
    assert len(rows_read) >= 6
    assert max(rows_read) < 300, rows_read


def test_a_removal_does_not_read_the_files_of_the_lake(lake, moto, rows_read):
    """All commits wait while it asks whether the catalog names the file."""
    one = lake.write("removed_beside_large", EMPTY)
    writes(one.database.url, setup=True)
    with bridge(one, moto, writes=True) as served, closing(client_of(served)) as catalog:
        catalog.create_table("main.large", DATA.schema).append(DATA)
        with closing(one.database.connect()) as con:
            for statement in [*GROW.split(";"), "ANALYZE"]:
                con.run(statement)
        properties = catalog.load_table("main.large").properties
        s3 = boto3.client("s3", endpoint_url=served.s3_endpoint)
        del rows_read[:]
        for place in ("write.data.path", "write.metadata.path"):
            bucket, _, key = properties[place].removeprefix("s3://").partition("/")
            s3.put_object(Bucket=bucket, Key=f"{key}/uploaded", Body=b"x")
            s3.delete_object(Bucket=bucket, Key=f"{key}/uploaded")
    assert len(rows_read) >= 4
    assert max(rows_read) < 300, rows_read


def test_a_table_that_has_grown_is_planned_as_a_large_one(lake, moto, monkeypatch):
    """Another writer adds files after the server has counted them."""
    plannings: list[Planning] = []
    run = CatalogConnection.run

    def recorded(self, sql, *arguments, **parameters):
        if sql == "COMMIT":
            plannings.append(self.planning)
        return run(self, sql, *arguments, **parameters)

    one = lake.write("a_table_grows", EMPTY)
    writes(one.database.url, setup=True)
    with bridge(one, moto, writes=True) as served, closing(client_of(served)) as catalog:
        catalog.create_table("main.large", DATA.schema).append(DATA)
        catalog.create_table("main.small", DATA.schema).append(DATA)
        with closing(one.database.connect()) as con:
            for statement in GROW.split(";"):
                con.run(statement)
        monkeypatch.setattr(CatalogConnection, "run", recorded)
        catalog.load_table("main.small").append(DATA)
        assert set(plannings) == {Planning.ONCE_BY_INDEX}
        del plannings[:]
        catalog.load_table("main.large").append(DATA)
        assert Planning.ONCE_BY_INDEX not in plannings


def test_a_table_that_takes_too_long_as_a_small_one_is_planned_as_a_large_one_then(
    lake, moto, monkeypatch
):
    """Another writer adds so many files that the plan for few of them takes too long."""
    read = history.read

    def slow_by_index(con, *arguments, **options):
        if con.planning is Planning.ONCE_BY_INDEX:
            raise ServiceUnavailable("PostgreSQL takes too long")
        return read(con, *arguments, **options)

    one = lake.write("a_table_has_grown", EMPTY)
    writes(one.database.url, setup=True)
    with bridge(one, moto, writes=True) as served, closing(client_of(served)) as catalog:
        catalog.create_table("main.large", DATA.schema).append(DATA)
        with closing(one.database.connect()) as con:
            for statement in GROW.split(";"):
                con.run(statement)
        monkeypatch.setattr(history, "read", slow_by_index)
        with pytest.raises(RESTError, match="PostgreSQL takes too long"):
            catalog.load_table("main.large").append(DATA)
        catalog.load_table("main.large").append(DATA)
        assert len(catalog.load_table("main.large").snapshots()) == 2
