"""Clients read and write tables over whose files they fail without the setting CLIENTS.

Hidden and dropped columns of a type that a client does not know, unsigned integers, and times in
milliseconds and UUIDs, whose statistics Spark misreads. The rows are DuckLake's, natively.
"""

from contextlib import closing
from hashlib import md5
from uuid import UUID

import pytest
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE milliseconds(id INTEGER, t TIMESTAMP_MS, st STRUCT(t TIMESTAMP_MS));
INSERT INTO milliseconds SELECT i, d, {'t': d} FROM (
  SELECT i, TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR AS d FROM range(100) AS r(i));
INSERT INTO milliseconds SELECT 1000 + i, d, {'t': d} FROM (
  SELECT i, TIMESTAMP '2026-01-01' + INTERVAL (i % 3) HOUR AS d FROM range(100) AS r(i));
CREATE TABLE unsigned(id INTEGER, a UTINYINT, b USMALLINT, c UINTEGER, d UINTEGER[]);
INSERT INTO unsigned
  SELECT i, 155 + i, 65436 + i, 2147483548 + i, [i, NULL] FROM range(100) AS r(i);
INSERT INTO unsigned VALUES (1000, NULL, NULL, NULL, NULL);
CREATE TABLE by_rows(id INTEGER, a UTINYINT, t TIMESTAMP_MS);
INSERT INTO by_rows
  SELECT i, i, TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR FROM range(100) AS r(i);
CREATE TABLE hidden(id INTEGER, v VARIANT, p INTERVAL, g GEOMETRY, n INTEGER);
INSERT INTO hidden
  SELECT i, i, INTERVAL (i) HOUR, 'POINT (1 2)'::GEOMETRY, i % 9 FROM range(100) AS r(i);
CREATE TABLE dropped(id INTEGER, v VARIANT);
INSERT INTO dropped SELECT i, i FROM range(100) AS r(i);
ALTER TABLE dropped DROP COLUMN v;
INSERT INTO dropped SELECT 1000 + i FROM range(100) AS r(i);
CREATE TABLE uuids(id INTEGER, u UUID);
INSERT INTO uuids SELECT i, md5(i::VARCHAR)::UUID
  FROM range(100) AS r(i);
CALL lake.set_option('data_inlining_row_limit', 50);
INSERT INTO uuids SELECT 1000 + i, md5('i' || i)::UUID
  FROM range(10) AS r(i);
CALL lake.set_option('data_inlining_row_limit', 0);
CREATE TABLE by_uuid(id INTEGER, u UUID);
ALTER TABLE by_uuid SET PARTITIONED BY (u);
INSERT INTO by_uuid SELECT i, md5((i % 10)::VARCHAR)::UUID FROM range(40) AS r(i);
CREATE TABLE by_bucket(id INTEGER, u UUID);
ALTER TABLE by_bucket SET PARTITIONED BY (bucket(4, u));
INSERT INTO by_bucket SELECT i, md5((i % 10)::VARCHAR)::UUID FROM range(40) AS r(i);
"""
HIDDEN = {"hidden": ("v", "p", "g")}
TABLES = ("milliseconds", "unsigned", "by_rows", "hidden", "dropped", "uuids")
TABLES += ("by_uuid", "by_bucket")
OF_UUIDS = [md5(text.encode()).hexdigest() for text in ("5", "7", "i1", "i2", "i3")]
UUIDS = [f"= '{UUID(digits)}'" for digits in OF_UUIDS]
UUIDS += ["> '7fffffff-ffff-ffff-ffff-ffffffffffff'", "< '80000000-0000-0000-0000-000000000000'"]
CONDITIONS = [
    ("milliseconds", "t = TIMESTAMP '2026-01-01 02:00:00'"),
    ("milliseconds", "t > TIMESTAMP '2026-01-04 00:00:00'"),
    ("milliseconds", "st.t IN (TIMESTAMP '2026-01-01 02:00:00')"),
    ("unsigned", "a >= 250"),
    ("unsigned", "b = 65535"),
    ("unsigned", "c > 2147483600"),
    ("unsigned", "c IS NULL"),
    ("by_rows", "a = 7"),
    ("by_rows", "t < TIMESTAMP '2026-01-01 07:00:00'"),
    ("hidden", "n = 5"),
    *(("uuids", f"u {how}") for how in UUIDS),
    *(
        (table, f"u {how}")
        for table in ("by_uuid", "by_bucket")
        for how in (*UUIDS[:2], *UUIDS[-2:])
    ),
]
DELETES = [
    # Spark would write their other rows in other types, which is refused: merge-on-read.
    ("milliseconds", "t = TIMESTAMP '2026-01-01 02:00:00' AND id > 1050"),
    ("milliseconds", "t >= TIMESTAMP '2026-01-05 00:00:00'"),
    ("by_rows", "a BETWEEN 7 AND 20"),
    ("unsigned", "b > 65500"),
    ("hidden", "n = 5"),
]
MERGE_ON_READ = """
INSERT INTO ducklake_tag
SELECT table_id, begin_snapshot, NULL, 'polynya.property.write.delete.mode', 'merge-on-read'
FROM ducklake_table"""


@pytest.fixture(scope="module")
def one(lake):
    one = set_up_writes(lake.write("types_in_files", SCRIPT))
    one.database.run(MERGE_ON_READ)
    return one


@pytest.fixture(scope="module")
def served(one, moto):
    settings = {"CLIENTS": "all"}
    with bridge(one, moto, writes=True, delivery="object-lambda", settings=settings) as of_all:
        yield of_all


@pytest.fixture(scope="module")
def sql(served):
    from polynya_local.clients import spark

    client = spark.Spark(served.catalog_uri, served.warehouse, served.s3_endpoint)

    def run(text: str, table: str):
        # A TIMESTAMP without a zone, which is what DuckDB calls TIMESTAMP.
        text = text.replace("TIMESTAMP '", "TIMESTAMP_NTZ '")
        return spark.session().sql(text.format(t=f"{client.catalog}.main.{table}"))

    return run


@pytest.fixture
def truth(one, moto):
    with closing(native.open(one, moto)) as judge:
        yield judge


def check(truth, table: str, rows) -> None:
    hidden = HIDDEN.get(table, ())
    expected = truth.canonical("main", table, hidden=hidden)
    assert difference(expected, from_arrow(rows, truth.columns("main", table), hidden)) == []


@pytest.mark.parametrize("table", TABLES)
def test_pyiceberg_reads_all_rows(served, truth, table):
    where = (served.catalog_uri, served.warehouse, served.s3_endpoint)
    with closing(pyiceberg.open(*where)) as client:
        check(truth, table, client.rows("main", table))


@pytest.mark.spark
def test_spark_reads_finds_and_deletes_rows(sql, truth):
    for table in TABLES:
        check(truth, table, sql("SELECT * FROM {t}", table).toArrow())
    count = "SELECT count(*), sum(id) FROM {t} WHERE "
    for table, where in CONDITIONS:
        expected = truth.query((count + where).format(t=f"lake.main.{table}"))
        assert [(*row,) for row in sql(count + where, table).collect()] == expected, where
        assert expected[0][0], where
    for table, where in DELETES:
        ids = f"SELECT id FROM lake.main.{table} "
        expected = truth.query(f"{ids} WHERE NOT ({where}) OR ({where}) IS NULL ORDER BY 1")
        sql("DELETE FROM {t} WHERE " + where, table).collect()
        assert truth.query(f"{ids} ORDER BY 1") == expected, where
        check(truth, table, sql("SELECT * FROM {t}", table).toArrow())
