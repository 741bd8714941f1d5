"""What SQL in the sandbox cannot do, even if the SQL is hostile."""

import tempfile
import time
from pathlib import Path

import pytest
from polynya.iceberg.sandbox import Unreadable, literal, sandbox
from polynya.runtime import budget
from polynya.runtime.errors import OutOfTime, PolynyaError

STATEMENTS = [
    "SELECT * FROM read_text('{folder}/secret.txt')",
    "SELECT * FROM read_blob('{folder}/secret.txt')",
    "SELECT * FROM read_csv('{folder}/secret.txt')",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/written.txt'",
    "ATTACH '{folder}/written.db'",
    "EXPORT DATABASE '{folder}'",
    "LOAD httpfs",
    "INSTALL httpfs",
    "SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET threads = 8",
    "SET memory_limit = '100GB'",
    "RESET lock_configuration",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_has_no_access_outside_the_sandbox(statement, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises((PolynyaError, Unreadable)) as failure, sandbox() as (con, _):
        con.execute(statement.format(folder=tmp_path))
    assert str(tmp_path) not in str(failure.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


def test_the_sandbox_folder_is_usable_and_is_removed():
    with sandbox() as (con, path):
        con.execute(f"COPY (SELECT 42 AS c) TO {literal(str(path))} (FORMAT parquet)")
        assert con.execute("FROM read_parquet(?)", [str(path)]).fetchall() == [(42,)]
    assert not path.parent.exists()


def test_a_folder_beside_the_sandbox_is_not_accessible():
    neighbour = Path(tempfile.gettempdir()) / "polynya-neighbour.txt"
    with pytest.raises((PolynyaError, Unreadable)), sandbox() as (con, path):
        con.execute(f"COPY (SELECT 1) TO '{path.parent.parent}/../{neighbour.name}'")
    assert not neighbour.exists()


def test_the_error_for_an_invalid_cast_does_not_quote_the_value():
    with pytest.raises(Unreadable) as failure, sandbox() as (con, _):
        con.execute("SELECT 'a row'::DATE")
    assert str(failure.value) == "DuckDB says ConversionException"
    assert failure.value.__suppress_context__


LEFT_BEHIND = {
    "a table": ("CREATE TABLE t AS SELECT 1", "FROM t"),
    "a temporary table": ("CREATE TEMP TABLE t AS SELECT 1", "FROM t"),
    "a view": ("CREATE VIEW v AS SELECT 1", "FROM v"),
    "a macro": ("CREATE MACRO m() AS 1", "SELECT m()"),
    "a type": ("CREATE TYPE y AS ENUM ('a')", "SELECT 'a'::y"),
    "a prepared statement": ("PREPARE p AS SELECT 1", "EXECUTE p"),
    "a variable": (
        "SET VARIABLE x = 'left'",
        "SELECT coalesce(getvariable('x'), '-')::DATE",
    ),
    "a file": ("COPY (SELECT 1) TO '{path}'", "FROM read_parquet('{path}')"),
    "a file beside": ("COPY (SELECT 1) TO '{above}/f.csv'", "FROM read_csv('{above}/f.csv')"),
}
"""A statement, and one that fails if nothing of it is left."""


@pytest.mark.parametrize("case", LEFT_BEHIND)
def test_nothing_is_left_for_the_next_block(case):
    leave, find = LEFT_BEHIND[case]
    with sandbox() as (con, path):
        places = {"path": path, "above": path.parent.parent}
        con.execute(leave.format(**places))
    with pytest.raises((PolynyaError, Unreadable)), sandbox() as (con, _):
        con.execute(find.format(**places))


@pytest.mark.parametrize("end", ["COMMIT", "COMMIT; BEGIN", "ROLLBACK; BEGIN"])
def test_a_statement_cannot_end_the_transaction(end):
    with pytest.raises(PolynyaError), sandbox() as (con, path):
        con.execute(f"CREATE VIEW v AS SELECT 1; {end}")
    assert not path.parent.parent.exists()


def test_a_duckdb_is_used_again():
    with sandbox() as (first, path):
        first.execute("CREATE TABLE t AS SELECT 1")
    with sandbox() as (_, again):
        assert again.parent.parent == path.parent.parent
        assert again != path
        with sandbox() as (_, other):
            assert other.parent.parent != path.parent.parent


def test_one_that_failed_is_not_used_again():
    with pytest.raises(Unreadable), sandbox() as (con, path):
        con.execute("SELECT 'a row'::DATE")
    assert not path.parent.parent.exists()


def test_times_are_those_of_utc():
    for _ in range(2):
        with sandbox() as (con, _):
            found = con.execute("SELECT '2030-01-01 00:00:00+00'::TIMESTAMPTZ::VARCHAR").fetchall()
            assert found == [("2030-01-01 00:00:00+00",)]


ENDLESS = "SELECT count(*) FROM range(1_000_000_000_000) WHERE random() < 0"


@pytest.mark.parametrize("pause", [0, 0.4])
def test_a_statement_is_interrupted_at_the_end_of_the_budget(pause):
    """Also one that begins after it."""
    started = time.monotonic()
    with pytest.raises(OutOfTime), budget.limited(0.3), sandbox() as (con, path):
        time.sleep(pause)
        con.execute(ENDLESS).fetchall()
    assert time.monotonic() - started < 5
    assert not path.parent.parent.exists()
    with pytest.raises(OutOfTime), budget.limited(0), sandbox():
        pass


def test_a_block_within_the_budget_is_not_interrupted_later():
    for _ in range(3):
        with budget.limited(0.1), sandbox() as (con, _):
            con.execute("SELECT 1")
        time.sleep(0.1)
        with sandbox() as (con, _):
            assert con.execute("SELECT count(*) FROM range(20_000_000)").fetchall()
