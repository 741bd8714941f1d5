"""Sizes that are known before a file is written, and files that are padded to them."""

import random
from itertools import count

import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.generated_files import (
    Rows,
    deletes_size,
    padded,
    position_deletes_bytes,
    rows_bytes,
    rows_size,
)
from polynya.iceberg.types import Field, List, Map, Primitive, Struct
from pyarrow import BufferReader

RANDOM = random.Random(7)
IDS = count(1)


def field(type_: object, **more: object) -> Field:
    number = next(IDS)
    return Field(number, f"column_{number}", type_, **more)


def texts(length: int, rows: int) -> list[str]:
    """Texts that do not compress, all different."""
    return [RANDOM.randbytes(length // 2).hex() for _ in range(rows)]


LONG, TEXT, BOOL = Primitive("long"), Primitive("string"), Primitive("boolean")
NESTED = Map(next(IDS), TEXT, next(IDS), List(next(IDS), Struct((field(BOOL), field(LONG)))))

CASES = {  # the type of a column, its type in DuckDB, its texts
    "no rows of value": (LONG, "BIGINT", [None] * 5),
    "one": (LONG, "BIGINT", ["1"]),
    "digits": (LONG, "BIGINT", [str(n % 10) for n in range(3000)]),
    "numbers": (LONG, "BIGINT", [str(n * 7919 - 2**40) for n in range(200_000)]),
    "doubles": (Primitive("double"), "DOUBLE", [str(n % 7) for n in range(5000)]),
    "decimals": (Primitive("decimal(38, 2)"), "DECIMAL(38,2)", [str(n) for n in range(5000)]),
    "uuids": (Primitive("uuid"), "UUID", [
        f"{n:08x}-0000-0000-0000-000000000000" for n in range(5000)]),
    "short texts": (TEXT, "VARCHAR", texts(4, 5000)),
    "long texts": (TEXT, "VARCHAR", texts(9000, 40)),
    "one huge text": (TEXT, "VARCHAR", texts(2_000_000, 1)),
    "the same texts": (TEXT, "VARCHAR", texts(600, 1) * 5000),
    "lists": (List(next(IDS), BOOL), "BOOLEAN[]", ["[" + "t," * 400 + "f]"] * 50),
    "nested": (NESTED, "MAP(VARCHAR, STRUCT(a BOOLEAN, b BIGINT)[])", [
        "{k=[" + ",".join(["{'a': t, 'b': 1}"] * 30) + "], l=[]}"] * 300),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_rows_fit_into_their_size(case):
    type_, duckdb_type, values = CASES[case]
    fields = [field(type_)]
    sql = f"CAST(c0 AS {duckdb_type})"
    if case == "nested":
        members = ", ".join(
            f'"{f.name}" := e.{n}' for f, n in zip(NESTED.value.element.fields, "ab", strict=True)
        )
        sql = (
            f"map_from_entries(list_transform(map_entries({sql}), lambda m: {{'k': m.key, "
            f"'v': list_transform(m.value, lambda e: struct_pack({members}))}}))"
        )
    body = rows_bytes([Rows([("VARCHAR", values)], [sql], len(values))], fields)
    size = rows_size(fields, len(values), sum(len(value or "") for value in values))
    check(body, size)


def test_many_columns_fit():
    fields = [field(LONG) for _ in range(300)]
    columns = [("VARCHAR", ["1", None, "3"])] * 300
    body = rows_bytes([Rows(columns, [f"CAST(c{n} AS BIGINT)" for n in range(300)], 3)], fields)
    check(body, rows_size(fields, 3, 3 * 300))


def test_defaults_of_older_rows_fit():
    [default] = texts(4000, 1)
    fields = [field(LONG), field(TEXT, initial_default=default)]
    select = ["CAST(c0 AS BIGINT)", f"'{default}'"]
    body = rows_bytes([Rows([("VARCHAR", ["1"] * 500), None], select, 500)], fields)
    check(body, rows_size(fields, 500, 500))


@pytest.mark.parametrize("path", ["s3://b/d.parquet", f"s3://b/{'long' * 250}.parquet"])
@pytest.mark.parametrize("positions", [0, 1, 3, 5000, 300_000])
def test_deletes_fit_into_their_size(positions, path):
    found = sorted(RANDOM.sample(range(10 * positions + 1), positions))
    check(position_deletes_bytes(path, found), deletes_size(path, positions))


def check(body: bytes, size: int) -> None:
    """The file fits, with a margin, and readers find the same rows in the padded one."""
    assert len(body) < 0.8 * size
    longer = padded(body, size)
    assert len(longer) == size
    assert pq.read_table(BufferReader(longer)) == pq.read_table(BufferReader(body))
    assert padded(body, len(body)) == body


def test_a_file_that_does_not_fit_is_an_error():
    body = position_deletes_bytes("s3://b/d", [1])
    with pytest.raises(ValueError, match="are more than"):
        padded(body, len(body) - 1)
