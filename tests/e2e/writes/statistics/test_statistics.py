"""Statistics of committed files: those that native DuckLake writes for the same rows and file."""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb as duckdb_client
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, judging, set_up_writes
from tests.support.writes.written_rows import PLAIN

CATALOG = '"__ducklake_metadata_lake".public'
OF = f"""
JOIN {CATALOG}.ducklake_column AS c USING (table_id, column_id)
JOIN {CATALOG}.ducklake_table AS t USING (table_id)
WHERE t.table_name = '{{table}}' ORDER BY column_id"""
BOUNDS = f"""
SELECT c.column_name, c.parent_column, s.value_count, s.null_count, s.min_value, s.max_value
FROM {CATALOG}.ducklake_file_column_stats AS s {OF}"""
SIZES = f"""
SELECT c.column_name, s.column_size_bytes, s.value_count, s.null_count
FROM {CATALOG}.ducklake_file_column_stats AS s {OF}"""
OF_COLUMNS = f"""
SELECT c.column_name, s.contains_null, s.min_value, s.max_value
FROM {CATALOG}.ducklake_table_column_stats AS s {OF}"""
OF_FILES = f"""
SELECT f.record_count, f.file_size_bytes, f.footer_size, f.row_id_start, s.next_row_id,
  s.record_count, s.file_size_bytes, f.path_is_relative
FROM {CATALOG}.ducklake_data_file AS f
JOIN {CATALOG}.ducklake_table_stats AS s USING (table_id)
JOIN {CATALOG}.ducklake_table AS t USING (table_id) WHERE t.table_name = '{{table}}'"""


@pytest.fixture(scope="module")
def written_lake(lake):
    return set_up_writes(lake.write("statistics", EMPTY))


@pytest.fixture(scope="module")
def clients(written_lake, moto):
    """DuckDB and PyIceberg."""
    with bridge(written_lake, moto, writes=True) as served:
        uri, s3_endpoint = served.catalog_uri, served.s3_endpoint
        pyiceberg = RestCatalog("c", uri=uri, warehouse="lake", **s3_properties(s3_endpoint))
        with closing(duckdb_client.open(uri, "lake", s3_endpoint)) as duckdb, closing(pyiceberg):
            yield duckdb, pyiceberg


@pytest.fixture(scope="module")
def judge(written_lake, clients, moto):
    """A lake with one table from each client, and its twins: inserted, and the file added."""
    duckdb, pyiceberg = clients
    with judging(written_lake, moto) as judge:
        duckdb.query(f"CREATE TABLE ice.main.duckdb AS {PLAIN}")
        data = judge.con.execute(PLAIN).to_arrow_table()
        pyiceberg.create_table("main.pyiceberg", data.schema).append(data)
        judge.con.execute("USE lake.main")
        judge.con.execute(f"CREATE TABLE inserted AS {PLAIN}")
        for name in CLIENTS:
            [[file]] = judge.query(f"SELECT data_file FROM ducklake_list_files('lake', '{name}')")
            judge.con.execute(f"CREATE TABLE {name}_added AS FROM {name} LIMIT 0")
            judge.con.execute(f"CALL ducklake_add_data_files('lake', '{name}_added', '{file}')")
        yield judge


CLIENTS = ("pyiceberg", "duckdb")
INEXACT = {"pyiceberg": set(), "duckdb": {"s", "bi"}}
"""Columns with long values: DuckDB cuts their bounds in the file, and says so."""


@pytest.mark.parametrize("client", CLIENTS)
def test_bounds_are_those_of_a_native_insert(judge, client):
    inserted, ours = (judge.query(BOUNDS.format(table=name)) for name in ("inserted", client))
    inexact = INEXACT[client]
    assert ours == [(*row[:-2], None, None) if row[0] in inexact else row for row in inserted]
    inserted, ours = (judge.query(OF_COLUMNS.format(table=name)) for name in ("inserted", client))
    # Where a bound is not certain, there is no row: see test_unknown_statistics.
    assert ours == [row for row in inserted if row[0] not in inexact]


@pytest.mark.parametrize("client", CLIENTS)
def test_sizes_are_those_of_ducklake_add_data_files(judge, client):
    wanted = judge.query(SIZES.format(table=f"{client}_added"))
    assert judge.query(SIZES.format(table=client)) == wanted and wanted
    [added] = judge.query(OF_FILES.format(table=f"{client}_added"))
    # DuckLake keeps the whole location of a file that was added.
    assert judge.query(OF_FILES.format(table=client)) == [(*added[:-1], True)]


FLOATS = "SELECT i AS id, CAST({value} AS {type}) AS f FROM range(300_000) AS r(i)"
WITH_NAN = "CASE i WHEN 150_000 THEN 'nan'::DOUBLE ELSE i END"
NAN = f"""
SELECT contains_nan, min_value, max_value FROM {CATALOG}.ducklake_file_column_stats
JOIN {CATALOG}.ducklake_table AS t USING (table_id)
WHERE t.table_name = '{{table}}' AND column_id = 2"""


@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("value", ["i", WITH_NAN, "NULL"])
def test_floats_of_duckdb_that_have_bounds_have_no_nan(judge, clients, value, type_):
    duckdb, pyiceberg = clients
    name = f"floats_{type_}_{len(value)}".lower()
    rows = FLOATS.format(value=value, type=type_)
    duckdb.query(f"CREATE TABLE ice.main.{name} AS {rows}")
    [(contains_nan, low, high)] = judge.query(NAN.format(table=name))
    has_bounds = value == "i"
    assert contains_nan is not has_bounds
    assert (low, high) == (("0.0", "299999.0") if has_bounds else (None, None))
    table = pyiceberg.load_table(f"main.{name}")
    [file] = [task.file for task in table.scan().plan_files()]
    assert (2 in file.upper_bounds, 2 in file.lower_bounds) == (has_bounds, has_bounds)
    for where in ("f > 299000", "f > 300000", "f = 'nan'", "f >= 'inf'", "f < 7"):
        expected = judge.query(f"SELECT count(*) FROM ({rows}) WHERE {where}")
        assert judge.query(f"SELECT count(*) FROM lake.main.{name} WHERE {where}") == expected
        counted = duckdb.query(f"SELECT count(*) AS n FROM ice.main.{name} WHERE {where}")
        assert [(n,) for n in counted["n"].to_pylist()] == expected, where
