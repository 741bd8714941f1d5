"""Spark with scans that the server plans: the rows of DuckLake, at all snapshots, with filters."""

from contextlib import closing

import pytest
from polynya.catalog.scans import ScanPlanner
from polynya_local.clients import native, spark
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.spark_jars import why_not

from tests.differential.test_rows import listed, spread
from tests.support import rest
from tests.support.servers import in_process

needs_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
pytestmark = [pytest.mark.spark, needs_spark]

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 3);
USE lake;
CREATE TABLE t(i INTEGER, name VARCHAR, d DATE, ts TIMESTAMP, x DECIMAL(9,2), f FLOAT);
ALTER TABLE t SET PARTITIONED BY (d);
-- @repeat 6
INSERT INTO t SELECT {{i}}0 + j, 'n{{i}}', '2024-01-0{{i}}', '2024-01-0{{i}} 10:00:00.5', {{i}}.25, 0.1 FROM range(10) r(j);
INSERT INTO t VALUES (1000, NULL, NULL, NULL, NULL, NULL), (1001, 'inlined', '2024-02-01', NULL, 1, 2);
DELETE FROM t WHERE i % 10 = 3;
ALTER TABLE t RENAME COLUMN name TO label;
INSERT INTO t SELECT 2000 + j, NULL, NULL, NULL, NULL, 'nan' FROM range(10) r(j);
"""  # noqa: E501
FILTERS = [
    "i = 25",
    "i IN (11, 42, 2003)",
    "i >= 60",
    "label = 'n3'",
    "label LIKE 'n%'",
    "label IS NULL",
    "d = DATE '2024-01-02'",
    "d > DATE '2024-01-04' AND i < 60",
    "d IS NULL OR i = 11",
    "ts >= TIMESTAMP '2024-01-05 00:00:00'",
    "x = 3.25",
    "NOT (x > 3.25)",
    "f > CAST(0.1 AS FLOAT)",
    "i = 99999",
]


@pytest.fixture(scope="module")
def opened(lake, moto):
    one = lake.write("planned_in_spark", SCRIPT)
    values = {"SCAN_PLANNING": "server", "CHUNK_FILES": "2"}
    with in_process.bridge(one, moto, delivery="object-lambda", settings=values) as bridge:
        where = (bridge.catalog_uri, bridge.warehouse)
        with (
            closing(native.open(one, moto)) as truth,
            closing(spark.open(*where, bridge.s3_endpoint)) as client,
        ):
            yield truth, client, rest.Rest(*where)
    spark.stop()


@pytest.fixture
def planned(monkeypatch):
    """The requests to plan a scan."""
    found = []
    plan = ScanPlanner.plan_table_scan

    def recorded(self, namespace, table, request, **more):
        found.append(request)
        return plan(self, namespace, table, request, **more)

    monkeypatch.setattr(ScanPlanner, "plan_table_scan", recorded)
    return found


def test_rows_at_each_snapshot(opened, planned):
    truth, client, catalog = opened
    wanted = [None, *spread(listed(catalog.load_table("main", "t")), 5)]
    for snapshot_id in wanted:
        at = ("main", "t", snapshot_id)
        rows = from_arrow(client.rows(*at), truth.columns(*at))
        assert not difference(truth.canonical(*at), rows), snapshot_id
    assert len(planned) >= len(wanted)


@pytest.mark.slow
def test_filters(opened, planned):
    truth, client, _ = opened
    for condition in FILTERS:
        [[expected]] = truth.query(
            f"SELECT count(*) FROM lake.t WHERE {condition.replace('FLOAT', 'REAL')}"
        )
        sql = f"SELECT i FROM {client.catalog}.main.t WHERE {condition}"
        found = spark.session().sql(sql).collect()
        assert len(found) == expected, condition
    assert len(planned) >= len(FILTERS) - 2  # an impossible filter is not asked
    assert any(request.filter not in (None, True) for request in planned)
