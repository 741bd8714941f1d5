"""Spark and DuckDB alter a table through Iceberg; native DuckLake alters its twin."""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb as duckdb_client

from tests.support.writes.altered import INLINED, SETUP, altered, newest, reading

pytestmark = pytest.mark.versions("1.1", "1.0")

SPARK = [
    (
        "ALTER TABLE {t} ADD COLUMNS (n STRING COMMENT 'new', n2 BIGINT)",
        [
            "ALTER TABLE t ADD COLUMN n VARCHAR",
            "ALTER TABLE t ADD COLUMN n2 BIGINT",
            "COMMENT ON COLUMN t.n IS 'new'",
        ],
    ),
    ("ALTER TABLE {t} RENAME COLUMN s TO s2", ["ALTER TABLE t RENAME COLUMN s TO s2"]),
    ("ALTER TABLE {t} ALTER COLUMN i TYPE BIGINT", ["ALTER TABLE t ALTER i TYPE BIGINT"]),
    ("ALTER TABLE {t} DROP COLUMN n2", ["ALTER TABLE t DROP COLUMN n2"]),
    ("ALTER TABLE {t} ADD COLUMN st.c INT", ["ALTER TABLE t ADD COLUMN st.c INTEGER"]),
    ("ALTER TABLE {t} RENAME COLUMN st.b TO b2", ["ALTER TABLE t RENAME COLUMN st.b TO b2"]),
    (
        "ALTER TABLE {t} ADD PARTITION FIELD s2",
        ["ALTER TABLE t SET PARTITIONED BY (s2)"],
    ),
    (
        "ALTER TABLE {t} ADD PARTITION FIELD days(ts)",
        ["ALTER TABLE t SET PARTITIONED BY (s2, year(ts), month(ts), day(ts))"],
    ),
    (
        "ALTER TABLE {t} DROP PARTITION FIELD s2",
        ["ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts), day(ts))"],
    ),
    (
        "ALTER TABLE {t} SET TBLPROPERTIES ('comment' = 'x')",
        ["COMMENT ON TABLE t IS 'x'"],
    ),
]
REFUSED = [
    ("ALTER TABLE {t} ADD COLUMN z INT FIRST", "cannot move columns"),
    ("ALTER TABLE {t} ALTER COLUMN n AFTER id", "cannot move columns"),
    ("ALTER TABLE {t} ADD COLUMN ID INT", "letter case|already exists"),
]
ROW = "(7, 8, 'spark', 0.5, 2.5, named_struct('b2', 'x', 'c', 1), NULL, NULL, NULL, 'n')"


@pytest.mark.slow
@pytest.mark.spark
def test_spark(lake, moto):
    from polynya_local.clients import spark

    with altered(lake, moto, SETUP + INLINED) as both:
        client = spark.open(both.uri, "lake", both.s3_endpoint)
        name = f"{client.catalog}.main.t"

        def sql(text):
            return spark.session().sql(text.format(t=name))

        for text, native in SPARK:
            both.alter(lambda _, text=text: sql(text), *native)
            both.check_catalogs()
        for text, reason in REFUSED:
            before = newest(both.twins.lake)
            with pytest.raises(Exception, match=reason):
                sql(text)
            assert newest(both.twins.lake) == before
        both.work()
        sql("ALTER TABLE {t} WRITE ORDERED BY id DESC, bucket(4, n)")
        sql("INSERT INTO {t} (id, ts) VALUES (-1, NULL), (-2, TIMESTAMP_NTZ '2024-01-05 01:00:00')")
        assert len(sql("SELECT * FROM {t} WHERE id < 0").collect()) == 2
        with reading(both.twins.lake, both.s3_endpoint) as con:
            assert con.execute("SELECT id FROM lake.t WHERE id < 0 ORDER BY 1").fetchall() == [
                (-2,),
                (-1,),
            ]
        [values] = both.twins.lake.database.run(
            "SELECT json_agg(partition_value ORDER BY partition_key_index) FROM "
            "ducklake_file_partition_value GROUP BY data_file_id ORDER BY data_file_id DESC LIMIT 1"
        )
        assert values[0][:3] in (["2024", "1", "5"], [None, None, None])


@pytest.mark.slow
@pytest.mark.spark
def test_spark_replaces_a_table(lake, moto):
    """By one of other columns and partitions, and by an empty one; after a promotion and merges."""
    from polynya_local.clients import spark

    with altered(lake, moto, SETUP + INLINED) as both:
        client = spark.open(both.uri, "lake", both.s3_endpoint)
        name = f"{client.catalog}.main.t"

        def sql(text):
            return spark.session().sql(text.format(t=name))

        promotion = "ALTER TABLE {t} ALTER COLUMN i TYPE BIGINT"
        both.alter(lambda _: sql(promotion), "ALTER TABLE t ALTER i TYPE BIGINT")
        both.work()
        _check_a_lost_sort_column(both, sql)
        _check_replacements(both, sql)


def _check_a_lost_sort_column(both, sql):
    """Spark fails with any catalog: https://github.com/apache/iceberg/issues/16519"""
    sql("ALTER TABLE {t} WRITE ORDERED BY id DESC")
    before = newest(both.twins.lake)
    with pytest.raises(Exception, match="Cannot find source column for sort field"):
        sql("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT s FROM {t}")
    assert newest(both.twins.lake) == before
    sql("ALTER TABLE {t} WRITE UNORDERED")


def _check_replacements(both, sql):
    rows = sql("SELECT id FROM {t} WHERE id >= 0 ORDER BY id").collect()
    for text in ("CAST(i AS STRING) AS i", "ts, id"):
        with pytest.raises(Exception, match=r"cannot change from|cannot move"):
            sql(f"CREATE OR REPLACE TABLE {{t}} USING iceberg AS SELECT {text} FROM {{t}}")
    sql("ALTER TABLE {t} WRITE ORDERED BY id")
    replaced = "SELECT id, 'r' AS r FROM {t} WHERE id >= 0"
    sql(f"CREATE OR REPLACE TABLE {{t}} USING iceberg PARTITIONED BY (bucket(4, id)) AS {replaced}")
    assert [row.id for row in sql("SELECT id FROM {t} ORDER BY id").collect()] == [
        row.id for row in rows
    ]
    with reading(both.twins.lake, both.s3_endpoint) as con:
        for (id_,) in rows:
            found = con.execute(f"SELECT r FROM lake.t WHERE id = {id_}").fetchall()
            assert found == [("r",)] * sum(row.id == id_ for row in rows)
    sql("CREATE OR REPLACE TABLE {t} (id BIGINT, w DOUBLE) USING iceberg")
    assert sql("SELECT * FROM {t}").collect() == []
    with reading(both.twins.lake, both.s3_endpoint) as con:
        assert con.execute("FROM lake.t").fetchall() == []
        assert len(con.execute("FROM lake.t AT (VERSION => 2)").fetchall()) == 20


DUCKDB = [
    ("ALTER TABLE {t} ADD COLUMN n VARCHAR", ["ALTER TABLE t ADD COLUMN n VARCHAR"]),
    ("ALTER TABLE {t} RENAME COLUMN s TO s2", ["ALTER TABLE t RENAME COLUMN s TO s2"]),
    ("ALTER TABLE {t} ALTER i TYPE BIGINT", ["ALTER TABLE t ALTER i TYPE BIGINT"]),
    ("ALTER TABLE {t} DROP COLUMN d", ["ALTER TABLE t DROP COLUMN d"]),
]


def test_duckdb(lake, moto):
    with (
        altered(lake, moto, SETUP + INLINED) as both,
        closing(duckdb_client.open(both.uri, "lake", moto)) as con,
    ):
        for text, native in DUCKDB:
            both.alter(lambda _, text=text: con.query(text.format(t="ice.main.t")), *native)
            both.check_catalogs()
        both.check_rows()
        con.query("BEGIN")
        con.query("INSERT INTO ice.main.t (id, n) VALUES (-1, 'a')")
        con.query("ALTER TABLE ice.main.t ADD COLUMN later BIGINT")
        before = newest(both.twins.lake)
        con.query("COMMIT")
        assert newest(both.twins.lake) == before + 1
        with reading(both.twins.lake, both.s3_endpoint) as native:
            found = native.execute("SELECT n, later FROM lake.t WHERE id = -1").fetchall()
        assert found == [("a", None)]
