"""In a Spark task: writes rows into Parquet files as DuckLake writes them."""

import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from polynya.ducklake.column_tree import FLOATS, ColumnNode, leaves
from polynya.ducklake.rows.partitions import PartitionColumn
from polynya.ducklake.writes.files import FileColumnStats, NewDataFile

from ..common import storage
from . import partitions
from .statistics import FileStatistics
from .types.arrow import arrow_schema
from .types.conform import conformed, nulls

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


def with_partition(batches: Iterator[pa.RecordBatch], plan: FilePlan) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: add the column `PARTITION` to the rows."""
    columns = partitions.sources(plan.partition_keys, plan.columns)
    for batch in batches:
        texts = [
            partitions.partition_texts(key, column, _array(batch, plan, column))
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
    """For `mapInArrow`: write the rows; gives one row of the schema `ROWS` for each file.

    The rows must be sorted by their partition, if there is one.
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
    wanted = column.column_name.casefold()
    if wanted not in names:
        return nulls(column, batch.num_rows)
    return conformed(batch.column(names.index(wanted)), column)


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
        with self._path.open("rb") as file:
            file.seek(-8, 2)
            footer_size = int.from_bytes(file.read(4), "little")
        footer = pq.read_metadata(self._path)
        plan = self._plan
        path = f"{plan.file_prefix}{uuid4().hex}.parquet"
        if plan.hive_directories:
            path = partitions.directory(plan.partition_keys, plan.columns, self.values) + path
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


def written_file(row: tuple[str, int, int, int, int, str, str]) -> NewDataFile:
    """A file from a row of `write_files`, in the driver."""
    path, record_count, file_size_bytes, footer_size, row_group_count, values, stats = row
    return NewDataFile(
        path=path,
        record_count=record_count,
        file_size_bytes=file_size_bytes,
        footer_size=footer_size,
        row_group_count=row_group_count,
        partition_values=tuple(json.loads(values)),
        stats=tuple(FileColumnStats(*one) for one in json.loads(stats)),
    )
