"""Columns of very many data files: 20 fields with statistics of their own for every file."""

import numpy as np
from polynya.iceberg.avro.row_encoder import ColumnMetrics, DataFiles, Integers, Texts
from polynya.iceberg.manifest import PartitionField, PartitionSpec, Status
from polynya.iceberg.types import Field, Primitive, TableSchema

TYPES = (
    *("long",) * 8,
    *("double",) * 4,
    *("string",) * 4,
    *("timestamp",) * 2,
    "date",
    "boolean",
)
SCHEMA = TableSchema(
    0, tuple(Field(i, f"column_{i}", Primitive(name)) for i, name in enumerate(TYPES, 1))
)
SPEC = PartitionSpec(0, (PartitionField(17, 1000, "day", "day", "int"),))
FILES_A_DAY = 100
SNAPSHOT_ID = 1000

# Little-endian numbers: the type, and limits for lower bounds, which are below all upper bounds.
BOUNDS = {
    "long": ("<i8", 0, 2**40),
    "double": ("<f8", 0, 2**20),
    "timestamp": ("<i8", 1_700_000_000_000_000, 1_800_000_000_000_000),
    "date": ("<i4", 19_000, 21_000),
    "boolean": ("u1", 0, 1),
}


def data_files(count: int) -> DataFiles:
    random = np.random.default_rng(0)
    records = _spread(random, count, 10**3, 10**7)
    # A snapshot adds a few files.
    began = np.arange(count) * SNAPSHOT_ID // count + 1
    return DataFiles(
        status=np.where(began == SNAPSHOT_ID, Status.ADDED, Status.EXISTING),
        snapshot_id=began,
        sequence_number=began,
        file_path=_paths(random, count),
        record_count=records,
        file_size_in_bytes=_spread(random, count, 10**5, 10**9),
        partition=[[19_000 + number // FILES_A_DAY for number in range(count)]],
        metrics=[
            ColumnMetrics(
                field.field_id,
                column_sizes=Integers(_spread(random, count, 10**3, 10**8)),
                value_counts=Integers(records),
                null_value_counts=Integers(_spread(random, count, 1, 10**4) - 1),
                lower_bounds=_bounds(random, count, name, upper=0),
                upper_bounds=_bounds(random, count, name, upper=1),
            )
            for field, name in zip(SCHEMA.fields, TYPES, strict=True)
        ],
    )


def _spread(random: np.random.Generator, count: int, low: int, high: int) -> np.ndarray:
    """Numbers of every magnitude, equally many of each."""
    return np.exp(random.uniform(np.log(low), np.log(high), count)).astype(np.int64)


def _paths(random: np.random.Generator, count: int) -> Texts:
    paths = [
        f"s3://bucket/lake/main/events/day={number // FILES_A_DAY}/ducklake-{name}.parquet".encode()
        for number, name in enumerate(map(bytes.hex, _words(random, np.full(count, 16))))
    ]
    return _texts(paths)


def _bounds(random: np.random.Generator, count: int, name: str, upper: int) -> Texts:
    if name == "string":
        return _texts(_words(random, random.integers(4, 24, count)))
    type_, low, high = BOUNDS[name]
    numbers = random.uniform(low, high, count) + upper * high
    octets = np.frombuffer(numbers.astype(type_).tobytes(), np.uint8)
    return Texts(octets, np.full(count, len(octets) // count, np.int64))


def _words(random: np.random.Generator, lengths: np.ndarray) -> list[bytes]:
    letters = random.integers(ord("a"), ord("z"), lengths.sum(), np.uint8).tobytes()
    ends = np.cumsum(lengths).tolist()
    return [letters[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _texts(values: list[bytes]) -> Texts:
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return Texts(np.frombuffer(b"".join(values), np.uint8), lengths)
