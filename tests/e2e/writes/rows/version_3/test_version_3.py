"""Tables of format version 3: a column has a default that older files lack.

What docs/writes.md says of them, client by client.
"""

from collections import Counter
from contextlib import closing

import pytest
from polynya_local.clients import duckdb

from tests.support.writes.spark_sql import REWRITE_DATA_FILES, set_modes
from tests.support.writes.starts import DO_NOT_INLINE, FILES, INLINE, NATIVE, STARTS

pytestmark = pytest.mark.versions("1.1", "1.0")

ADD = "ALTER TABLE {t} ADD COLUMN q VARCHAR DEFAULT 'old'"
ROW = "INSERT INTO {t} VALUES (31, 'm', 1, 'q')"
STARTS_3 = {
    name: (*STARTS[name], ADD) for name in ("files", "delete files", "both deletes", "partitions")
} | {
    "files and inlined rows": (*FILES, ADD, INLINE, ROW, "DELETE FROM {t} WHERE id = 2"),
}

MATCHED = (
    "MERGE INTO {t} AS t USING (SELECT * FROM VALUES (5L), (31L) AS v(id)) AS n ON t.id = n.id"
)
DELETES = [
    # in Spark, and in the twin if it is another statement there
    ("DELETE FROM {t} WHERE id IN (1, 6)", None),
    ("DELETE FROM {t} WHERE id IN (4, 9)", None),  # replaces the vectors
    (f"{MATCHED} WHEN MATCHED THEN DELETE", "DELETE FROM {t} WHERE id IN (5, 31)"),
    ("DELETE FROM {t} WHERE id > 6", None),  # whole files
]
ADDITIONS = [
    ("INSERT INTO {t} VALUES (41, NULL, 1, 'new')", None),
    (
        f"{MATCHED} WHEN NOT MATCHED THEN INSERT (id, s, p, q) VALUES (n.id, 'm', 1, NULL)",
        "INSERT INTO {t} SELECT v, 'm', 1, NULL FROM (VALUES (5), (31)) AS n(v) "
        "WHERE v NOT IN (SELECT id FROM {t})",
    ),
    (
        "INSERT OVERWRITE {t} VALUES (4L, 'new', 1, 'q'), (9L, NULL, 1, NULL)",
        "DELETE FROM {t}; INSERT INTO {t} VALUES (4, 'new', 1, 'q'), (9, NULL, 1, NULL)",
    ),
]

REWRITES = [
    ("UPDATE {t} SET s = 'new' WHERE id IN (1, 9)", None),
    (
        f"{MATCHED} WHEN MATCHED THEN UPDATE SET s = 'new' "
        "WHEN NOT MATCHED THEN INSERT (id, s, p, q) VALUES (n.id, 'm', NULL, 'm')",
        "UPDATE {t} SET s = 'new' WHERE id IN (5, 31); "
        "INSERT INTO {t} SELECT v, 'm', NULL, 'm' FROM (VALUES (5), (31)) AS n(v) "
        "WHERE v NOT IN (SELECT id FROM {t})",
    ),
    ("DELETE FROM {t} WHERE id IN (4, 31)", None),
    (REWRITE_DATA_FILES, "SELECT 1"),
    ("UPDATE {t} SET q = 'all'", None),
]


@pytest.fixture
def started_3(request, twin, start):
    """A table of format version 3 in the state `start`."""
    twin.native(DO_NOT_INLINE, *STARTS_3[start])
    assert twin.table().format_version == 3
    return twin


@pytest.fixture(scope="module")
def client(served):
    where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
    with closing(duckdb.open(*where)) as found:
        yield found


def ids(twin):
    """The row id of each row, by its `id`."""
    return dict(twin.con.execute(f"SELECT id, rowid FROM {twin.source}").fetchall())


def check_snapshots(twin, *clients):
    """Every snapshot since the column was added, as these clients read it."""
    twin.check()
    listed = {one.sequence_number: one.snapshot_id for one in twin.table().snapshots()}
    for number, rows in twin.past.items():
        if number not in listed or any(len(row) != 4 for row in rows):
            continue
        for one in clients:
            found = one.rows("main", twin.name, listed[number])
            columns = [column.to_pylist() for column in found.columns]
            assert Counter(zip(*columns, strict=True)) == rows, f"{one.name} at {number}"


def assert_copied(twin):
    """The catalog has copies of the files that clients wrote."""
    found = twin.lake.database.run(
        "SELECT path FROM ducklake_data_file WHERE path LIKE '%polynya-%' AND table_id = "
        "(SELECT max(table_id) FROM ducklake_table WHERE table_name = :name)",
        name=twin.name,
    )
    assert found


def change(twin, run, statements):
    """Each statement is one commit, and rows that stay keep their ids."""
    for sql, other in statements:
        before = ids(twin)
        twin.changes(other or sql, lambda sql=sql: run(sql))
        after = ids(twin)
        if "INSERT" not in sql:
            assert after.items() <= before.items(), sql


@pytest.mark.spark
@pytest.mark.parametrize("start", ["both deletes"])
def test_spark_deletes_with_deletion_vectors(started_3, spark):
    set_modes(started_3, "merge-on-read")
    change(started_3, lambda sql: spark(started_3, sql).collect(), DELETES[:2])
    check_snapshots(started_3, spark.client)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("start", STARTS_3)
def test_spark(started_3, spark, client):
    set_modes(started_3, "merge-on-read")
    run = lambda sql: spark(started_3, sql).collect()  # noqa: E731
    change(started_3, run, DELETES)
    check_snapshots(started_3, spark.client, client)
    change(started_3, run, ADDITIONS)
    started_3.native(*NATIVE)
    check_snapshots(started_3, spark.client, client)


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS_3)
def test_duckdb(started_3, client):
    run = lambda sql: client.query(sql.format(t=f"ice.main.{started_3.name}"))  # noqa: E731
    deletes = [(sql, other) for sql, other in DELETES if sql.startswith("DELETE")]
    change(started_3, run, [*deletes[:2], ADDITIONS[0], deletes[2], ("DELETE FROM {t}", None)])
    check_snapshots(started_3, client)
    started_3.native(*NATIVE)
    check_snapshots(started_3, client)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("start", STARTS_3)
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_spark_rewrites_rows(started_3, spark, client, mode):
    """Its files have the columns of row lineage, whatever the mode; some rows of MERGE no id."""
    set_modes(started_3, mode)
    for sql, other in REWRITES:
        started_3.changes(other or sql, lambda sql=sql: spark(started_3, sql).collect())
    assert_copied(started_3)
    check_snapshots(started_3, spark.client, client)
    started_3.native(*NATIVE)
    check_snapshots(started_3, client)


@pytest.mark.slow(but=["[files]"])
@pytest.mark.parametrize("start", STARTS_3)
def test_duckdb_updates(started_3, client):
    """Its files have the ids of the rows."""
    before = ids(started_3)
    for sql in (REWRITES[0][0], REWRITES[-1][0]):
        started_3.changes(
            sql, lambda sql=sql: client.query(sql.format(t=f"ice.main.{started_3.name}"))
        )
        assert ids(started_3) == before
    check_snapshots(started_3, client)
    started_3.native(*NATIVE)
    check_snapshots(started_3, client)


OWN_ROWS = (
    "INSERT INTO {t} VALUES (51, 'n', 1, 'q'), (52, 'n', 1, 'q')",
    "UPDATE {t} SET s = 'new' WHERE id IN (1, 51)",
    "DELETE FROM {t} WHERE id IN (4, 52)",
)


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS_3)
def test_duckdb_changes_rows_that_the_same_transaction_inserted(started_3, client):
    """Its files have ids for them that the table never gave."""
    statements = [sql.format(t=f"ice.main.{started_3.name}") for sql in OWN_ROWS]
    started_3.changes(
        "; ".join(OWN_ROWS),
        lambda: [client.query(sql) for sql in ("BEGIN", *statements, "COMMIT")],
    )
    rows = ids(started_3)
    assert len(set(rows.values())) == len(rows)
    check_snapshots(started_3, client)
    started_3.native(*NATIVE)
    check_snapshots(started_3, client)


MERGES = [
    REWRITES[1],
    (
        f"{MATCHED} WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, s, p, q) VALUES (n.id, 'm', NULL, 'm')",
        "CREATE OR REPLACE TEMP TABLE missing AS SELECT v FROM (VALUES (5), (31)) AS n(v) "
        "WHERE v NOT IN (SELECT id FROM {t}); DELETE FROM {t} WHERE id IN (5, 31); "
        "INSERT INTO {t} SELECT v, 'm', NULL, 'm' FROM missing",
    ),
    REWRITES[1],
]


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS_3)
def test_duckdb_merges(started_3, client):
    """It finds a row by its id: each row has one, in whatever file it is."""
    for merge, other in MERGES:
        sql = merge.replace("SELECT * FROM VALUES (5L), (31L) AS v(id)", "VALUES (5), (31)")
        sql = sql.replace(") AS n", ") AS n(id)").format(t=f"ice.main.{started_3.name}")
        started_3.changes(other, lambda sql=sql: client.query(sql))
    check_snapshots(started_3, client)
    started_3.native(*NATIVE)
    started_3.changes(other, lambda: client.query(sql))
    check_snapshots(started_3, client)


ROW_IDS = "SELECT id, _row_id, _last_updated_sequence_number FROM ice.main.{name}"


@pytest.mark.slow(but=["[both deletes]"])
@pytest.mark.parametrize("start", STARTS_3)
def test_clients_see_the_row_ids_of_ducklake(started_3, client):
    for statement in ("SELECT 1", *NATIVE):
        if statement != "SELECT 1":
            started_3.native(statement)
        found = client.query(ROW_IDS.format(name=started_3.name)).to_pylist()
        assert sorted((row["_row_id"], row["id"]) for row in found) == row_ids(started_3), statement


def row_ids(twin):
    """The row ids of DuckLake, with the `id` of each row."""
    return sorted(twin.con.execute(f"SELECT rowid, id FROM {twin.source}").fetchall())


@pytest.mark.parametrize("start", ["files"])
def test_pyiceberg_cannot_write_version_3(started_3):
    table = started_3.table()
    before = started_3.newest()
    with pytest.raises(ValueError, match="Cannot write manifest for table version: 3"):
        table.append(table.scan().to_arrow())
    assert started_3.newest() == before
