"""Rows and position deletes as Parquet, read again by pyarrow and PyIceberg."""

import datetime as dt
import io
import tempfile
import uuid
from decimal import Decimal

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.generated_files import (
    Rows,
    dated_positions,
    later_rows,
    position_deletes_bytes,
    positions,
    row_snapshots,
    rows_bytes,
)
from polynya.iceberg.sandbox import literal, quoted
from polynya.iceberg.types import Field, List, Map, Primitive, Struct, TableSchema
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.schema import Schema, index_name_by_id

IS_DUCKDB_1 = duckdb.__version__.startswith("1.")
# DuckDB 1.5 has no zoned nanoseconds; its TIMESTAMP_NS is in UTC if a text has a zone.
ZONED = "TIMESTAMP_NS" if IS_DUCKDB_1 else "TIMESTAMPTZ_NS"

INT, STRING = Primitive("int"), Primitive("string")


def read(parquet: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(parquet))


DEEPEST = Struct((Field(16, "z", INT),))
# (Iceberg type, SQL for a value of it, what pyarrow reads)
VALUES = [
    (Primitive("boolean"), "true", True),
    (Primitive("int"), "(-2147483648)::INTEGER", -(2**31)),
    (Primitive("long"), "9223372036854775807::BIGINT", 2**63 - 1),
    (Primitive("float"), "0.1::FLOAT", 0.10000000149011612),
    (Primitive("double"), "'-inf'::DOUBLE", float("-inf")),
    (Primitive("decimal(4, 2)"), "-99.99::DECIMAL(4,2)", Decimal("-99.99")),
    (Primitive("decimal(38, 10)"), "'1.5'::DECIMAL(38,10)", Decimal("1.5000000000")),
    (Primitive("string"), "'it''s ü'", "it's ü"),
    (Primitive("binary"), "'\\x00\\xFF'::BLOB", b"\x00\xff"),
    (Primitive("date"), "DATE '2024-02-29'", dt.date(2024, 2, 29)),
    (Primitive("time"), "TIME '01:02:03.000004'", dt.time(1, 2, 3, 4)),
    (
        Primitive("timestamp"),
        "TIMESTAMP '2024-02-29 01:02:03.000004'",
        dt.datetime(2024, 2, 29, 1, 2, 3, 4),
    ),
    (
        Primitive("timestamptz"),
        "TIMESTAMPTZ '2024-02-29 01:02:03.000004+02'",
        dt.datetime(2024, 2, 28, 23, 2, 3, 4, tzinfo=dt.UTC),
    ),
    (
        Primitive("timestamp_ns"),
        "TIMESTAMP_NS '1969-12-31 23:59:59.999999999'",
        pd.Timestamp("1969-12-31 23:59:59.999999999"),
    ),
    (
        Primitive("timestamptz_ns"),
        f"{ZONED} '2024-02-29 01:02:03.000000004+02'",
        pd.Timestamp("2024-02-28 23:02:03.000000004", tz="UTC"),
    ),
    (
        Map(11, Primitive("timestamptz_ns"), 12, List(13, Primitive("timestamp_ns"))),
        f"MAP {{{ZONED} '2024-02-29 00:00:00.000000001+00': [make_timestamp_ns(-1)]}}",
        [
            (
                pd.Timestamp("2024-02-29 00:00:00.000000001", tz="UTC"),
                [pd.Timestamp("1969-12-31 23:59:59.999999999")],
            )
        ],
    ),
    (Primitive("uuid"), f"'{uuid.UUID(int=1)}'::UUID", uuid.UUID(int=1)),
    (
        Struct((Field(11, "a", INT), Field(12, 'b "c"', STRING))),
        "{'a': 1, 'b \"c\"': 'x'}",
        {"a": 1, 'b "c"': "x"},
    ),
    (List(11, STRING), "['a', NULL]", ["a", None]),
    (Map(11, STRING, 12, INT), "MAP {'k': NULL::INTEGER}", [("k", None)]),
    (
        List(
            11,
            Struct(
                (Field(12, "m", Map(13, STRING, 14, List(15, Struct((Field(16, "z", INT),))))),)
            ),
        ),
        "[{'m': MAP {'k': [{'z': 7}]}}]",
        [{"m": [("k", [{"z": 7}])]}],
    ),
]


@pytest.mark.parametrize(("type_", "sql", "expected"), VALUES, ids=lambda value: str(value)[:50])
def test_field_has_its_type_and_its_ids_at_every_level(type_, sql, expected):
    fields = (Field(10, "x 'y\" z", type_),)
    parquet = rows_bytes([Rows([("VARCHAR", ["a row"])], [sql], 1)], fields)
    stored = pq.read_schema(io.BytesIO(parquet))
    schema = pyarrow_to_schema(stored, format_version=3)  # it uses the ids only
    wanted = Schema.model_validate(TableSchema(0, fields).json())
    # DuckDB 2.0 declares a column without a NULL as required.
    stated = str(schema) if IS_DUCKDB_1 else str(schema).replace(": required ", ": optional ", 1)
    assert stated == str(wanted)
    # The text does not show the ids of elements, keys and values.
    names = index_name_by_id(schema)
    assert names == index_name_by_id(wanted)
    assert read(parquet).column(0).to_pylist() == [expected]


@pytest.mark.parametrize("order", [("timestamp_ns", "timestamptz_ns"), ("timestamptz_ns",) * 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_each_column_of_nanoseconds_is_in_utc_if_its_type_is(order, reverse):
    types = order[::-1] if reverse else order
    names = ("n\x12 \x8c\x12\x1c<", "z")
    fields = tuple(Field(n, name, Primitive(types[n - 1])) for n, name in enumerate(names, 1))
    # Bytes like those of the type, in a value and so in the statistics.
    nanos = int.from_bytes(bytes.fromhex("8c121c3c00000000"), "little")
    sqls = [
        f"make_timestamp_ns({nanos})::{ZONED if name == 'timestamptz_ns' else 'TIMESTAMP_NS'}"
        for name in types
    ]
    parquet = rows_bytes([Rows([], sqls, 1)], fields)
    table = read(parquet)
    zones = ["UTC" if name == "timestamptz_ns" else None for name in types]
    assert [str(type_) for type_ in table.schema.types] == [
        str(pa.timestamp("ns", zone)) for zone in zones
    ]
    assert [column[0].value for column in table.columns] == [nanos, nanos]


def test_only_list_and_map_groups_have_no_id():
    """`list` and `key_value` are Parquet's own levels; a reader by id skips them."""
    fields = (
        Field(1, "l", List(2, Struct((Field(3, "m", Map(4, STRING, 5, INT)),)))),
        Field(6, "i", INT),
    )
    parquet = rows_bytes(
        [Rows([("VARCHAR", [None])], ["[{'m': MAP {'k': 1}}]", "1::INTEGER"], 1)], fields
    )
    schema = read(parquet).schema
    element = schema.field("l").type.value_field
    entries = element.type.field("m").type
    levels = [
        *(schema.field("l"), element, element.type.field("m")),
        *(entries.key_field, entries.item_field, schema.field("i")),
    ]
    assert [int(field.metadata[b"PARQUET:field_id"]) for field in levels] == [1, 2, 3, 4, 5, 6]


def test_parts_are_written_in_order():
    fields = (Field(1, "a", STRING), Field(2, "b", Primitive("binary")))
    first = Rows([("VARCHAR", ["3", None, "1"])], ["c0", "NULL::BLOB"], 3)
    second = Rows([("BLOB", [b"\x00", None]), ("VARCHAR", ["5", "4"])], ["c1", "c0"], 2)
    table = read(rows_bytes([first, second], fields))
    assert table.to_pylist() == [
        {"a": "3", "b": None},
        {"a": None, "b": None},
        {"a": "1", "b": None},
        {"a": "5", "b": b"\x00"},
        {"a": "4", "b": None},
    ]


def test_many_rows_keep_their_order():
    values = [str(number * 7919 % 3_001) for number in range(3_001)]
    table = read(
        rows_bytes([Rows([("VARCHAR", values)], ["c0"], len(values))], (Field(1, "a", STRING),))
    )
    assert table.column("a").to_pylist() == values


def test_a_text_is_a_value_and_never_sql():
    nasty = ["'; DROP TABLE part0; --", "{'a': 1}", "\x00nul", "$1", "ünï 🦆", ""]
    table = read(
        rows_bytes([Rows([("VARCHAR", nasty)], ["c0"], len(nasty))], (Field(1, "a", STRING),))
    )
    assert table.column("a").to_pylist() == nasty


def test_a_position_delete_file_follows_the_specification():
    parquet = position_deletes_bytes("s3://b/it's ü/%2F//x.parquet", [0, 3, 2**40])
    table = read(parquet)
    # "Reserved Field IDs": file_path 2147483546 string, pos 2147483545 long
    ids = [(f.name, str(f.type), int(f.metadata[b"PARQUET:field_id"])) for f in table.schema]
    assert ids == [("file_path", "string", 2147483546), ("pos", "int64", 2147483545)]
    assert table.column("file_path").to_pylist() == ["s3://b/it's ü/%2F//x.parquet"] * 3
    assert table.column("pos").to_pylist() == [0, 3, 2**40]


POSITIONS = [[0], [1, 2, 3], list(range(0, 3000, 3)), [2**62]]


@pytest.mark.parametrize("deleted", POSITIONS, ids=len)
def test_positions_are_read_as_they_were_written(deleted):
    assert [*positions(position_deletes_bytes("s3://b/x.parquet", deleted))] == deleted


def test_positions_in_delete_files_of_other_writers_are_read_by_name():
    out = io.BytesIO()
    columns = {"_ducklake_internal_snapshot_id": [7, 7], "pos": [2, 4], "file_path": ["a", "a"]}
    pq.write_table(pa.table(columns), out)
    assert [*positions(out.getvalue())] == [2, 4]


SNAPSHOTS = "_ducklake_internal_snapshot_id"


@pytest.mark.parametrize(
    ("until", "expected"), [(None, [0, 2, 4]), (6, []), (7, [0, 4]), (9, [0, 2, 4])]
)
def test_positions_of_a_partial_delete_file_are_those_deleted_until_a_snapshot(until, expected):
    out = io.BytesIO()
    pq.write_table(pa.table({SNAPSHOTS: [7, 9, 7], "pos": [0, 2, 4], "file_path": ["a"] * 3}), out)
    assert [*positions(out.getvalue(), until)] == expected
    assert dated_positions(out.getvalue()) == {7: [0, 4], 9: [2]}


def test_a_delete_file_that_tells_no_snapshots_was_written_at_once():
    """The catalog does not tell it from a partial one if the snapshot that wrote it has expired."""
    out = io.BytesIO()
    pq.write_table(pa.table({"pos": [0, 2], "file_path": ["a", "a"]}), out)
    assert list(positions(out.getvalue(), 7)) == [0, 2]
    assert dated_positions(out.getvalue()) == {None: [0, 2]}


def partial_file(rows: int, options: str = "") -> tuple[bytes, list[int]]:
    """A data file with rows of the snapshots 1 to 9 in no order, and the snapshot of each row."""
    snapshots = [number * 7 % 9 + 1 for number in range(rows)]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        path = f"{folder}/data.parquet"
        con.execute(
            f"COPY (SELECT i, repeat('x', 50) || i AS s, (i * 7 % 9 + 1)::BIGINT AS {SNAPSHOTS} "
            f"FROM range({rows}) AS r(i)) TO '{path}' (FORMAT parquet{options})"
        )
        with open(path, "rb") as file:
            return file.read(), snapshots


@pytest.mark.parametrize("snapshot_id", [0, 1, 5, 8, 9])
@pytest.mark.parametrize(
    ("rows", "options"),
    [(1, ""), (20, ""), (5000, ", ROW_GROUP_SIZE 2048"), (300, ", PARQUET_VERSION v2")],
)
def test_later_rows_are_found_without_reading_the_other_columns(rows, options, snapshot_id):
    body, snapshots = partial_file(rows, options)
    fetched = []

    def read(start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(body)
        fetched.append(end - start)
        return body[start:end]

    found = later_rows(read, len(body), snapshot_id)
    assert found == [row for row, snapshot in enumerate(snapshots) if snapshot > snapshot_id]
    if rows == 5000:
        assert sum(fetched) < len(body) / 2
    assert list(row_snapshots(read, len(body))) == snapshots


TEXTS = ["", "a", "a'b", 'a"b', "''", '""', "a\nb", "ünï", "--", "\\"]


@pytest.mark.parametrize("text", TEXTS)
def test_duckdb_reads_quoted_names_and_texts_unchanged(text):
    with duckdb.connect() as con:
        assert con.execute(f"SELECT {literal(text)}").fetchall() == [(text,)]
        if text:
            [column] = con.execute(f"SELECT 1 AS {quoted(text)}").description
            assert column[0] == text


def test_no_file_is_left_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    positions(position_deletes_bytes("s3://b/x.parquet", [1]))
    assert list(tmp_path.iterdir()) == []
