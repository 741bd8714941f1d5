"""Names of the lake in snippets: the language's own parser gives them back."""

import ast

import duckdb
import pytest
from polynya_local.clients.duckdb import identifier
from polynya_local.reports.snippets import (
    SQL,
    backticked,
    clickhouse_literal,
    clickhouse_name,
    property_value,
    python_literal,
)

NAMES = [
    "orders",
    "Größe",
    'a"b',
    "a'b",
    "a`b",
    "a\\b",
    "a\\'b",
    "a\nb",
    "a\tb",
    "$warehouse ${x} {y} %s",
    "'; DROP TABLE t; --",
    '"""',
    "\u202etxt.exe",
    "\u2028",
    "🦆",
    "<script>alert(1)</script>",
    "",
]


@pytest.mark.parametrize("name", NAMES)
def test_python_reads_the_name_again(name):
    quoted = python_literal(name)
    assert ast.literal_eval(quoted) == name
    assert quoted.isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_reads_the_name_again(name):
    [(text,)] = duckdb.execute(f"SELECT {SQL.text(name)}").fetchall()
    assert text == name
    if name:
        assert duckdb.sql(f"SELECT 1 AS {identifier(name)}").columns == [name]


# What the manuals of the languages say of quotes and escapes.
WRITTEN = [
    (backticked, "a`b\\", "`a``b\\`"),
    (clickhouse_name, "a`b\\", "`a\\`b\\\\`"),
    (clickhouse_literal, "a'b\\", "'a\\'b\\\\'"),
    (property_value, "a\\b=c:ü🦆\n", "a\\\\b=c:\\u00fc\\ud83e\\udd86\\n"),
]


@pytest.mark.parametrize(("quote", "name", "written"), WRITTEN)
def test_other_languages_have_their_escapes(quote, name, written):
    assert quote(name) == written
