"""Spark creates, renames and drops namespaces and tables; native DuckLake does it in a twin."""

import pytest

SCRIPT = """
CREATE TABLE t AS SELECT range::INTEGER AS a FROM range(20);
CREATE TABLE dropped AS SELECT range::INTEGER AS a FROM range(20);
"""
# Spark's statement, and DuckDB's.
STATEMENTS = [
    ("CREATE NAMESPACE {c}.sales", "CREATE SCHEMA sales"),
    # Spark sends the namespace of the destination with the name of its own catalog before it.
    ("ALTER TABLE {c}.main.t RENAME TO {c}.main.t2", "ALTER TABLE t RENAME TO t2"),
    ("ALTER TABLE {c}.main.t2 RENAME TO main.t3", "ALTER TABLE t2 RENAME TO t3"),
    ("DROP TABLE {c}.main.dropped", "DROP TABLE dropped"),
    ("DROP NAMESPACE {c}.sales", "DROP SCHEMA sales"),
]
REFUSED = [
    ("CREATE VIEW {c}.main.v AS SELECT 1 AS a", "SQL for spark"),
    ("CREATE NAMESPACE {c}.a.b", "has 2 levels|Namespace does not exist: a"),
    ("DROP NAMESPACE {c}.main", "not empty"),
    ("ALTER TABLE {c}.main.t3 RENAME TO {c}.absent.t", "Namespace does not exist"),
]


@pytest.mark.versions("1.0")
@pytest.mark.slow
@pytest.mark.spark
def test_spark(pair, served):
    from polynya_local.clients import spark

    client = spark.open(served.catalog_uri, "lake", served.s3_endpoint)
    for text, native in STATEMENTS:
        # Spark adds the property `owner`, which is a tag that native lakes do not have.
        spark.session().sql(text.format(c=client.catalog))
        pair.native(native)
        pair.check(ignoring_our_tags=True)
    for text, message in REFUSED:
        with pytest.raises(Exception, match=message):
            spark.session().sql(text.format(c=client.catalog))
        pair.check(ignoring_our_tags=True)
    rows = spark.session().sql(f"SELECT sum(a) FROM {client.catalog}.main.t3").collect()
    assert rows[0][0] == 190
