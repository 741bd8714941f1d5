"""What `polynya_local.clients.canonical` treats as equal and what as different."""

import pyarrow as pa
import pytest
from polynya_local.clients.canonical import canonical, columns_of, difference, from_arrow
from polynya_local.clients.duckdb import connect

# DuckLake's rows, the client's rows (both as SELECT), hidden columns
SAME = [
    ("SELECT 1::TINYINT AS a", "SELECT 1::INTEGER AS a", ()),
    ("SELECT 4294967295::UINTEGER AS a", "SELECT 4294967295::BIGINT AS a", ()),
    ("SELECT 1::HUGEINT AS a", "SELECT 1::DOUBLE AS a", ()),
    ("SELECT 'nan'::DOUBLE AS a", "SELECT -('nan'::DOUBLE) AS a", ()),
    ("SELECT '{\"a\": 1}'::JSON AS a", "SELECT '{\"a\": 1}' AS a", ()),
    ("SELECT uuid AS a", "SELECT CAST(uuid AS VARCHAR) AS a", ()),
    ("SELECT uuid AS a", "SELECT CAST(uuid AS BLOB) AS a", ()),
    ("SELECT '01:00:00+02'::TIMETZ AS a", "SELECT TIME '23:00:00' AS a", ()),
    ("SELECT '2024-01-01'::TIMESTAMP_S AS a", "SELECT '2024-01-01'::TIMESTAMP AS a", ()),
    ("SELECT 1 AS a, 2 AS b", "SELECT 2 AS b, 1 AS a", ()),
    ("SELECT 1 AS a, 2 AS b", "SELECT 1 AS a", ("b",)),
    ("SELECT {'x': 1, 'y': 2} AS a", "SELECT {'x': 1::BIGINT} AS a", ("a.y",)),
    ("SELECT [{'x': 1, 'y': 2}] AS a", "SELECT [{'x': 1}] AS a", ("a.element.y",)),
    ("SELECT MAP {1: {'x': 1, 'y': 2}} AS a", "SELECT MAP {1: {'x': 1}} AS a", ("a.value.y",)),
    ("SELECT MAP {'k': 1, 'l': 2} AS a", "SELECT MAP {'l': 2, 'k': 1} AS a", ()),
    ("SELECT 'POINT(1 2)'::GEOMETRY AS a", "SELECT ST_AsWKB('POINT(1 2)'::GEOMETRY) AS a", ()),
    ("SELECT unnest([2, 1, 1]) AS a", "SELECT unnest([1, 2, 1]) AS a", ()),
]
UNLIKE = [
    ("SELECT unnest([1, 2]) AS a", "SELECT unnest([1, 3]) AS a", "a is 3, not 2|missing 1x: a=2"),
    ("SELECT unnest([1, 1]) AS a", "SELECT 1 AS a", "missing 1x: a=1"),
    ("SELECT 1 AS a", "SELECT unnest([1, 1]) AS a", "surplus 1x: a=1"),
    ("SELECT 0.0::DOUBLE AS a", "SELECT '-0.0'::DOUBLE AS a", "a=-0.0"),
    ("SELECT ['-0.0'::FLOAT] AS a", "SELECT [0.0::FLOAT] AS a", "a=[0.0]"),
    ("SELECT 'infinity'::DATE AS a", "SELECT DATE '9999-12-31' AS a", "a=infinity"),
    ("SELECT 'infinity'::TIMESTAMP AS a", "SELECT '-infinity'::TIMESTAMP AS a", "a=-infinity"),
    ("SELECT '0044-03-15 (BC)'::DATE AS a", "SELECT DATE '0044-03-15' AS a", "(BC)"),
    ("SELECT 1 AS a, NULL::INT AS b", "SELECT NULL::INT AS a, 1 AS b", "a is NULL, not 1|a=NULL"),
    ("SELECT 'NULL' AS a", "SELECT NULL::VARCHAR AS a", 'a="NULL"'),
    ("SELECT ['NULL'] AS a", "SELECT [NULL::VARCHAR] AS a", 'a=["NULL"]'),
    ("SELECT 'a' || chr(0) AS a", "SELECT 'a' AS a", 'a="a\\u0000"'),
    ("SELECT [1, 2] AS a", "SELECT [2, 1] AS a", "a=[2, 1]"),
    ("SELECT NULL::INT[] AS a", "SELECT []::INT[] AS a", "a=[]"),
    ("SELECT NULL::STRUCT(x INT) AS a", "SELECT {'x': NULL::INT} AS a", "a={x: NULL}"),
    ("SELECT {'x': 1} AS a", "SELECT {'x': 1, 'y': 2} AS a", "surplus field y"),
    ("SELECT {'x': 1, 'y': 2} AS a", "SELECT {'x': 1} AS a", "no such field"),
    ("SELECT 44::TINYINT AS a", "SELECT 300 AS a", "INTEGER 300"),
    ("SELECT NULL::TINYINT AS a", "SELECT 300 AS a", "INTEGER 300"),
    ("SELECT 2 AS a", "SELECT 1.5::DOUBLE AS a", "DOUBLE 1.5"),
    ("SELECT 0.1::FLOAT AS a", "SELECT 0.1::DOUBLE AS a", "DOUBLE 0.1"),
    ("SELECT TIMESTAMPTZ '2024-01-01' AS a", "SELECT TIMESTAMP '2024-01-01' AS a", "TIMESTAMP 2"),
    ("SELECT '\\x00'::BLOB AS a", "SELECT ''::BLOB AS a", "x00"),
    ("SELECT 1 AS a", "SELECT 1 AS b", "columns missing: ['a'], surplus: ['b']"),
    ("SELECT {'x': 1} AS a", "SELECT 1 AS a", "INTEGER 1"),
]
TWIN = "(SELECT '00000000-0000-0000-0000-00000000000a'::UUID AS uuid)"


def compared(native: str, client: str, hidden: tuple[str, ...] = ()) -> list[str]:
    with connect() as con:
        con.execute("SET arrow_lossless_conversion = true")
        source = f"({native} FROM {TWIN})"
        columns = columns_of(con, source)
        truth = canonical(con, source, columns, hidden)
        table = con.execute(f"{client} FROM {TWIN}").to_arrow_table()
    return difference(truth, from_arrow(table, columns, hidden))


@pytest.mark.parametrize("native, client, hidden", SAME)
def test_another_representation_is_equal(native, client, hidden):
    assert compared(native, client, hidden) == []


@pytest.mark.parametrize("native, client, reported", UNLIKE)
def test_another_value_is_reported(native, client, reported):
    report = "\n".join(compared(native, client))
    assert any(words in report for words in reported.split("|")), report


def test_a_changed_value_is_reported_with_its_row():
    report = compared("SELECT 7 AS id, 'x' AS b, 1 AS c", "SELECT 7 AS id, 'y' AS b, 1 AS c")
    assert report == [
        "1 rows missing, 1 rows surplus",
        'b is "y", not "x" in id=7, b="x", c=1',
    ]


def test_values_outside_pythons_dates_pass_through_arrow_unchanged():
    """date32 and timestamps that `datetime` cannot hold, as Spark or PyIceberg return them."""
    numbers = pa.array([2**31 - 1, -(2**31 - 1), -735_250], pa.int32())
    table = pa.table(
        {
            "d": numbers.cast(pa.date32()),
            "t": pa.array([2**63 - 1, -(2**63 - 1), 0], pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )
    with connect() as con:
        source = "(SELECT NULL::DATE AS d, NULL::TIMESTAMPTZ AS t)"
        found = from_arrow(table, columns_of(con, source))
    assert set(found.rows) == {
        ("infinity", "infinity"),
        ("-infinity", "-infinity"),
        ("0045-12-15 (BC)", "1970-01-01 00:00:00+00"),
    }
