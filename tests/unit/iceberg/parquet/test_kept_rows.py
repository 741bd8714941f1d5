"""Rows of DuckLake's files are found in files that PyArrow, and so PyIceberg, writes of them.

DuckDB writes the old files, as DuckLake does; PyArrow reads them and writes some of the rows.
"""

import io
from pathlib import Path
from tempfile import NamedTemporaryFile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.kept_rows import OldFile, Uncertain, kept_rows
from polynya.iceberg.sandbox import Unreadable
from polynya.iceberg.types import Field, List, Map, Primitive, Struct

P = Primitive
L, S = pa.int64(), pa.string()
# The type in DuckLake, that in Iceberg, PyIceberg's type in Arrow, and values in SQL.
TYPES = {
    "boolean": ("BOOLEAN", P("boolean"), pa.bool_(), ("true", "false")),
    "tinyint": ("TINYINT", P("int"), pa.int32(), ("-128", "0", "127")),
    "uint8, now long": ("UTINYINT", P("long"), L, ("0", "255")),
    "uint32": ("UINTEGER", P("long"), L, ("0", "4294967295")),
    "bigint": ("BIGINT", P("long"), L, ("9223372036854775807", "9223372036854775806")),
    "float": ("FLOAT", P("float"), pa.float32(), ("0.1", "'nan'", "'inf'", "16777217")),
    "float, now double": ("FLOAT", P("double"), pa.float64(), ("0.1", "'-inf'", "3.4e38")),
    "decimal": ("DECIMAL(9,2)", P("decimal(38, 2)"), pa.decimal128(38, 2), ("0.01", "-0.01")),
    "text": ("VARCHAR", P("string"), S, ("''", "'ä'", "'a '", "'A'", "'a'", "'NULL'")),
    "json": ("JSON", P("string"), S, ("""'{"a": 1}'""", """'{"a":1}'""", "'null'")),
    "blob": ("BLOB", P("binary"), pa.large_binary(), (r"'\x00'", "''", r"'\x00\x00'")),
    "uuid": (
        "UUID",
        P("uuid"),
        pa.binary(16),
        ("'00000000-0000-0000-0000-0000000000ab'", "'ab000000-0000-0000-0000-000000000000'"),
    ),
    "date": ("DATE", P("date"), pa.date32(), ("'infinity'", "'0044-03-15 (BC)'", "'2024-02-29'")),
    "time": ("TIME", P("time"), pa.time64("us"), ("'00:00:00'", "'23:59:59.999999'")),
    "timestamp": ("TIMESTAMP", P("timestamp"), pa.timestamp("us"), ("'1969-12-31 23:59:59.5'",)),
    "timestamp_ms": (
        "TIMESTAMP_MS",
        P("timestamp"),
        pa.timestamp("us"),
        ("'2024-02-29 01:02:03'",),
    ),
    "timestamptz": (
        "TIMESTAMPTZ",
        P("timestamptz"),
        pa.timestamp("us", "UTC"),
        ("'2024-02-29 01:02:00+00'", "'2024-02-29 01:02:00+05:30'"),
    ),
}


def of_duckdb(sql, ids):
    """A file of the rows of a query."""
    with duckdb.connect() as con, NamedTemporaryFile(suffix=".parquet") as file:
        con.execute(f"COPY ({sql}) TO '{file.name}' (FIELD_IDS {{{ids}}})")
        return Path(file.name).read_bytes()


def of_arrow(table):
    stream = io.BytesIO()
    pq.write_table(table, stream, use_dictionary=False)
    return stream.getvalue()


def field(name, type_, id_):
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(id_)})


def read(file):
    return pq.read_table(io.BytesIO(file))


@pytest.mark.parametrize("name", TYPES)
def test_the_row_that_is_missing_is_known_by_its_value(name):
    duckdb_type, iceberg, arrow, values = TYPES[name]
    rows = ", ".join(f"(CAST({value} AS {duckdb_type}))" for value in (*values, "NULL"))
    old = of_duckdb(f"SELECT v, 7::UBIGINT AS h FROM (VALUES {rows}) AS r(v)", "v: 1, h: 2")
    shown, count = read(old).select(["v"]), len(values) + 1
    schema = pa.schema([field("renamed", arrow, 1)])
    for missing in range(count):
        staying = [n for n in range(count) if n != missing]
        column = shown.take(staying)["v"]
        column = column.cast(pa.binary(16)) if name == "uuid" else column.cast(arrow)
        new = of_arrow(pa.table([column], schema=schema))
        [positions] = kept_rows([OldFile(old, ())], [new], [Field(1, "renamed", iceberg)])
        assert [*positions] == staying


NESTED = """
SELECT * FROM (VALUES
  ({'a': 1, 'h': 5::UBIGINT, 'l': [1, NULL]}, [[1], NULL], MAP {'k': {'a': 1}, 'l': NULL}),
  ({'a': 1, 'h': 6::UBIGINT, 'l': [1]}, [[1], []], MAP {'k': {'a': 1}}),
  ({'a': NULL, 'h': 7::UBIGINT, 'l': NULL}, [[1]], MAP {'k': {'a': NULL}}),
  (NULL, [], MAP {'k': NULL}),
  (NULL, NULL, MAP {}),
  ({'a': 1, 'h': NULL::UBIGINT, 'l': []}, [], NULL)) AS r(s, l, m)"""
NESTED_IDS = (
    "s: {__duckdb_field_id: 1, a: 2, h: 3, l: {__duckdb_field_id: 4, element: 5}}, "
    "l: {__duckdb_field_id: 6, element: {__duckdb_field_id: 7, element: 8}}, "
    "m: {__duckdb_field_id: 9, key: 10, value: {__duckdb_field_id: 11, a: 12}}"
)
NESTED_FIELDS = (
    Field(1, "s", Struct((Field(2, "now", P("long")), Field(4, "l", List(5, P("int")))))),
    Field(6, "l", List(7, List(8, P("int")))),
    Field(9, "m", Map(10, P("string"), 11, Struct((Field(12, "a", P("int")),)))),
    Field(13, "new", Struct((Field(14, "x", P("double")),))),
)


def test_nested_columns_are_compared_at_every_level():
    old = of_duckdb(NESTED, NESTED_IDS)
    without_hidden = NESTED.replace("'h': ", "'gone': ")
    for missing in range(6):
        staying = [n for n in range(6) if n != missing]
        numbered = f"SELECT * FROM ({without_hidden}) QUALIFY row_number() OVER () <> {missing + 1}"
        new = of_duckdb(numbered, NESTED_IDS.replace("h: 3", "gone: 99"))
        [positions] = kept_rows([OldFile(old, ())], [new], NESTED_FIELDS)
        assert [*positions] == staying


def test_both_zeros_and_nan_are_values():
    numbers = [0.0, -0.0, float("nan"), None]
    fields, schema = [Field(1, "v", P("double"))], pa.schema([field("v", pa.float64(), 1)])
    old = of_arrow(pa.table([numbers], schema=schema))
    for missing in range(4):
        new = of_arrow(pa.table([numbers[:missing] + numbers[missing + 1 :]], schema=schema))
        [positions] = kept_rows([OldFile(old, ())], [new], fields)
        assert [*positions] == [n for n in range(4) if n != missing]


SCHEMA = pa.schema([field("a", pa.int64(), 1)])
FIELDS = [Field(1, "a", P("long"))]


def rows(*values, schema=SCHEMA):
    return of_arrow(pa.table([list(values)], schema=schema))


def test_rows_of_several_files_some_of_which_are_deleted():
    old = [OldFile(rows(1, 2, 3, 1), (1,)), OldFile(rows(4), ()), OldFile(rows(2, 1, 5), (2,))]
    first, second, third = kept_rows(old, [rows(1, 1), rows(2, 1)], FIELDS)
    assert ([*first], [*second], [*third]) == ([0, 3], [], [0, 1])
    assert [[*one] for one in kept_rows(old, [], FIELDS)] == [[], [], []]


DEFAULTS = {
    "int": (7, pa.array([7], pa.int32())),
    "boolean": (True, pa.array([True])),
    "double": (1.5, pa.array([1.5])),
    "decimal(9, 2)": ("1.25", pa.array(["1.25"]).cast(pa.decimal128(9, 2))),
    "date": ("1969-12-31", pa.array([-1], pa.int32()).cast(pa.date32())),
    "timestamp": ("1970-01-01T00:00:00.000001", pa.array([1], pa.timestamp("us"))),
    "timestamptz": ("1970-01-01T00:00:00.000001+00:00", pa.array([1], pa.timestamp("us", "UTC"))),
    "string": ("it's", pa.array(["it's"])),
    "binary": ("00ff", pa.array([b"\0\xff"])),
    "uuid": (
        "00000000-0000-4000-8000-00000000000a",
        pa.array([bytes.fromhex("0000000000004000800000000000000a")], pa.binary(16)),
    ),
}
"""A default of each type, in JSON single-value form and as a client writes it."""


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_file_that_lacks_a_column_has_its_default(name):
    default, written = DEFAULTS[name]
    fields = [*FIELDS, Field(2, "b", P(name), default)]
    schema = pa.schema([*SCHEMA, field("b", written.type, 2)])
    new = of_arrow(pa.table([pa.array([2]), written], schema=schema))
    [positions] = kept_rows([OldFile(rows(1, 2), ())], [new], fields)
    assert [*positions] == [1]


OTHER = {
    "a row that was deleted": (rows(1, 2), (1,), rows(2), FIELDS, Uncertain, "do not have"),
    "a row too many": (rows(1, 2), (), rows(1, 1), FIELDS, Uncertain, "do not have"),
    "one of two": (rows(1, 1), (), rows(1), FIELDS, Uncertain, "some of several"),
    "no field ids": (
        rows(1, 2, schema=pa.schema([("a", L)])), (), rows(1), FIELDS, Uncertain, "no field ids"
    ),
    "another type": (
        rows(1, 2), (), rows(1.0, schema=pa.schema([field("a", pa.float64(), 1)])), FIELDS,
        Unreadable, "DOUBLE where",
    ),
    "nanoseconds": (
        rows(1, schema=pa.schema([field("a", pa.timestamp("us"), 1)])), (),
        rows(1001, schema=pa.schema([field("a", pa.timestamp("ns"), 1)])),
        [Field(1, "a", P("timestamp"))], Unreadable, "TIMESTAMP_NS where",
    ),
    "no Parquet": (b"PAR1", (), rows(1), FIELDS, Unreadable, "does not end as"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER)
def test_what_is_not_certain_is_refused(case):
    old, deleted, new, fields, error, words = OTHER[case]
    with pytest.raises(error, match=words):
        kept_rows([OldFile(old, deleted)], [new], fields)
