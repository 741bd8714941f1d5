"""Writes Parquet files in a Spark task as DuckLake does, with partitions and statistics."""

import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import mmh3
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from polynya.ducklake.column_tree import ColumnNode, leaves
from polynya.ducklake.rows.objects import PartitionColumn
from polynya.ducklake.writes.new_files import FileColumnStats, NewDataFile
from polynya.types.names import DUCKLAKE, FLOATS, ducklake_type
from polynya.types.nested import LIST, MAP, STRUCT
from polynya.types.numbers import hashed_as_long

from ..common import storage, text_values
from ..common.errors import BadInput
from ..common.text_values import plain_array
from .types import arrow_schema, conformed, nulls

BUCKET = re.compile(r"bucket\((\d+)\)")
PARTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
}
TIMES = {name for name, type_ in DUCKLAKE.items() if type_.arrow[:1] == ("timestamp",)}
PARTS_OF = {"year": {"date", *TIMES}, "month": {"date", *TIMES}, "day": {"date", *TIMES}}
PARTS_OF["hour"] = TIMES

HASHED: dict[str, Callable[[Any], bytes]] = {
    name: type_.iceberg.hashed
    for name, type_ in DUCKLAKE.items()
    if type_.has_same_buckets and type_.iceberg and type_.iceberg.hashed
} | {"timestamptz": hashed_as_long}
"""The bytes that DuckLake hashes, as Iceberg does; types that are not here are refused."""

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"


def check(keys: tuple[PartitionColumn, ...], columns: tuple[ColumnNode, ...]) -> None:
    """Check that partition values can be computed as DuckLake does.

    Raises:
        BadInput: they cannot.
    """
    for key, column in zip(keys, sources(keys, columns), strict=True):
        is_supported = (
            (key.transform == "identity" and not column.children)
            or column.column_type in PARTS_OF.get(key.transform, ())
            or (BUCKET.fullmatch(key.transform) and column.column_type in HASHED)
        )
        if not is_supported:
            raise BadInput(
                f"partitioning by {key.transform} of {column.column_name} "
                f"({column.column_type}) is not supported by this job"
            )


def sources(keys: tuple[PartitionColumn, ...], columns: tuple[ColumnNode, ...]) -> list[ColumnNode]:
    """The column of each partition key.

    Raises:
        BadInput: a key is a field within another column.
    """
    by_id = {column.column_id: column for column in columns}
    missing = [key.column_id for key in keys if key.column_id not in by_id]
    if missing:
        raise BadInput("the table is partitioned by a field within another column")
    return [by_id[key.column_id] for key in keys]


def partition_texts(key: PartitionColumn, column: ColumnNode, array: pa.Array) -> list[str | None]:
    """The partition value of each row."""
    if key.transform in PARTS:
        # Parts in UTC, whatever zone the type names; DuckDB takes those of its session's time zone.
        if pa.types.is_timestamp(array.type) and array.type.tz:
            array = array.view(pa.timestamp(array.type.unit))
        return [None if p is None else str(p) for p in PARTS[key.transform](array).to_pylist()]
    encoded = plain_array(array).dictionary_encode()
    values = [_text(key, column, value) for value in encoded.dictionary.to_pylist()]
    return [None if i is None else values[i] for i in encoded.indices.to_pylist()]


def _text(key: PartitionColumn, column: ColumnNode, value: object) -> str:
    if match := BUCKET.fullmatch(key.transform):
        # Iceberg's formula: without the sign bit, so that no bucket is negative.
        return str((mmh3.hash(HASHED[column.column_type](value)) & 0x7FFFFFFF) % int(match[1]))
    text = ducklake_type(column.column_type).text(value)
    # PostgreSQL's text cannot hold it.
    if "\0" in text:
        raise BadInput(f"a partition value of {column.column_name} contains a NUL character")
    return text


def partition_directory(
    keys: tuple[PartitionColumn, ...], columns: tuple[ColumnNode, ...], values: Sequence[str | None]
) -> str:
    """The directory of a partition, such as `year=2024/b%20c=x/`.

    Everything except letters, digits and `_.-~` is escaped, as DuckLake does.
    """
    parts, used = [], set()
    for key, column, value in zip(keys, sources(keys, columns), values, strict=True):
        transform = key.transform.partition("(")[0]
        name = column.column_name if transform == "identity" else transform
        if name in used:
            name = f"{name}_{column.column_name}"
        used.add(name)
        text = NULL_DIRECTORY if value is None else quote(value, safe="")
        parts.append(f"{quote(name, safe='')}={text}/")
    return "".join(parts)


class FileStatistics:
    """Collects the smallest and largest values of the columns of one file."""

    def __init__(self, columns: tuple[ColumnNode, ...]) -> None:
        self._columns = columns
        self._extremes: dict[int, tuple[Any, Any]] = {}
        self._nan: set[int] = set()
        self._value_counts: Counter[int] = Counter()

    def add(self, table: pa.RecordBatch) -> None:
        """Include rows, whose columns are those of the table in its order."""
        for column, array in zip(self._columns, table.columns, strict=True):
            for leaf, values in _leaf_arrays(column, array):
                self._add(leaf, values)

    def _add(self, leaf: ColumnNode, values: pa.Array) -> None:
        values = text_values.plain_array(values)
        self._value_counts[leaf.column_id] += len(values) - values.null_count
        if leaf.column_type in FLOATS:
            nan = pc.is_nan(values)
            if pc.any(nan).as_py():
                # As in DuckLake, contains_nan records NaN, and the bounds leave it out.
                self._nan.add(leaf.column_id)
                values = values.filter(pc.invert(nan))
        extremes = pc.min_max(values)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low is None:
            return
        if leaf.column_type in FLOATS:
            low, high = (_first_zero(values) if number == 0 else number for number in (low, high))
        if leaf.column_id in self._extremes:
            before = self._extremes[leaf.column_id]
            low, high = min(before[0], low), max(before[1], high)
        self._extremes[leaf.column_id] = (low, high)

    def stats(self, footer: pq.FileMetaData) -> list[FileColumnStats]:
        """The statistics of each leaf column."""
        return [
            self._stats(leaf, [footer.row_group(g).column(i) for g in range(footer.num_row_groups)])
            for i, leaf in enumerate(leaves(self._columns))
        ]

    def _stats(self, leaf: ColumnNode, chunks: list[pq.ColumnChunkMetaData]) -> FileColumnStats:
        value_count = self._value_counts[leaf.column_id]
        low, high = None, None
        exact: tuple[bool | None, bool | None] = (None, None)
        if leaf.column_id in self._extremes:
            extremes = self._extremes[leaf.column_id]
            low, high = text_values.bounds(leaf.column_type, *extremes)
            exact = self._exactness(leaf, low, high)
        return FileColumnStats(
            leaf.column_id,
            sum(chunk.total_compressed_size for chunk in chunks),
            value_count,
            # As in DuckLake, NULLs are all levels in the file that hold no value.
            sum(chunk.num_values for chunk in chunks) - value_count,
            low,
            high,
            leaf.column_id in self._nan if leaf.column_type in FLOATS else None,
            *exact,
        )

    def _exactness(
        self, leaf: ColumnNode, low: str | None, high: str | None
    ) -> tuple[bool | None, bool | None]:
        """Whether the bounds are values; None: there is no bound, or NaN is above it."""
        texts = [
            text_values.statistics_text(leaf.column_type, value)
            for value in self._extremes[leaf.column_id]
        ]
        return (
            None if low is None else low == texts[0],
            None if high is None or leaf.column_id in self._nan else high == texts[1],
        )


def _first_zero(values: pa.Array) -> float:
    """The first zero: -0.0 equals 0.0, and DuckDB records the first of equal values."""
    index = pc.index(values, pa.scalar(0.0, values.type)).as_py()
    zero: float = values[index].as_py()
    return zero


def _leaf_arrays(column: ColumnNode, array: pa.Array) -> Iterator[tuple[ColumnNode, pa.Array]]:
    if column.column_type == STRUCT:
        parts = array.flatten()
    elif column.column_type == LIST:
        parts = [array.flatten()]
    elif column.column_type == MAP:
        # `keys` and `items` are those of the whole buffer, even if the array is a slice of it.
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        parts = [array.keys[start:end], array.items[start:end]]
    else:
        yield column, array
        return
    for child, part in zip(column.children, parts, strict=True):
        yield from _leaf_arrays(child, part)


PARTITION = "_polynya_partition"
"""The column with the partition values of a row, as a JSON list of texts."""

ROWS = pa.schema(
    [
        ("path", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_bytes", pa.int64()),
        ("footer_size", pa.int64()),
        ("row_group_count", pa.int64()),
        ("partition_values", pa.string()),
        ("stats", pa.string()),
    ]
)
SPARK_ROWS = (
    "path string, record_count long, file_size_bytes long, footer_size long, "
    "row_group_count long, partition_values string, stats string"
)


@dataclass(frozen=True, slots=True)
class FilePlan:
    """How a task writes files. Spark sends it to the executors."""

    columns: tuple[ColumnNode, ...]
    frame_columns: tuple[str, ...]
    """The DataFrame's columns, in its order; in tasks they have other names."""
    partition_keys: tuple[PartitionColumn, ...]
    location: str
    """The table's directory."""
    file_prefix: str
    """The beginning of the names of all files of this job."""
    compression: str
    compression_level: int | None
    row_group_rows: int
    target_bytes: int
    hive_directories: bool = True


def add_partition(batches: Iterator[pa.RecordBatch], plan: FilePlan) -> Iterator[pa.RecordBatch]:
    """Add the column `PARTITION` to the rows. Spark's `mapInArrow` calls it."""
    columns = sources(plan.partition_keys, plan.columns)
    for batch in batches:
        texts = [
            partition_texts(key, column, _array(batch, plan, column))
            for key, column in zip(plan.partition_keys, columns, strict=True)
        ]
        encoded: dict[tuple[str | None, ...], str] = {}
        values = [
            encoded.get(row) or encoded.setdefault(row, json.dumps(row))
            for row in zip(*texts, strict=True)
        ]
        arrays = [*batch.columns, pa.array(values, pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, PARTITION])


def write_files(batches: Iterator[pa.RecordBatch], plan: FilePlan) -> Iterator[pa.RecordBatch]:
    """Write the rows; yields one row of the schema `ROWS` for each file.

    Spark's `mapInArrow` calls it. The rows must be sorted by their partition, if there is one.
    """
    file: _OpenFile | None = None
    for batch in batches:
        for values, rows in _runs(batch):
            if file is not None and (file.values != values or file.is_full):
                yield _row(file.close())
                file = None
            file = file or _OpenFile(plan, values)
            file.add(_conformed(rows, plan))
    if file is not None:
        yield _row(file.close())


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, ...], pa.RecordBatch]]:
    """Split a batch into runs of rows of one partition, with its values."""
    if batch.num_rows == 0:
        return
    if PARTITION not in batch.schema.names:
        yield (), batch
        return
    runs = pc.run_end_encode(batch.column(PARTITION))
    start = 0
    for end, text in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield tuple(json.loads(text)), batch.slice(start, end - start)
        start = end


def _conformed(batch: pa.RecordBatch, plan: FilePlan) -> pa.RecordBatch:
    arrays = [_array(batch, plan, column) for column in plan.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(plan.columns))


def _array(batch: pa.RecordBatch, plan: FilePlan, column: ColumnNode) -> pa.Array:
    names = [name.casefold() for name in plan.frame_columns]
    name = column.column_name.casefold()
    if name not in names:
        return nulls(column, batch.num_rows)
    return conformed(batch.column(names.index(name)), column)


class _OpenFile:
    """A Parquet file on this machine's disk; `close` moves it into the table's directory."""

    def __init__(self, plan: FilePlan, values: tuple[str | None, ...]) -> None:
        self.values = values
        self._plan = plan
        self._statistics = FileStatistics(plan.columns)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._folder = tempfile.TemporaryDirectory(prefix="polynya-ingest-")
        self._path = Path(self._folder.name) / "file.parquet"
        schema = arrow_schema(plan.columns)
        self._writer = pq.ParquetWriter(
            self._path,
            schema,
            compression=plan.compression,
            compression_level=plan.compression_level,
            write_statistics=paths_with_bounds(plan.columns, schema),
            # As DuckDB writes them.
            store_decimal_as_integer=True,
            store_schema=False,
        )

    @property
    def is_full(self) -> bool:
        """Whether the file has reached the table's `target_file_size`."""
        return self._path.stat().st_size >= self._plan.target_bytes

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows; writes a row group once there are enough of them."""
        self._statistics.add(rows)
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        if self._waiting_rows >= self._plan.row_group_rows:
            self._write_row_group()

    def close(self) -> NewDataFile:
        """Write the remaining rows, and move the file into the table's directory."""
        if self._waiting:
            self._write_row_group()
        self._writer.close()
        size = self._path.stat().st_size
        # The last 8 bytes of a Parquet file are the length of its footer and `PAR1`.
        with self._path.open("rb") as file:
            file.seek(-8, 2)
            footer_size = int.from_bytes(file.read(4), "little")
        footer = pq.read_metadata(self._path)
        plan = self._plan
        path = f"{plan.file_prefix}{uuid4().hex}.parquet"
        if plan.hive_directories:
            path = partition_directory(plan.partition_keys, plan.columns, self.values) + path
        storage.move(self._path, plan.location + path)
        self._folder.cleanup()
        return NewDataFile(
            path=path,
            record_count=footer.num_rows,
            file_size_bytes=size,
            footer_size=footer_size,
            row_group_count=footer.num_row_groups,
            partition_values=self.values,
            stats=tuple(self._statistics.stats(footer)),
        )

    def _write_row_group(self) -> None:
        self._writer.write_table(
            pa.Table.from_batches(self._waiting), row_group_size=self._plan.row_group_rows
        )
        self._waiting, self._waiting_rows = [], 0


def paths_with_bounds(columns: tuple[ColumnNode, ...], schema: pa.Schema) -> list[str]:
    """The leaf columns that get bounds in the file, as PyArrow's `write_statistics` names them.

    PyArrow excludes NaN from a row group's bounds; DuckDB, which orders NaN above every number,
    then skips the row group for `f > 100`. DuckDB writes no bounds if there is a NaN; with PyArrow
    the columns must be chosen before the rows are known, so float columns get no bounds.
    """
    empty = io.BytesIO()
    pq.write_metadata(schema, empty)
    parquet = pq.read_metadata(empty).schema
    paths = [(leaf, parquet.column(i).path) for i, leaf in enumerate(leaves(columns))]
    # Names may contain dots, so two columns can have the same path.
    floats = {path for leaf, path in paths if leaf.column_type in FLOATS}
    return [path for _, path in paths if path not in floats]


def _row(file: NewDataFile) -> pa.RecordBatch:
    row = asdict(file)
    row["partition_values"] = json.dumps(file.partition_values)
    row["stats"] = json.dumps(file.stats)
    return pa.RecordBatch.from_pylist([row], schema=ROWS)


def written_file(row: dict[str, Any]) -> NewDataFile:
    """A file from the values of a row of `write_files`, in the driver."""
    values = tuple(json.loads(row["partition_values"]))
    stats = tuple(FileColumnStats(*column) for column in json.loads(row["stats"]))
    return NewDataFile(**{**row, "partition_values": values, "stats": stats})
