"""Iceberg's own writers of equality deletes, as Flink and Debezium use them, in a JVM.

The same deltas go to a table of Iceberg's in-memory catalog, whose rows Iceberg's own reader gives.
"""

import random
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.support.writes.java_deltas import Deltas, array
from tests.support.writes.limited_searches import LimitedSearches
from tests.support.writes.starts import DO_NOT_INLINE, INLINE

pytestmark = pytest.mark.spark

STEPS = 6
ROWS = 12
SPECS = {
    "no partitions": (None, ["id"]),
    "in partitions that the key has": (("p", "identity"), ["id", "p"]),
    "in partitions that the key lacks": (("p", "identity"), ["id"]),
    "in buckets": (("id", "bucket"), ["id", "s"]),
}
TEXTS = "a", "b", None


@pytest.fixture(scope="module")
def java(spark):
    from polynya_local.clients import spark as of_spark

    session = of_spark.session()
    iceberg = session._jvm.org.apache.iceberg
    catalog = iceberg.inmemory.InMemoryCatalog()
    catalog.initialize("oracle", {})
    catalog.createNamespace(iceberg.catalog.Namespace.of(array(session, ["main"])))
    return SimpleNamespace(
        session=session, iceberg=iceberg, oracle=catalog, catalog=spark.client.catalog
    )


@pytest.mark.slow(but=["in partitions that the key lacks"])
@pytest.mark.parametrize("spec", SPECS)
def test_deltas(twin, java, spec):
    partitioning, key = SPECS[spec]
    iceberg = java.iceberg
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id INTEGER, s VARCHAR, p INTEGER)")
    identifier = f"{java.catalog}.main.{twin.name}"
    ours = iceberg.spark.Spark3Util.loadIcebergTable(java.session._jsparkSession, identifier)
    if partitioning:
        name, transform = partitioning
        changed = ours.updateSpec()
        expressions = iceberg.expressions.Expressions
        term = expressions.bucket(name, 3) if transform == "bucket" else expressions.ref(name)
        changed.addField(term).commit()
        ours.refresh()
    oracle = java.oracle.createTable(
        iceberg.catalog.TableIdentifier.of(array(java.session, ["main", twin.name])),
        ours.schema(),
        ours.spec(),
    )
    tables = Deltas(java, ours, key), Deltas(java, oracle, key)
    randomly = random.Random(spec)
    for step in range(STEPS):
        if step == STEPS // 2:
            twin.con.execute(INLINE)
        rows, keys = [
            [
                (randomly.randrange(20), randomly.choice(TEXTS), randomly.randrange(3))
                for _ in range(count)
            ]
            for count in (ROWS, ROWS if step else 0)
        ]
        for table in tables:
            table.commit(rows, keys)
        expected = tables[1].rows()
        native = twin.con.execute(f"SELECT id, s, p FROM {twin.source}").fetchall()
        assert Counter(native) == expected, step
        assert tables[0].rows() == expected


@pytest.mark.slow
def test_java_sends_a_commit_again_until_its_keys_are_found(twin, java, monkeypatch, tmp_path):
    """It repeats an answer of 503 with `Retry-After`, up to five times."""
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id INTEGER, s VARCHAR, p INTEGER)")
    for number in range(5):
        twin.native(f"INSERT INTO {{t}} SELECT i, 'a', {number} FROM range(9) AS r(i)")
    identifier = f"{java.catalog}.main.{twin.name}"
    table = java.iceberg.spark.Spark3Util.loadIcebergTable(java.session._jsparkSession, identifier)
    limited = LimitedSearches(monkeypatch, tmp_path)
    delta = Deltas(java, table, ["id"])
    keys = [(1, None, None), (7, None, None)]
    twin.changes("DELETE FROM {t} WHERE id IN (1, 7)", lambda: delta.commit([], keys))
    assert (limited.plans, limited.searched) == (3, 5)
    twin.check()
