"""Trino writes: after each statement native DuckLake has the rows that a twin in memory has.

`make trino` runs this file. Its name keeps it out of CI, which has no Trino.
"""

from collections import Counter
from contextlib import closing, suppress

import pytest
from pyiceberg.exceptions import ServiceUnavailableError

from tests.engines.trino.client import Failed, Trino
from tests.engines.trino.server import trino
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, LAKE, NATIVE, STARTS
from tests.support.writes.writable import judging, set_up_writes

ATTEMPTS = 5
MERGE = """
MERGE INTO {t} AS t USING (VALUES (BIGINT '4', 'new'), (BIGINT '300', 'new')) AS n(id, s)
ON t.id = n.id WHEN MATCHED THEN UPDATE SET s = n.s
WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (n.id, n.s, NULL)"""
MERGED = """
DELETE FROM {t} WHERE id = 300;
INSERT INTO {t} (id, s, p) VALUES (300, 'new', NULL);
UPDATE {t} SET s = 'new' WHERE id = 4"""
# After `optimize` Trino sends statistics in a commit of their own.
ROWS = [
    # in Trino, and in the twin if it is another statement there
    ("INSERT INTO {t} (id, s, p) VALUES (20, NULL, 1), (21, 'u', NULL)", None),
    ("DELETE FROM {t} WHERE id IN (1, 6)", None),
    ("UPDATE {t} SET s = 'new' WHERE id IN (3, 9)", None),
    (MERGE, MERGED),
    ("DELETE FROM {t} WHERE p = 1", None),
    ("ALTER TABLE {t} EXECUTE optimize", "SELECT 1"),
]

LIFE = [
    (
        "CREATE TABLE {t} (id bigint, s varchar, p integer) WITH (partitioning = ARRAY['p'])",
        "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER)",
    ),
    ("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2), (8, NULL, NULL)", None),
    ("ALTER TABLE {t} ADD COLUMN n integer", None),
    ("INSERT INTO {t} VALUES (5, 'new', 1, 7)", None),
    ("ALTER TABLE {t} ALTER COLUMN n SET DATA TYPE bigint", None),
    ("INSERT INTO {t} VALUES (9, 'x', 2, 5000000000)", None),
    ("ALTER TABLE {t} RENAME COLUMN n TO m", None),
    ("UPDATE {t} SET m = id WHERE m IS NULL", None),
    ("ALTER TABLE {t} SET PROPERTIES partitioning = ARRAY['s']", "SELECT 1"),
    ("INSERT INTO {t} VALUES (3, 'a', 1, 3)", None),
    (
        "ALTER TABLE {t} SET PROPERTIES partitioning = ARRAY['truncate(s, 1)', 'bucket(id, 4)']",
        "SELECT 1",
    ),
    ("INSERT INTO {t} VALUES (6, 'ab', 1, 6), (7, 'ac', 2, 7), (10, NULL, 2, 10)", None),
    ("COMMENT ON TABLE {t} IS 'of Trino'", "SELECT 1"),
    ("COMMENT ON COLUMN {t}.m IS 'a number'", "SELECT 1"),
    ("ALTER TABLE {t} DROP COLUMN m", None),
    ("DELETE FROM {t} WHERE s = 'a'", None),
    ("ALTER TABLE {t} EXECUTE optimize", "SELECT 1"),
    ("TRUNCATE TABLE {t}", "DELETE FROM {t}"),
    ("INSERT INTO {t} VALUES (4, 'last', 1)", None),
]

AS_SELECT = "(VALUES (BIGINT '1', 'a'), (BIGINT '9', NULL)) AS v(id, s)"
CREATED = [
    ("CREATE TABLE {t} AS SELECT * FROM " + AS_SELECT, 1),
    ("CREATE OR REPLACE TABLE {t} AS SELECT * FROM " + AS_SELECT, 1),
    ("CREATE OR REPLACE TABLE {t} AS SELECT id, s FROM {t} WHERE s IS NULL", 1),
]

REFUSED = [
    ("CREATE TABLE {new} (id bigint) WITH (format = 'ORC')", "must be parquet"),
    ("ALTER TABLE {t} ADD COLUMN n integer FIRST", "add it at the end"),
    ("CREATE VIEW {new} AS SELECT 1 AS a", "send SQL for `duckdb` too"),
    ("ALTER TABLE {t} EXECUTE expire_snapshots(retention_threshold => '7d')", "GC is disabled"),
]

TYPES = {
    # in Trino, its values, the values in DuckDB
    "boolean": (["true", "false"], "true, false"),
    "integer": (["-2147483648", "2147483647"], "-2147483648, 2147483647"),
    "bigint": (["-9223372036854775808", "7"], "-9223372036854775808, 7"),
    "real": (["nan()", "REAL '-1.5'"], "'nan'::FLOAT, -1.5::FLOAT"),
    "double": (["infinity()", "-0e0"], "'inf'::DOUBLE, -0.0::DOUBLE"),
    "decimal(12,3)": (["123456789.123", "-0.001"], "123456789.123, -0.001"),
    "decimal(38,10)": (
        ["DECIMAL '1234567890123456789012345678.5'"],
        "'1234567890123456789012345678.5'::DECIMAL(38,10)",
    ),
    "varchar": (["''", "'Ünï 🦆'"], "'', 'Ünï 🦆'"),
    "varbinary": (["X''", "X'00FF80'"], "''::BLOB, '\\x00\\xFF\\x80'::BLOB"),
    "date": (["DATE '1969-12-31'", "DATE '9999-12-31'"], "DATE '1969-12-31', DATE '9999-12-31'"),
    "time(6)": (["TIME '23:59:59.999999'"], "[same]"),
    "timestamp(6)": (["TIMESTAMP '1969-12-31 23:59:59.5'"], "[same]"),
    "timestamp(6) with time zone": (
        ["TIMESTAMP '2024-02-29 01:02:03.456789 +05:30'"],
        "TIMESTAMPTZ '2024-02-29 01:02:03.456789+05:30'",
    ),
    "uuid": (["UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff'"], "[same]"),
    "array(integer)": (["ARRAY[]", "ARRAY[1, NULL, 3]"], "[], [1, NULL, 3]"),
    "map(varchar, integer)": (["MAP(ARRAY['k'], ARRAY[1])"], "MAP {'k': 1}"),
    "row(a integer, b varchar)": (["ROW(NULL, 'x')"], "{'a': NULL, 'b': 'x'}"),
}
DUCKDB_TYPES = {
    "real": "FLOAT",
    "varbinary": "BLOB",
    "time(6)": "TIME",
    "timestamp(6)": "TIMESTAMP",
    "timestamp(6) with time zone": "TIMESTAMPTZ",
    "array(integer)": "INTEGER[]",
    "row(a integer, b varchar)": "STRUCT(a INTEGER, b VARCHAR)",
}


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("trino", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found, moto


@pytest.fixture(scope="module")
def client(served):
    with (
        trino() as address,
        closing(Trino(address, served[1], "polynya")) as found,
    ):
        yield found


@pytest.fixture
def run(client, twin):
    names = {"t": client.source("main", twin.name), "new": client.source("main", "new")}
    return lambda sql: client.execute(sql.format(**names))


@pytest.mark.parametrize("start", STARTS)
def test_rows(client, run, twin, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    for sql, other in ROWS:
        twin.changes(other or sql, lambda sql=sql: run(sql), others="optimize" in sql)
    check(client, twin)
    twin.native(*NATIVE)
    check(client, twin)


def test_life_of_a_table(client, run, twin):
    for sql, other in LIFE:
        twin.changes(other or sql, lambda sql=sql: run(sql), others="optimize" in sql)
        assert rows_of(twin, twin.source) == rows_of(twin, twin.memory), sql
    check(client, twin)


def test_create_as_select(client, run, twin):
    for sql, snapshots in CREATED:
        before = twin.newest()
        run(sql)
        assert twin.newest() == before + snapshots
        twin.con.execute(
            sql.replace("CREATE TABLE", "CREATE OR REPLACE TABLE").format(t=twin.memory)
        )
        assert rows_of(twin, twin.source) == rows_of(twin, twin.memory), sql


def test_types(client, run, served, twin):
    columns = {f"c{number}": type_ for number, type_ in enumerate(TYPES)}
    run("CREATE TABLE {t} (" + ", ".join(f"{c} {type_}" for c, type_ in columns.items()) + ")")
    rows = [
        ", ".join(values[n] if n < len(values) else "NULL" for values, _ in TYPES.values())
        for n in range(3)
    ]
    run("INSERT INTO {t} VALUES " + ", ".join(f"({row})" for row in rows))
    texts = []
    for column, type_ in columns.items():
        values, there = TYPES[type_]
        there = ", ".join(values) if there == "[same]" else there
        native = DUCKDB_TYPES.get(type_, type_)
        nulls = ", NULL" * (3 - len(values))
        listed = f"CAST([{there}{nulls}] AS ({native})[])".replace(f"({native})[]", f"{native}[]")
        texts.append(f"unnest({listed}) AS {column}")
    with judging(served[0], served[2]) as judge:
        judge.expect("types", f"SELECT {', '.join(texts)}")
        judge.check(f"main.{twin.name}", "types")


@pytest.mark.parametrize(("sql", "sentence"), REFUSED)
def test_refused(run, twin, sql, sentence):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    before = twin.newest()
    with pytest.raises(Failed, match=sentence):
        run(sql)
    assert twin.newest() == before
    twin.check()


def test_rename_and_drop(client, run, twin):
    twin.native(DO_NOT_INLINE, *STARTS["both deletes"])
    before = twin.newest()
    run("ALTER TABLE {t} RENAME TO main.renamed_by_trino")
    assert rows_of(twin, "lake.main.renamed_by_trino") == rows_of(twin, twin.memory)
    client.execute(f"CREATE SCHEMA {client.catalog}.of_trino")
    source = client.source("main", "renamed_by_trino")
    client.execute(f"ALTER TABLE {source} RENAME TO of_trino.moved")
    assert rows_of(twin, "lake.of_trino.moved") == rows_of(twin, twin.memory)
    client.execute(f"DROP TABLE {client.source('of_trino', 'moved')}")
    client.execute(f"DROP SCHEMA {client.catalog}.of_trino")
    past = f"{twin.source} AT (VERSION => {before})"
    assert rows_of(twin, past) == rows_of(twin, twin.memory)  # no file is deleted


def rows_of(twin, source):
    return Counter(twin.con.execute(f"SELECT * FROM {source}").fetchall())


def check(client, twin):
    """Compare all snapshots: natively, and as PyIceberg and Trino read them."""
    for _ in range(ATTEMPTS):
        with suppress(ServiceUnavailableError):  # each attempt generates more of the files
            twin.table()
            break
    twin.check()
    check_in_trino(client, twin)


def check_in_trino(client, twin):
    """Compare what Trino reads, now and at each snapshot, with native DuckLake."""
    wanted = {None: rows_of(twin, twin.source)}
    for one in twin.table().snapshots():
        then = f"{twin.source} AT (VERSION => {one.sequence_number})"
        wanted[one.snapshot_id] = rows_of(twin, then)
    for snapshot_id, rows in wanted.items():
        table = client.rows("main", twin.name, snapshot_id)
        found = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
        assert found == rows, f"Trino at {snapshot_id}"
