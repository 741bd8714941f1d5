"""Manifests from columns have the same records as those that fastavro writes, in other blocks.

The record encoder is itself tested against the specification and PyIceberg, in test_manifests.py.
"""

import io
from dataclasses import replace
from decimal import Decimal
from unittest.mock import patch

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polynya.iceberg.avro import columnar, manifests
from polynya.iceberg.avro.container import CODECS, long
from polynya.iceberg.avro.row_encoder import (
    ColumnMetrics,
    Constant,
    DataFiles,
    Integers,
    Texts,
    Varints,
    joined,
)
from polynya.iceberg.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    PartitionField,
    PartitionSpec,
    Status,
)
from polynya.iceberg.types import Field, Primitive, TableSchema
from polynya_local.clients.duckdb import connect

from tests.unit.iceberg.avro.test_manifests import METRICS, PARTITIONED, SCHEMA, with_pyiceberg

UNPARTITIONED = PartitionSpec(0, ())
MOST = 2**63 - 1


def texts(values: list[bytes | None]) -> Texts:
    return Texts(
        np.frombuffer(b"".join(value or b"" for value in values), np.uint8),
        np.array([len(value or b"") for value in values], np.int64),
        present(values),
    )


def integers(values: list[int | None]) -> Integers:
    # An absent value must not matter: here it is the longest one.
    filled = [-MOST if value is None else value for value in values]
    return Integers(np.array(filled, np.int64), present(values))


def present(values: list) -> np.ndarray | None:
    return np.array([value is not None for value in values]) if None in values else None


def data_files(entries: list[ManifestEntry], spec: PartitionSpec) -> DataFiles:
    files = [entry.data_file for entry in entries]

    def column(name: str, field_id: int) -> Texts | Integers | None:
        values = [getattr(file, name).get(field_id) for file in files]
        if values.count(None) == len(values):
            return None
        return texts(values) if "bounds" in name else integers(values)

    field_ids = {id_ for file in files for name in METRICS for id_ in getattr(file, name)}
    return DataFiles(
        status=np.array([entry.status for entry in entries], np.int64),
        snapshot_id=np.array([entry.snapshot_id for entry in entries], np.int64),
        sequence_number=np.array([entry.sequence_number for entry in entries], np.int64),
        file_path=texts([file.file_path.encode() for file in files]),
        record_count=np.array([file.record_count for file in files], np.int64),
        file_size_in_bytes=np.array([file.file_size_in_bytes for file in files], np.int64),
        partition=[[file.partition[place] for file in files] for place in range(len(spec.fields))],
        metrics=[
            ColumnMetrics(field_id, **{name: column(name, field_id) for name in METRICS})
            for field_id in sorted(field_ids)
        ],
    )


def entry(status=Status.ADDED, snapshot_id=5, sequence_number=5, **of_file) -> ManifestEntry:
    file = {"file_path": "s3://b/d/f.parquet", "record_count": 3, "file_size_in_bytes": 700}
    data_file = DataFile(FileContent.DATA, **(file | of_file))
    return ManifestEntry(status, snapshot_id, sequence_number, sequence_number, data_file)


def both(
    entries: list[ManifestEntry], spec=UNPARTITIONED, schema=SCHEMA, codec="deflate"
) -> tuple[bytes, bytes]:
    """The manifest of the columnar encoder, and that of the record encoder."""
    ours = columnar.manifest_bytes(data_files(entries, spec), schema, spec, 7, codec)
    return ours, manifests.manifest_bytes(entries, ManifestContent.DATA, schema, spec, 7)


def assert_same(ours: bytes, theirs: bytes) -> None:
    """Both have the same header and the same records, as the same bytes."""
    read, expected = (fastavro.reader(io.BytesIO(body)) for body in (ours, theirs))
    codec = {"avro.codec": read.metadata["avro.codec"]}
    assert read.metadata == expected.metadata | codec
    assert list(read.metadata) == list(expected.metadata)
    assert list(read) == list(expected)
    assert encoded(ours) == encoded(theirs)


def encoded(manifest: bytes) -> bytes:
    """The bytes of the entries, without blocks and compression."""
    blocks = fastavro.block_reader(io.BytesIO(manifest))
    return b"".join(block.bytes_.getvalue() for block in blocks)


LONGS = st.integers(-MOST - 1, MOST) | st.integers(-200, 200)
COUNTS = st.integers(0, MOST) | st.integers(0, 300)
FIELD_IDS = st.sampled_from([1, 2, 63, 64, 8192, 2**31 - 1])
OCTETS = st.binary(max_size=20) | st.sampled_from([b"", b"\x00", b"a\x00\x00", b"x" * 64])
NUMBERS = st.dictionaries(FIELD_IDS, LONGS, max_size=4)
BOUNDS = st.dictionaries(FIELD_IDS, OCTETS, max_size=4)
SPEC = PartitionSpec(
    3,
    (
        PartitionField(1, 1000, "i", "identity", "int"),
        PartitionField(2, 1001, "ünï", "identity", "string"),
    ),
)
FILES = st.builds(
    DataFile,
    content=st.just(FileContent.DATA),
    file_path=st.text() | st.integers(0, 3000).map("ü".__mul__),
    record_count=COUNTS,
    file_size_in_bytes=COUNTS,
    **{name: BOUNDS if "bounds" in name else NUMBERS for name in METRICS},
    partition=st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text()),
)
ENTRIES = st.builds(
    lambda status, snapshot_id, number, file: ManifestEntry(
        status, snapshot_id, number, number, file
    ),
    st.sampled_from(Status),
    LONGS,
    LONGS,
    FILES,
)


@settings(deadline=None)
@given(
    entries=st.lists(ENTRIES, max_size=9),
    codec=st.sampled_from(sorted(CODECS)),
    block_entries=st.sampled_from([1, 2, 5, 4000]),
    block_bytes=st.sampled_from([1, 2000, 32_000_000]),
)
def test_any_entries_are_encoded_as_fastavro_does(entries, codec, block_entries, block_bytes):
    with (
        patch.object(columnar, "BLOCK_ENTRIES", block_entries),
        patch.object(columnar, "BLOCK_BYTES", block_bytes),
    ):
        assert_same(*both(entries, SPEC, codec=codec))


EVERY = {name: {1: b"a"} if "bounds" in name else {1: 1} for name in METRICS}
EDGES = {
    "no entries": [],
    "no statistics": [entry(), entry()],
    "statistics of no file but one": [entry(), entry(**EVERY), entry()],
    "statistics of all files but one": [entry(**EVERY), entry(), entry(**EVERY)],
    "one kind of statistics only": [entry(nan_value_counts={5: 0}), entry()],
    "an empty bound, beside an absent one": [entry(lower_bounds={1: b""}), entry()],
    "only empty bounds": [entry(lower_bounds={1: b""}, upper_bounds={1: b""})] * 2,
    "bounds that end in NUL": [
        entry(lower_bounds={1: bound}) for bound in (b"a\x00", b"\x00", b"", b"\x00\x00\x00", b"a")
    ],
    "the ends of every width of a varint": [
        entry(record_count=number, file_size_in_bytes=number + 1, column_sizes={1: -number})
        for bits in range(63)
        for number in (2**bits - 1, 2**bits)
    ],
    "the largest numbers": [
        entry(
            Status.EXISTING,
            MOST,
            MOST,
            record_count=MOST,
            column_sizes={2**31 - 1: -MOST - 1, 1: MOST},
        )
    ],
    "field ids of one byte to five": [
        entry(**{name: dict.fromkeys(ids, value[1]) for name, value in EVERY.items()})
        for ids in [(63, 64, 8191, 8192, 2**20, 2**27, 2**31 - 1), (64, 2**31 - 1)]
    ],
    "more items than fit into one byte": [
        entry(value_counts=dict.fromkeys(range(1, last), 7)) for last in (63, 64, 65, 200)
    ],
    "deleted": [entry(Status.DELETED, 7, 2), entry(Status.EXISTING, 6, 3), entry(Status.ADDED)],
    "nothing but deleted": [entry(Status.DELETED, 7, 2)],
    "paths in other alphabets": [entry(file_path="s3://b/ünï/Ж/水/🦆 %2F//x.parquet"), entry()],
    "an empty path": [entry(file_path=""), entry(file_path="")],
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", EDGES)
def test_edge_is_encoded_as_fastavro_does(name, codec):
    assert_same(*both(EDGES[name], codec=codec))


PARTITION_VALUES = [
    *PARTITIONED,
    ("identity", "int", [2**31 - 1, -(2**31), None]),
    ("identity", "long", [-(2**63), 2**63 - 1, None]),
    ("identity", "boolean", [False, True]),
    ("identity", "date", [-719162, 2932896]),
    ("identity", "timestamp", [-62135596800000000, None, -1]),
    ("identity", "string", ["a\x00", "", None, "🦆" * 100]),
    ("identity", "decimal(3, 3)", [Decimal("-0.999"), Decimal("0.999"), None]),
    ("identity", "decimal(18, 0)", [Decimal(-(10**18) + 1), Decimal(0)]),
]


@pytest.mark.parametrize(("transform", "type_", "values"), PARTITION_VALUES)
def test_partition_values_are_encoded_as_fastavro_does(transform, type_, values):
    schema = TableSchema(0, (Field(1, "c", Primitive(type_)),))
    spec = PartitionSpec(3, (PartitionField(1, 1005, "c", transform, type_),))
    entries = [entry(partition=(value,)) for value in values * 3]
    assert_same(*both(entries, spec, schema))


def test_no_files_need_no_partition_values():
    nothing = replace(data_files([], SPEC), partition=())
    ours = columnar.manifest_bytes(nothing, SCHEMA, SPEC, 7)
    assert_same(ours, manifests.manifest_bytes([], ManifestContent.DATA, SCHEMA, SPEC, 7))


def varied(count: int) -> list[ManifestEntry]:
    """Entries that differ in as many fields as possible."""
    return [
        entry(
            Status(number % 3),
            number,
            number // 2,
            file_path=f"s3://b/{number}{'/x' * (number % 50)}.parquet",
            record_count=number * 31,
            **{
                name: {
                    field_id: b"\x00" * (number % 7) if "bounds" in name else number**2
                    for field_id in range(1, 9)
                    if (number + place) % field_id == 0
                }
                for place, name in enumerate(METRICS)
            },
            partition=(None if number % 5 == 0 else number // 10, str(number % 3)),
        )
        for number in range(count)
    ]


def block_sizes(manifest: bytes) -> list[int]:
    return [block.num_records for block in fastavro.block_reader(io.BytesIO(manifest))]


def test_many_entries_are_written_as_several_blocks():
    ours, theirs = both(varied(9000), SPEC)
    assert block_sizes(ours) == [4000, 4000, 1000]
    assert_same(ours, theirs)


def test_a_very_long_path_is_in_a_small_block():
    entries = varied(4000)
    entries[1234] = entry(file_path="s3://b/" + "x" * 5_000_000, partition=(1, "a"))
    ours, theirs = both(entries, SPEC)
    sizes = block_sizes(ours)
    assert max(sizes) == 2000 and min(sizes) * 5_000_000 <= columnar.BLOCK_BYTES
    assert_same(ours, theirs)


@pytest.mark.parametrize("codec", CODECS)
def test_pyiceberg_reads_the_same_entries(codec, tmp_path):
    [(ours, read), (theirs, expected)] = with_pyiceberg(
        tmp_path, *both(varied(100), SPEC, codec=codec)
    )
    assert len(read) == 100
    for one, other in zip(read, expected, strict=True):
        assert one._data == other._data
    assert ours.partitions == theirs.partitions
    assert ours.min_sequence_number == theirs.min_sequence_number == 0


@pytest.mark.parametrize("codec", CODECS)
def test_duckdb_reads_the_same_entries(codec, tmp_path):
    read = []
    with connect(("avro",)) as con:
        for body in both(varied(100), SPEC, codec=codec):
            (tmp_path / "m.avro").write_bytes(body)
            con.execute("SELECT * FROM read_avro(?)", [str(tmp_path / "m.avro")])
            read.append(con.fetchall())
    assert len(read[0]) == 100
    assert read[0] == read[1]


@settings(deadline=None)
@given(st.lists(LONGS, min_size=1))
def test_numbers_are_encoded_as_fastavro_does(values):
    expected = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, "long", value)
        expected.append(out.getvalue())
    numbers = Varints(np.array(values, np.int64))
    every = slice(0, len(values))
    # Rows of eight bytes and more, of which the last ones are numbers.
    rows = bytes(joined([Constant(b"8 octets"), numbers], every))
    assert rows == b"".join(b"8 octets" + octets for octets in expected)
    assert [long(value) for value in values] == expected


ROW_IDS = [[0], [None], [7, None, 2**40], [None, 5, None], [3, 1, 2]]


@pytest.mark.parametrize("row_ids", ROW_IDS)
@pytest.mark.parametrize("spec", [UNPARTITIONED, SPEC])
def test_files_with_row_ids_are_of_format_version_3(row_ids, spec):
    entries = [
        entry(first_row_id=one, partition=(None,) * len(spec.fields), record_count=n + 1)
        for n, one in enumerate(row_ids)
    ]
    files = replace(data_files(entries, spec), first_row_id=integers(row_ids))
    ours = columnar.manifest_bytes(files, SCHEMA, spec, 7)
    data = (entries, ManifestContent.DATA, SCHEMA, spec, 7)
    assert_same(ours, manifests.manifest_bytes(*data, format_version=3))
    reader = fastavro.reader(io.BytesIO(ours))
    assert reader.metadata["format-version"] == "3"
    assert [record["data_file"]["first_row_id"] for record in reader] == row_ids
    summary = manifests.summary_of(ours)
    assert summary["first_row_id"] == min((one for one in row_ids if one is not None), default=0)
