"""Data files that get fields in structs, ids and names: read by PyArrow and DuckDB."""

import io
import itertools
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.footer import TAIL, NotParquet, columns_of
from polynya.iceberg.parquet.footer_limits import check_footers
from polynya.iceberg.parquet.new_footer import (
    FooterChanges,
    Named,
    largest_size,
    new_tail,
    structs_with_null,
)
from polynya.iceberg.parquet.struct_nulls import present_structs
from polynya.iceberg.types import AddedField, Field, Primitive, Struct
from polynya.virtual_files.adapted_data_files import _constants_of
from polynya_local.clients.duckdb import connect

from tests.unit.iceberg.parquet.test_new_footer import constants_of

ROWS = 1000
[TEXT] = constants_of([(Primitive("string"), "'new'", "new")])
[NUMBER] = constants_of([(Primitive("long"), "7::BIGINT", 7)])
[FLAG] = constants_of([(Primitive("boolean"), "true", True)])
[NOTHING] = constants_of([(Primitive("int"), "NULL::INTEGER", None)])


def with_ids(type_: pa.DataType, ids: itertools.count) -> pa.DataType:
    """A struct whose fields have ids, at every level."""
    fields = []
    for field in type_:
        own = {"PARQUET:field_id": str(next(ids))}
        inner = with_ids(field.type, ids) if pa.types.is_struct(field.type) else field.type
        fields.append(pa.field(field.name, inner, field.nullable, own))
    return pa.struct(fields)


def written(rows: list[dict], type_: pa.DataType, **how) -> bytes:
    table = pa.Table.from_struct_array(pa.array(rows, type_))
    out = io.BytesIO()
    pq.write_table(table, out, **{"row_group_size": 300, **how})
    return out.getvalue()


def ends(file: bytes) -> tuple[bytes, int]:
    start = len(file) - TAIL - int.from_bytes(file[-TAIL:-4], "little")
    return file[start:-TAIL], start


def changed(file: bytes, changes: FooterChanges, of=()) -> tuple[bytes, int]:
    """The file with another footer, and how many columns had to be read for it."""
    footer, start = ends(file)
    check_footers([footer])
    columns = structs_with_null(footer, start, changes)
    changes.present.update(
        {
            c.field_id: present_structs(c, start, [file[at : at + n] for at, n in c.chunks])
            for c in columns
        }
    )
    size = largest_size(len(file), len(footer), ROWS, of, 9, changes.names)
    return file[:start] + new_tail(footer, start, changes, size - start), len(columns)


def in_struct(constant, field_id: int, parent: int, name: str, depth: int = 1):
    from dataclasses import replace

    type_ = Primitive("string")
    of = AddedField(Field(field_id, name, type_, initial_default="new"), parent, depth)
    return replace(constant, field_id=field_id, parent=parent, name=name), of


TYPE = with_ids(
    pa.struct(
        {
            "i": pa.int64(),  # 1
            "s": pa.struct({"a": pa.int32(), "n": pa.struct({"x": pa.string()})}),  # 2: 3, 4: 5
        }
    ),
    itertools.count(1),
)


def random_rows(seed: int, null: float) -> list[dict]:
    rng = random.Random(seed)

    def perhaps(value):
        return None if rng.random() < null else value

    return [
        {
            "i": n,
            "s": perhaps({"a": perhaps(n), "n": perhaps({"x": perhaps(f"x{n}")})}),
        }
        for n in range(ROWS)
    ]


def filled(row: dict) -> dict:
    """What DuckLake reads of it."""
    s = row["s"]
    if s is None:
        return row
    n = s["n"] and {**s["n"], "y": 7}
    return {"i": row["i"], "s": {"a": s["a"], "n": n, "c": "new", "f": True}}


@pytest.mark.parametrize("null", [0.0, 0.03, 0.5, 0.97, 1.0])
@pytest.mark.parametrize(
    "how",
    [
        {"compression": "snappy"},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "none", "use_dictionary": False, "data_page_size": 100},
        {"write_statistics": False},
        {"row_group_size": 1000, "write_page_index": True},
    ],
    ids=["snappy", "pages of version 2", "small pages", "no statistics", "page index"],
)
def test_a_field_in_a_struct_has_its_value_where_the_struct_is_not_null(null, how):
    rows = random_rows(3, null)
    file = written(rows, TYPE, **how)
    fields = [in_struct(TEXT, 10, 2, "c"), in_struct(FLAG, 11, 2, "f")]
    fields.append(in_struct(NUMBER, 12, 4, "y", 2))
    added, of = zip(*fields, strict=True)
    new, reads = changed(file, FooterChanges(added), of)
    assert reads == (0 if null == 0.0 and how.get("write_statistics", True) else 2)
    expected = [*map(filled, rows)]
    assert pq.read_table(io.BytesIO(new)).to_pylist() == expected


def test_duckdb_finds_it(tmp_path):
    rows = random_rows(4, 0.3)
    field, of = in_struct(TEXT, 10, 2, "c")
    path = tmp_path / "new.parquet"
    path.write_bytes(changed(written(rows, TYPE), FooterChanges([field]), [of])[0])
    con = connect()
    [(found, others, nulls)] = con.execute(
        "SELECT count(*) FILTER (s.c = 'new'), count(*) FILTER (s.c <> 'new'), "
        f"count(*) FILTER (s.c IS NULL) FROM '{path}'"
    ).fetchall()
    none = sum(row["s"] is None for row in rows)
    assert (found, others, nulls) == (ROWS - none, 0, none)


def test_a_struct_that_is_required_needs_no_look():
    type_ = with_ids(
        pa.struct([pa.field("s", pa.struct({"a": pa.int32()}), nullable=False)]),
        itertools.count(1),
    )
    rows = [{"s": {"a": None if n % 2 else n}} for n in range(ROWS)]
    field, of = in_struct(TEXT, 10, 1, "c")
    new, reads = changed(written(rows, type_), FooterChanges([field]), [of])
    assert reads == 0
    read = pq.read_table(io.BytesIO(new)).to_pylist()
    assert read == [{"s": {**row["s"], "c": "new"}} for row in rows]


def test_what_a_file_has_or_has_no_struct_for_is_not_added():
    rows = random_rows(5, 0.3)
    file = written(rows, TYPE)
    fields = [in_struct(TEXT, 5, 4, "x", 2), in_struct(TEXT, 10, 99, "z")]
    added, of = zip(*fields, strict=True)
    new, reads = changed(file, FooterChanges(added), of)
    assert (reads, pq.read_table(io.BytesIO(new)).to_pylist()) == (0, rows)


def test_a_field_in_a_list_cannot_be_added():
    element = pa.field("element", with_ids(pa.struct({"a": pa.int32()}), itertools.count(3)))
    element = element.with_metadata({"PARQUET:field_id": "2"})
    lists = pa.field("l", pa.list_(element), metadata={"PARQUET:field_id": "1"})
    file = written([{"l": [{"a": n}]} for n in range(ROWS)], pa.struct([lists]))
    field, of = in_struct(TEXT, 10, 2, "b")
    with pytest.raises(NotParquet, match="list or a map"):
        changed(file, FooterChanges([field]), [of])


def test_null_in_all_rows():
    rows = random_rows(6, 0.3)
    from dataclasses import replace

    column = replace(NOTHING, field_id=20, name="nothing")
    of = AddedField(Field(20, "nothing", Primitive("int"), "NULL"))
    assert NOTHING.value is None
    new, _ = changed(written(rows, TYPE), FooterChanges([column]), [of])
    read = pq.read_table(io.BytesIO(new))
    assert read["nothing"].null_count == ROWS
    assert read.drop(["nothing"]).to_pylist() == rows


ADDED_TYPE = pa.struct(
    {
        "I": pa.int64(),
        "extra": pa.string(),
        "s": pa.struct({"A": pa.int32(), "more": pa.int32()}),
        "l": pa.list_(pa.struct({"t": pa.int8()})),
        "m": pa.map_(pa.string(), pa.int32()),
        "ms": pa.timestamp("ms"),
    }
)
NAMES = {
    ("I",): Named(1, "i"),
    ("s",): Named(2, "st"),
    ("s", "A"): Named(3, "a"),
    ("l",): Named(4, "l"),
    ("l", "element"): Named(5, "element"),
    ("l", "element", "t"): Named(6, "tiny"),
    ("m",): Named(7, "m"),
    ("m", "key"): Named(8, "key"),
    ("m", "value"): Named(9, "value"),
    ("ms",): Named(10, "ms"),
}


def added_file(**how) -> bytes:
    rows = [
        {
            "I": n,
            "extra": "e" * (n % 50),
            "s": {"A": n, "more": 1} if n % 3 else None,
            "l": [{"t": n % 100}, None] if n % 2 else None,
            "m": [("k", n)],
            "ms": n,
        }
        for n in range(ROWS)
    ]
    return written(rows, ADDED_TYPE, **how)


def test_an_added_file_gets_ids_and_names_at_every_level_and_loses_what_is_not_known():
    file = added_file(write_page_index=True)
    field, of = in_struct(TEXT, 11, 2, "c")
    changes = FooterChanges([field], names=NAMES, has_plain_milliseconds=True)
    new, _ = changed(file, changes, [of])
    found = columns_of(lambda first, end: new[first:end], len(new))
    own = {
        ("i",): 1,
        ("st",): 2,
        ("st", "a"): 3,
        ("st", "c"): 11,
        ("l",): 4,
        ("l", "element"): 5,
        ("l", "element", "tiny"): 6,
        ("m",): 7,
        ("m", "key"): 8,
        ("m", "value"): 9,
        ("ms",): 10,
    }
    assert {column.path: column.field_id for column in found} == own
    before, after = pq.read_table(io.BytesIO(file)), pq.read_table(io.BytesIO(new))
    for old, name in (("I", "i"), ("m", "m"), ("ms", "ms")):
        assert after[name].equals(before[old])
    structs = [s and {"a": s["A"], "c": "new"} for s in before["s"].to_pylist()]
    assert after["st"].to_pylist() == structs
    lists = [x and [e and {"tiny": e["t"]} for e in x] for x in before["l"].to_pylist()]
    assert after["l"].to_pylist() == lists
    metadata = pq.read_metadata(io.BytesIO(new)).row_group(0)
    by_path = {
        metadata.column(n).path_in_schema: metadata.column(n) for n in range(metadata.num_columns)
    }
    assert by_path["i"].is_stats_set and not by_path["ms"].is_stats_set


@pytest.mark.parametrize(
    "missing", [("l", "element"), ("m", "value"), ("s", "A")], ids=["list", "map", "struct"]
)
def test_a_group_with_nothing_known_in_it_leaves_the_file_as_it_is(missing):
    names = {path: named for path, named in NAMES.items() if path[: len(missing)] != missing}
    with pytest.raises(NotParquet, match="nothing in it that is known"):
        changed(added_file(), FooterChanges(names=names))


def test_a_struct_that_a_file_may_lack_and_a_field_of_it_with_a_default():
    """DuckDB writes no file that has an id twice."""
    field = Field(9, "c", Primitive("int"), 3)
    struct = Field(2, "s", Struct((Field(3, "a", Primitive("int")), field)))
    values = "CAST(NULL AS STRUCT(a INTEGER, c INTEGER))", "3::INTEGER"
    found = _constants_of(values, (AddedField(struct), AddedField(field, 2, 1)))
    assert [(of.name, of.parent, of.value) for of in found] == [
        ("s", None, None),
        ("c", 2, (3).to_bytes(4, "little")),
    ]
