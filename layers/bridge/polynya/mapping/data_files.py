"""The data files of a chunk as entries of Iceberg manifests, column by column.

`data_files` makes the entries, `column_metrics` the metrics of one column over many files at once.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ducklake.rows.files import ChunkColumns, DataFile, FileColumns, FileGroup, StatsColumn
from ..ducklake.rows.objects import Window
from ..iceberg.avro.row_encoder import ColumnMetrics, DataFiles, Integers, Texts
from ..iceberg.manifest import PartitionSpec, Status
from ..iceberg.types import BUCKET, primitives, top_level
from ..types.names import iceberg_type
from ..types.numbers import precision_and_scale
from . import claims
from .adaptations import ShownFile
from .bounds import UNKNOWN, FileAligner, Leaf, Numbers, bounds, joined, numbers, texts
from .claims import Doubt, Mask
from .partitions import NO_VALUE, NOTHING_IN_PATH, Constant, Partitions, texts_in_path
from .schemas import Schemas
from .snapshots import SAME, SnapshotIds


def column_metrics(
    stats: StatsColumn,
    file_ids: Numbers,
    record_counts: Numbers,
    leaves: Sequence[Leaf | None],
    doubts: list[Doubt] | None = None,
) -> ColumnMetrics:
    """Translate DuckLake's statistics of one column to the metrics of n files.

    Args:
        file_ids: n data_file_ids, ascending.
        record_counts: the number of rows of each file.
        leaves: the types of the column in each file; None if the file does not have the column,
            even if it has statistics of it.
        doubts: gets the claims that are left out because they are wrong.
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
    measured = claims.is_measured(sizes, values, nulls, record_counts)
    shown = next((leaf.type_name for leaf in leaves if leaf), "")
    # DuckDB and Spark order NaN above every number and prune by the bound: without certainty
    # that there is none, `x >= 1` would lose the NaN rows.
    is_float = iceberg_type(shown).is_float
    no_nan = is_in & (nans == 0) & measured
    texts_of = (
        order.items(texts(stats.min_value), None),
        order.items(texts(stats.max_value), None),
    )
    is_lower = is_in & ~_misleading(stats.min_is_inexact, file_ids, leaves)
    is_upper = (no_nan if is_float else is_in) & ~_misleading(
        stats.max_is_inexact, file_ids, leaves
    )
    unmeasured = is_in & ~measured
    for place in np.flatnonzero(unmeasured).tolist() if precision_and_scale(shown) else ():
        is_lower[place] &= not claims.is_rounded(shown, texts_of[0][place])
        is_upper[place] &= not claims.is_rounded(shown, texts_of[1][place])
    lower = bounds(texts_of[0], leaves, is_lower, zero=-0.0)
    upper = claims.widened(shown, bounds(texts_of[1], leaves, is_upper, zero=0.0), unmeasured)
    unordered = claims.unordered(shown, lower, upper, texts_of)
    unread = np.zeros(len(file_ids), np.bool_)
    if unmeasured.any() and iceberg_type(shown).has_bounds:
        written = [leaf and leaf.written_type for leaf in leaves]
        for column, read in zip(texts_of, (lower, upper), strict=True):
            unread |= claims.unreadable(column, read, unmeasured, written)
    if (wrong := unordered | unread).any():
        is_in &= ~wrong
        no_nan &= ~wrong
        lower, upper = claims.drop_texts(lower, wrong), claims.drop_texts(upper, wrong)
    # value_count excludes NULLs. Counts that do not add up are wrong: those of timetz and
    # interval are all 0, and of a merged file seen at an older snapshot too large.
    is_known = is_in & (values != UNKNOWN) & (nulls != UNKNOWN)
    is_sum = is_known & (values >= 0) & (nulls >= 0) & (values + nulls == record_counts)
    if doubts is not None:
        uncounted = is_float & (nans == 0) & unmeasured
        for what, mask in (
            (claims.UNORDERED, unordered),
            (claims.UNREADABLE, unread),
            (claims.NO_NAN, uncounted),
            (claims.MISCOUNTED, is_known & ~is_sum & ((values != 0) | (nulls != 0))),
        ):
            _doubt(doubts, stats.column_id, what, file_ids, mask)
    return ColumnMetrics(
        field_id=stats.column_id,
        column_sizes=_integers(sizes, is_in & (sizes >= 0)),
        value_counts=_integers(record_counts, is_sum),
        null_value_counts=_integers(nulls, is_sum),
        nan_value_counts=_integers(np.zeros_like(nans), no_nan),
        lower_bounds=_some(lower),
        upper_bounds=_some(upper),
    )


def _doubt(
    doubts: list[Doubt] | None, column_id: int, what: str, file_ids: Numbers, mask: Mask
) -> None:
    if doubts is not None and mask.any():
        doubts.append(Doubt(column_id, what, file_ids[mask].tolist()))


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


Places = NDArray[np.int64]

AS_THEY_ARE: Mapping[int, ShownFile] = {}

NOTHING = np.empty(0, np.int64)
NO_FILES = DataFiles(NOTHING, NOTHING, NOTHING, joined([]), NOTHING, NOTHING, (), ())
NO_FILES_WITH_ROW_IDS = replace(NO_FILES, first_row_id=Integers(NOTHING))


def data_files(
    columns: ChunkColumns,
    schemas: Schemas,
    partitions: Partitions,
    location: Callable[[str, bool], str],
    window: Window,
    ids_of_snapshots: SnapshotIds = SAME,
    *,
    has_row_ids: bool = False,
    shown: Mapping[int, ShownFile] = AS_THEY_ARE,
    without_bounds: Collection[int] = (),
) -> dict[PartitionSpec, DataFiles]:
    """Make entries of the files that are visible after the window or ended in it, by spec.

    A file that was visible before, and shows other rows since, has two entries: DELETED and ADDED.

    Args:
        location: makes the location of a file from its path and path_is_relative.
        has_row_ids: the entries have the row ids of their files.
        shown: the files that clients get elsewhere, by data_file_id.
        without_bounds: the columns of which the entries have no bounds.
    """
    files = columns.files
    begin, end = numbers(files.begin_snapshot), numbers(files.end_snapshot)
    snapshot_id = window.snapshot_id
    is_gone = (end > window.base_id) & (end <= snapshot_id)
    is_again = numbers(files.is_again) > 0
    is_added = ~is_gone & ((begin > window.base_id) | is_again)
    paths = zip(texts(files.path), numbers(files.path_is_relative).tolist(), strict=True)
    locations = [location(path or "", bool(is_so)) for path, is_so in paths]
    sizes, since = numbers(files.file_size_bytes).copy(), begin.copy()
    if shown:
        for place, data_file_id in enumerate(numbers(files.data_file_id).tolist()):
            if data_file_id in shown:
                locations[place], sizes[place], adapted_at = shown[data_file_id]
                since[place] = max(begin[place], adapted_at)
    metrics, specs, values = _judged(columns, schemas, partitions, snapshot_id)
    metrics = [
        replace(of, lower_bounds=None, upper_bounds=None) if of.field_id in without_bounds else of
        for of in metrics
    ]
    every = DataFiles(
        status=np.select([is_gone, is_added], [Status.DELETED, Status.ADDED]),
        snapshot_id=_iceberg_ids(
            np.where(is_gone | is_added, snapshot_id, since), ids_of_snapshots
        ),
        # A delete then applies to exactly the data files that existed before it.
        sequence_number=begin,
        file_path=joined([location.encode() for location in locations]),
        record_count=numbers(files.record_count),
        file_size_in_bytes=sizes,
        partition=(),
        metrics=metrics,
        first_row_id=_row_ids(numbers(files.row_id_start)) if has_row_ids else None,
    )
    entries = {}
    spec_ids = np.fromiter((spec.spec_id for spec in specs), np.int64, len(specs))
    for spec in dict.fromkeys(specs):
        mask = spec_ids == spec.spec_id
        tuples = [values[place] for place in np.flatnonzero(mask).tolist()]
        of_spec = _selected(every, mask, list(zip(*tuples, strict=True)))
        entries[spec] = _insert_deleted(of_spec, is_again[mask]) if is_again.any() else of_spec
    return entries


def _insert_deleted(files: DataFiles, is_again: Mask) -> DataFiles:
    """Put a DELETED entry before each entry that is ADDED again."""
    places = np.repeat(np.arange(len(is_again)), 1 + is_again)
    is_first = np.append(places[1:] == places[:-1], False)
    partition = [[values[place] for place in places.tolist()] for values in files.partition]
    both = _selected(files, places, partition)
    return replace(both, status=np.where(is_first, Status.DELETED, both.status))


def _row_ids(starts: Numbers) -> Integers:
    return Integers(starts, starts != UNKNOWN)


def _iceberg_ids(snapshot_ids: Numbers, ids: SnapshotIds) -> Numbers:
    if ids.are_same:
        return snapshot_ids
    distinct, places = np.unique(snapshot_ids, return_inverse=True)
    return np.fromiter(map(ids.iceberg_id, distinct.tolist()), np.int64, len(distinct))[places]


def earliest(columns: FileColumns) -> float:
    """The first snapshot that added one of the files; infinity: there are none."""
    return min(numbers(columns.begin_snapshot).tolist(), default=math.inf)


def files_of(columns: FileColumns) -> Iterator[DataFile]:
    """Each of the files, with its size, that of its footer, and where it is."""
    paths = [path or "" for path in texts(columns.path)]
    nothing = [None] * len(paths)
    rows = zip(
        numbers(columns.data_file_id).tolist(),
        numbers(columns.begin_snapshot).tolist(),
        _nullable(columns.end_snapshot),
        paths,
        map(bool, numbers(columns.path_is_relative).tolist()),
        numbers(columns.record_count).tolist(),
        numbers(columns.file_size_bytes).tolist(),
        *(nothing, nothing, nothing),  # partial_max, partial_file_info, partition_id
        _nullable(columns.mapping_id),
        nothing,  # row_id_start
        numbers(columns.footer_size).tolist(),
        strict=True,
    )
    return starmap(DataFile, rows)


def _nullable(column: str) -> list[int | None]:
    """The numbers of a column of `FileColumns`; None where they are NULL."""
    return [None if number == UNKNOWN else number for number in numbers(column).tolist()]


PartitionTuples = dict[int, tuple[PartitionSpec, tuple[Any, ...]]]
"""The partition spec and the partition values of data files, by data_file_id."""


def partition_tuples(
    columns: ChunkColumns, schemas: Schemas, partitions: Partitions, snapshot_id: int
) -> PartitionTuples:
    """The spec and the values that the entries of `data_files` have.

    Args:
        columns: with the statistics of the source columns of all specs at least.
    """
    _, specs, values = _judged(columns, schemas, partitions, snapshot_id)
    tuples = zip(specs, values, strict=True)
    return dict(zip(numbers(columns.files.data_file_id).tolist(), tuples, strict=True))


def doubts(
    columns: ChunkColumns, schemas: Schemas, partitions: Partitions, snapshot_id: int
) -> list[Doubt]:
    """The claims that `data_files` leaves out of the entries, because something contradicts
    them."""
    doubts: list[Doubt] = []
    _judged(columns, schemas, partitions, snapshot_id, doubts)
    files = columns.files
    ids, partition_ids = numbers(files.data_file_id), numbers(files.partition_id)
    specs, _ = _partitions(columns, ids, partitions)
    is_without = np.fromiter((not spec.fields for spec in specs), np.bool_, len(specs))
    for group, plan in partitions.plans.items():
        if group.partition_id is not None and plan.spec.fields:
            of_group = partition_ids == group.partition_id
            of_group &= numbers(files.mapping_id) == (
                UNKNOWN if group.mapping_id is None else group.mapping_id
            )
            source = plan.spec.fields[0].source_id
            _doubt(doubts, source, claims.NO_VALUE, ids, is_without & of_group)
    is_mapped = numbers(files.mapping_id) != UNKNOWN
    for partition_id, column_ids in partitions.hashed.items():
        for column_id in column_ids:  # the spec of these files has no field of it
            is_added = is_mapped & (partition_ids == partition_id)
            _doubt(doubts, column_id, claims.NO_BUCKET, ids, is_added)
    return doubts


def _judged(
    columns: ChunkColumns,
    schemas: Schemas,
    partitions: Partitions,
    snapshot_id: int,
    doubts: list[Doubt] | None = None,
) -> tuple[list[ColumnMetrics], list[PartitionSpec], list[tuple[Any, ...]]]:
    """The metrics of all files, and the spec and the values of each, as far as they are certain."""
    files = columns.files
    ids, counts = numbers(files.data_file_id), numbers(files.record_count)
    lacking = _Lacking(numbers(files.mapping_id), partitions)
    every = _metrics(columns, ids, schemas, snapshot_id, lacking, doubts)
    metrics = {column.field_id: column for column in every}
    specs, values = _partitions(columns, ids, partitions)
    spec_ids = np.fromiter((spec.spec_id for spec in specs), np.int64, len(specs))
    by_column = {column.column_id: column for column in columns.stats}
    is_elsewhere = numbers(files.path_is_relative) == 0
    shown = primitives(schemas.schema_at(snapshot_id).fields)
    uncertain = np.zeros(len(ids), np.bool_)
    for spec in partitions.specs:
        places = np.flatnonzero(spec_ids == spec.spec_id)
        for index, field in enumerate(spec.fields if len(places) else ()):
            source = field.source_id
            if source not in shown:
                continue
            of_field = [values[place][index] for place in places.tolist()]
            source_stats = _source_stats(metrics.get(source), by_column.get(source), ids, places)
            wrong = np.zeros(len(ids), np.bool_)
            wrong[places] = claims.contradicted(
                field, shown[source], of_field, source_stats, counts[places]
            )
            wrong[places] |= lacking.files(source)[places]
            _doubt(doubts, source, claims.NOT_THE_VALUE, ids, wrong)
            if BUCKET.fullmatch(field.transform):
                _doubt(doubts, source, claims.NO_BUCKET, ids[places], is_elsewhere[places])
                wrong[places] |= is_elsewhere[places]
            # The value in the path is what every reader gets; the statistics are not.
            is_in_path = lacking.has_in_path(source)
            if (wrong & is_in_path).any() and source in metrics:
                metrics[source] = _drop_metrics(metrics[source], wrong & is_in_path)
            uncertain |= wrong & ~is_in_path
    for place in np.flatnonzero(uncertain).tolist():
        specs[place], values[place] = partitions.specs[0], ()
    return [*metrics.values()], specs, values


class _Lacking:
    """Which files have a column, by their name mappings."""

    def __init__(self, mapping_ids: Numbers, partitions: Partitions) -> None:
        self._distinct, self._places = np.unique(mapping_ids, return_inverse=True)
        self._partitions = partitions

    def files(self, column_id: int) -> Mask:
        """The added files that do not have the column, neither in them nor in their paths."""
        mapped = self._partitions.mapped
        return self._marked(lambda mapping_id: column_id not in mapped.get(mapping_id, ()))

    def has_in_path(self, column_id: int) -> Mask:
        """The added files that have the column in their paths."""
        in_path = self._partitions.in_path
        return self._marked(lambda mapping_id: column_id in in_path.get(mapping_id, ()))

    def _marked(self, is_marked: Callable[[int], bool]) -> Mask:
        of_mappings = [id_ != UNKNOWN and is_marked(id_) for id_ in self._distinct.tolist()]
        return np.array(of_mappings, np.bool_)[self._places]


def _source_stats(
    metrics: ColumnMetrics | None, stats: StatsColumn | None, ids: Numbers, places: Places
) -> claims.SourceStats:
    """The certain statistics of a source column, in the files at some places."""
    nothing = Texts(np.empty(0, np.uint8), np.zeros(len(ids), np.int64), np.zeros(len(ids), bool))
    lower, upper = metrics and metrics.lower_bounds, metrics and metrics.upper_bounds
    nulls = np.full(len(ids), UNKNOWN)
    if stats is not None:
        aligner = FileAligner(numbers(stats.data_file_id), ids)
        nulls = aligner.numbers(numbers(stats.null_count))
        # What is not exact is no value of the file.
        if lower and stats.min_is_inexact:
            lower = claims.drop_texts(lower, np.isin(ids, numbers(stats.min_is_inexact)))
        if upper and stats.max_is_inexact:
            upper = claims.drop_texts(upper, np.isin(ids, numbers(stats.max_is_inexact)))
    return claims.SourceStats(
        _texts_at(lower or nothing, places), _texts_at(upper or nothing, places), nulls[places]
    )


def _drop_metrics(metrics: ColumnMetrics, dropped: Mask) -> ColumnMetrics:
    """The metrics, which some files do not have now."""

    def integers(column: Integers | None) -> Integers | None:
        return column and _integers(column.values, _present(column) & ~dropped)

    def drop_some(column: Texts | None) -> Texts | None:
        return column and _some(claims.drop_texts(column, dropped))

    return ColumnMetrics(
        field_id=metrics.field_id,
        column_sizes=integers(metrics.column_sizes),
        value_counts=integers(metrics.value_counts),
        null_value_counts=integers(metrics.null_value_counts),
        nan_value_counts=integers(metrics.nan_value_counts),
        lower_bounds=drop_some(metrics.lower_bounds),
        upper_bounds=drop_some(metrics.upper_bounds),
    )


def _present(numbers: Integers) -> Mask:
    """Which numbers are present."""
    is_every = np.ones(len(numbers.values), np.bool_)
    return is_every if numbers.present is None else numbers.present


def _metrics(
    columns: ChunkColumns,
    ids: Numbers,
    schemas: Schemas,
    snapshot_id: int,
    lacking: _Lacking,
    doubts: list[Doubt] | None,
) -> list[ColumnMetrics]:
    files, fields = columns.files, schemas.schema_at(snapshot_id).fields
    begin, counts = numbers(files.begin_snapshot), numbers(files.record_count)
    shown = primitives(fields)
    roots = top_level(fields)
    boundaries = [boundary for boundary, _ in schemas.by_snapshot]
    written = [primitives(schema.fields) for _, schema in schemas.by_snapshot]
    # The schema of the snapshot at which each file was written.
    times = (np.searchsorted(boundaries, begin, side="right") - 1).clip(0).tolist()
    metrics = []
    for column in columns.stats:
        column_id = column.column_id
        if column_id in shown and iceberg_type(shown[column_id]).has_counts:
            of_times = [
                Leaf(shown[column_id], types[column_id]) if column_id in types else None
                for types in written
            ]
            leaves = [of_times[time] for time in times]
            lacks = lacking.files(roots[column_id])
            for place in np.flatnonzero(lacks).tolist():
                leaves[place] = None
            has_stats = np.isin(ids, numbers(column.data_file_id)) if lacks.any() else lacks
            _doubt(doubts, column_id, claims.NO_COLUMN, ids, lacks & has_stats)
            metrics.append(column_metrics(column, ids, counts, leaves, doubts))
    return metrics


def _partitions(
    columns: ChunkColumns, ids: Numbers, partitions: Partitions
) -> tuple[list[PartitionSpec], list[tuple[Any, ...]]]:
    """The spec and the partition tuple of each file."""
    files, keys, stats = columns
    ids_of_groups = zip(_nullable(files.partition_id), _nullable(files.mapping_id), strict=True)
    groups = [*starmap(FileGroup, ids_of_groups)]
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
    of_mappings = (partitions.in_path.get(group.mapping_id) for group in groups)
    in_paths = [
        texts_in_path(path or "", named) if named else NOTHING_IN_PATH
        for path, named in zip(texts(files.path), of_mappings, strict=True)
    ]
    for group, in_path, *values in zip(groups, in_paths, *of_keys, *of_constants, strict=True):
        key = (group, *in_path.items(), *values)
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
                in_path,
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

    return DataFiles(
        status=files.status[mask],
        snapshot_id=files.snapshot_id[mask],
        sequence_number=files.sequence_number[mask],
        file_path=_texts_at(files.file_path, mask),
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
                lower_bounds=of.lower_bounds and _texts_at(of.lower_bounds, mask),
                upper_bounds=of.upper_bounds and _texts_at(of.upper_bounds, mask),
            )
            for of in files.metrics
        ],
        first_row_id=integers(files.first_row_id),
    )


def _texts_at(column: Texts, mask: Mask | Places) -> Texts:
    """The texts under a mask, or at some places."""
    is_mask = mask.dtype == np.bool_  # which takes less memory
    of_bytes = np.repeat(mask, column.lengths) if is_mask else _bytes_at(column.lengths, mask)
    return Texts(column.data[of_bytes], column.lengths[mask], _masked(column.present, mask))


def _bytes_at(lengths: Numbers, places: Mask | Places) -> Places:
    """The positions of the bytes of the texts at some places."""
    sizes = lengths[places]
    starts = (np.cumsum(lengths) - lengths)[places]
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def _masked(present: Mask | None, mask: Mask | Places) -> Mask | None:
    return None if present is None else present[mask]
