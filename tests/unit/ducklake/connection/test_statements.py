"""Statements in one round trip have the same results as one by one."""

from itertools import count

import pytest
from polynya.ducklake.connection.catalog_connection import Statement, constant, run_batched, select

NUMBERS = count(1)


def rows(sql: str, **parameters) -> Statement[list]:
    return Statement(sql, parameters, lambda rows: rows)


STATEMENTS = {
    "rows": rows("SELECT i, i * 10 FROM generate_series(1, 3) AS i ORDER BY i DESC"),
    "none": rows("SELECT 1 WHERE false"),
    "kinds": rows(
        "SELECT NULL, true, 9223372036854775807, 'a\"\\ü ', ARRAY['x', NULL], ARRAY[]::text[]"
    ),
    "large": select(int, "SELECT 170141183460469231731687303715884105727"),
    "names that are there twice": rows("SELECT 1, 2, 3 AS x, 4 AS x"),
    "parameters": rows("SELECT :a || '-' || :b", a="o'; --", b="é"),
    "another with the same": rows("SELECT :a", a="o'; --"),
    "computed": Statement("SELECT generate_series(1, 5)", {}, len),
    "known without the database": constant(7),
}


@pytest.fixture(scope="module")
def con(postgres_server):
    con = postgres_server.create_database(f"statements_{next(NUMBERS)}").connect()
    yield con
    con.close()


class Counting:
    """A connection that counts the statements that are sent."""

    def __init__(self, con) -> None:
        self.con, self.calls = con, 0

    def run(self, *args, **parameters):
        self.calls += 1
        return self.con.run(*args, **parameters)


def test_results_are_those_of_each_statement_alone(con):
    expected = [statement.run(con) for statement in STATEMENTS.values()]
    assert expected[-2:] == [5, 7]
    assert run_batched(con, *STATEMENTS.values()) == expected


def test_one_statement_is_sent_to_the_database(con):
    counting = Counting(con)
    run_batched(counting, *STATEMENTS.values())
    assert counting.calls == 1


def test_a_known_result_is_not_queried(con):
    counting = Counting(con)
    assert run_batched(counting, constant(1), constant(None)) == [1, None]
    assert constant([]).run(counting) == []
    assert counting.calls == 0


def test_parameters_with_one_name_and_two_values_are_refused(con):
    statements = [rows("SELECT :n", n=n) for n in ("1", "2")]
    with pytest.raises(ValueError, match="different values for :n"):
        run_batched(con, *statements)
