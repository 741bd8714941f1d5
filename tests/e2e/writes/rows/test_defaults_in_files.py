"""Spark writes to tables whose files lack a column with a default, and reads them as with it.

The files that clients read have other locations and sizes than those of the lake, whose rows must
become the same as in the twin. PyIceberg writes no table of format version 3, as these are.
"""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb

from tests.support.servers.in_process import bridge
from tests.support.writes.spark_sql import REWRITE_DATA_FILES, SparkSQL, set_modes
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE, NATIVE, STARTS
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

DEFAULT = "ALTER TABLE {t} ADD COLUMN country VARCHAR DEFAULT 'DE'"
NUMBER = "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 7"
BEGINNINGS = {
    "files": (*STARTS["files"], DEFAULT),
    "both deletes": (*STARTS["both deletes"], DO_NOT_INLINE, DEFAULT, INLINE),
    "deletes before and after": (
        *STARTS["delete files"],
        DEFAULT,
        "DELETE FROM {t} WHERE id = 4",
        NUMBER,
        "INSERT INTO {t} VALUES (10, 'new', 1, 'FR', 8)",
        "DELETE FROM {t} WHERE id = 5",
    ),
    "partitions": (*STARTS["partitions"], DEFAULT, NUMBER),
    "promoted": (*STARTS["files"], NUMBER, "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT"),
    "merged": (*STARTS["merged and flushed"], DEFAULT),
}
BY_DEFAULT = [
    # in Spark, and in the twin if it is another statement there
    ("DELETE FROM {t} WHERE id IN (1, 6)", None),
    ("UPDATE {t} SET s = 'new' WHERE id IN (3, 9)", None),
    (
        "MERGE INTO {t} AS t USING (SELECT * FROM VALUES (8, 'm') AS v(id, s)) AS n "
        "ON t.id = n.id WHEN MATCHED THEN UPDATE SET s = n.s",
        "UPDATE {t} SET s = 'm' WHERE id = 8",
    ),
]

ROWS = (
    "SELECT i, 's' || i, ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID "
    "FROM range({}, {}) AS r(i)"
)
DELIVERIES = ["object-lambda", pytest.param("materialize", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=DELIVERIES)
def served(request, lake, moto):
    one = set_up_writes(lake.write("rows", LAKE))
    settings = {"CLIENTS": "all", "CHUNK_FILES": "2", "COPY_DATA_FILES": "yes"}
    with bridge(one, moto, writes=True, delivery=request.param, settings=settings) as of_all:
        yield one, of_all, moto


@pytest.fixture
def twin(served):
    with opened(*served) as twin:
        yield twin


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize(
    "beginning", [pytest.param(name, marks=pytest.mark.slow) for name in BEGINNINGS]
)
def test_spark_changes_rows(twin, served, beginning, mode):
    spark = SparkSQL(served[1])
    twin.native(DO_NOT_INLINE, *BEGINNINGS[beginning])
    set_modes(twin, mode)
    for sql, other in BY_DEFAULT:
        twin.changes(other or sql, lambda sql=sql: spark(twin, sql).collect())
        twin.check()
    twin.changes("SELECT 1", lambda: spark(twin, REWRITE_DATA_FILES).collect())
    twin.check()
    twin.native(*NATIVE)
    twin.check()


@pytest.mark.spark
def test_spark_finds_rows_by_the_default_and_deletes_them(twin, served):
    spark = SparkSQL(served[1])
    twin.native(DO_NOT_INLINE, *BEGINNINGS["deletes before and after"])
    set_modes(twin, "merge-on-read")
    for where in ("country = 'DE'", "country <> 'DE'", "n > 6", "n IN (8)", "country IS NULL"):
        count = f"SELECT count(*) FROM {{t}} WHERE {where}"
        expected = twin.con.execute(count.format(t=twin.memory)).fetchone()
        assert tuple(spark(twin, count).first()) == expected, where
    delete = "DELETE FROM {t} WHERE country = 'DE' AND id > 5"
    twin.changes(delete, lambda: spark(twin, delete).collect())
    twin.check()


@pytest.mark.slow
@pytest.mark.parametrize("client", ["PyIceberg", "DuckDB"])
def test_others_delete_rows_of_files_that_are_changed_for_clients(twin, served, client):
    """UUIDs have no statistics there, in a table of format version 2."""
    twin.native(
        DO_NOT_INLINE,
        "CREATE TABLE {t} (id BIGINT, s VARCHAR, u UUID)",
        f"INSERT INTO {{t}} {ROWS.format(0, 9)}",
        f"INSERT INTO {{t}} {ROWS.format(9, 12)}",
    )
    before = {task.file.file_path for task in twin.table().scan().plan_files()}
    assert len(before) == 2 and all("/data-file-" in path for path in before)
    delete = "DELETE FROM {t} WHERE id IN (3, 10)"

    def by_client():
        if client == "PyIceberg":
            twin.table().delete("id IN (3, 10)")
            return
        where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
        with closing(duckdb.open(*where)) as con:
            con.query(delete.format(t=f"ice.main.{twin.name}"))

    twin.changes(delete, by_client)
    twin.check()
    twin.native(
        "INSERT INTO {t} VALUES (20, 'new', NULL)",
        "CALL ducklake_merge_adjacent_files('lake', '{name}')",
    )
    twin.check()
