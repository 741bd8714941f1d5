"""The columns in a Parquet footer, compared with PyArrow's result for the same file."""

import io
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.footer import (
    NotParquet,
    columns_of,
    created_by,
    row_count,
    writes_variants,
)

UNITS = {"ms": 3, "us": 6, "ns": 9}
DEEP = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.timestamp("ns"))))]))
SCHEMAS = {
    "scalars": [
        ("b", pa.bool_()),
        ("i", pa.int8()),
        ("d", pa.decimal128(38, 9)),
        ("x", pa.binary()),
    ],
    "times": [
        *((f"ts_{unit}", pa.timestamp(unit)) for unit in UNITS),
        *((f"tz_{unit}", pa.timestamp(unit, "UTC")) for unit in UNITS),
        ("t_ms", pa.time32("ms")),
        ("t_us", pa.time64("us")),
        ("t_ns", pa.time64("ns")),
        ("date", pa.date32()),
    ],
    "nested": [("s", pa.struct([("list", pa.list_(pa.int32())), ("element", DEEP)])), ("l", DEEP)],
    "map of maps": [("m", pa.map_(pa.int32(), pa.map_(pa.string(), pa.float64())))],
    "names": [
        ("a.b", pa.int32()),
        ("ünï", pa.int32()),
        ("", pa.int32()),
        ("key_value", pa.int32()),
    ],
    "wide": [(f"c{number}", pa.int32()) for number in range(300)],
}


def parquet(schema: pa.Schema, **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(schema.empty_table(), out, **options)
    return out.getvalue()


def found(body: bytes) -> list:
    return columns_of(lambda start, end: body[start:end], len(body))


def expected(fields, above=()) -> list:
    """The same columns, from the schema that PyArrow reads."""
    columns = []
    for name, field in fields:
        path, type_ = (*above, name), field.type
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        decimals = None
        if pa.types.is_timestamp(type_) or pa.types.is_time(type_):
            decimals = UNITS[type_.unit]
        columns.append((path, None if number is None else int(number), decimals))
        if pa.types.is_struct(type_):
            inner = [(child.name, child) for child in type_]
        elif pa.types.is_map(type_):
            inner = [("key", type_.key_field), ("value", type_.item_field)]
        elif pa.types.is_list(type_):
            inner = [("element", type_.value_field)]
        else:
            inner = []
        columns += expected(inner, path)
    return columns


def with_ids(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(number)})


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("options", [{}, {"version": "1.0"}, {"use_compliant_nested_type": False}])
def test_columns_are_those_that_pyarrow_reads(name, options):
    fields = [with_ids(pa.field(*pair), 7 * at - 1) for at, pair in enumerate(SCHEMAS[name])]
    for given in (pa.schema(SCHEMAS[name]), pa.schema(fields)):
        body = parquet(given, store_schema=False, **options)
        schema = pq.read_schema(io.BytesIO(body))
        assert found(body) == expected([(field.name, field) for field in schema])


def test_int96_counts_as_microseconds():
    """DuckDB reads it so."""
    body = parquet(pa.schema([("t", pa.timestamp("ns"))]), use_deprecated_int96_timestamps=True)
    assert found(body) == [(("t",), None, 6)]


@pytest.mark.parametrize("rows", [0, 1, 127, 128, 70_000])
def test_rows_are_counted(rows):
    sink = io.BytesIO()
    pq.write_table(pa.table({"pos": range(rows)}), sink, row_group_size=1000)
    assert row_count(sink.getvalue()) == rows


# Any byte of a footer may be wrong: the result is columns or an error, in bounded time.
def test_a_corrupt_footer_never_causes_a_crash():
    body = parquet(pa.schema([*SCHEMAS["times"], *SCHEMAS["nested"]]))
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    draw = random.Random(11)
    refused = 0
    for _ in range(3000):
        broken = bytearray(body)
        for _ in range(draw.randint(1, 4)):
            broken[draw.randrange(start, start + 400)] = draw.randrange(256)
        try:
            found(bytes(broken))
        except NotParquet:
            refused += 1
    assert refused > 100


FOOTERS = {
    "": "does not end as",
    "not Parquet": "does not end as",
    b"PAR1" + b"\x00" * 20 + b"\x05\x00\x00\x00PARE": "encrypted",
    b"PAR1" + b"\xff\xff\xff\x7fPAR1": "longer than the file",
    b"PAR1" + b"\x00\x01\x00\x00\x00PAR1": "broken",
    # Field 2, a list of a list of a list ...
    b"PAR1" + b"\x29" + b"\x19" * 5000 + (5001).to_bytes(4, "little") + b"PAR1": "broken",
    # A list of 2^30 values.
    b"PAR1" + b"\x29\xf5\x80\x80\x80\x80\x04" + b"\x07\x00\x00\x00PAR1": "broken",
}


@pytest.mark.parametrize(("body", "reason"), FOOTERS.items(), ids=range(len(FOOTERS)))
def test_an_invalid_footer_is_refused_with_a_reason(body, reason):
    with pytest.raises(NotParquet, match=reason):
        found(body if isinstance(body, bytes) else body.encode())


def test_the_nesting_of_columns_is_limited():
    deep = pa.int32()
    for _ in range(150):
        deep = pa.struct([("s", deep)])
    with pytest.raises(NotParquet, match="nested more than 100"):
        found(parquet(pa.schema([("s", deep)])))


def test_columns_are_read_from_the_footer_alone(tmp_path):
    path = tmp_path / "added.parquet"
    with duckdb.connect() as con:
        con.execute(
            f"""COPY (SELECT 1 AS a, {{'x': 1, 'l': [1]}} AS s, MAP {{'k': 1}} AS m,
              TIMESTAMP_NS '2024-01-01' AS ns, TIMESTAMP '2024-01-01' AS us,
              range(100000) AS big) TO '{path}'
              (FIELD_IDS {{a: 7, s: {{__duckdb_field_id: 8, x: 9}}}})"""
        )
    body = path.read_bytes()
    asked = []

    def read(start: int, end: int) -> bytes:
        asked.append(end - start)
        return body[start:end]

    assert columns_of(read, len(body)) == [
        (("a",), 7, None),
        (("s",), 8, None),
        (("s", "x"), 9, None),
        (("s", "l"), None, None),
        (("s", "l", "element"), None, None),
        (("m",), None, None),
        (("m", "key"), None, None),
        (("m", "value"), None, None),
        (("ns",), None, 9),
        (("us",), None, 6),
        (("big",), None, None),
        (("big", "element"), None, None),
    ]
    assert sum(asked) < len(body) / 2


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("metadata", [None, {"created_by": "(\x18\x05other"}])
def test_the_writer_is_that_which_pyarrow_reads(schema, metadata):
    body = parquet(pa.schema(schema, metadata))
    expected = pq.read_metadata(io.BytesIO(body)).created_by
    assert created_by(lambda start, end: body[start:end], len(body)) == expected


def test_the_writer_is_found_behind_many_row_groups(tmp_path):
    path = tmp_path / "groups.parquet"
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT i, '(' || i || chr(24) AS s FROM range(200000) AS r(i)) "
            f"TO '{path}' (ROW_GROUP_SIZE 2048)"
        )
        sql = "SELECT created_by, footer_size FROM parquet_file_metadata(?)"
        [(expected, footer)] = con.execute(sql, [str(path)]).fetchall()
    body, reads = path.read_bytes(), []

    def read(start, end):
        reads.append(end - start)
        return body[start:end]

    assert created_by(read, len(body)) == expected
    assert sum(reads) <= 16 * 1024 < footer


def test_a_file_that_does_not_end_as_parquet_has_no_writer():
    with pytest.raises(NotParquet):
        created_by(lambda start, end: b"PAR1"[start:end], 4)


WRITERS = {
    "DuckDB version v2.0.1 (build 8d78114e90)": True,
    "DuckDB version v2.10.0 (build 0)": True,
    "DuckDB version v2.0.0": True,
    "DuckDB version v2.0.0-dev1 (build 0)": False,
    "DuckDB version v1.5.5 (build d8cdaa33fd)": False,
    "parquet-mr version 1.17.1 (build 78a8d3230eb4769db93de5f2f2e18363c04cae81)": True,
    "parquet-mr version 1.15.2 (build 0)": False,
    "parquet-cpp-arrow version 26.0.1": False,
    "": False,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_variants_conform_from_a_version_on(writer):
    assert writes_variants(writer) == WRITERS[writer]
