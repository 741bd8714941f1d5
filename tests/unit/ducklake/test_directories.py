"""Directories as PyIceberg and native DuckLake name them; DuckDB's as an Iceberg client as seen."""

from datetime import date
from urllib.parse import quote

import pytest
from polynya.ducklake.directories import directory_kind
from polynya.ducklake.rows.objects import PartitionColumn
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField, StringType, TimestampType

SCHEMA = Schema(NestedField(1, "s", StringType()), NestedField(2, "t", TimestampType()))
DAYS = [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]
PARTS = ("year", "month", "day")


def of_pyiceberg(source: int, transform: str, value: object) -> str:
    field = PartitionField(source, 1000, parse_transform(transform), f"c_{transform}")
    return f"data/{PartitionSpec(field).partition_to_path(Record(value), SCHEMA)}/1.parquet"


def since_1970(part: str, day: date) -> int:
    months = (day.year - 1970) * 12 + day.month - 1
    return {"year": day.year - 1970, "month": months, "day": (day - DAYS[1]).days}[part]


def keys_of(part: str) -> list[PartitionColumn]:
    return [PartitionColumn(n, 2, one) for n, one in enumerate(PARTS[: PARTS.index(part) + 1])]


@pytest.mark.parametrize("part", PARTS)
def test_each_writer_of_times_has_one_kind(part):
    kinds = []
    for name in (
        lambda day: of_pyiceberg(2, part, since_1970(part, day)),
        lambda day: f"data/c_{part}={since_1970(part, day)}/1.parquet",  # DuckDB
        lambda day: f"data/year={day.year}/month={day.month}/day={day.day}/1.parquet",
    ):
        of_writer = set()
        for day in DAYS:
            values = [str(day.year), str(day.month), str(day.day)][: len(keys_of(part))]
            of_writer.add(directory_kind(name(day), keys_of(part), values))
        kinds.append(of_writer)
    client, other, native = kinds
    assert len(client) == len(other) == 1
    assert client.isdisjoint(other) and client.isdisjoint(native)


@pytest.mark.parametrize("part", [*PARTS, "hour"])
def test_each_writer_of_times_since_1970_has_one_kind(part):
    key = [PartitionColumn(0, 2, f"epoch_{part}")]
    numbers = [-25, -1, 0, 40, 2024]
    clients = (
        lambda number: of_pyiceberg(2, part, number),
        lambda number: f"data/c_{part}={number}/1.parquet",  # DuckDB
    )
    client, other = (
        {directory_kind(name(number), key, [str(number)]) for number in numbers} for name in clients
    )
    assert len(client) == len(other) == 1 and client != other


def test_each_writer_of_timestamps_has_one_kind():
    key = [PartitionColumn(0, 2, "identity")]
    values = ["1969-12-31 23:30:00", "2024-02-29 23:59:59.999999", "1970-01-01 00:00:00"]
    microseconds = [-1_800_000_000, 1_709_251_199_999_999, 0]
    client = {
        directory_kind(of_pyiceberg(2, "identity", number), key, [value])
        for number, value in zip(microseconds, values, strict=True)
    }
    other = {directory_kind(f"data/t={quote(value)}/1.parquet", key, [value]) for value in values}
    assert len(client) == len(other) == 1 and client != other


def test_texts_that_writers_spell_differently_are_of_several_kinds():
    key = [PartitionColumn(0, 1, "identity")]

    def kind(path: str, value: str | None) -> str:
        return directory_kind(path, key, [value])

    plain = {kind(of_pyiceberg(1, "identity", one), one) for one in ("a", "b2", "null")}
    quoted = {kind(of_pyiceberg(1, "identity", one), one) for one in ("a b", "a+b c")}
    assert len(plain) == len(quoted) == 1
    by_ducklake = kind("data/c_identity=a%20b/1.parquet", "a b")
    nulls = {
        kind(of_pyiceberg(1, "identity", None), None),
        kind("data/c_identity=__HIVE_DEFAULT_PARTITION__/1.parquet", None),
    }
    assert len(plain | quoted | {by_ducklake} | nulls) == 5


def test_a_directory_is_told_from_the_place_where_ducklake_puts_files():
    assert directory_kind("1.parquet", [PartitionColumn(0, 1, "identity")], ["a"]) == "/"


def test_keys_that_say_the_same_twice_and_parts_without_a_year():
    twice = [PartitionColumn(n, 2, part) for n, part in enumerate([*PARTS, *PARTS])]
    values = ["2024", "1", "30"]
    path = of_pyiceberg(2, "day", since_1970("day", date(2024, 1, 30)))
    assert directory_kind(path, twice, [*values, *values]) == directory_kind(
        path, keys_of("day"), values
    )
    kinds = {
        directory_kind(f"month={n}/1.parquet", [PartitionColumn(0, 2, "month")], [str(n)])
        for n in range(1, 13)
    }
    assert len(kinds) == 1


def test_a_part_of_the_calendar_may_be_any_text():
    key = [PartitionColumn(0, 2, "year")]
    kinds = {directory_kind("year=x/1.parquet", key, [text]) for text in ("9" * 5000, "²", "٣")}
    assert len(kinds) == 1
