"""A filter never loses a row: a filtered scan returns the matching rows of the whole table.

Clients skip files by the bounds and counts that we write. Every predicate is given to the client,
and the same library evaluates it on the rows of the unfiltered scan.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from polynya_local.clients import pyiceberg
from polynya_local.clients.duckdb import identifier
from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotNaN,
    NotNull,
    StartsWith,
)
from pyiceberg.expressions.visitors import bind
from pyiceberg.io import FileIO, InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO, expression_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, FloatType, PrimitiveType, StringType, UUIDType

from tests.support import rest
from tests.support.lakes import in_the_other_version, number_of
from tests.support.servers import in_process

# Scalars with their limits, floats, texts, buckets, promotions; inlined rows, evolution
LAKES = ["01", "03", "04", "19", "23"]
SLOW = ["13", "16", "22"]
SLOW += [in_the_other_version(number) for number in LAKES + SLOW]
LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in SLOW]
# Of each column, how many values are compared with.
MOST_VALUES = [2, pytest.param(6, marks=pytest.mark.slow)]

# (client, lake, column) -> what the client does wrong, whatever the metadata says. Native DuckDB
# on DuckLake does the same as DuckDB here.
CLIENT_DEFECTS = {
    ("PyIceberg", "22", "g"): "compares the default of a timestamp with a number",
    ("PyIceberg", "22", "dt"): "compares the default of a date with a number",
    ("PyIceberg", "23", "u8"): "takes UINT_32 in a file for a 32-bit int: x >= 2^31 is never true",
    ("PyIceberg", "23", "f"): "rounds a double to the float of the file before it compares",
    ("DuckDB", "23", "f"): "rounds a double to the float of the file before it compares",
}


INFINITE = (float("inf"), float("-inf"))


class Served:
    """One lake behind the bridge, with one table."""

    def __init__(self, number: str, bridge) -> None:
        self.number = number_of(number)
        self.where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        [(self.namespace, self.table)] = rest.Rest(*self.where[:2]).tables()


@pytest.fixture(scope="module", params=LAKES)
def served(request, lake, moto):
    one = lake(request.param)
    with in_process.bridge(one, moto, settings={"CHUNK_FILES": "2"}) as bridge:
        yield Served(request.param, bridge)


class Differences:
    """Wrong results, by column."""

    def __init__(self, client: str, number: str, values: int) -> None:
        self._client, self._number, self._values = client, number, values
        self._wrong: dict[str, list[str]] = defaultdict(list)
        self.asked = 0

    def compare(self, column: str, predicate: object, found: object, expected: object) -> None:
        self.asked += 1
        if found != expected:
            self._wrong[column].append(f"{predicate}: {found}, not {expected}")

    def assert_none(self) -> None:
        known = {
            column for (c, n, column) in CLIENT_DEFECTS if (c, n) == (self._client, self._number)
        }
        fixed = known - self._wrong.keys()
        assert not fixed, f"{self._client} has fixed: {fixed}"
        wrong = [line for name, lines in self._wrong.items() if name not in known for line in lines]
        assert not wrong, "\n".join(wrong)
        assert self.asked > 8 * self._values


def spread(values: list, most: int) -> list:
    """At most so many of the values: both ends and some between."""
    last = len(values) - 1
    places = {round(last * part / (most - 1)) for part in range(most)}
    return [values[place] for place in sorted(places)] if values else []


# ---------------------------------------------------------------- PyIceberg


class Downloaded(PyArrowFileIO):
    """Fetches each file once: hundreds of scans ask for the same few."""

    def __init__(self, io: FileIO, folder: Path) -> None:
        super().__init__()
        self._io, self._folder = io, folder

    def new_input(self, location: str) -> InputFile:
        path = self._folder / hashlib.sha256(location.encode()).hexdigest()
        if not path.exists():
            with self._io.new_input(location).open() as file:
                path.write_bytes(file.read())
        return super().new_input(str(path))


@pytest.fixture
def iceberg_table(served, tmp_path) -> Iterator[Table]:
    client = pyiceberg.open(*served.where)
    table = client._catalog.load_table((served.namespace, served.table))
    table.io = Downloaded(table.io, tmp_path)
    yield table
    client.close()


COMPARISONS = [EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual]


def literals(type_: PrimitiveType, column: pa.ChunkedArray) -> list:
    """Distinct values of the column as PyIceberg takes them, in its order, without NaN."""
    if isinstance(type_, UUIDType):
        return []  # pyarrow cannot compare them, so there would be no judge
    if pa.types.is_date(column.type):  # numbers, because Python has no date `infinity`
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    values = set(column.drop_null().to_pylist())
    return sorted(value for value in values if value == value)


def predicates(table: Table, rows: pa.Table, most: int) -> Iterator[tuple[str, BooleanExpression]]:
    for field in table.schema().fields:
        name, type_ = field.name, field.field_type
        if not isinstance(type_, PrimitiveType):
            continue  # "Cannot explicitly project List or Map types"
        yield from ((name, of(name)) for of in (IsNull, NotNull))
        values = literals(type_, rows.column(name))
        some = spread(values, most)
        if isinstance(type_, FloatType | DoubleType):
            yield from ((name, of(name)) for of in (IsNaN, NotNaN))
            some = list(map(float, dict.fromkeys(map(str, [*some, 0.0, -0.0]))))
        for value in some:
            yield from ((name, comparison(name, value)) for comparison in COMPARISONS)
            if isinstance(type_, StringType):
                prefix = StartsWith(name, value[: len(value) // 2])
                yield from ((name, of) for of in (prefix, Not(prefix)))
        # In a set, pyarrow distinguishes -0.0 from 0.0; in a comparison it does not.
        # There PyIceberg takes infinity for the greatest FLOAT.
        members = [value for value in some if value != 0 and value not in INFINITE]
        if len(members) > 1:
            yield from ((name, of) for of in (In(name, members), Not(In(name, members))))


@pytest.mark.slow("[03-", "[19-", "[01-")
@pytest.mark.parametrize("most", MOST_VALUES)
def test_pyiceberg_finds_the_same_rows_with_a_filter_as_in_the_whole_table(
    served, iceberg_table, most
):
    rows = iceberg_table.scan().to_arrow()
    differences = Differences("PyIceberg", served.number, most)
    for column, predicate in predicates(iceberg_table, rows, most):
        bound = bind(iceberg_table.schema(), predicate, case_sensitive=True)
        expected = rows.filter(expression_to_pyarrow(bound))
        try:
            found = iceberg_table.scan(row_filter=predicate).to_arrow()
        except TypeError as error:
            differences.compare(column, predicate, repr(error), expected.num_rows)
        else:
            differences.compare(column, predicate, texts(found), texts(expected))
    differences.assert_none()


def test_filter_that_no_row_can_match_skips_files(served, iceberg_table):
    """Without this, a bridge that writes no bounds would pass the other tests."""
    first = iceberg_table.schema().fields[0].name
    files = [task.file for task in iceberg_table.scan().plan_files()]
    with_bounds = [file for file in files if file.lower_bounds or file.null_value_counts]
    left = [task.file for task in iceberg_table.scan(EqualTo(first, 10**6)).plan_files()]
    assert len(left) == len(files) - len(with_bounds)
    assert with_bounds or served.number == "16"  # in lake 16 all rows are inlined


def texts(rows: pa.Table) -> list[str]:
    """The rows as texts, sorted, because the order of files is not defined."""
    columns = [column_texts(column) for column in rows.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


def column_texts(column: pa.ChunkedArray) -> list:
    if pa.types.is_temporal(column.type):
        width = column.type.bit_width
        column = column.cast(pa.int32() if width == 32 else pa.int64())
    return column.to_pylist()


# ---------------------------------------------------------------- DuckDB


@pytest.fixture
def client(served, shared_duckdb):
    client = shared_duckdb.attached_to(*served.where)
    yield client
    client.query("DROP TABLE IF EXISTS whole")


def sql_predicates(client, name: str, type_: str, most: int) -> Iterator[str]:
    """Conditions on one column, with literals taken from the table `whole`."""
    column = identifier(name)
    yield from (f"{column} IS NULL", f"{column} IS NOT NULL")
    if "(" in type_.replace("DECIMAL(", "") or type_.endswith("[]"):
        return
    # As bytes: a text may hold a NUL, which no SQL literal can.
    found = client.query(
        f"SELECT DISTINCT {column} AS v, hex(encode({column}::VARCHAR)) AS h FROM whole "
        f"WHERE {column} IS NOT NULL ORDER BY v"
    )
    values = [
        f"decode(from_hex('{text}'))::{type_}" for text in spread(found["h"].to_pylist(), most)
    ]
    if type_ in {"FLOAT", "DOUBLE"}:
        values += [f"'{text}'::{type_}" for text in ("nan", "inf", "-inf", "-0.0", "0.0")]
        yield from (f"isnan({column})", f"NOT isnan({column})")
    for value in values:
        yield from (
            f"{column} {operator} {value}" for operator in ("=", "<>", "<", "<=", ">", ">=")
        )
        if type_ == "VARCHAR":
            yield f"starts_with({column}, left({value}, 2))"
            yield f"{column} LIKE left({value}, 2) || '%'"
    if len(values) > 1:
        yield f"{column} IN ({', '.join(values)})"
        yield f"{column} NOT IN ({', '.join(values)})"
        yield f"{column} BETWEEN {values[0]} AND {values[1]}"


def counted(source: str, asked: list[tuple[str, str]]) -> str:
    """SQL for the number of rows under each condition, and a hash of these rows."""
    counts = (
        f"SELECT {number} AS n, count(*) AS c, bit_xor(hash(t)) AS h FROM {source} AS t "
        f"WHERE {condition}"
        for number, (_, condition) in enumerate(asked)
    )
    return " UNION ALL ".join(counts) + " ORDER BY n"


@pytest.mark.slow("[04-", "[19-")
@pytest.mark.parametrize("most", MOST_VALUES)
def test_duckdb_finds_the_same_rows_with_a_filter_as_in_the_whole_table(served, client, most):
    table = f"ice.{identifier(served.namespace)}.{identifier(served.table)}"
    client.query(f"CREATE TEMP TABLE whole AS FROM {table}")
    types = client.query("SELECT column_name, column_type FROM (DESCRIBE whole)").to_pylist()
    asked = [
        (row["column_name"], condition)
        for row in types
        for condition in sql_predicates(client, row["column_name"], row["column_type"], most)
    ]
    counts = [client.query(counted(source, asked)).to_pylist() for source in (table, "whole")]
    differences = Differences("DuckDB", served.number, most)
    for (column, condition), found, expected in zip(asked, *counts, strict=True):
        differences.compare(column, condition, found, expected)
    differences.assert_none()
