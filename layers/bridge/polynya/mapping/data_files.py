"""The data files of a chunk as entries of Iceberg manifests, column by column.

`data_files` makes the entries, `column_metrics` the metrics of one column over many files at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ducklake.rows.files import FileColumns, FileGroup, PartitionKeyColumn, StatsColumn
from ..ducklake.rows.objects import Window
from ..iceberg.avro.row_encoder import ColumnMetrics, DataFiles, Integers, Texts
from ..iceberg.manifest import PartitionSpec, Status
from ..iceberg.types import primitives
from ..types.names import iceberg_type
from .bounds import UNKNOWN, FileAligner, Leaf, Numbers, bounds, joined, numbers, texts
from .partitions import NO_VALUE, Constant, Partitions
from .schemas import Schemas
from .snapshots import SAME, SnapshotIds


def column_metrics(
    stats: StatsColumn, file_ids: Numbers, record_counts: Numbers, leaves: Sequence[Leaf | None]
) -> ColumnMetrics:
    """Translate DuckLake's statistics of one column to the metrics of n files.

    Args:
        file_ids: n data_file_ids, ascending.
        record_counts: the number of rows of each file.
        leaves: the types of the column in each file; None if the file does not have the column,
            even if it has statistics of it.
    """
    order = FileAligner(numbers(stats.data_file_id), file_ids)
    sizes, values, nulls, nans = (
        order.numbers(numbers(text))
        for text in (
            stats.column_size_bytes,
            stats.value_count,
            stats.null_count,
            stats.contains_nan,
        )
    )
    is_in = np.fromiter((leaf is not None for leaf in leaves), np.bool_, len(file_ids))
    # value_count excludes NULLs. Counts that do not add up are wrong: those of timetz and
    # interval are all 0, and of a merged file seen at an older snapshot too large.
    is_sum = is_in & (values >= 0) & (nulls >= 0) & (values + nulls == record_counts)
    no_nan = is_in & (nans == 0)
    # DuckDB and Spark order NaN above every number and prune by the bound: without certainty
    # that there is none, `x >= 1` would lose the NaN rows.
    is_float = any(leaf and iceberg_type(leaf.type_name).is_float for leaf in set(leaves))
    lower = order.items(texts(stats.min_value), None)
    upper = order.items(texts(stats.max_value), None)
    is_lower = is_in & ~_misleading(stats.min_is_inexact, file_ids, leaves)
    is_upper = (no_nan if is_float else is_in) & ~_misleading(
        stats.max_is_inexact, file_ids, leaves
    )
    return ColumnMetrics(
        field_id=stats.column_id,
        column_sizes=_integers(sizes, is_in & (sizes >= 0)),
        value_counts=_integers(record_counts, is_sum),
        null_value_counts=_integers(nulls, is_sum),
        nan_value_counts=_integers(np.zeros_like(nans), no_nan),
        lower_bounds=_some(bounds(lower, leaves, is_lower, zero=-0.0)),
        upper_bounds=_some(bounds(upper, leaves, is_upper, zero=0.0)),
    )


def _misleading(
    inexact: str, file_ids: Numbers, leaves: Sequence[Leaf | None]
) -> NDArray[np.bool_]:
    """Mark the files whose bound is no value of the column, although a client takes it for one.

    Args:
        inexact: the ids of the files whose bound is not a value of the column.
    """
    if not inexact:
        return np.zeros(len(file_ids), np.bool_)
    # Spark answers MIN and MAX from the bounds in manifests, except for texts, whose bounds are
    # cut.
    is_cut = [leaf is None or iceberg_type(leaf.type_name).has_cut_bounds for leaf in leaves]
    return np.isin(file_ids, numbers(inexact)) & ~np.array(is_cut, np.bool_)


def _integers(values: Numbers, present: NDArray[np.bool_]) -> Integers | None:
    if present.all():
        return Integers(values)
    return Integers(values, present) if present.any() else None


def _some(texts: Texts) -> Texts | None:
    if texts.present is None or texts.present.all():
        return Texts(texts.data, texts.lengths)
    return texts if texts.present.any() else None


Mask = NDArray[np.bool_]
Places = NDArray[np.int64]

NOTHING = np.empty(0, np.int64)
NO_FILES = DataFiles(NOTHING, NOTHING, NOTHING, joined([]), NOTHING, NOTHING, (), ())
NO_FILES_WITH_ROW_IDS = replace(NO_FILES, first_row_id=Integers(NOTHING))


def data_files(
    files: FileColumns,
    keys: Sequence[PartitionKeyColumn],
    stats: Sequence[StatsColumn],
    schemas: Schemas,
    partitions: Partitions,
    location: Callable[[str, bool], str],
    window: Window,
    ids_of_snapshots: SnapshotIds = SAME,
    *,
    has_row_ids: bool = False,
) -> dict[PartitionSpec, DataFiles]:
    """Make entries of the files that are visible after the window or ended in it, by spec.

    A file that was visible before, and shows other rows since, has two entries: DELETED and ADDED.

    Args:
        location: makes the location of a file from its path and path_is_relative.
        has_row_ids: the entries have the row ids of their files.
    """
    ids, begin, end = map(numbers, (files.data_file_id, files.begin_snapshot, files.end_snapshot))
    snapshot_id = window.snapshot_id
    is_gone = (end > window.base_id) & (end <= snapshot_id)
    is_again = numbers(files.is_again) > 0
    is_added = ~is_gone & ((begin > window.base_id) | is_again)
    paths = zip(texts(files.path), numbers(files.path_is_relative).tolist(), strict=True)
    specs, values = _partitions(files, ids, keys, stats, partitions)
    every = DataFiles(
        status=np.select([is_gone, is_added], [Status.DELETED, Status.ADDED]),
        snapshot_id=_iceberg_ids(
            np.where(is_gone | is_added, snapshot_id, begin), ids_of_snapshots
        ),
        # So that a delete applies to exactly the data files that existed before it.
        sequence_number=begin,
        file_path=joined([location(path or "", bool(is_so)).encode() for path, is_so in paths]),
        record_count=numbers(files.record_count),
        file_size_in_bytes=numbers(files.file_size_bytes),
        partition=(),
        metrics=_metrics(files, ids, begin, stats, schemas, snapshot_id),
        first_row_id=_row_ids(numbers(files.row_id_start)) if has_row_ids else None,
    )
    entries = {}
    for spec in dict.fromkeys(specs):
        mask = np.fromiter((file_spec == spec for file_spec in specs), np.bool_, len(specs))
        tuples = [
            partition
            for partition, file_spec in zip(values, specs, strict=True)
            if file_spec == spec
        ]
        of_spec = _selected(every, mask, list(zip(*tuples, strict=True)))
        entries[spec] = _with_deleted(of_spec, is_again[mask]) if is_again.any() else of_spec
    return entries


def _with_deleted(files: DataFiles, is_again: Mask) -> DataFiles:
    """Put a DELETED entry before each entry that is ADDED again."""
    places = np.repeat(np.arange(len(is_again)), 1 + is_again)
    is_first = np.append(places[1:] == places[:-1], False)
    partition = [[values[place] for place in places.tolist()] for values in files.partition]
    both = _selected(files, places, partition)
    return replace(both, status=np.where(is_first, Status.DELETED, both.status))


def _row_ids(starts: Numbers) -> Integers:
    return Integers(starts, starts != UNKNOWN)


def _iceberg_ids(snapshot_ids: Numbers, ids: SnapshotIds) -> Numbers:
    if not ids.chosen:
        return snapshot_ids
    distinct, places = np.unique(snapshot_ids, return_inverse=True)
    return np.fromiter(map(ids.of, distinct.tolist()), np.int64, len(distinct))[places]


def _metrics(
    files: FileColumns,
    ids: Numbers,
    begin: Numbers,
    stats: Sequence[StatsColumn],
    schemas: Schemas,
    snapshot_id: int,
) -> list[ColumnMetrics]:
    shown = primitives(schemas.at(snapshot_id).fields)
    boundaries = [boundary for boundary, _ in schemas.by_snapshot]
    written = [primitives(schema.fields) for _, schema in schemas.by_snapshot]
    # The schema of the snapshot at which each file was written.
    times = (np.searchsorted(boundaries, begin, side="right") - 1).clip(0).tolist()
    counts = numbers(files.record_count)
    metrics = []
    for column in stats:
        column_id = column.column_id
        if column_id in shown and iceberg_type(shown[column_id]).has_counts:
            of_times = [
                Leaf(shown[column_id], types[column_id]) if column_id in types else None
                for types in written
            ]
            leaves = [of_times[time] for time in times]
            metrics.append(column_metrics(column, ids, counts, leaves))
    return metrics


def _partitions(
    files: FileColumns,
    ids: Numbers,
    keys: Sequence[PartitionKeyColumn],
    stats: Sequence[StatsColumn],
    partitions: Partitions,
) -> tuple[list[PartitionSpec], list[tuple[Any, ...]]]:
    """The spec and the partition tuple of each file."""
    groups = [
        FileGroup(*(None if number == UNKNOWN else number for number in pair))
        for pair in zip(
            numbers(files.partition_id).tolist(), numbers(files.mapping_id).tolist(), strict=True
        )
    ]
    names = [key.partition_key_index for key in keys]
    # NULL is a value; an absent value is not.
    of_keys = [
        FileAligner(numbers(key.data_file_id), ids).items(
            [(text,) for text in texts(key.partition_value)], ()
        )
        for key in keys
    ]
    constant_ids, time_ids = partitions.constant_ids, partitions.time_ids
    constants = [column for column in stats if column.column_id in constant_ids | time_ids]
    of_constants = [
        (_constants if column.column_id in constant_ids else _only_null)(column, ids)
        for column in constants
    ]
    distinct: dict[Any, tuple[PartitionSpec, tuple[Any, ...]]] = {}
    pairs = []
    for group, *values in zip(groups, *of_keys, *of_constants, strict=True):
        key = (group, *values)
        if key not in distinct:
            keyed = zip(names, values[: len(names)], strict=True)
            constant_stats = zip(constants, values[len(names) :], strict=True)
            distinct[key] = partitions.spec_and_values(
                group,
                {name: text for name, key_texts in keyed for text in key_texts},
                {
                    column.column_id: constant
                    for column, constant in constant_stats
                    if constant is not None
                },
            )
        pairs.append(distinct[key])
    return [spec for spec, _ in pairs], [values for _, values in pairs]


def _constants(column: StatsColumn, ids: Numbers) -> Sequence[Constant | None]:
    counts = numbers(column.value_count).tolist()
    lowest, highest = texts(column.min_value), texts(column.max_value)
    constants: list[Constant | None] = [
        Constant(*stats) for stats in zip(counts, lowest, highest, strict=True)
    ]
    return FileAligner(numbers(column.data_file_id), ids).items(constants, None)


def _only_null(column: StatsColumn, ids: Numbers) -> Sequence[Constant | None]:
    """NO_VALUE for files in which the column is NULL only; None for the others."""
    counts = FileAligner(numbers(column.data_file_id), ids).numbers(numbers(column.value_count))
    return [NO_VALUE if count == 0 else None for count in counts.tolist()]


def _selected(
    files: DataFiles, mask: Mask | Places, partition: Sequence[Sequence[Any]]
) -> DataFiles:
    """Select the entries under a mask, or at some places, with other partition values."""

    def integers(column: Integers | None) -> Integers | None:
        if column is None:
            return None
        return Integers(column.values[mask], _masked(column.present, mask))

    def of_texts(column: Texts) -> Texts:
        is_mask = mask.dtype == np.bool_  # which takes less memory
        of_bytes = np.repeat(mask, column.lengths) if is_mask else _bytes_at(column.lengths, mask)
        return Texts(column.data[of_bytes], column.lengths[mask], _masked(column.present, mask))

    return DataFiles(
        status=files.status[mask],
        snapshot_id=files.snapshot_id[mask],
        sequence_number=files.sequence_number[mask],
        file_path=of_texts(files.file_path),
        record_count=files.record_count[mask],
        file_size_in_bytes=files.file_size_in_bytes[mask],
        partition=partition,
        metrics=[
            ColumnMetrics(
                field_id=of.field_id,
                column_sizes=integers(of.column_sizes),
                value_counts=integers(of.value_counts),
                null_value_counts=integers(of.null_value_counts),
                nan_value_counts=integers(of.nan_value_counts),
                lower_bounds=None if of.lower_bounds is None else of_texts(of.lower_bounds),
                upper_bounds=None if of.upper_bounds is None else of_texts(of.upper_bounds),
            )
            for of in files.metrics
        ],
        first_row_id=integers(files.first_row_id),
    )


def _bytes_at(lengths: Numbers, places: Mask | Places) -> Places:
    """The positions of the bytes of the texts at some places."""
    sizes = lengths[places]
    starts = (np.cumsum(lengths) - lengths)[places]
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def _masked(present: Mask | None, mask: Mask | Places) -> Mask | None:
    return None if present is None else present[mask]
