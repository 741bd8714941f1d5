"""Several questions in one statement have the answers that they have one by one."""

from itertools import count

import pytest
from polynya.ducklake.connection.batch import together

NUMBERS = count(1)
QUESTIONS = {
    "rows": lambda con: con.run("SELECT i, i * 10 FROM generate_series(1, 3) AS i ORDER BY i DESC"),
    "none": lambda con: con.run("SELECT 1 WHERE false"),
    "kinds": lambda con: con.run(
        "SELECT NULL, true, 9223372036854775807, 'a\"\\ü ', ARRAY['x', NULL], ARRAY[]::text[]"
    ),
    "large": lambda con: [
        [int(n) for n in row] for row in con.run("SELECT 170141183460469231731687303715884105727")
    ],
    "names that are there twice": lambda con: con.run("SELECT 1, 2, 3 AS x, 4 AS x"),
    "parameters": lambda con: con.run("SELECT :a || '-' || :b", a="o'; --", b="é"),
    "another with the same": lambda con: con.run("SELECT :a", a="o'; --"),
    "computed": lambda con: len(con.run("SELECT generate_series(1, 5)")),
    "knows it by itself": lambda con: [],
}


@pytest.fixture(scope="module")
def con(postgres_server):
    con = postgres_server.create_database(f"together_{next(NUMBERS)}").connect()
    yield con
    con.close()


def test_answers_are_those_of_each_alone(con):
    expected = [question(con) for question in QUESTIONS.values()]
    assert together(con, *QUESTIONS.values()) == expected


def test_one_statement_goes_to_the_database(con):
    class Counting:
        calls = 0

        def run(self, *of, **with_):
            self.calls += 1
            return con.run(*of, **with_)

    counting = Counting()
    together(counting, *QUESTIONS.values())
    assert counting.calls == 1


def test_parameters_of_one_name_and_two_values_are_not_mixed_up(con):
    questions = [lambda con, n=n: con.run("SELECT :n", n=n) for n in ("1", "2")]
    with pytest.raises(ValueError, match="another n"):
        together(con, *questions)
