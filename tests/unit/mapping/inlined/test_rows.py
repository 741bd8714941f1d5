"""Inlined rows as values of the schema: the tests execute the SQL, read the file, ask DuckDB.

Texts are in PostgreSQL's form of `column::text`; nested ones are DuckDB's own literals.
"""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.ducklake.rows.lifetimes import InlinedTable
from polynya.ducklake.rows.objects import Column
from polynya.iceberg.manifest import PartitionField, PartitionSpec
from polynya.iceberg.parquet.generated_files import rows_bytes
from polynya.mapping.rows_files import inlined_columns, inlined_partitions, inlined_rows
from polynya.mapping.schemas import Visibility, schemas
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import BinaryType

NOW = 100


def column(
    column_id: int,
    name: str,
    type_: str,
    parent: int | None = None,
    begin: int = 1,
    end: int | None = None,
    default: str | None = None,
) -> Column:
    return Column(column_id, begin, end, name, type_, default, parent)


def table(columns: list[Column], begin: int = 1) -> InlinedTable:
    """The PostgreSQL table of the schema version that began at `begin`."""
    top = [one for one in columns if one.parent_column is None and one.visible_at(begin)]
    bytea = {"varchar", "json", "blob"}
    types = tuple("bytea" if one.column_type in bytea else "text" for one in top)
    names = tuple(one.column_name for one in top)
    system = ("row_id", "begin_snapshot", "end_snapshot")
    return InlinedTable("ducklake_inlined_data_1_1", 1, begin, begin, system, names, types)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        yield con


@pytest.fixture
def shown(con, tmp_path):
    """The rows in the served file: each a tuple of texts, with the type of the first column."""

    def read(columns: list[Column], rows: list[list], begin: int = 1) -> tuple[list, list]:
        fields = schemas(columns, 1, NOW).schema_at(NOW).fields
        inlined = table(columns, begin)
        assert all(len(row) == len(inlined_columns(inlined, columns, fields)) for row in rows)
        parquet = rows_bytes([inlined_rows(inlined, columns, fields, rows)], fields)
        path = tmp_path / "rows.parquet"
        path.write_bytes(parquet)
        result = con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM '{path}'").fetchall()
        types = con.execute(f"DESCRIBE FROM '{path}'").fetchall()
        return result, [(name, type_) for name, type_, *_ in types]

    return read


def text_of(con, sql: str) -> str | None:
    [(text,)] = con.execute(f"SELECT ({sql})::VARCHAR").fetchall()
    return text


# DuckLake's type, PostgreSQL's text, DuckDB's type in the file, the value in SQL.
# The types of tests/lakes/16 that Iceberg has, with the values there and a few more.
VALUES = [
    ("boolean", "true", "BOOLEAN", "true"),
    ("boolean", "false", "BOOLEAN", "false"),
    ("int8", "-1", "INTEGER", "-1"),
    ("int16", "-32768", "INTEGER", "-32768"),
    ("int32", "2147483647", "INTEGER", "2147483647"),
    ("int64", "-9223372036854775808", "BIGINT", "-9223372036854775808"),
    ("uint8", "255", "INTEGER", "255"),
    ("uint16", "65535", "INTEGER", "65535"),
    ("uint32", "4294967295", "BIGINT", "4294967295"),
    ("float32", "0.1", "FLOAT", "0.1"),
    ("float32", "NaN", "FLOAT", "'nan'"),
    ("float32", "1e-45", "FLOAT", "'1e-45'"),
    ("float64", "0.1", "DOUBLE", "0.1"),
    ("float64", "-Infinity", "DOUBLE", "'-inf'"),
    ("float64", "-0", "DOUBLE", "'-0.0'"),
    ("float64", "1.7976931348623157e+308", "DOUBLE", "'1.7976931348623157e308'"),
    ("decimal(20,5)", "-12345.67891", "DECIMAL(20,5)", "-12345.67891"),
    ("decimal(38,0)", "9" * 38, "DECIMAL(38,0)", "'" + "9" * 38 + "'"),
    ("varchar", 'it\'s "ü" 🦆'.encode(), "VARCHAR", "'it''s \"ü\" 🦆'"),
    ("varchar", b"nul\x00byte", "VARCHAR", "'nul' || chr(0) || 'byte'"),
    ("varchar", b"", "VARCHAR", "''"),
    ("varchar", b"\\x41 \\", "VARCHAR", "'\\x41 \\'"),
    ("varchar", b"NULL", "VARCHAR", "'NULL'"),
    ("json", b'{"a":[1]}', "VARCHAR", "'{\"a\":[1]}'"),
    ("blob", b"\x00\xff", "BLOB", "'\\x00\\xFF'"),
    ("blob", b"", "BLOB", "''"),
    ("date", "2024-02-29", "DATE", "'2024-02-29'"),
    ("date", "infinity", "DATE", "'infinity'"),
    ("date", "0044-03-15 (BC)", "DATE", "'0044-03-15 (BC)'"),
    ("time", "01:02:03.000004", "TIME", "'01:02:03.000004'"),
    ("timestamp", "2024-02-29 01:02:03.000004", "TIMESTAMP", "'2024-02-29 01:02:03.000004'"),
    ("timestamp", "-infinity", "TIMESTAMP", "'-infinity'"),
    ("timestamp", "290000-01-01 00:00:00", "TIMESTAMP", "'290000-01-01 00:00:00'"),
    ("timestamp_s", "1969-12-31 23:59:59", "TIMESTAMP", "'1969-12-31 23:59:59'"),
    ("timestamp_ms", "1969-12-31 23:59:59.999", "TIMESTAMP", "'1969-12-31 23:59:59.999'"),
    (
        "timestamptz",
        "2024-02-28 23:02:03.000004+00",
        "TIMESTAMP WITH TIME ZONE",
        "'2024-02-29 01:02:03.000004+02'",
    ),
    ("timestamptz", "-infinity", "TIMESTAMP WITH TIME ZONE", "'-infinity'"),
    (
        "uuid",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "UUID",
        f"'{'ffffffff-' + 'ffff-' * 3}{'f' * 12}'",
    ),
]


@pytest.mark.parametrize(("column_type", "text", "type_", "sql"), VALUES)
def test_text_becomes_the_value(column_type, text, type_, sql, shown, con):
    rows, types = shown([column(1, "c", column_type)], [[text], [None]])
    assert types == [("c", type_)]
    assert rows == [(text_of(con, f"CAST({sql} AS {type_})"),), (None,)]


# Columns of a nested type, with DuckDB's literals
STRUCT = [column(1, "c", "struct"), column(2, "a", "int32", 1), column(3, "b c", "varchar", 1)]
LIST = [column(1, "c", "list"), column(2, "element", "varchar", 1)]
MAP = [column(1, "c", "map"), column(2, "key", "varchar", 1), column(3, "value", "int32", 1)]
DEEP = [
    column(1, "c", "struct"),
    column(2, "x", "list", 1),
    column(3, "element", "struct", 2),
    column(4, "y", "list", 3),
    column(5, "element", "int32", 4),
]
DATES = [column(1, "c", "list"), column(2, "element", "timestamp_ms", 1)]
SMALL = [column(1, "c", "map"), column(2, "key", "uint8", 1), column(3, "value", "int16", 1)]
NESTED = [
    (STRUCT, 'STRUCT(a INTEGER, "b c" VARCHAR)', "{'a': 1, 'b c': 'x,y''z'}"),
    (STRUCT, 'STRUCT(a INTEGER, "b c" VARCHAR)', "{'a': NULL, 'b c': ''}"),
    (STRUCT, 'STRUCT(a INTEGER, "b c" VARCHAR)', "NULL"),
    (LIST, "VARCHAR[]", "['a', 'b,c', NULL, 'q\"uo''te', 'NULL', ' ', '[', '\\']"),
    (LIST, "VARCHAR[]", "[]"),
    (LIST, "VARCHAR[]", "NULL"),
    (MAP, "MAP(VARCHAR, INTEGER)", "MAP {'k=1': 1, 'z': NULL, '': 3}"),
    (MAP, "MAP(VARCHAR, INTEGER)", "MAP {}"),
    (MAP, "MAP(VARCHAR, INTEGER)", "NULL"),
    (DEEP, "STRUCT(x STRUCT(y INTEGER[])[])", "{'x': [{'y': [1, NULL]}, NULL, {'y': NULL}]}"),
    (DEEP, "STRUCT(x STRUCT(y INTEGER[])[])", "{'x': NULL}"),
    (DATES, "TIMESTAMP[]", "['2024-02-29 01:02:03.004'::TIMESTAMP_MS, 'infinity', NULL]"),
    (SMALL, "MAP(INTEGER, INTEGER)", "MAP {255: -32768}"),
]


@pytest.mark.parametrize(("columns", "type_", "sql"), NESTED, ids=lambda value: str(value)[:40])
def test_literal_becomes_the_nested_value(columns, type_, sql, shown, con):
    value = f"CAST({sql} AS {type_})"
    rows, types = shown(columns, [[text_of(con, value)]])
    assert types == [("c", type_)]
    assert rows == [(text_of(con, value),)]


# DuckDB 1.5 itself reads no time of the first second, and writes none of the first day as text.
NANOSECONDS = {
    "-infinity": -(2**63) + 1,
    "1677-09-21 00:12:43.145224194": -(2**63) + 2,
    "1677-09-21 00:12:43.145224195": -(2**63) + 3,
    "1677-09-21 00:12:43.5": -9_223_372_036_500_000_000,
    "1677-09-21 00:12:43.999999999": -9_223_372_036_000_000_001,
    "1677-09-21 00:12:44": -9_223_372_036_000_000_000,
    "1677-09-21 23:59:59.999999999": -9_223_286_400_000_000_001,
    "1677-09-22 00:00:00": -9_223_286_400_000_000_000,
    "1969-12-31 23:59:59.999999999": -1,
    "1970-01-01 00:00:00": 0,
    "2262-04-11 23:47:16.854775806": 2**63 - 2,
    "infinity": 2**63 - 1,
}


@pytest.mark.parametrize(("type_", "zone"), [("timestamp_ns", ""), ("timestamptz_ns", "+00")])
def test_nanoseconds_are_read_in_their_whole_range(type_, zone):
    columns = [
        column(1, "c", type_),
        *(column(2, "l", "list"), column(3, "element", type_, 2)),
        *(column(4, "s", "struct"), column(5, "v", type_, 4)),
        *(column(6, "m", "map"), column(7, "key", "int32", 6), column(8, "value", type_, 6)),
    ]
    texts = [text if "infinity" in text else text + zone for text in NANOSECONDS]
    rows = [[t, f"['{t}', NULL]", f"{{'v': '{t}'}}", f"{{1='{t}', 2=NULL}}"] for t in texts]
    fields = schemas(columns, 1, NOW, Visibility(withheld={})).schema_at(NOW).fields
    body = rows_bytes([inlined_rows(table(columns), columns, fields, [*rows, [None] * 4])], fields)
    file = pq.read_table(pa.BufferReader(body))
    unit = pa.timestamp("ns", "UTC" if zone else None)
    numbers = [*NANOSECONDS.values(), None]
    assert file["c"].combine_chunks().equals(pa.array(numbers, unit))
    lists = pa.array([None if n is None else [n, None] for n in numbers], pa.list_(unit))
    assert file["l"].combine_chunks().cast(lists.type).equals(lists)
    assert file["s"].combine_chunks().field("v").equals(pa.array(numbers, unit))
    items = [item for n in NANOSECONDS.values() for item in (n, None)]
    assert file["m"].combine_chunks().items.equals(pa.array(items, unit))


# ---------------------------------------------------------------- rows of an older schema version


def renamed(old: Column, name: str, at: int = 5) -> Iterator[Column]:
    yield Column(old.column_id, 1, at, old.column_name, old.column_type, None, old.parent_column)
    yield Column(old.column_id, at, None, name, old.column_type, None, old.parent_column)


A, B = column(1, "a", "int32"), column(2, "b", "varchar")
# (columns, row in the old version, row in the current schema)
EVOLUTIONS = [
    ("renamed", [*renamed(A, "z"), B], ["1", b"x"], ("1", "x")),
    ("names exchanged", [*renamed(A, "b"), *renamed(B, "a")], ["1", b"x"], ("1", "x")),
    ("dropped", [A, column(2, "b", "varchar", end=5)], ["1"], ("1",)),
    ("added", [A, column(3, "n", "int64", begin=5)], ["1"], ("1", None)),
    ("added, default", [A, column(3, "n", "int64", begin=5, default="42")], ["1"], ("1", "42")),
    (
        "added, default text",
        [A, column(3, "n", "varchar", begin=5, default='it\'s "d"')],
        ["1"],
        ("1", 'it\'s "d"'),
    ),
    (
        "added, default blob",
        [A, column(3, "n", "blob", begin=5, default="\\x00\\xFFab")],
        ["1"],
        ("1", "\\x00\\xFFab"),
    ),
    (
        "added, default date",
        [A, column(3, "n", "date", begin=5, default="2024-02-29")],
        ["1"],
        ("1", "2024-02-29"),
    ),
    (
        "added, default decimal",
        [A, column(3, "n", "decimal(9,2)", begin=5, default="-1.25")],
        ["1"],
        ("1", "-1.25"),
    ),
    ("added first", [column(3, "n", "int32", begin=5), A], ["1"], (None, "1")),
    (
        "added struct",
        [A, column(3, "s", "struct", begin=5), column(4, "x", "int32", 3, 5)],
        ["1"],
        ("1", None),
    ),
    (
        "same name again",
        [A, column(2, "b", "varchar", end=5), column(3, "b", "int32", begin=6)],
        ["1"],
        ("1", None),
    ),
    ("widened", [column(1, "a", "int8", end=5), column(1, "a", "int64", begin=5)], ["-7"], ("-7",)),
    (
        "widened float",
        [column(1, "a", "float32", end=5), column(1, "a", "float64", begin=5)],
        ["0.1"],
        ("0.10000000149011612",),
    ),
    (
        "widened decimal",
        [column(1, "a", "decimal(4,2)", end=5), column(1, "a", "decimal(18,2)", begin=5)],
        ["-99.99"],
        ("-99.99",),
    ),
    (
        "changed twice",
        [
            column(1, "a", "int8", end=5),
            column(1, "z", "int16", begin=5, end=6),
            column(1, "y", "int64", begin=6),
        ],
        ["5"],
        ("5",),
    ),
]


@pytest.mark.parametrize(
    ("what", "columns", "row", "expected"), EVOLUTIONS, ids=[e[0] for e in EVOLUTIONS]
)
def test_row_of_an_old_version_has_the_current_schema(what, columns, row, expected, shown):
    rows, _ = shown(columns, [row, row])
    assert rows == [expected, expected]


def test_rows_of_only_dropped_columns_have_nulls_and_defaults(shown):
    columns = [
        column(1, "a", "int32", end=5),
        column(2, "b", "int32", begin=5),
        column(3, "c", "int32", begin=5, default="7"),
    ]
    rows, _ = shown(columns, [[], [], []])
    assert rows == [(None, "7")] * 3


@pytest.mark.parametrize("text, data", [("ab", b"ab"), ("\\x00\\xFF", b"\x00\xff")])
def test_a_default_of_bytes_is_in_the_partition_of_the_bytes(text, data):
    columns = [A, column(3, "n", "blob", begin=5, default=text)]
    fields = schemas(columns, 1, NOW).schema_at(NOW).fields
    spec = PartitionSpec(1, (PartitionField(3, 1000, "n_bucket", "bucket[64]", "int"),))
    expected = BucketTransform(64).transform(BinaryType())(data)
    assert inlined_partitions(spec, table(columns), columns, fields, [["1"]]) == [(expected,)]


def test_rows_of_several_versions_are_in_order(con, tmp_path):
    columns = [A, column(2, "b", "int64", begin=5, default="9")]
    fields = schemas(columns, 1, NOW).schema_at(NOW).fields
    parts = [
        inlined_rows(table(columns, begin), columns, fields, rows)
        for begin, rows in ((1, [["1"], ["2"]]), (5, [["3", "4"], [None, None]]))
    ]
    path = tmp_path / "rows.parquet"
    path.write_bytes(rows_bytes(parts, fields))
    assert con.execute(f"FROM '{path}'").fetchall() == [(1, 9), (2, 9), (3, 4), (None, None)]


def test_names_are_those_of_the_version_for_columns_that_are_still_shown():
    columns = [*renamed(A, "z"), column(2, "b", "varchar", end=5), column(3, "u", "uint64")]
    fields = schemas(columns, 1, NOW).schema_at(NOW).fields
    assert inlined_columns(table(columns, 1), columns, fields) == ["a"]
    assert inlined_columns(table(columns, 5), columns, fields) == ["z"]


def test_names_with_special_characters_are_quoted(shown):
    names = ['a"b', "a'b", "select", "ünï", " ", "c0"]
    columns = [column(n, name, "int32") for n, name in enumerate(names, start=1)]
    rows, types = shown(columns, [[str(n) for n in range(len(names))]])
    assert [name for name, _ in types] == names
    assert rows == [tuple(str(n) for n in range(len(names)))]


OLD = "STRUCT(x INTEGER, y VARCHAR)"
X, Y = (2, "x", "int32"), (3, "y", "varchar")
CHANGES = {
    # current members, and the form of a value {'x': 1, 'y': 'one'} of the old type
    "added": ([X, Y, (4, "z", "int64", 5)], "{'x': 1, 'y': one, 'z': NULL}"),
    "added with a default": ([X, Y, (4, "z", "int64", 5, "42")], "{'x': 1, 'y': one, 'z': 42}"),
    "dropped": ([X], "{'x': 1}"),
    "renamed": ([(2, "k", "int32", 5), Y], "{'k': 1, 'y': one}"),
    "exchanged": ([(2, "y", "int32", 5), (3, "x", "varchar", 5)], "{'y': 1, 'x': one}"),
    "widened": ([(2, "x", "int64", 5), Y], "{'x': 1, 'y': one}"),
    "replaced": ([X, (4, "y", "int64", 5)], "{'x': 1, 'y': NULL}"),
    "all at once": (
        [(2, "k q", "int64", 5), (4, "y", "varchar", 5, "it''s")],
        "{'k q': 1, 'y': 'it\\'s'}",
    ),
}


def members(now: list[tuple], parent: int) -> list[Column]:
    """Versions of the columns 2 and 3 below `parent`; they end at 5 if they change."""
    columns = []
    for old in (X, Y):
        columns.append(column(*old, parent, end=None if old in now else 5))
    for one in now:
        if one not in (X, Y):
            column_id, name, type_, begin, *default = one
            text = default[0].replace("''", "'") if default else None
            columns.append(column(column_id, name, type_, parent, begin, default=text))
    return sorted(columns, key=lambda found: found.column_id)


# The position of the struct: (columns around it with its parent's id, DuckDB's type, values)
PLACES = {
    "struct": ([column(1, "c", "struct")], 1, OLD, "{s}"),
    "list": (
        [column(1, "c", "list"), column(20, "element", "struct", 1)],
        20,
        f"{OLD}[]",
        "[{s}, NULL, {s}]",
    ),
    "map value": (
        [
            column(1, "c", "map"),
            column(20, "key", "varchar", 1),
            column(21, "value", "struct", 1),
        ],
        21,
        f"MAP(VARCHAR, {OLD})",
        "{{k={s}, n=NULL}}",
    ),
    "map key": (
        [
            column(1, "c", "map"),
            column(20, "key", "struct", 1),
            column(21, "value", "int32", 1),
        ],
        20,
        f"MAP({OLD}, INTEGER)",
        "{{{s}=7}}",
    ),
    "list of lists": (
        [
            column(1, "c", "list"),
            column(20, "element", "list", 1),
            column(21, "element", "struct", 20),
        ],
        21,
        f"{OLD}[][]",
        "[[{s}], NULL, [], [NULL, {s}]]",
    ),
    "struct in a list in a struct": (
        [
            column(1, "c", "struct"),
            column(20, "l", "list", 1),
            column(21, "element", "struct", 20),
        ],
        21,
        f"STRUCT(l {OLD}[])",
        "{{'l': [{s}, NULL]}}",
    ),
    "list in a map in a list": (
        [
            column(1, "c", "list"),
            column(20, "element", "map", 1),
            column(21, "key", "int32", 20),
            column(22, "value", "list", 20),
            column(23, "element", "struct", 22),
        ],
        23,
        f"MAP(INTEGER, {OLD}[])[]",
        "[{{1=[{s}, NULL], 2=NULL}}, NULL]",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", PLACES)
def test_struct_of_an_old_version_has_the_current_members(place, change, shown, con):
    around, parent, type_, pattern = PLACES[place]
    now, expected = CHANGES[change]
    columns = [*around, *members(now, parent)]
    literal = pattern.format(s="{x: 1, y: one}").replace("'", "''")
    text = text_of(con, f"'{literal}'::{type_}")
    rows, _ = shown(columns, [[text], [None]])
    assert rows == [(pattern.format(s=expected),), (None,)]


@pytest.mark.parametrize("place", PLACES)
def test_empty_and_null_values_are_unchanged(place, shown, con):
    """The members of the type have changed, so that every value is converted."""
    around, parent, type_, _ = PLACES[place]
    columns = [*around, *members(CHANGES["all at once"][0], parent)]
    empty = "[]" if type_.endswith("[]") else "{}" if type_.startswith("MAP") else None
    rows, _ = shown(columns, [[empty], [None]])
    assert rows == [(empty,), (None,)]
