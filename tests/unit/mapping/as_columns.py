"""Converts rows to PostgreSQL's column texts, and numpy columns to rows, for the tests."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from polynya.ducklake.rows.files import (
    ColumnStats,
    DataFile,
    FileColumns,
    PartitionKeyColumn,
    StatsColumn,
    Texts,
)
from polynya.iceberg.avro.row_encoder import DataFiles
from polynya.iceberg.manifest import Status

KINDS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
BOUNDS = ("lower_bounds", "upper_bounds")


def numbers(values: Iterable[Any]) -> str:
    return ",".join(str(-1 if value is None else int(value)) for value in values)


def texts(values: Sequence[str | None]) -> Texts:
    lengths = numbers(None if value is None else len(value) for value in values)
    return Texts(lengths, "".join(value or "" for value in values))


def file_columns(files: Iterable[DataFile], again: Sequence[int] = ()) -> FileColumns:
    found = sorted(files, key=lambda file: file.data_file_id)

    def of(name: str) -> str:
        return numbers(getattr(file, name) for file in found)

    return FileColumns(
        data_file_id=of("data_file_id"),
        begin_snapshot=of("begin_snapshot"),
        end_snapshot=of("end_snapshot"),
        record_count=of("record_count"),
        file_size_bytes=of("file_size_bytes"),
        partition_id=of("partition_id"),
        mapping_id=of("mapping_id"),
        path_is_relative=of("path_is_relative"),
        is_again=numbers(file.data_file_id in again for file in found),
        path=texts([file.path for file in found]),
    )


def key_column(index: int, values: dict[int, str | None]) -> PartitionKeyColumn:
    return PartitionKeyColumn(index, numbers(values), texts(list(values.values())))


def stats_columns(rows: Iterable[ColumnStats]) -> list[StatsColumn]:
    found = sorted(rows, key=lambda row: (row.column_id, row.data_file_id))
    columns = []
    for column_id, group in groupby(found, key=lambda row: row.column_id):
        column = list(group)
        columns.append(
            StatsColumn(
                column_id,
                numbers(row.data_file_id for row in column),
                numbers(row.column_size_bytes for row in column),
                numbers(row.value_count for row in column),
                numbers(row.null_count for row in column),
                numbers(row.contains_nan for row in column),
                texts([row.min_value for row in column]),
                texts([row.max_value for row in column]),
            )
        )
    return columns


class Row(NamedTuple):
    """One entry of a manifest."""

    status: Status
    snapshot_id: int
    sequence_number: int
    file_path: str
    record_count: int
    file_size_in_bytes: int
    partition: tuple[Any, ...]
    metrics: dict[str, dict[int, Any]]
    """By kind, by field id; only known ones."""


def rows_of(files: DataFiles) -> list[Row]:
    n = len(files.status)
    metrics: list[dict[str, dict[int, Any]]] = [
        {kind: {} for kind in (*KINDS, *BOUNDS)} for _ in range(n)
    ]
    for column in files.metrics:
        for kind in (*KINDS, *BOUNDS):
            for row, value in enumerate(values_of(getattr(column, kind), n)):
                if value is not None:
                    metrics[row][kind][column.field_id] = value
    partition = list(zip(*files.partition, strict=True)) or [()] * n
    return [
        Row(Status(status), *more, metrics=found)
        for status, *more, found in zip(
            files.status.tolist(),
            files.snapshot_id.tolist(),
            files.sequence_number.tolist(),
            [path.decode() for path in values_of(files.file_path, n)],
            files.record_count.tolist(),
            files.file_size_in_bytes.tolist(),
            partition,
            metrics,
            strict=True,
        )
    ]


def values_of(column: Any, n: int) -> list[Any]:
    """The values of a column of numbers or of bytes; None for an absent value."""
    if column is None:
        return [None] * n
    present = [True] * n if column.present is None else column.present.tolist()
    if hasattr(column, "values"):
        values = column.values.tolist()
    else:
        ends = list(accumulate(column.lengths.tolist()))
        starts = [0, *ends[:-1]]
        data = column.data.tobytes()
        assert len(data) == (ends[-1] if ends else 0)
        values = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    return [value if is_there else None for value, is_there in zip(values, present, strict=True)]
