"""Append, overwrite and overwrite-partitions on a table that DuckDB changes, too."""

from dataclasses import replace

import pytest
from polynya_local.clients.duckdb import connect
from polynya_pipeline.common.errors import BadInput, Conflict
from polynya_pipeline.ingest import commit
from polynya_pipeline.ingest.job import ingest

pytestmark = [pytest.mark.spark, pytest.mark.versions("1.1", "1.0")]


@pytest.fixture
def lake(folder_lake):
    return folder_lake


def rows(spark, low: int, high: int):
    return spark.range(low, high, 1, 1).selectExpr("CAST(id % 3 AS int) AS p", "id")


@pytest.mark.slow
def test_append_and_overwrite_with_rows_inlined_by_duckdb(lake, spark):
    made = lake.ingest(rows(spark, 0, 9), create=True, comment="of numbers", token="one")
    assert (made.outcome, made.created, made.rows) == ("committed", True, 9)
    lake.sql("INSERT INTO t VALUES (7, 100)")  # DuckLake inlines so few rows in PostgreSQL
    lake.sql("DELETE FROM t WHERE id = 4")
    lake.ingest(rows(spark, 20, 23))
    assert lake.sql("SELECT count(*), sum(id) FROM t") == [(12, 36 - 4 + 100 + 63)]
    done = lake.ingest(rows(spark, 50, 53), mode="overwrite")
    assert (done.ended_files, done.ended_inlined_rows) == (2, 1)
    assert lake.sql("FROM t ORDER BY id") == [(2, 50), (0, 51), (1, 52)]
    before = made.snapshot_id + 2
    assert lake.sql(f"SELECT count(*) FROM t AT (VERSION => {before})") == [(9,)]
    lake.sql("INSERT INTO t VALUES (1, 53)")
    lake.sql("UPDATE t SET id = 0 WHERE id = 50")
    lake.sql("CALL ducklake_flush_inlined_data('lake')")
    assert lake.sql("SELECT id FROM t ORDER BY id") == [(0,), (51,), (52,), (53,)]
    # The files that ended had a delete in PostgreSQL, which the flush has written to a file.
    assert lake.sql(f"SELECT count(*) FROM t AT (VERSION => {before})") == [(9,)]
    assert lake.verify().findings == []
    [[comment]] = lake.catalog("SELECT value FROM ducklake_tag WHERE key = 'comment'")
    assert comment == "of numbers"


def test_overwrite_partitions_keeps_the_other_partitions(lake, spark):
    lake.ingest(rows(spark, 0, 9), create=True, partition_by=("p",))
    done = lake.ingest(rows(spark, 30, 40).where("p = 1"), mode="overwrite-partitions")
    assert done.ended_files == 1
    others = [(0,), (2,), (3,), (5,), (6,), (8,)]
    assert lake.sql("SELECT id FROM t ORDER BY id") == [*others, (31,), (34,), (37,)]
    lake.sql("INSERT INTO t VALUES (1, 99)")
    with pytest.raises(BadInput, match="inlined rows"):
        lake.ingest(rows(spark, 1, 2), mode="overwrite-partitions")
    lake.sql("CALL ducklake_flush_inlined_data('lake')")
    lake.ingest(rows(spark, 1, 2), mode="overwrite-partitions")
    assert lake.sql("SELECT id FROM t ORDER BY id") == sorted([*others, (1,)])
    assert lake.verify().findings == []


def test_an_empty_frame_changes_nothing_without_allow_empty(lake, spark):
    lake.ingest(rows(spark, 0, 3), create=True)
    assert lake.ingest(rows(spark, 0, 0)).outcome == "nothing-to-do"
    with pytest.raises(BadInput, match="allow-empty"):
        lake.ingest(rows(spark, 0, 0), mode="overwrite")
    assert lake.sql("SELECT count(*) FROM t") == [(3,)]
    lake.ingest(rows(spark, 0, 0), mode="overwrite", allow_empty=True)
    assert lake.sql("SELECT count(*) FROM t") == [(0,)]
    lake.ingest(rows(spark, 0, 0), "fresh", create=True)
    assert lake.sql("FROM fresh") == []


def test_evolve_adds_columns_and_fills_absent_ones(lake, spark):
    lake.sql("CREATE TABLE t(id BIGINT, gone VARCHAR)")
    lake.sql("INSERT INTO t FROM range(20) AS r(i), (VALUES ('x'))")
    frame = spark.sql("SELECT 50L AS id, named_struct('a', 1, 'b', array(2L)) AS s, 1.5D AS d")
    with pytest.raises(BadInput) as raised:
        lake.ingest(frame)
    for words in ("gone is not in the DataFrame", "s is not in the table", "--evolve"):
        assert words in str(raised.value)
    assert lake.ingest(frame, evolve=True).added_columns == ["s", "d"]
    new = (50, None, {"a": 1, "b": [2]}, 1.5)
    assert lake.sql("FROM t WHERE d = 1.5") == [new] == lake.sql("FROM t WHERE id > 30")
    assert lake.sql("SELECT count(*) FROM t WHERE s IS NULL AND d IS NULL") == [(20,)]
    lake.sql("INSERT INTO t BY NAME SELECT 60 AS id, 2.5 AS d")
    assert lake.sql("SELECT id FROM t WHERE d > 1 ORDER BY id") == [(50,), (60,)]
    assert lake.verify().findings == []


def test_evolve_without_the_partition_column(lake, spark):
    lake.ingest(rows(spark, 0, 9), create=True, partition_by=("p",))
    lake.ingest(spark.sql("SELECT 50L AS id"), evolve=True)
    assert lake.sql("FROM t WHERE p IS NULL") == [(None, 50)]
    assert lake.verify().findings == []


NESTED = """
CREATE TABLE {0}(id BIGINT, s STRUCT(a INTEGER, n STRUCT(p VARCHAR)), l STRUCT(x INTEGER)[],
  m MAP(VARCHAR, STRUCT(v DOUBLE)));
INSERT INTO {0} SELECT i, {{a: 1, n: {{p: 'old'}}}}, [{{x: 2}}], MAP {{'k': {{v: 3.5}}}}
FROM range(20) AS r(i);
INSERT INTO {0} VALUES (20, {{a: 7, n: NULL}}, [], NULL)"""

EVOLVED = """
ALTER TABLE {0} ADD COLUMN s.n.q VARCHAR;
ALTER TABLE {0} ADD COLUMN s.c STRUCT(d BIGINT[]);
ALTER TABLE {0} ADD COLUMN l.element.y DOUBLE;
ALTER TABLE {0} ADD COLUMN m.value.w INTEGER;
INSERT INTO {0} VALUES (50, {{a: NULL, n: {{p: 'new', q: 'q'}}, c: {{d: [4]}}}}, [{{x: 5, y: 1.5}}],
  MAP {{'k': {{v: NULL, w: 6}}}})"""


def test_evolve_adds_fields_within_columns_as_duckdb_does(lake, spark):
    for table in ("t", "u"):
        lake.sql(NESTED.format(table))
    frame = spark.sql(
        "SELECT 50L AS id, named_struct('n', named_struct('q', 'q', 'p', 'new'), "
        "  'c', named_struct('d', array(4L))) AS s, "
        "array(named_struct('x', 5, 'y', 1.5D)) AS l, map('k', named_struct('w', 6)) AS m"
    )
    with pytest.raises(BadInput) as raised:
        lake.ingest(frame)
    for words in ("s.a is not in the D", "s.c is not in the t", "l.element.y", "m.value.v"):
        assert words in str(raised.value)
    done = lake.ingest(frame, evolve=True)
    assert done.added_columns == ["s.n.q", "s.c", "l.element.y", "m.value.w"]
    lake.sql(EVOLVED.format("u"))
    last = "INSERT INTO {} SELECT id + 10, s, l, m FROM u WHERE id >= 20"  # these rows are inlined
    for table in ("t", "u"):
        lake.sql(last.format(table))
    for what in ("DESCRIBE {}", "FROM {} ORDER BY id", "FROM {} WHERE s.n.q = 'q' ORDER BY id"):
        assert lake.sql(what.format("t")) == lake.sql(what.format("u"))
    assert lake.sql("SELECT count(*) FROM t WHERE s.c IS NULL") == [(22,)]
    assert lake.verify().findings == []
    lake.sql("CALL ducklake_flush_inlined_data('lake')")
    assert lake.sql("FROM t ORDER BY id") == lake.sql("FROM u ORDER BY id")
    assert lake.verify().findings == []


def test_the_options_of_the_table_are_applied(lake, spark):
    lake.sql("CREATE TABLE t(id BIGINT, s VARCHAR)")
    for name, value in {
        "target_file_size": "'50KB'",
        "parquet_row_group_size": "2000",
        "parquet_compression": "'zstd'",
        "parquet_compression_level": "5",
    }.items():
        lake.sql(f"CALL lake.set_option('{name}', {value}, table_name => 't')")
    frame = spark.range(0, 60000, 1, 1).selectExpr("id", "sha2(CAST(id AS string), 256) AS s")
    done = lake.ingest(frame)
    assert done.files == 6  # Spark passes batches of ten thousand rows
    groups = lake.sql(
        "SELECT DISTINCT compression, row_group_num_rows BETWEEN 1 AND 2000 "
        f"FROM parquet_metadata('{lake.data_path}/main/t/*.parquet')"
    )
    assert groups == [("ZSTD", True)]
    assert lake.sql("SELECT count(*), sum(id) FROM t") == [(60000, 1799970000)]
    order = "SELECT id - rowid FROM t WHERE id <> rowid"
    assert lake.sql(order) == []  # rows have the order of the DataFrame
    assert lake.verify().findings == []


def meanwhile(monkeypatch, act) -> None:
    """Call `act` after the files are written and before the commit."""
    before = commit._transaction

    def transaction(con, plan, files):
        monkeypatch.setattr(commit, "_transaction", before)
        act()
        return before(con, plan, files)

    monkeypatch.setattr(commit, "_transaction", transaction)


def files_of(lake) -> set[str]:
    return {path for (path,) in lake.sql(f"FROM glob('{lake.data_path}/**/*.parquet')")}


# (statement in the meantime, mode of the job, the conflict that it reports or None)
MEANWHILE = [
    ("INSERT INTO t SELECT 0, i FROM range(20) r(i)", "append", None),
    ("DELETE FROM t WHERE id = 1", "append", None),
    ("COMMENT ON TABLE t IS 'harmless'", "append", None),
    ("ALTER TABLE t ADD COLUMN c INTEGER", "append", "t was altered"),
    ("ALTER TABLE t SET PARTITIONED BY (id)", "append", "t was altered"),
    ("DROP TABLE t", "append", "t was dropped or renamed"),
    ("ALTER TABLE t RENAME TO u", "append", "t was dropped or renamed"),
    ("INSERT INTO t VALUES (0, 99)", "overwrite", "were changed while"),
    ("INSERT INTO t SELECT 0, i FROM range(20) r(i)", "overwrite", "were changed while"),
    ("DELETE FROM t WHERE id = 1", "overwrite", "were changed while"),
    ("CREATE TABLE other(i INTEGER)", "overwrite", None),
    ("INSERT INTO t SELECT 2, i FROM range(20) r(i)", "overwrite-partitions", None),
    ("INSERT INTO t SELECT 1, i FROM range(20) r(i)", "overwrite-partitions", "were changed"),
]


@pytest.mark.versions("1.0")
def test_changes_by_other_writers_in_the_meantime(lake, spark, monkeypatch):
    frame = rows(spark, 4, 5).cache()  # rows of the partition 1
    for statement, mode, words in MEANWHILE:
        lake.sql("DROP TABLE IF EXISTS t")
        lake.sql("DROP TABLE IF EXISTS u")
        keys = ("p",) if mode == "overwrite-partitions" else ()
        lake.ingest(rows(spark, 0, 3), create=True, partition_by=keys)
        before = files_of(lake)
        meanwhile(monkeypatch, lambda statement=statement: lake.sql(statement))
        if words is None:
            lake.ingest(frame, mode=mode)
            assert (1, 4) in lake.sql("FROM t"), statement
        else:
            with pytest.raises(Conflict, match=words):
                lake.ingest(frame, mode=mode)
            named = {
                path for (path,) in map(tuple, lake.catalog("SELECT path FROM ducklake_data_file"))
            }
            added = {path.rpartition("/")[2] for path in files_of(lake) - before}
            assert added <= {path.rpartition("/")[2] for path in named}, statement
    assert lake.verify().findings == []


@pytest.mark.versions("1.0")
def test_a_table_created_by_another_writer_in_the_meantime(lake, spark, monkeypatch):
    meanwhile(monkeypatch, lambda: lake.sql("CREATE TABLE T(a INTEGER)"))
    with pytest.raises(Conflict, match="created by another writer"):
        lake.ingest(rows(spark, 0, 3), create=True)
    assert files_of(lake) == set() and lake.sql("FROM t") == []


@pytest.mark.versions("1.0")
def test_duckdb_sees_a_conflict_with_an_overwrite(lake, spark, moto, native):
    lake.ingest(rows(spark, 0, 30), create=True)
    con = connect(("ducklake", "postgres_scanner", "httpfs"), moto)
    from polynya_local.clients.native import attach

    attach(con, lake.as_lake, read_only=False)
    con.execute("BEGIN")
    con.execute("DELETE FROM lake.t WHERE id = 3")
    lake.ingest(rows(spark, 50, 53), mode="overwrite")
    with pytest.raises(Exception, match="conflict"):
        con.execute("COMMIT")
    con.close()
    assert lake.sql("SELECT count(*) FROM t") == [(3,)]


OWNER = """
SELECT pg_get_userbyid(c.relowner)::text FROM ducklake_inlined_data_tables AS i
JOIN pg_class AS c ON c.relname = i.table_name ORDER BY i.schema_version DESC LIMIT 1"""


def test_a_member_of_the_owner_creates_as_the_owner_and_any_other_role_as_itself(lake, spark):
    lake.sql("CREATE TABLE t(id BIGINT)")
    lake.sql("INSERT INTO t VALUES (1)")
    [[owner]] = lake.catalog("SELECT current_user::text")
    for role, column in (("ingesting member", "a"), ("ingesting other", "b")):
        lake.catalog(f'CREATE ROLE "{role}" LOGIN')
        try:
            if role == "ingesting member":
                lake.catalog(f'GRANT "{owner}" TO "{role}"')
            else:
                lake.catalog(f'GRANT CREATE ON SCHEMA public TO "{role}"')
                rights = "SELECT, INSERT, UPDATE, DELETE"
                lake.catalog(f'GRANT {rights} ON ALL TABLES IN SCHEMA public TO "{role}"')
            frame = spark.sql(f"SELECT 2L AS id, 1 AS {column}")
            url = replace(lake.database, user=role).url
            assert ingest(frame, "t", database=url, evolve=True).added_columns == [column]
            creator = owner if role == "ingesting member" else role
            assert lake.catalog(OWNER) == [[creator]]
            lake.sql(f"INSERT INTO t BY NAME SELECT 3 AS id, 1 AS {column}")
        finally:
            lake.catalog(f'REASSIGN OWNED BY "{role}" TO "{owner}"')
            lake.catalog(f'DROP OWNED BY "{role}"')
            lake.catalog(f'DROP ROLE "{role}"')
    assert lake.sql("FROM t ORDER BY ALL") == [
        (1, None, None), (2, 1, None), (2, None, 1), (3, 1, None), (3, None, 1)
    ]  # fmt: skip
    assert lake.verify().findings == []
