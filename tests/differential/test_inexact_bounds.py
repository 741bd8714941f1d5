"""Bounds of DuckLake 1.1 that are no values: cut texts, and wider than what the files hold.

DuckDB writes exact bounds. Here they are made wider, and marked as such (`min_is_exact`,
`max_is_exact`), in a lake that has been migrated to 1.1. Rows must stay the same for all who take
bounds for bounds, and those who take them for values must not see them.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.native import Lake
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.serving import Bridge
from polynya_pipeline.verify import catalog
from polynya_pipeline.verify.statistics import FileRange, check_range
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo
from pyiceberg.expressions.visitors import _StrictMetricsEvaluator, bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.table import Table

from tests.differential.test_filters import counted, predicates, sql_predicates
from tests.support.catalog_versions import catalog_of, to_1_1
from tests.support.servers import in_process

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER, n BIGINT, x DOUBLE, m DECIMAL(9, 2), d DATE, ts TIMESTAMPTZ, s VARCHAR,
  b BLOB, p VARCHAR);
ALTER TABLE t SET PARTITIONED BY (p);
-- @repeat 3
INSERT INTO t SELECT j, CASE WHEN j % 4 > 0 THEN j END, j / 4, j, DATE '2024-01-01' + j::INTEGER, TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_hours(j), 'b' || j, encode('b' || j), 'p{{i}}' FROM range({{i}}0, {{i}}5) AS r(j);
INSERT INTO t SELECT 7, 7, 7, 7, '2024-05-05', '2024-05-05 00:00:00+00', repeat('b', 300) || j, encode(repeat('b', 300) || j), 'long' FROM range(3) AS r(j);
CREATE TABLE exact(i INTEGER, n BIGINT, s VARCHAR);
INSERT INTO exact VALUES (1, 2, 'a'), (3, 4, 'b');
CREATE TABLE hive(i INTEGER, k INTEGER);
COPY (SELECT i::INTEGER AS i, i % 2 AS k FROM range(10) AS r(i)) TO '{{DATA_PATH}}_ext/hive'
  (FORMAT parquet, PARTITION_BY (k));
CALL ducklake_add_data_files('lake', 'hive', '{{DATA_PATH}}_ext/hive/**/*.parquet');
"""  # noqa: E501

WIDER = {
    "i": ("-100", "1000"),
    "n": ("-100", "1000"),
    "x": ("-100.5", "1000.0"),
    "m": ("-100.00", "1000.00"),
    "d": ("2000-01-01", "2030-12-31"),
    "ts": ("2000-01-01 00:00:00+00", "2030-12-31 00:00:00+00"),
    "s": ("b", "c"),
    "b": ("62", "63"),
    "p": ("l", "q"),
}
"""By column, wider bounds. Those of texts are shorter than the texts."""
CUT = {"s", "b", "p"}
"""Clients know that these may be cut."""

WIDEN = """
UPDATE ducklake_file_column_stats AS s SET min_value = :low, max_value = :high,
  min_is_exact = false, max_is_exact = false
FROM ducklake_column AS c JOIN ducklake_table AS t USING (table_id)
WHERE c.table_id = s.table_id AND c.column_id = s.column_id AND t.table_name = 't'
  AND c.column_name = :name"""
MARK_ALL = """
UPDATE ducklake_file_column_stats SET min_is_exact = false, max_is_exact = false"""
MARK_EXACT = """
UPDATE ducklake_file_column_stats AS s
SET min_is_exact = CASE column_id WHEN 1 THEN true ELSE false END,
  max_is_exact = CASE column_id WHEN 1 THEN NULL ELSE column_id = 2 END
FROM ducklake_table AS t WHERE t.table_id = s.table_id AND t.table_name = 'exact'"""


class Served(NamedTuple):
    lake: Lake
    bridge: Bridge
    rows: pa.Table
    """Read without the statistics."""
    tables: dict[str, Table]
    """By who plans: the client or the server."""


@pytest.fixture(scope="module")
def served(lake, moto) -> Iterator[Served]:
    one = lake.write("inexact", SCRIPT)
    to_1_1(one)
    with closing(catalog_of(one)) as con:
        con.run(MARK_ALL)
        con.run(MARK_EXACT)
        for name, (low, high) in WIDER.items():
            con.run(WIDEN, name=name, low=low, high=high)
            assert con.row_count == 4
    settings = {"CHUNK_FILES": "2", "SCAN_PLANNING": "server"}
    with in_process.bridge(one, moto, delivery="object-lambda", settings=settings) as bridge:
        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        with closing(pyiceberg.open(*where)) as server, closing(pyiceberg.open(*where)) as client:
            client._catalog.properties["scan-planning-mode"] = "client"
            tables = {
                "server": server._catalog.load_table(("main", "t")),
                "client": client._catalog.load_table(("main", "t")),
            }
            rows = tables["client"].scan(AlwaysTrue()).to_arrow()
            assert rows.num_rows == 18
            yield Served(one, bridge, rows, tables)


def files(table: Table) -> list:
    return [task.file for task in table.scan().plan_files()]


def names(table: Table, bounds: dict) -> set[str]:
    return {table.schema().find_column_name(field_id) for field_id in bounds}


def test_only_bounds_that_clients_know_to_be_cut_are_published(served):
    table = served.tables["client"]
    for file in files(table):
        assert names(table, file.lower_bounds) == names(table, file.upper_bounds) == CUT


def test_other_bounds_are_published(served):
    """True and, after a migration, NULL: the column `i`; one of two: `n`."""
    table = served.tables["client"].catalog.load_table(("main", "exact"))
    [file] = files(table)
    assert names(table, file.lower_bounds) == {"i", "s"}
    assert names(table, file.upper_bounds) == {"i", "n", "s"}


def matching(rows: pa.Table, table: Table, predicate: BooleanExpression) -> pa.Table:
    bound = bind(table.schema(), predicate, case_sensitive=True)
    return rows.filter(expression_to_pyarrow(bound))


@pytest.mark.parametrize("planned_by", ["client", pytest.param("server", marks=pytest.mark.slow)])
def test_filters_find_every_row(planned_by, served):
    table, asked = served.tables[planned_by], 0
    for column, predicate in predicates(table, served.rows, 2):
        expected = sorted(map(str, matching(served.rows, table, predicate)["s"].to_pylist()))
        found = table.scan(predicate, selected_fields=("s",)).to_arrow()["s"].to_pylist()
        assert sorted(map(str, found)) == expected, (column, predicate)
        asked += 1
    assert asked > 50


def test_duckdb_finds_every_row(served):
    where = (served.bridge.catalog_uri, served.bridge.warehouse, served.bridge.s3_endpoint)
    with closing(duckdb.open(*where)) as client:
        client.query("CREATE TEMP TABLE whole AS FROM ice.main.t")
        types = client.query("SELECT column_name, column_type FROM (DESCRIBE whole)").to_pylist()
        asked = [
            (row["column_name"], condition)
            for row in types
            for condition in sql_predicates(client, row["column_name"], row["column_type"], 2)
        ]
        found, expected = (
            client.query(counted(source, asked)).to_pylist() for source in ("ice.main.t", "whole")
        )
        assert found == expected and len(asked) > 50
        extremes = ", ".join(f"min({name}), max({name})" for name in WIDER)
        found, expected = (
            client.query(f"SELECT {extremes} FROM {source}").to_pylist()
            for source in ("ice.main.t", "whole")
        )
        assert found == expected


@pytest.mark.slow
def test_a_file_that_a_filter_selects_as_a_whole_has_no_other_row(served):
    """A client's delete ends such a file without reading it."""
    table, seen = served.tables["client"], 0
    for column, predicate in predicates(table, served.rows, 2):
        evaluator = _StrictMetricsEvaluator(table.schema(), predicate)
        for file in filter(evaluator.eval, files(table)):
            rows = matching(served.rows, table, EqualTo("p", file.partition[0]))
            assert matching(rows, table, predicate).num_rows == rows.num_rows, (column, predicate)
            seen += 1
    assert seen


def test_equal_bounds_are_the_value_of_a_column_in_the_path(served):
    table = served.tables["client"].catalog.load_table(("main", "hive"))
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["i"], row["k"]) for row in rows) == [(i, i % 2) for i in range(10)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("mode", ["truncate(16)", "full"])
def test_spark_does_not_answer_min_and_max_with_bounds(mode, served):
    from polynya_local.clients import spark

    with closing(catalog_of(served.lake)) as con:
        con.run(SET_MODE, mode=mode)
    where = (served.bridge.catalog_uri, served.bridge.warehouse, served.bridge.s3_endpoint)
    with closing(spark.open(*where)) as client:
        source = f"{client.catalog}.main.t"
        sql = f"SELECT min({{0}}) AS least, max({{0}}) AS most FROM {source}"
        # One by one: a column without bounds keeps Spark from it for all columns of a query.
        found = {
            name: spark.session().sql(sql.format(name)).toArrow().to_pylist() for name in WIDER
        }
        shown = spark.session().sql(f"SHOW TBLPROPERTIES {source}").collect()
        assert (MODE, mode) in {(row["key"], row["value"]) for row in shown}
    for name in WIDER:
        least, most = pc.min_max(served.rows[name]).as_py().values()
        assert found[name] == [{"least": least, "most": most}], name


MODE = "write.metadata.metrics.default"
SET_MODE = f"""
WITH gone AS (DELETE FROM ducklake_tag WHERE key = 'polynya.property.{MODE}')
INSERT INTO ducklake_tag (object_id, begin_snapshot, key, value)
SELECT table_id, begin_snapshot, 'polynya.property.{MODE}', :mode FROM ducklake_table
WHERE table_name = 't'"""


def problems(lake: Lake) -> set[str]:
    """What `polynya verify` says of the statistics of the table `t`."""
    with closing(catalog_of(lake)) as con:
        _, fragments = catalog.lake(con)
        [[id_]] = con.run("SELECT table_id FROM ducklake_table WHERE table_name = 't'")
    range_ = FileRange(lake.database.url, lake.metadata_schema, id_, 0, 1000, dict(fragments))
    return {check for check, _ in check_range(range_)}


def test_verify_takes_them_for_bounds(served):
    """Of the table's statistics, too, which DuckDB's INSERT has made of the values."""
    assert problems(served.lake) == set()
    with closing(catalog_of(served.lake)) as con:
        con.run("UPDATE ducklake_file_column_stats SET min_is_exact = NULL, max_is_exact = NULL")
        assert problems(served.lake) == {"partition", "table-min", "table-max"}
        con.run(MARK_ALL)
