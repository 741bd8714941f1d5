"""Spark writes to tables whose files lack a column with a default, and reads them as with it.

The files that clients read have other locations and sizes than those of the lake, whose rows must
become the same as in the twin. The tables are of format version 2, as nothing else needs version 3.
"""

import pyarrow as pa
import pytest

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


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("rows", LAKE))
    settings = {"CLIENTS": "all", "CHUNK_FILES": "2"}
    with bridge(one, moto, writes=True, delivery="object-lambda", settings=settings) as of_all:
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


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_pyiceberg_reads_and_writes_version_2(twin, beginning):
    twin.native(DO_NOT_INLINE, *BEGINNINGS[beginning])
    table = twin.table()
    assert table.format_version == 2
    assert not [field for field in table.schema().fields if field.initial_default is not None]
    row = dict.fromkeys(table.schema().column_names) | {"id": 90, "p": 1}
    values = ", ".join("NULL" if value is None else str(value) for value in row.values())
    new = pa.Table.from_pylist([row], schema=table.schema().as_arrow())
    twin.changes(f"INSERT INTO {{t}} VALUES ({values})", lambda: table.append(new))
    twin.check()
    delete = "id IN (1, 4)"
    twin.changes(f"DELETE FROM {{t}} WHERE {delete}", lambda: twin.table().delete(delete))
    twin.check()


def test_a_table_with_an_added_file_keeps_version_3(twin):
    """Clients get such a file as it is, and need the default."""
    twin.native(DO_NOT_INLINE, *BEGINNINGS["files"])
    assert twin.table().format_version == 2
    path = f"{twin.lake.data_path}/added/{twin.name}.parquet"
    twin.con.execute(f"COPY (SELECT 80::BIGINT AS id, 'added' AS s, 1 AS p) TO '{path}'")
    twin.con.execute(
        f"CALL ducklake_add_data_files('lake', '{twin.name}', '{path}', allow_missing => true)"
    )
    twin.con.execute(f"INSERT INTO {twin.memory} VALUES (80, 'added', 1, 'DE')")
    twin.past[twin.newest()] = twin._rows(twin.con, twin.memory)
    assert twin.table().format_version == 3
    twin.check()
