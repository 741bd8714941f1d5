"""Files with a new footer, read again by pyarrow, DuckDB and Polars: the old rows and the new
columns."""

import io
import random
from dataclasses import replace

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from polynya.iceberg.parquet.footer import TAIL, NotParquet
from polynya.iceberg.parquet.footer_limits import check_footers
from polynya.iceberg.parquet.generated_files import Rows, rows_bytes
from polynya.iceberg.parquet.metadata import footer_length
from polynya.iceberg.parquet.new_footer import (
    SMALL_FOOTER,
    Constant,
    FooterChanges,
    constants,
    largest_size,
    new_footer,
    new_tail,
)
from polynya.iceberg.parquet.thrift import Reader, written
from polynya.iceberg.types import AddedField, Field, Primitive
from polynya.runtime.isolation import isolating

from tests.unit.iceberg.parquet.test_generated_files import IS_DUCKDB_1, VALUES

PRIMITIVES = [value for value in VALUES if isinstance(value[0], Primitive)]


def constants_of(values) -> list[Constant]:
    """Columns c100, c101 and so on, with these ids, of values as `VALUES` has them."""
    fields = [Field(n, f"c{n}", type_) for n, (type_, *_) in enumerate(values, 100)]
    rows = Rows([], [sql for _, sql, *_ in values], 1)
    return constants(rows_bytes([rows], fields, compression="uncompressed"))


ADDED = constants_of(PRIMITIVES)
NULLS = [
    replace(column, field_id=number, name=f"c{number}")
    for number, (type_, sql, *_) in enumerate(VALUES, 100)
    for column in constants_of([(type_, f"CASE WHEN false THEN {sql} END")])
]


def json_default(value: object) -> object:
    """No longer than Iceberg's JSON of it."""
    return value.hex() if isinstance(value, bytes) else str(value)


def changed(file: bytes, added=(), left_out=(), *signed, padding: int = 0) -> bytes:
    """The file with a new footer. Args: as those of `FooterChanges`."""
    start = len(file) - footer_length(file)
    footer = file[start:-TAIL]
    check_footers([footer])
    new = new_footer(footer, start, FooterChanges(added, left_out, *signed))
    return file[:start] + new.tail(new.size + padding)


ROWS = 1000
TABLE = pa.table(
    {
        "i": pa.array(range(ROWS)),
        "s": pa.array([None if n % 7 == 0 else f"text {n}" for n in range(ROWS)]),
        "l": pa.array([[n, None] if n % 3 else None for n in range(ROWS)]),
        "st": pa.array(
            [{"a": n, "b": None} for n in range(ROWS)],
            pa.struct({"a": pa.int64(), "b": pa.string()}),
        ),
        "d": pa.array([n / 2 for n in range(ROWS)]),
    }
)
IDS = {"i": 1, "s": 2, "l": 3, "st": 4, "d": 5}


def with_ids(table: pa.Table) -> pa.Table:
    fields = [
        field.with_metadata({"PARQUET:field_id": str(IDS.get(field.name, 50 + place))})
        for place, field in enumerate(table.schema)
    ]
    return table.cast(pa.schema(fields))


def by_arrow(table: pa.Table = TABLE, **options) -> bytes:
    stream = io.BytesIO()
    pq.write_table(with_ids(table), stream, **options)
    return stream.getvalue()


def by_duckdb(path, options: str) -> bytes:
    with duckdb.connect() as con:
        con.register("given", TABLE)
        ids = "FIELD_IDS {i: 1, s: 2, l: 3, st: 4, d: 5}"
        con.execute(f"COPY given TO '{path}' (FORMAT parquet, {ids}, {options})")
    return path.read_bytes()


def by_polars(**options) -> bytes:
    stream = io.BytesIO()
    frame = pl.from_arrow(TABLE)
    schema = with_ids(frame.to_arrow(compat_level=pl.CompatLevel.newest())).schema
    frame.write_parquet(stream, arrow_schema=schema, **options)
    return stream.getvalue()


FILES = {
    "arrow": lambda _: by_arrow(),
    "arrow, many groups": lambda _: by_arrow(row_group_size=100, write_page_index=True),
    "arrow, a row in each group": lambda _: by_arrow(TABLE.slice(0, 50), row_group_size=1),
    "arrow, version 2 pages": lambda _: by_arrow(data_page_version="2.0", compression="zstd"),
    "arrow, sorted": lambda _: by_arrow(
        sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(5)], write_page_checksum=True
    ),
    "arrow, without statistics": lambda _: by_arrow(write_statistics=False, use_dictionary=False),
    "arrow, no row": lambda _: by_arrow(TABLE.slice(0, 0)),
    "duckdb": lambda path: by_duckdb(path, "COMPRESSION zstd"),
    "duckdb, many groups": lambda path: by_duckdb(path, "ROW_GROUP_SIZE 100, PARQUET_VERSION v2"),
    "polars": lambda _: by_polars(row_group_size=300),
}


@pytest.fixture(params=FILES, scope="module")
def file(request, tmp_path_factory) -> bytes:
    return FILES[request.param](tmp_path_factory.mktemp("files") / "file.parquet")


def read(file: bytes, **options) -> pa.Table:
    return pq.read_table(io.BytesIO(file), **options)


@pytest.mark.parametrize("padding", [0, 5000])
def test_pyarrow_reads_the_rows_and_the_added_values(file, padding):
    before, after = read(file), read(changed(file, ADDED, padding=padding))
    assert after.select(before.column_names).cast(before.schema).equals(before)
    added = after.drop_columns(before.column_names)
    assert added.column_names == [column.name for column in ADDED]
    for (type_, _, value), column in zip(PRIMITIVES, added.columns, strict=True):
        assert column.to_pylist() == [value] * len(before), type_
    ids = [field.metadata[b"PARQUET:field_id"] for field in added.schema]
    assert ids == [str(column.field_id).encode() for column in ADDED]


def test_the_added_columns_are_read_as_those_of_files_with_the_values(file):
    """The same types, field by field, as a file has in which DuckDB wrote the values."""
    fields = [Field(n, f"c{n}", type_) for n, (type_, *_) in enumerate(PRIMITIVES, 100)]
    whole = read(rows_bytes([Rows([], [sql for _, sql, *_ in PRIMITIVES], 1)], fields))
    added = read(changed(file, ADDED)).select(whole.column_names)
    assert added.schema.remove_metadata().equals(whole.schema.remove_metadata())


def test_duckdb_and_polars_filter_by_the_added_columns(file, tmp_path):
    path, rows = tmp_path / "changed.parquet", len(read(file))
    path.write_bytes(changed(file, ADDED))
    with duckdb.connect() as con:
        for column, (type_, sql, *_) in zip(ADDED, PRIMITIVES, strict=True):
            if type_.name == "timestamptz_ns" and IS_DUCKDB_1:
                continue  # it reads microseconds, with or without us
            count = f"SELECT count(*), count({column.name}) FROM '{path}' WHERE {column.name} IS "
            assert con.execute(f"{count} NOT DISTINCT FROM {sql}").fetchone() == (rows, rows)
            assert con.execute(f"{count} DISTINCT FROM {sql}").fetchone() == (0, 0)
    every = pl.scan_parquet(path)
    number = ADDED[[type_.name for type_, *_ in PRIMITIVES].index("int")].name
    for condition, expected in ((pl.col(number) == -(2**31), rows), (pl.col(number) > 0, 0)):
        assert every.filter(condition).select(pl.len()).collect().item() == expected


def test_added_columns_of_each_type_are_null(file, tmp_path):
    """Lists, maps and structs as well, with the types and ids of files that have their values."""
    before, new = read(file), changed(file, NULLS)
    after, rows = read(new), len(before)
    assert after.select(before.column_names).cast(before.schema).equals(before)
    added = after.drop_columns(before.column_names)
    for column, (type_, sql, *_) in zip(NULLS, VALUES, strict=True):
        field = Field(column.field_id, column.name, type_)
        with_value = read(rows_bytes([Rows([], [sql], 1)], [field]))
        assert added.schema.field(column.name).equals(with_value.schema.field(0), True)
    assert [column.null_count for column in added.columns] == [rows] * len(VALUES)
    path = tmp_path / "changed.parquet"
    path.write_bytes(new)
    frame = pl.read_parquet(path)
    with duckdb.connect() as con:
        assert con.execute(f"FROM '{path}'").fetchall() == [
            (*row.values(), *[None] * len(VALUES)) for row in before.to_pylist()
        ]
        for column in NULLS:
            count = f"SELECT count(*) FROM '{path}' WHERE {column.name} IS "
            assert con.execute(f"{count} NULL").fetchone() == (rows,), column
            assert con.execute(f"{count} NOT NULL").fetchone() == (0,), column
            assert frame[column.name].null_count() == rows, column


def ids_of(file: bytes) -> list[int]:
    """The ids of the columns of the top level."""
    schema = pq.read_schema(io.BytesIO(file))
    return [int(field.metadata[b"PARQUET:field_id"]) for field in schema]


@pytest.mark.parametrize("left_out", [{1}, {4}, {2, 3}, {1, 2, 3, 5}])
def test_columns_are_left_out(file, left_out):
    before = read(file)
    ids = {field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in before.schema}
    gone = [name for name, number in ids.items() if number and int(number) in left_out]
    after = read(changed(file, ADDED[:1], left_out))
    kept = before.drop_columns(gone)
    assert after.select(kept.column_names).cast(kept.schema).equals(kept)
    assert after.num_columns == kept.num_columns + 1
    assert after[ADDED[0].name].to_pylist() == [PRIMITIVES[0][2]] * len(before)


def test_all_columns_are_left_out(file, tmp_path):
    """The rows are still there, and other columns of the table are NULL in them."""
    path, rows = tmp_path / "file.parquet", len(read(file))
    new = changed(file, (), ids_of(file))
    path.write_bytes(new)
    assert read(new).to_pydict() == {"_": [False] * rows}
    with duckdb.connect() as con:
        assert con.execute(f"SELECT count(*) FROM '{path}' WHERE NOT _").fetchone() == (rows,)
    assert pl.read_parquet(path).to_dict(as_series=False) == {"_": [False] * rows}
    length = footer_length(file)
    assert len(new) <= largest_size(len(file), length - TAIL, rows, [])


def test_nothing_changed_is_the_same_file(file):
    """The footer is read and written without a loss."""
    length = footer_length(file)
    assert written(Reader(file[-length:-TAIL]).fields()) == file[-length:-TAIL]


def test_types_of_arrow_are_left_out():
    """They are those of other columns: pyarrow would ignore them, or take a column for another."""
    stored = pa.table({"s": pa.array(["a"], pa.large_string())})
    assert read(by_arrow(stored)).schema.field("s").type == pa.large_string()
    assert read(changed(by_arrow(stored))).schema.field("s").type == pa.string()


def test_row_groups_say_what_their_chunks_take():
    table = pq.ParquetFile(io.BytesIO(changed(by_arrow(row_group_size=100), ADDED, {2}))).metadata
    assert table.num_row_groups == 10
    for number in range(10):
        group = table.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        assert group.total_byte_size == sum(chunk.total_uncompressed_size for chunk in chunks)
        assert {chunk.num_values for chunk in chunks[-len(ADDED) :]} == {100}


def test_an_order_holds_up_to_the_first_column_that_is_left_out():
    order = [pq.SortingColumn(0), pq.SortingColumn(1), pq.SortingColumn(5)]
    file = by_arrow(sorting_columns=order)

    def after(*left_out):
        group = pq.ParquetFile(io.BytesIO(changed(file, (), left_out))).metadata.row_group(0)
        return [column.column_index for column in group.sorting_columns]

    assert after() == [0, 1, 5]
    assert after(3) == [0, 1, 4]  # one leaf of a list is gone
    assert after(2) == [0]
    assert after(1) == []


def test_thousands_of_columns():
    wide = pa.table({f"n{n}": [n] for n in range(5000)})
    added = [replace(column, field_id=column.field_id + 10_000) for column in ADDED]
    after = read(changed(by_arrow(wide), added))
    assert after.select(wide.column_names).equals(wide)
    assert after.num_columns == 5000 + len(ADDED)


def test_what_a_file_has_is_not_added():
    file = by_arrow()
    [text] = constants_of([(Primitive("string"), "'x'", "x")])
    same_id, same_name = replace(text, field_id=IDS["s"], name="other"), replace(text, name="S")
    after = read(changed(file, [same_id, same_name, replace(text, field_id=7, name="s")]))
    assert after.column_names == [*TABLE.column_names, "S_100", "s_7"]
    assert after["s"].equals(read(file)["s"])


def test_the_name_for_a_name_that_the_file_has_is_free():
    file = by_arrow(pa.table({"s": [1], "S_7": [2]}))
    [text] = constants_of([(Primitive("string"), "'x'", "x")])
    after = read(changed(file, [replace(text, field_id=7, name="s")]))
    assert after.to_pydict() == {"s": [1], "S_7": [2], "s_7_7": ["x"]}


def test_files_without_ids_get_none():
    stream = io.BytesIO()
    pq.write_table(TABLE, stream)
    with pytest.raises(NotParquet, match="no ids"):
        changed(stream.getvalue(), ADDED)


def test_two_added_columns_of_one_name():
    [text] = constants_of([(Primitive("string"), "'x'", "x")])
    after = read(
        changed(by_arrow(), [replace(text, name="n"), replace(text, field_id=9, name="n")])
    )
    assert after.column_names == [*TABLE.column_names, "n_100", "n"]


@pytest.mark.parametrize("rows", [0, 1, 7, ROWS])
@pytest.mark.parametrize("group", [1, 7, ROWS])
@pytest.mark.parametrize("added", [ADDED, NULLS], ids=["values", "NULL"])
def test_no_file_is_larger_than_said_before(rows, group, added):
    file = by_arrow(TABLE.slice(0, rows), row_group_size=group)
    length = footer_length(file) - TAIL
    values = PRIMITIVES if added is ADDED else [(type_, "", None) for type_, *_ in VALUES]
    fields = [
        Field(column.field_id, column.name, type_, None if value is None else json_default(value))
        for column, (type_, _, value) in zip(added, values, strict=True)
    ]
    largest = largest_size(len(file), length, rows, [*map(AddedField, fields)])
    new = changed(file, added)
    assert len(new) <= largest
    assert largest < len(new) * 16


def test_a_row_group_without_rows_has_room_too():
    """Arrow writes one for a table without rows."""
    file = by_arrow(TABLE.select(["i"]).slice(0, 0))
    fields = [Field(column.field_id, column.name, Primitive("long"), 0) for column in ADDED]
    size = largest_size(len(file), footer_length(file) - TAIL, 0, [*map(AddedField, fields)])
    assert len(changed(file, ADDED)) <= size


@pytest.mark.parametrize("sizes", [(100, 0), (100, -1), (100, 101), (2**40, 2**30)])
def test_without_a_certain_length_of_its_footer_a_file_stays_as_it_is(sizes):
    assert largest_size(*sizes, 10, []) is None


@pytest.mark.parametrize(("size", "rows"), [(2**63 - 1, 10), (10_000, 2**63 - 1)])
def test_a_file_of_a_size_that_no_manifest_can_name_stays_as_it_is(size, rows):
    """Rows of a catalog may say anything, and manifests list files of those that have ended."""
    added = AddedField(Field(1, "n", Primitive("long"), 0), depth=9)
    assert largest_size(size, 100, rows, [added]) is None


def test_a_size_that_is_too_small_is_refused():
    file = by_arrow()
    start = len(file) - footer_length(file)
    new = new_footer(file[start:-TAIL], start, FooterChanges(ADDED))
    with pytest.raises(ValueError, match="are more than"):
        new.tail(new.size - 1)


class Kms(pe.KmsClient):
    def wrap_key(self, key_bytes, master_key_identifier):
        return key_bytes.hex()

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return bytes.fromhex(wrapped_key)


@pytest.mark.parametrize("columns", [{"k": ["i"]}, {"k": ["i", "s"]}])
def test_encrypted_columns_are_refused(columns):
    config = pe.EncryptionConfiguration("f", column_keys=columns, plaintext_footer=True)
    factory = pe.CryptoFactory(lambda _: Kms())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
    file = by_arrow(encryption_properties=properties)
    with pytest.raises(NotParquet, match="encrypted"):
        changed(file, ADDED)


def test_damaged_footers_are_refused_or_give_a_file():
    """No other error than `NotParquet`, whatever is in the footer."""
    rng, file = random.Random(48), by_arrow(row_group_size=500)
    start = len(file) - footer_length(file)
    footer = file[start:-TAIL]
    outcomes = {True: 0, False: 0}
    changes = FooterChanges(ADDED[:3], {2}, True, True, True, (1, 3))
    for number in range(3000):
        damaged = bytearray(footer)
        if number % 3:
            for _ in range(rng.randint(1, 4)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        else:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            check_footers([bytes(damaged)])
            new_footer(bytes(damaged), start, changes)
            outcomes[True] += 1
        except NotParquet:
            outcomes[False] += 1
    assert min(outcomes.values()) > 100


def test_a_value_that_occurs_is_not_confused_with_the_constant():
    table = pa.table({"i": [1, 2, 3]})
    [column] = constants_of([(Primitive("long"), "2::BIGINT", 2)])
    after = read(changed(by_arrow(table), [column]))
    assert pc.sum(after["i"]).as_py() == 6
    assert after["c100"].to_pylist() == [2, 2, 2]


UNSIGNED = pa.table(
    {
        "a": pa.array([None if n % 9 == 0 else n % 256 for n in range(ROWS)], pa.uint8()),
        "b": pa.array([65535 - n for n in range(ROWS)], pa.uint16()),
        "c": pa.array([2**31 - 1 - n for n in range(ROWS)], pa.uint32()),
        "d": pa.array([2**31 - 990 + n for n in range(ROWS)], pa.uint32()),
        "e": pa.array([None] * ROWS, pa.uint32()),
        "f": pa.array(range(ROWS), pa.uint64()),
        "g": pa.array([[n, None] for n in range(ROWS)], pa.list_(pa.uint32())),
        "h": pa.array([n % 100 for n in range(ROWS)], pa.int8()),
    }
)
SIGNED = {"a": "int32", "b": "int32", "c": "int32", "d": "uint32", "e": "int32", "f": "uint64"}


@pytest.mark.parametrize("statistics", [True, False, ["a", "b", "d", "f", "h"]])
@pytest.mark.parametrize("rows", [ROWS, 300])
def test_unsigned_integers_are_signed_where_no_value_changes(statistics, rows):
    out = io.BytesIO()
    pq.write_table(
        UNSIGNED, out, row_group_size=rows, write_statistics=statistics, store_schema=False
    )
    read = pq.read_table(io.BytesIO(changed(out.getvalue(), (), (), True)))
    types = {name: str(read.schema.field(name).type) for name in SIGNED}
    # Nothing proves what a column without statistics has.
    unknown = {} if statistics is True else {"c": "uint32", "e": "uint32"}
    assert types == SIGNED | unknown
    inside = read.schema.field("g").type.value_type
    assert inside == (pa.int32() if statistics is True else pa.uint32())
    assert read.schema.field("h").type == pa.int32()
    assert read.cast(UNSIGNED.schema).equals(UNSIGNED)


def test_the_old_annotations_of_unsigned_integers_are_known_too():
    """Files of parquet-mr before 1.11 have converted types alone."""
    out = io.BytesIO()
    pq.write_table(UNSIGNED.select(["a", "b", "c"]), out, store_schema=False)
    file = out.getvalue()
    start = len(file) - footer_length(file)
    metadata = Reader(file[start:-TAIL]).fields()
    for element in metadata[2].value.items[1:]:
        del element[10]
    footer = written(metadata)
    old = file[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert {str(field.type) for field in pq.read_schema(io.BytesIO(old))} == {
        "uint8",
        "uint16",
        "uint32",
    }
    read = pq.read_table(io.BytesIO(changed(old, (), (), True)))
    assert {field.type for field in read.schema} == {pa.int32()}
    assert read.cast(UNSIGNED.select(["a", "b", "c"]).schema).equals(UNSIGNED.select("abc"))


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_a_column_without_statistics_gives_no_way_to_pass_over_rows(version):
    out = io.BytesIO()
    pq.write_table(with_ids(TABLE), out, write_page_index=True, version=version)
    file = out.getvalue()
    new = changed(file, (), (), False, False, False, (1, 2))
    before, after = (pq.read_metadata(io.BytesIO(f)).row_group(0) for f in (file, new))
    for place, name in enumerate(before.column(n).path_in_schema for n in range(6)):
        is_without = name in ("i", "s")
        old, chunk = before.column(place), after.column(place)
        assert old.is_stats_set and old.has_column_index and old.has_dictionary_page
        assert chunk.is_stats_set is not is_without, name
        assert chunk.has_column_index is not is_without, name
        assert chunk.has_offset_index is not is_without, name
        # PLAIN says that some values may be in no dictionary.
        assert not is_without or "PLAIN" in chunk.encodings
    assert pq.read_table(io.BytesIO(new)).equals(pq.read_table(io.BytesIO(file)))


def test_a_float_that_became_double_has_no_statistics_and_a_double_has():
    out = io.BytesIO()
    table = pa.table({name: pa.array([0.5, 9], type_) for name, type_ in FLOATS.items()})
    pq.write_table(with_ids(table), out, write_page_index=True)
    file = out.getvalue()
    start = len(file) - footer_length(file)
    new = new_footer(file[start:-TAIL], start, FooterChanges(doubles=(50, 51)))
    changed_file = file[:start] + new.tail(new.size)
    group = pq.read_metadata(io.BytesIO(changed_file)).row_group(0)
    without = [n for n in range(3) if not group.column(n).is_stats_set]
    assert without == [n for n in range(3) if not group.column(n).has_column_index] == [0]
    assert pq.read_table(io.BytesIO(changed_file)).equals(pq.read_table(io.BytesIO(file)))


FLOATS = {"promoted": pa.float32(), "written_later": pa.float64(), "of_float": pa.float32()}


def test_the_bloom_filter_of_a_column_without_statistics_is_gone(tmp_path):
    path = tmp_path / "bloom.parquet"
    with duckdb.connect() as con:
        con.execute(f"""
            COPY (SELECT make_timestamp_ms(i % 9) AS t, i % 9 AS n FROM range(5000) AS r(i))
            TO '{path}' (FORMAT parquet, FIELD_IDS {{t: 1, n: 2}})""")
        file = path.read_bytes()
        path.write_bytes(changed(file, (), (), False, False, False, (1,)))
        rows = con.execute(f"""
            SELECT path_in_schema, bloom_filter_offset IS NULL, stats_min_value IS NULL
            FROM parquet_metadata('{path}') ORDER BY 1""").fetchall()
        assert rows == [("n", False, False), ("t", True, True)]
        counts = con.execute(f"SELECT count(*) FROM '{path}' WHERE t = make_timestamp_ms(3)")
        assert counts.fetchone() == (len(range(3, 5000, 9)),)


def test_json_is_a_string(tmp_path):
    path = tmp_path / "json.parquet"
    with duckdb.connect() as con:
        con.execute(f"""
            COPY (SELECT '{{"a": 1}}'::JSON AS j, ['[1]'::JSON, NULL] AS l, 'x' AS s)
            TO '{path}' (FORMAT parquet, FIELD_IDS {{j: 1, l: 2, s: 3}})""")
        rows = con.execute(f"SELECT j, l, s FROM '{path}'").fetchall()
        new = changed(path.read_bytes(), (), (), False, True)
        path = tmp_path / "string.parquet"
        path.write_bytes(new)
        types = con.execute(f"SELECT typeof(j), typeof(l), typeof(s) FROM '{path}'").fetchone()
        assert types == ("VARCHAR", "VARCHAR[]", "VARCHAR")
        assert con.execute(f"SELECT j, l, s FROM '{path}'").fetchall() == rows
    assert pl.read_parquet(path)["j"].to_list() == ['{"a": 1}']


def test_json_of_both_annotations_is_a_string():
    out = io.BytesIO()
    pq.write_table(pa.table({"j": pa.array(['{"a": 1}'])}), out, store_schema=False)
    file = out.getvalue()
    start = len(file) - footer_length(file)
    metadata = Reader(file[start:-TAIL]).fields()
    element = metadata[2].value.items[1]
    as_string = dict(element)
    element[6] = element[6]._replace(value=19)
    element[10] = element[10]._replace(value={12: element[10].value[1]})
    footer = written(metadata)
    as_json = file[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    new = changed(as_json, (), (), False, True)
    again = Reader(new[len(new) - footer_length(new) : -TAIL]).fields()
    assert again[2].value.items[1] == as_string


def test_lists_and_maps_have_logical_types(tmp_path):
    """As pyarrow writes them; the file is no larger than was said of it."""
    path = tmp_path / "lists.parquet"
    with duckdb.connect() as con:
        con.execute(f"""
            COPY (SELECT [[1, NULL], NULL] AS l, MAP {{'a': [1]}} AS m, {{'x': [2]}} AS s, 5 AS i)
            TO '{path}' (FORMAT parquet)""")
        file = path.read_bytes()
        new = changed(file, (), (), False, False, True)
        path = tmp_path / "new.parquet"
        path.write_bytes(new)
        types = con.execute(f"""
            SELECT converted_type, logical_type FROM parquet_schema('{path}')
            WHERE converted_type IN ('LIST', 'MAP')""").fetchall()
    assert sorted(types) == 4 * [("LIST", "ListType()")] + [("MAP", "MapType()")]
    before, after = (pq.read_table(io.BytesIO(f)) for f in (file, new))
    assert after.equals(before)
    size = largest_size(len(file), footer_length(file) - TAIL, 1, (), 5)
    assert len(file) < len(new) <= size


def test_only_little_work_is_done_in_the_process_that_answers():
    """A small footer may have thousands of row groups; each gets pages for each added column."""
    file = by_arrow()
    start = len(file) - footer_length(file)
    footer, called = file[start:-TAIL], []

    def run(function, *arguments):
        called.append(function)
        return function.__wrapped__(*arguments)

    with isolating(run):
        for added in ((), ADDED[:1]):
            new_tail(footer, start, FooterChanges(added), 2**20)
        assert called == []
        many = ADDED[:1] * (SMALL_FOOTER // len(footer))
        new_tail(footer, start, FooterChanges(many), 2**20)
    assert len(called) == 1
