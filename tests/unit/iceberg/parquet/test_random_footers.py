"""Random files with random new footers, read by pyarrow and DuckDB: the rows are those of the files
as they were, and each file has the size that was promised.

A footer that is damaged is refused, or gives the rows that pyarrow reads with the damage.
"""

import io
import random
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.footer import TAIL, NotParquet
from polynya.iceberg.parquet.metadata import footer_length
from polynya.iceberg.parquet.new_footer import (
    PLACEHOLDER,
    FooterChanges,
    largest_size,
    new_tail,
    old_tail,
)
from polynya.iceberg.types import AddedField, Field

from tests.unit.iceberg.parquet.test_new_footer import (
    ADDED,
    PRIMITIVES,
    json_default,
    with_ids,
)

VALUES = {
    "uint8": "(i % 256)::UTINYINT",
    "uint16": "(i * 99 % 65536)::USMALLINT",
    "uint32, small": "(i * 3)::UINTEGER",
    "uint32, large": "(4294967295 - i)::UINTEGER",
    "uint64": "(18446744073709551615 - i)::UBIGINT",
    "long": "i * 10000000000",
    "boolean": "i % 2 = 0",
    "double": "i / 8",
    "decimal": "(i / 4)::DECIMAL(38, 3)",
    "text": "'text ' || i % 17",
    "json": """('{"a": ' || i || '}')::JSON""",
    "date": "DATE '1960-01-01' + i::INTEGER",
    "milliseconds": "make_timestamp_ms(i * 100000 - 500)",
    "nanoseconds": "make_timestamp_ns(i * 1001000)",
    "timestamptz": "TIMESTAMPTZ '1969-12-31 12:00:00+00' + INTERVAL 1 HOUR * i",
    "uuid": "md5(i::VARCHAR)::UUID",
    "list": "[i, NULL]",
    "list of uint32": "[i::UINTEGER, NULL]",
    "list of milliseconds": "[make_timestamp_ms(i)]",
    "list of json": "['[1]'::JSON, NULL]",
    "map": "MAP {i: [MAP {'a': (i % 200)::UTINYINT}]}",
    "struct": "{'u': (i % 200)::UTINYINT, 'l': ['x' || i], 's': {'w': md5(i::VARCHAR)::UUID}}",
    "geometry": "'POINT (1 2)'::GEOMETRY",
}
CODECS = ("snappy", "zstd", "gzip", "brotli")
SIGNED_OR_NOT = (False, True)
FILES_OF_A_SEED = 10


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        yield con


def a_file(rng: random.Random, con, path) -> bytes:
    """A file of a few columns, which DuckDB or pyarrow writes."""
    values = rng.sample(sorted(VALUES), rng.randint(1, 7))
    nulls = {value: rng.choice(["false", "false", "i % 3 = 0", "true"]) for value in values}
    columns = ", ".join(
        f"CASE WHEN NOT {nulls[value]} THEN {VALUES[value]} END AS c{place}"
        for place, value in enumerate(values)
    )
    rows = rng.choice([0, 1, 3, 100, 3000])
    query = f"SELECT {columns} FROM range({rows}) AS r(i)"
    if rng.random() < 0.5:
        # pyarrow cannot read the differences between unsigned integers above 2^31.
        version = rng.choice(["v1", "v1" if "uint32, large" in values else "v2"])
        options = (
            f"FIELD_IDS 'auto', ROW_GROUP_SIZE {rng.choice([2048, 100000])}, "
            f"COMPRESSION {rng.choice(CODECS)}, PARQUET_VERSION {version}"
        )
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, {options})")
        return path.read_bytes()
    stream, table = io.BytesIO(), with_ids(con.sql(query).to_arrow_table())
    sorting = [pq.SortingColumn(0)] if rng.random() < 0.3 else None
    pq.write_table(
        table,
        stream,
        row_group_size=rng.choice([1, 7]) if rows <= 100 else rng.choice([999, 100000]),
        compression=rng.choice(CODECS),
        data_page_version=rng.choice(["1.0", "2.0"]),
        version=rng.choice(["1.0", "2.6"]),
        use_dictionary=rng.choice([True, False]),
        write_statistics=rng.choice([True, True, False]),
        write_page_index=rng.choice([True, False]),
        store_schema=False,  # a new footer has no types of Arrow
        sorting_columns=sorting,
    )
    return stream.getvalue()


def some(rng: random.Random, values) -> list:
    return rng.sample(values, min(len(values), rng.choice([0, 0, 1, 2, 5])))


def random_changes(rng: random.Random, ids: list[int]) -> tuple[FooterChanges, list[Field]]:
    """Changes, and the columns that they add."""
    numbers = some(rng, range(len(ADDED)))
    added = [ADDED[number] for number in numbers]
    fields = [
        Field(ADDED[n].field_id, ADDED[n].name, PRIMITIVES[n][0], json_default(PRIMITIVES[n][2]))
        for n in numbers
    ]
    left_out = ids if rng.random() < 0.1 else some(rng, ids)
    switches = (rng.choice(SIGNED_OR_NOT) for _ in range(3))
    return FooterChanges(added, left_out, *switches, some(rng, range(1, 30))), fields


def ids_of(schema: pa.Schema) -> dict[str, int]:
    return {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema}


def groups_of(con, path, file: bytes) -> int:
    """How many lists and maps a file has."""
    path.write_bytes(file)
    types = "converted_type IN ('LIST', 'MAP') OR logical_type IN ('ListType()', 'MapType()')"
    query = f"SELECT count(*) FROM parquet_schema('{path}') WHERE {types}"
    [count] = con.execute(query).fetchone()
    return count


def by_pyarrow(file: bytes) -> dict[str, list]:
    return pq.read_table(io.BytesIO(file), use_threads=False).to_pydict()


def by_duckdb(con, path, file: bytes) -> dict[str, list]:
    path.write_bytes(file)
    relation = con.execute(f"SELECT * FROM '{path}'")
    names = [name for name, *_ in relation.description]
    rows = relation.fetchall()
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


@pytest.mark.parametrize("seed", range(12))
def test_the_rows_are_the_same_and_the_size_is_kept(seed, con, tmp_path):
    rng, path = random.Random(seed), tmp_path / "file.parquet"
    for _ in range(FILES_OF_A_SEED):
        file = a_file(rng, con, path)
        metadata = pq.read_metadata(io.BytesIO(file))
        rows = metadata.num_rows
        ids = ids_of(metadata.schema.to_arrow_schema())
        changes, fields = random_changes(rng, [*ids.values()])
        length = footer_length(file)
        start = len(file) - length
        size = largest_size(
            len(file), length - TAIL, rows, [*map(AddedField, fields)], groups_of(con, path, file)
        )
        new = file[:start] + new_tail(file[start:-TAIL], start, changes, size - start)
        assert len(new) == size
        names = [name for name in ids if ids[name] not in changes.left_out]
        before, after = by_pyarrow(file), by_pyarrow(new)
        constants = {f.name: [PRIMITIVES[f.field_id - 100][2]] * rows for f in fields}
        if not names and not fields:
            constants = {PLACEHOLDER.name: [False] * rows}
        assert after == {name: before[name] for name in names} | constants, changes
        before, after = by_duckdb(con, path, file), by_duckdb(con, path, new)
        assert [*after] == [*names, *constants]
        assert {name: after[name] for name in names} == {name: before[name] for name in names}


DAMAGES = {
    "a bit": lambda rng: (1, bytes([1 << rng.randrange(8)])),
    "a hole": lambda rng: (rng.randint(1, 9), b""),
    "a huge number": lambda rng: (0, b"\xff\xff\xff\xff\x0f"),
    "a huge list": lambda rng: (0, b"\xfc\xff\xff\xff\x07"),
    "many levels": lambda rng: (0, 5000 * b"\x1c"),
    "a copy of something": lambda rng: (0, rng.randbytes(2) * 8),
}
"""How many bytes of a footer go, and what is in their place."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_footer_is_refused_or_gives_the_rows_that_are_read_with_the_damage(
    damage, con, tmp_path
):
    rng = random.Random(damage)
    outcomes = {"refused": 0, "unreadable": 0, "the same rows": 0}
    for _ in range(5):
        file = a_file(rng, con, tmp_path / "file.parquet")
        start = len(file) - footer_length(file)
        footer = file[start:-TAIL]
        ids = ids_of(pq.read_schema(io.BytesIO(file)))
        for _ in range(50):
            place = rng.randrange(len(footer))
            length, new_bytes = DAMAGES[damage](rng)
            damaged = footer[:place] + new_bytes + footer[place + length :]
            changes, _ = random_changes(rng, [*ids.values()])
            # Whether as many rows are added as the other columns have depends on the damage.
            changes = replace(changes, added=(), left_out=changes.left_out[: len(ids) - 1])
            size = len(damaged) + 10_000
            try:
                tail = new_tail(damaged, start, changes, size)
            except NotParquet:
                outcomes["refused"] += 1
                continue
            try:
                before = by_pyarrow(file[:start] + old_tail(damaged, size))
            except (pa.ArrowException, OSError, ValueError):
                outcomes["unreadable"] += 1
                continue
            after = by_pyarrow(file[:start] + tail)
            names = [name for name in ids if ids[name] not in changes.left_out]
            assert [after.get(name) for name in names] == [before.get(name) for name in names]
            outcomes["the same rows"] += 1
    assert outcomes["refused"] > 25, outcomes
