"""Rows in PostgreSQL's record format: each parsed value is PostgreSQL's own text of it."""

from contextlib import closing

import pytest
from polynya.ducklake.connection.database import TEXT_FORMS
from polynya.ducklake.queries.inlined_tables import record
from polynya.ducklake.rows.lifetimes import InlinedTable, postgres_name

NASTY = (
    "",
    " ",
    "a,b",
    "(x)",
    'q"uo',
    '""',
    "\\",
    '\\"',
    "\\\\x",
    "\n\t",
    "NULL",
    "ä🦆",
    '{"a": "b,"}',
)
TYPES = {
    "r": ("text", (*NASTY, None)),
    "q": ("bytea", (*(text.encode() for text in NASTY), b"\x00\xff", None)),
    "number": ("numeric(20,5)", ("1.50000", "-0.00001", "NaN", None)),
    "f": ("double precision", ("1e-300", "0.1", "Infinity", "NaN", "-0", None)),
    "b": ("boolean", ("true", "false", None)),
    "t": ("time", ("24:00:00", "00:00:00.000001", None)),
    "z": ("timetz", ("12:00:00+05:30", None)),
    "i": ("interval", ("1 year -2 days 00:00:01", None)),
    "u": ("uuid", ("00000000-0000-0000-0000-000000000001", None)),
}


@pytest.fixture(scope="module")
def con(postgres_server):
    with closing(postgres_server.create_database("records").connect()) as con:
        for name, value in TEXT_FORMS.items():
            con.run(f"SET {name} = '{value}'")
        yield con


@pytest.mark.parametrize("name", TYPES)
def test_each_value_has_the_text_of_postgresql(name, con):
    type_, values = TYPES[name]
    columns = f'row_id bigint, begun bigint, ended bigint, "{name}" {type_}, last text'
    con.run(f"CREATE TEMP TABLE t_{name}({columns})")
    for number, value in enumerate(values):
        sql = f"INSERT INTO t_{name} VALUES (:n, 1, NULL, CAST(:value AS {type_}), 'x')"
        con.run(sql, n=number, value=value)
    [[known]] = con.run("SELECT CAST(:type AS regtype)::text", type=type_)
    system = ("row_id", "begun", "ended")
    table = InlinedTable(f"t_{name}", 1, 1, 1, system, (name, "last"), (known, "text"))
    text = f'r."{name}"' if type_ == "bytea" else f'r."{name}"::text'
    rows = con.run(f"SELECT (r.*)::text, {text} FROM t_{name} AS r ORDER BY row_id")
    assert [record(table, row) for row, _ in rows] == [
        {name: value, "last": "x"} for _, value in rows
    ]


@pytest.mark.parametrize("name", ["short", "x" * 64, "é" * 40, "ä🦆" * 20])
def test_a_name_is_truncated_as_by_postgresql(name, con):
    con.run(f'CREATE TEMP TABLE cut("{name}" int)')
    [[known]] = con.run(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = 'cut'::regclass AND attnum = 1"
    )
    con.run("DROP TABLE cut")
    assert postgres_name(name) == known


def test_dates_before_christ_are_written_as_by_duckdb():
    table = InlinedTable("t", 1, 1, 1, ("a", "b", "c"), ("d", "t"), ("date", "text"))
    found = record(table, '(1,2,,"0044-03-15 BC","0044-03-15 BC")')
    assert found == {"d": "0044-03-15 (BC)", "t": "0044-03-15 BC"}
