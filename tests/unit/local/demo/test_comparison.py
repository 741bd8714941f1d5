"""The demo's output if a client is correct, wrong, or fails."""

from io import StringIO

import duckdb
import pyarrow as pa
import pytest
from polynya_local.clients.canonical import canonical, columns_of
from polynya_local.demo.reading import Comparison, TableVersion, conclude, show
from polynya_pipeline.common.progress import console

ROWS = "(VALUES (1, 'eider'), (2, 'teal'), (2, 'teal')) AS t(n, name)"
RIGHT = {"n": [2, 1, 2], "name": ["teal", "eider", "teal"]}
LOST = {"n": [1, 2], "name": ["eider", "teal"]}
OTHER = {"n": [1, 2, 2], "name": ["eider", "teal", "gull"]}


class Judge:
    """Replaces DuckLake, with one table."""

    def __init__(self, con) -> None:
        self._con = con

    def canonical(self, *_):
        return canonical(self._con, ROWS, columns_of(self._con, ROWS))

    def columns(self, *_):
        return columns_of(self._con, ROWS)


class Reader:
    def __init__(self, name: str, answer: dict | Exception) -> None:
        self.name, self._answer = name, answer

    def rows(self, *_):
        if isinstance(self._answer, Exception):
            raise self._answer
        return pa.table(self._answer)


@pytest.fixture
def judge():
    with duckdb.connect() as con:
        yield Judge(con)


def outcome(judge, **answers) -> tuple[int, list[str]]:
    """The exit code, and the printed lines."""
    comparison = Comparison(judge)
    truth = comparison.add(TableVersion("birds", "flocks", 7, "a [bold] event"))
    for name, answer in answers.items():
        comparison.ask(Reader(name, answer), truth)
    stream = StringIO()
    out = console(stream)
    show(out, "Title", comparison, [*answers, "absent"])
    code = conclude(out, comparison)
    return code, [line.rstrip() for line in stream.getvalue().splitlines()]


def test_same_rows_in_another_order_are_equal(judge):
    code, lines = outcome(judge, one=RIGHT, two=RIGHT)
    assert code == 0
    assert "birds.flocks         7  a [bold] event         3  3 same  3 same       -" in lines
    assert lines[-1] == "Each of 2 reads gave exactly the rows that DuckLake has."


@pytest.mark.parametrize(
    "wrong, cell, sentence",
    [
        (LOST, "2 DIFFERS", "wrong, birds.flocks at 7: 1 rows missing, 0 rows surplus"),
        (OTHER, "3 DIFFERS", "wrong, birds.flocks at 7: 1 rows missing, 1 rows surplus"),
        (RuntimeError("it\ndied"), "no rows DIFFERS", "at 7: RuntimeError: it died"),
    ],
)
def test_one_wrong_client_is_named_and_sets_the_exit_code(judge, wrong, cell, sentence):
    code, lines = outcome(judge, right=RIGHT, wrong=wrong)
    assert code == 1
    (row,) = [line for line in lines if line.startswith("birds.flocks ")]
    assert "3 same" in row and cell in row
    assert any(line.startswith("DIFFERS: wrong, ") and sentence in line for line in lines)
    assert not any(line.startswith("DIFFERS: right") for line in lines)
    assert lines[-1] == "Not every client read the rows that DuckLake has."


def test_a_missing_column_is_a_difference(judge):
    code, lines = outcome(judge, wrong={"n": [1, 2, 2]})
    assert code == 1
    assert "DIFFERS: wrong, birds.flocks at 7: columns missing: ['name'], surplus: []" in lines


def test_output_that_is_not_a_terminal_has_no_escape_codes(judge):
    _, lines = outcome(judge, right=RIGHT, wrong=LOST)
    assert "\x1b" not in "".join(lines)
