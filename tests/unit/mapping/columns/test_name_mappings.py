"""Added files: which of their columns an Iceberg reader resolves as DuckLake does."""

import json

import pytest
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.rows.objects import Column as CatalogColumn
from polynya.ducklake.rows.objects import MappedName
from polynya.iceberg.parquet.footer import Column
from polynya.mapping.name_mappings import (
    Mappings,
    Unmatched,
    mappings,
    name_matcher,
    property_paths,
    signature,
    unnamed_fields,
)
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


def test_one_name_for_two_columns_needs_field_ids():
    other = mappings([*NAMES, MappedName(2, 1, "a", 5, None, False)], ())
    assert other.contradiction(1, columns(("a", 1)), TYPES) is None
    assert other.contradiction(2, columns(("a", 5)), TYPES) is None
    assert other.contradiction(2, columns(("A", None)), TYPES) is None
    for mapping_id, field_id in ((1, None), (2, None)):
        file = columns(("a", field_id), ("s", None))
        assert "the same name 'a'" in (other.contradiction(mapping_id, file, TYPES) or "")
    # PyIceberg takes the name of each column if one has no id.
    assert "the same name 'a'" in (
        other.contradiction(1, columns(("a", 1), ("more", None)), TYPES) or ""
    )


def test_fields_that_no_mapping_names_have_their_names_in_the_catalog():
    """ducklake-dataframe names the top level alone; PyIceberg fails if a level is missing."""
    versions = [
        ("a", 1, None),
        ("s", 2, None),
        ("x", 3, 2),
        ("y", 4, 2),
        ("z", 5, 4),
        ("old", 5, 4),
    ]
    versions += [("l", 6, None), ("element", 7, 6), ("v", 8, 7), ("t", 9, None), ("u", 10, 9)]
    catalog = [CatalogColumn(i, 1, None, name, "", None, above) for name, i, above in versions]
    paths = {("a",): 1, ("S",): 2, ("l",): 6, ("t",): 9, ("t", "U"): 10}
    assert unnamed_fields(paths, catalog) == {
        ("S", "x"): 3,
        ("S", "y"): 4,
        ("S", "y", "z"): 5,
        ("S", "y", "old"): 5,
        ("l", "element"): 7,
        ("l", "element", "v"): 8,
    }
    mapping = Mappings({1: paths}, unnamed=unnamed_fields(paths, catalog))
    names = by_pyiceberg(mapping.json())
    assert (names["S.y.old"], names["l.element.v"], names["t.U"]) == (5, 8, 10)
    assert "t.u" not in names


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
    assert reason in (mappings(names, ()).fault or "")


NAMED = [
    {"field-id": 1, "names": ["a", "A"]},
    {
        "field-id": 2,
        "names": ["s", "t"],
        "fields": [{"field-id": 3, "names": ["x"]}, {"names": ["without"]}],
    },
    {"field-id": 4, "names": ["l"], "fields": [{"field-id": 5, "names": ["element"]}]},
    {"field-id": 6, "names": []},
]


def test_the_property_is_read_as_pyiceberg_reads_it():
    text = json.dumps(NAMED)
    paths, found = property_paths(text), by_pyiceberg(text)
    assert {".".join(path): id_ for path, id_ in paths.items()} == found
    assert {*found.values()} == {1, 2, 3, 4, 5}


def by_pyiceberg(text):
    fields = parse_mapping_from_json(text)._field_by_name
    return {name: field.field_id for name, field in fields.items() if field.field_id is not None}


DEEP: list = [{"field-id": 1, "names": ["a"]}]
for _ in range(200):
    DEEP = [{"field-id": 1, "names": ["a"], "fields": DEEP}]
WIDE: list = [{"field-id": 1, "names": list("abcdefghij")}]
for _ in range(9):
    WIDE = [{"field-id": 1, "names": list("abcdefghij"), "fields": WIDE}]
NONE = ["", "7", "{}", "null", "[7]", '[{"names": 7}]', '[{"field-id": 1}]', "[" * 100_000]
NONE += ['[{"field-id": "x", "names": ["a"]}]', json.dumps(DEEP), json.dumps(WIDE)]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_mapping(text):
    with pytest.raises(ValueError):
        property_paths(text)


TABLE = [
    ColumnNode(1, "a", "int64"),
    ColumnNode(2, "s", "struct", children=(ColumnNode(3, "x", "int64"),)),
    ColumnNode(4, "l", "list", children=(ColumnNode(5, "element", "int64"),)),
    ColumnNode(7, "part", "int32"),
]


def test_the_mapping_of_a_file_is_one_that_iceberg_reads_back():
    matcher = name_matcher(TABLE, (), None)
    paths = [("l", "element"), ("a",), ("s", "x")]
    names = matcher.names(paths, {"part": 7})
    assert [name.source_name for name in names] == ["l", "list", "a", "s", "x", "part"]
    stored = [MappedName(9, *name) for name in names]
    found = by_pyiceberg(mappings(stored, {4}).json())
    assert [found[".".join(path)] for path in paths] == [5, 1, 3]
    # The next file gets the same mapping, whatever the order of its columns.
    again = name_matcher(TABLE, stored, None)
    assert again.existing[signature(again.names(reversed(paths), {"part": 7}))] == 9
    assert signature(again.names(paths, {})) not in again.existing


def test_a_name_means_one_column():
    stored = [MappedName(9, 0, "old", 1, None, False), MappedName(9, 1, "gone", 8, None, False)]
    text = json.dumps([{"field-id": 2, "names": ["renamed"]}, {"field-id": 3, "names": ["part"]}])
    matcher = name_matcher(TABLE, stored, text)
    ids = [matcher.field_id((name,)) for name in ("a", "old", "renamed")]
    assert ids == [1, 1, 2]
    for name, words in {
        "gone": "has no column gone",
        "A": "has no column A",
        "x": "has no column x",
        "part": "that of one column now, and of another",
    }.items():
        with pytest.raises(Unmatched, match=words):
            matcher.field_id((name,))
