"""A filter is a small closed form; anything else is a sentence."""

import re

import pytest
from polynya.runtime.errors import BadRequest
from polynya_local.page.table_views import lines_of
from polynya_local.reports.preview import Lines
from polynya_local.reports.preview_sql import OPERATORS, Condition, operators_of, parse

TYPES = {
    "i": "int32",
    "s": "varchar",
    "f": "float64",
    "d": "decimal(9,2)",
    "b": "blob",
    "t": "timestamp",
    "l": "list",
    "u": "uuid",
    'a"b': "int64",
}
HIDDEN = {"h": "values from 2^63 up do not fit Iceberg's long"}

UNDERSTOOD = [
    (("i", "=", "5"), Condition("i", "int32", "=", "5")),
    (("i", ">=", " -5 "), Condition("i", "int32", "≥", " -5 ")),
    (("i", "!=", "5"), Condition("i", "int32", "≠", "5")),
    (('a"b', "<", "5"), Condition('a"b', "int64", "<", "5")),
    (("s", "STARTS WITH", "%_'"), Condition("s", "varchar", "starts with", "%_'")),
    (("s", "=", ""), Condition("s", "varchar", "=", "")),
    (("l", "is null", "not looked at"), Condition("l", "list", "is null", None)),
    (("b", "=", "00fF"), Condition("b", "blob", "=", "00fF")),
]
REFUSED = [
    (("x", "=", "5"), "there is no column x"),
    (("i; DROP TABLE t", "=", "5"), "there is no column i; DROP"),
    (("h", "=", "5"), "do not see the column h: values from 2^63"),
    (("i", "LIKE", "5"), "like is not an operator"),
    (("i", "= 5 OR 1 =", "1"), "is not an operator"),
    (("i", "=", "five"), "is not a whole number"),
    (("i", "=", "1.5"), "is not a whole number"),
    (("i", "=", "5" * 41), "is not a whole number"),
    (("i", "starts with", "5"), "only =, ≠"),
    (("l", "=", "[1]"), "only is null, is not null"),
    (("u", "<", "0"), "only =, ≠, is null, is not null"),
    (("b", "=", "0g"), "hexadecimal"),
    (("f", "=", "-NaN"), "is not equal to anything"),
    (("s", "=", "a\x00b"), "character 0"),
    (("s", "=", "x" * 10_000_000), "has 10,000,000 characters; at most 1,000"),
    (("x" * 10_000_000, "=", "5"), "there is no column xxx"),
    (("i", "x" * 10_000_000, "5"), "xxx… is not an operator"),
]


@pytest.mark.parametrize(("line", "condition"), UNDERSTOOD)
def test_a_line_is_a_condition(line, condition):
    assert parse(*([part] for part in line), TYPES, HIDDEN) == (condition,)


@pytest.mark.parametrize(("line", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_a_line_that_is_none_is_refused_in_a_sentence(line, words):
    with pytest.raises(BadRequest, match=re.escape(words)) as refused:
        parse(*([part] for part in line), TYPES, HIDDEN)
    assert len(str(refused.value)) < 300


def test_lines_without_a_column_are_left_out_and_too_many_are_refused():
    assert parse(["", "i"], ["=", "="], ["x", "1"], TYPES, HIDDEN) == (
        Condition("i", "int32", "=", "1"),
    )
    with pytest.raises(BadRequest, match="at most 8 conditions, not 9"):
        parse(["i"] * 9, ["="] * 9, ["1"] * 9, TYPES, HIDDEN)
    with pytest.raises(BadRequest, match="as many"):
        parse(["i"], [], [], TYPES, HIDDEN)


@pytest.mark.parametrize("type_", [*TYPES.values(), "interval", "a type of the future"])
def test_each_type_has_operators_of_the_list(type_):
    assert set(operators_of(type_)) <= set(OPERATORS)
    assert operators_of(type_)[-2:] == ("is null", "is not null")


def test_lines_of_a_form_have_numbers():
    query = {"column": "a", "operator": "=", "value": "1", "column2": "", "snapshot": "3"}
    query |= {"column10": "b", "operator10": "is null", "column1": "no line", "columnx": "none"}
    assert lines_of(query) == Lines(["a", "", "b"], ["=", "", "is null"], ["1", "", ""])
