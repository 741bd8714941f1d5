"""Added files: which of their columns an Iceberg reader resolves as DuckLake does."""

import json

import pytest
from polynya.ducklake.rows.objects import MappedName
from polynya.iceberg.parquet.footer import Column
from polynya.mapping.name_mappings import Mappings, mappings
from pyiceberg.table.name_mapping import parse_mapping_from_json

# Mapping 1: a -> 1, s -> 2 with x -> 3; mapping 2 lacks s and has another name for 1.
NAMES = [
    MappedName(1, 0, "a", 1, None, False),
    MappedName(1, 1, "s", 2, None, False),
    MappedName(1, 2, "x", 3, 1, False),
    MappedName(1, 3, "part", 4, None, True),
    MappedName(2, 0, "A", 1, None, False),
]


def found() -> Mappings:
    return mappings(NAMES, ())


def columns(*given: tuple[str, int | None]) -> list[Column]:
    return [Column(tuple(name.split(".")), field_id, None) for name, field_id in given]


TYPES = {1: "timestamp", 2: "timestamp_ms", 3: "timestamp_ns"}
# (mapping, columns of the file, a part of the reason)
FILES = [
    (1, columns(("a", None), ("s", None), ("s.x", None)), None),
    (1, columns(("a", 1), ("s", 2), ("s.x", 3)), None),
    (1, columns(("a", 2), ("s", 1), ("s.x", 3)), "field id 2 of 'a'"),
    (1, columns(("a", 17)), "field id 17"),
    (1, columns(("a", 1), ("s", 2), ("s.x", None)), "'s.x' in an added file has no field id"),
    (1, columns(("a", 1), ("s", 2), ("s.x", 3), ("more", None)), None),
    (1, columns(("a", 1), ("more", 9)), "field id 9"),
    (2, columns(("A", None), ("more", None)), None),
    (2, columns(("A", None), ("s", None)), "'s' that DuckLake ignores"),
    (1, [Column(("a",), None, 6)], None),
    (1, [Column(("a",), 1, 9)], "finer than a timestamp"),
    (1, [Column(("more",), None, 9)], None),
    (1, [Column(("s",), None, 3)], None),
    (1, [Column(("s",), None, 6)], "finer than a timestamp_ms"),
    (1, [Column(("s", "x"), None, 9)], None),
]


@pytest.mark.parametrize(("mapping_id", "file", "reason"), FILES)
def test_file_is_refused_if_a_reader_resolves_its_columns_unlike_ducklake(mapping_id, file, reason):
    found_reason = found().contradiction(mapping_id, file, TYPES)
    assert found_reason is None if reason is None else reason in found_reason


def test_all_mappings_are_one_mapping_for_pyiceberg():
    mapping = parse_mapping_from_json(found().json())
    ids = {name: field.field_id for field in mapping for name in field.names}
    assert ids == {"a": 1, "A": 1, "s": 2}
    [s] = [field for field in mapping if field.field_id == 2]
    assert [(field.field_id, list(field.names)) for field in s.fields] == [(3, ["x"])]
    assert "part" not in json.dumps(found().json())


def test_one_name_for_two_columns_is_a_conflict():
    assert found().conflict() is None
    other = [*NAMES, MappedName(2, 1, "a", 5, None, False)]
    assert "'a'" in (mappings(other, ()).conflict() or "")


BROKEN = [
    ([MappedName(1, 0, None, 1, None, False)], "no text or no column"),
    ([MappedName(1, 0, "a", None, None, False)], "no text or no column"),
    ([MappedName(1, 0, "a", 1, None, False), MappedName(1, 0, "b", 2, None, False)], "twice"),
    ([MappedName(1, 0, "a", 1, 7, False)], "names no row"),
    ([MappedName(1, 0, "a", 1, 0, False)], "inside each other"),
    ([MappedName(1, 0, "a", 1, 1, False), MappedName(1, 1, "b", 2, 0, False)], "each other"),
]


@pytest.mark.parametrize(("names", "reason"), BROKEN)
def test_broken_rows_are_a_conflict(names, reason):
    assert reason in (mappings(names, ()).conflict() or "")
