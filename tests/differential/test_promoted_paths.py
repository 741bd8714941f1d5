"""Filters on a promoted column whose values are in the path of added Hive files.

Its values are in the partition tuples of manifests: those of delete files are from before the
promotion, and snapshots after it list them too.
"""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach

from tests.support.servers.in_process import bridge

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
USE lake;
CREATE TABLE t(id INTEGER, p INTEGER);
COPY (SELECT i::INTEGER AS id, (i % 2 * 300)::INTEGER AS p FROM range(8) r(i))
  TO '{{DATA_PATH}}_ext/t' (FORMAT parquet, PARTITION_BY (p));
CALL ducklake_add_data_files('lake', 't', '{{DATA_PATH}}_ext/t/**/*.parquet',
                             hive_partitioning => true);
DELETE FROM t WHERE id IN (1, 2);
ALTER TABLE t ALTER COLUMN p TYPE BIGINT;
INSERT INTO t VALUES (10, 5), (11, NULL);
INSERT INTO t VALUES (12, 300);
DELETE FROM t WHERE id IN (3, 4);
"""
CONDITIONS = ("p = 0", "p = 300", "p < 300", "p >= 300", "p IS NULL")


@pytest.fixture(scope="module")
def served(lake, moto):
    one = lake.write("promoted_paths", SCRIPT)
    with bridge(one, moto) as found:
        yield one, found


@pytest.fixture(scope="module")
def expected(served, moto):
    """The ids of the rows, by snapshot and condition."""
    with connect(LAKE, moto) as con:
        attach(con, served[0])
        begun = "SELECT snapshot_id FROM ducklake_snapshots('lake') WHERE snapshot_id > 1"
        found = {}
        for (at,) in con.execute(begun).fetchall():
            # Filtered in memory: DuckLake itself ends with an internal error.
            con.execute(f"CREATE OR REPLACE TABLE memory.t AS FROM lake.t AT (VERSION => {at})")
            for condition in CONDITIONS:
                sql = f"SELECT id FROM memory.t WHERE {condition} ORDER BY id"
                found[at, condition] = con.execute(sql).fetchall()
        return found


def listed(served):
    with closing(catalog(served)) as found:
        return [one.snapshot_id for one in found.load_table("main.t").snapshots()]


def catalog(served):
    from pyiceberg.catalog.rest import RestCatalog

    properties = pyiceberg.s3_properties(served[1].s3_endpoint)
    return RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake", **properties)


def check(expected, snapshots, ids):
    wrong = {
        (at, condition): (found, rows)
        for (at, condition), rows in expected.items()
        if at in snapshots and (found := sorted(ids(at, condition))) != [id_ for (id_,) in rows]
    }
    assert wrong == {}


def test_pyiceberg(served, expected):
    with closing(catalog(served)) as found:
        table = found.load_table("main.t")
        check(
            expected,
            listed(served),
            lambda at, condition: (
                table.scan(condition, snapshot_id=at).to_arrow()["id"].to_pylist()
            ),
        )


def test_duckdb(served, expected):
    with closing(duckdb.open(*where(served))) as client:
        check(
            expected,
            listed(served),
            lambda at, condition: client.query(
                f"SELECT id FROM ice.main.t AT (VERSION => {at}) WHERE {condition}"
            )["id"].to_pylist(),
        )


@pytest.mark.spark
@pytest.mark.slow
def test_spark(served, expected):
    from polynya_local.clients import spark

    client = spark.open(*where(served))
    check(
        expected,
        listed(served),
        lambda at, condition: (
            spark.session()
            .sql(f"SELECT id FROM {client.catalog}.main.t VERSION AS OF {at} WHERE {condition}")
            .toArrow()["id"]
            .to_pylist()
        ),
    )


def where(served):
    return served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
