"""Where the schema is inserted into a statement."""

import socket
from contextlib import closing

import pytest
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, to_statement
from polynya.ducklake.connection.catalog_connection import (
    GONE_STATEMENT,
    MOST_PREPARED,
    CatalogConnection,
    Planning,
    numbered,
    qualified,
    sqlstate,
)

# § marks where the schema is inserted.
STATEMENTS = [
    "SELECT 1 FROM §ducklake_table",
    "SELECT FROM §ducklake_table AS t JOIN §ducklake_schema AS s USING (schema_id)",
    "SELECT i.n FROM\n  §ducklake_table\nWHERE true",
    "INSERT INTO §ducklake_tag\n  (object_id)\nVALUES (:a)",
    "UPDATE §ducklake_data_file SET end_snapshot = :a",
    "SELECT record_count FROM §ducklake_table_stats WHERE table_id = :a FOR UPDATE",
    "DELETE FROM §ducklake_table_stats",
    'COPY §"ducklake_tag" ("object_id") FROM STDIN',
    'CREATE TABLE §"ducklake_inlined_data_1_2" (LIKE §"ducklake_inlined_data_1_1")',
    'ALTER TABLE §"ducklake_inlined_data_1_2" ADD "ducklake_x" varchar',
    'GRANT ALL ON §"ducklake_inlined_data_1_2" TO "ducklake_owner"',
    "CREATE TABLE IF NOT EXISTS §polynya_commits (position integer)",
    "CREATE INDEX IF NOT EXISTS polynya_commits_of_key ON §polynya_commits (idempotency_key)",
    "LOCK TABLE §polynya_commits IN SHARE UPDATE EXCLUSIVE MODE",
    'GRANT SELECT ON §polynya_commits TO "ducklake_reader"',
    'SELECT FROM §ducklake_table AS t JOIN §ducklake_schema AS s ON "t" = "s"',
    'SELECT r."a" FROM §"ducklake_inlined_data_1_2" AS r',
    'SELECT r."x FROM ducklake_table" FROM §"a ""table"" FROM ducklake_table" AS r',
    "SELECT 'x FROM ducklake_table', 'it''s FROM ducklake_table' FROM §ducklake_table",
    "SELECT relname FROM pg_class WHERE relname IN ('ducklake_data_file', 'ducklake_tag')",
    "WITH life AS (SELECT 1) SELECT * FROM life JOIN version USING (kind)",
    "DECLARE files NO SCROLL CURSOR FOR SELECT 1 FROM (SELECT f.* FROM §ducklake_data_file AS f)",
    "FETCH FORWARD 64 FROM files",
    "SELECT extract(epoch FROM s.snapshot_time) FROM §ducklake_snapshot AS s",
    "SELECT FROM ducklake_meta.ducklake_table",
    'SELECT FROM "ducklake_meta"."ducklake_table"',
    'CREATE INDEX CONCURRENTLY ON "ducklake_meta"."ducklake_data_file" (table_id)',
    "SELECT ducklake_snapshot.snapshot_id FROM §ducklake_snapshot",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(
    ("schema", "written"),
    [("public", '"public".'), ('My "x\'\\1" FROM', '"My ""x\'\\1"" FROM".')],
)
def test_tables_are_sent_with_their_schema(statement, schema, written):
    assert qualified(statement.replace("§", ""), schema) == statement.replace("§", written)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_parameters_are_numbered_as_by_pg8000(statement):
    sql = statement.replace("§", "")
    expected, _ = to_statement(qualified(sql, "public"))
    for value in (1, 2):  # the second one is for the statement as it is remembered
        one = numbered(sql, "public")
        assert one.text == expected
        assert one.values({"a": value, "b": 0}) == ((value,) if ":a" in sql else ())


def test_a_table_is_looked_up_in_the_schema():
    sql = "SELECT to_regclass('ducklake_metadata') IS NOT NULL"
    found = """SELECT to_regclass('"it\'\'s".ducklake_metadata') IS NOT NULL"""
    assert qualified(sql, "it's") == found


def test_a_long_statement_takes_time_in_proportion_to_its_length():
    for part in ('"', "'", 'FROM "', "FROM ducklake_", '""', " "):
        qualified(part * 100_000, "public")


RUNS = [
    ("CREATE TEMPORARY TABLE t (a bigint, b text)", {}),
    ("INSERT INTO t VALUES (:a, :b), (:a + 1, 'a:b'), (3, NULL)", {"a": 1, "b": "it's"}),
    ("INSERT INTO t VALUES (:a, :b), (:a + 1, 'a:b'), (3, NULL)", {"a": 5, "b": None}),
    ("SELECT a, b FROM t WHERE a < :a ORDER BY a, b", {"a": 3}),
    ("SELECT a, b FROM t WHERE a < :a ORDER BY a, b", {"a": 9}),
    ("SELECT a AS c FROM t WHERE b = ANY(:b) ORDER BY a", {"b": ["it's", "a:b"]}),
    ("UPDATE t SET b = :b WHERE a = :a", {"a": 3, "b": "c"}),
    ("SELECT count(*) FROM t", {}),
]


def test_a_statement_does_what_pg8000_does_with_it(postgres_server):
    """Also its columns and the number of rows, where the statement is remembered, and where not."""
    arguments = arguments_of(postgres_server.maintenance)
    with (
        closing(Connection(**arguments)) as expected,
        closing(CatalogConnection("public", startup_params={}, **arguments)) as con,
    ):
        for sql, parameters in RUNS:
            assert con.run(sql, **parameters) == expected.run(sql, **parameters)
            assert con.row_count == expected.row_count
            assert names(con) == names(expected)


def prepared(con: CatalogConnection) -> int:
    con.planning = Planning.EACH_TIME
    [[number]] = con.run("SELECT count(*) FROM pg_prepared_statements")
    return number


@pytest.fixture
def con(postgres_server):
    arguments = arguments_of(postgres_server.maintenance)
    with closing(CatalogConnection("public", startup_params={}, **arguments)) as opened:
        opened.start(Planning.AS_IT_DECIDES, may_prepare=True)
        yield opened


def test_a_statement_is_prepared_once(con):
    for value in (1, 2, 3):
        assert con.run("SELECT :a + 1", a=value) == [[value + 1]]
    assert prepared(con) == 1


def test_the_statements_that_were_used_last_stay_prepared(con):
    for number in range(MOST_PREPARED + 6):
        assert con.run("SELECT :a + 0", a=number) == [[number]]
        assert con.run(f"SELECT :a + {number}", a=1) == [[number + 1]]
    assert prepared(con) == MOST_PREPARED
    [[runs]] = con.run(
        "SELECT generic_plans + custom_plans FROM pg_prepared_statements"
        " WHERE statement = 'SELECT $1 + 0'"
    )
    assert runs == MOST_PREPARED + 6 + 1  # the last loop also has it


def test_a_statement_without_parameters_is_prepared_too(con):
    for _ in range(2):
        assert con.run("\nSELECT 1, '%', 'a:b' -- :c") == [[1, "%", "a:b"]]
    assert con.run("SHOW plan_cache_mode") == [["auto"]]
    assert prepared(con) == 1


PLANNED = [
    (Planning.EACH_TIME, ["auto", "1"]),
    (Planning.ONCE_BY_INDEX, ["force_generic_plan", "1000"]),
    (Planning.EACH_TIME, ["auto", "1"]),
    (Planning.ONCE, ["force_generic_plan", "1"]),
    (Planning.ONCE_BY_INDEX, ["force_generic_plan", "1000"]),
    (Planning.AS_IT_DECIDES, ["auto", "1"]),
]
"""Of the statements of one transaction, with their settings."""


@pytest.mark.parametrize("first", [Planning.EACH_TIME, Planning.ONCE])
def test_each_statement_has_the_settings_of_its_planning(con, first):
    settings = (
        "SELECT current_setting('plan_cache_mode'), current_setting('seq_page_cost') WHERE :a"
    )
    for _ in range(2):
        con.start(first, may_prepare=True)
        con.run("BEGIN")
        for planning, expected in PLANNED:
            con.planning = planning
            assert con.run(settings, a=True) == [expected]
        con.run("COMMIT")
        assert con.run(settings, a=True) == [["auto", "1"]]
    assert prepared(con) == 2  # one of them by index


def test_a_statement_has_the_rows_of_its_ids_however_it_is_planned(con):
    con.run("CREATE TEMPORARY TABLE t (data_file_id bigint PRIMARY KEY)")
    con.run("INSERT INTO t VALUES (-1), (0), (1), (9223372036854775807)")
    sql = (
        "SELECT (SELECT max(every.data_file_id) FROM t AS every), array_agg(f.data_file_id)"
        " FROM t AS f WHERE f.data_file_id BETWEEN :first_id AND :last_id"
    )
    con.run("BEGIN")
    for planning in Planning:
        con.planning = planning
        assert con.run(sql, first_id=0, last_id=2) == [[9223372036854775807, [0, 1]]]
    con.run("COMMIT")


def test_a_statement_that_failed_runs_again(con):
    for value, rows in ((0, None), (1, [[7]]), (0, None), (7, [[1]])):
        if rows is None:
            with pytest.raises(DatabaseError):
                con.run("SELECT 7 / :a", a=value)
        else:
            assert con.run("SELECT 7 / :a", a=value) == rows


def test_a_connection_whose_statements_are_gone_says_so_and_prepares_them_again(con):
    con.run("SELECT :a + 1", a=1)
    con.run("DEALLOCATE ALL")
    with pytest.raises(DatabaseError) as gone:
        con.run("SELECT :a + 1", a=1)
    assert sqlstate(gone.value) == GONE_STATEMENT
    assert con.run("SELECT :a + 1", a=1) == [[2]]


def test_a_column_that_changes_its_type_makes_a_statement_gone(con):
    con.run("CREATE TEMPORARY TABLE t (a integer)")
    con.run("INSERT INTO t VALUES (:a)", a=1)
    assert con.run("SELECT * FROM t WHERE :b", b=True) == [[1]]
    con.run("ALTER TABLE t ALTER a TYPE text")
    with pytest.raises(DatabaseError) as stale:
        con.run("SELECT * FROM t WHERE :b", b=True)
    assert sqlstate(stale.value) == GONE_STATEMENT
    assert con.run("SELECT * FROM t WHERE :b", b=True) == [["1"]]


def test_nothing_is_prepared_unless_that_is_wanted(con):
    con.planning = Planning.EACH_TIME
    for value in (1, 2):
        assert con.run("SELECT :a + 1", a=value) == [[value + 1]]
    assert prepared(con) == 0


def test_the_end_of_a_copy_does_not_wait_for_the_acknowledgement_of_its_data(postgres_server):
    arguments = arguments_of(postgres_server.maintenance)
    with closing(CatalogConnection("public", startup_params={}, **arguments)) as con:
        assert con._usock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def arguments_of(server) -> dict:
    arguments = {"user": server.user, "host": server.host, "port": server.port}
    return arguments | {"database": server.dbname, "password": server.password}


def names(con) -> list[str]:
    return [column["name"] for column in con.columns or ()]
