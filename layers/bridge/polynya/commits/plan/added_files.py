"""The data files that a commit adds, as rows for the catalog: what their footers in S3 say.

Files with columns that DuckLake would take for its own are copied. A copy differs in five bytes of
its footer for each such column; S3 copies the rest.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from ...ducklake.column_tree import ColumnNode, leaves
from ...ducklake.directories import directory_kind
from ...ducklake.rows.objects import PartitionColumn
from ...ducklake.writes.new_files import FileColumnStats, NewDataFile
from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.manifest import PartitionField
from ...iceberg.parquet.footer import TAIL
from ...iceberg.parquet.generated_files import replace_field_ids
from ...iceberg.parquet.metadata import ParquetMetadata, RowGroup
from ...iceberg.table_metadata import LAST_UPDATED, ROW_ID
from ...iceberg.types import BUCKET
from ...mapping.partitions import BUCKET_TYPES, client_keys
from ...runtime import budget
from ...runtime.errors import BadRequest, CommitFailed, Misconfigured, NoSuchKey
from ...runtime.prefetch import map_in_parallel
from ...storage.object_store import ObjectStore
from ..client_locations import Place, normalised, relative
from .file_statistics import FileStatistics
from .files_without_ids import AddedFiles, MatchedFile
from .footers import FooterReader
from .parquet_columns import refused
from .partition_and_sort_keys import is_bucket
from .partition_values import client_values, partition_values

# DuckLake reads every column with one of its reserved field ids: neither a column mapping nor a
# merge group in the catalog hides it. So the copy has other ids.
UNKNOWN_IDS = {ROW_ID: 2147483446, LAST_UPDATED: 2147483445}
"""Iceberg reserves the ids from 2147483447 on, and no column of a table gets as far as these."""


PREFIX = "polynya-"
"""Names of copies begin with it; template.yaml permits no others."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file and the location of its copy."""

    source: str
    target: str
    file_size: int
    footer_size: int
    hidden: tuple[int, ...]
    """The field ids that the copy does not have."""

    def make(self, objects: ObjectStore) -> None:
        """Write the copy.

        Raises:
            BadRequest: the file is gone, or its footer has an unexpected form.
            Misconfigured, ServiceUnavailable: S3 does not take it.
        """
        start = self.file_size - self.footer_size - TAIL
        try:
            footer = objects.read_range(self.source, start, self.file_size)
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise _is_gone() from None
        renumbered = replace_field_ids(footer, {id_: UNKNOWN_IDS[id_] for id_ in self.hidden})
        if renumbered is None:
            raise BadRequest(
                "a data file of the commit has columns of row lineage (_row_id, "
                "_last_updated_sequence_number) that cannot be hidden from DuckLake: append, "
                "or delete and insert instead of updating"
            )
        try:
            objects.copy_with_end(self.source, self.target, start, renumbered)
        except NoSuchKey:
            raise _is_gone() from None


def _is_gone() -> BadRequest:
    return BadRequest("a data file of the commit does not exist in S3, or cannot be read")


def path_of_copy(path: str) -> str:
    """Where the copy of a file is: beside it. No client's file may have such a name."""
    directory, separator, name = path.rpartition("/")
    return f"{directory}{separator}{PREFIX}{name}"


def check_is_no_copy(path: str) -> None:
    """Refuse a client's file with the name of a copy, which would replace it.

    Raises:
        BadRequest: it has such a name.
    """
    if path.rpartition("/")[2].startswith(PREFIX):
        raise BadRequest(
            f"a data file of the commit has a name that begins with {PREFIX}: use another name"
        )


NOTHING_COUNTED: frozenset[int] = frozenset()

ELSEWHERE = (
    "; files without field ids may also be below the table's directory, and where `add_files` in "
    "the authorization policy permits it, but not in the directory of another table"
)

MOST_FILES = 10_000
"""Reading so many files with 20 columns takes 6 s of CPU time, without the time of S3
(docs/performance.md), and 200 MB."""


@dataclass(frozen=True, slots=True)
class AppendedFiles:
    """Reads the added files of one table."""

    objects: ObjectStore
    data_location: str
    """The directory of the client's data files, with a slash at its end."""
    directory: str
    """The name of that directory within the table's own, with a slash at its end."""
    columns: tuple[ColumnNode, ...]
    last_column_id: int
    default_column_ids: frozenset[int]
    partition_keys: tuple[PartitionColumn, ...]
    partition_fields: tuple[PartitionField, ...] = ()
    """The spec as a client gave it: that of the files, if there are no keys."""
    next_row_id: int = 0
    """The first row id that the table never had."""
    as_they_are: AddedFiles | None = None
    """What may be added without field ids; None: nothing."""
    are_registered: bool = False
    """The files are those of a table of another catalog: they may have field ids wherever they are,
    and lack columns with a default, which all clients find in them."""
    shows_partitions: bool = True
    """Whether the client sees the partitioning: not if it would misread it (`misread_columns`)."""
    partitions_elsewhere: bool = True
    """Whether files outside of the table's directory get partition values: DuckLake 1.0 ends a
    merge of two such files of one partition with an internal error."""

    def read(self, files: Sequence[WrittenFile]) -> list[NewDataFile]:
        """The rows of the files for the catalog, in order.

        A file with columns that DuckLake would take for its own is copied without them.

        Raises:
            BadRequest: a file is not in the table's place for data files, or DuckLake would not
                read it as the client means it.
        """
        if len(files) > MOST_FILES:
            raise BadRequest(
                f"the commit adds {len(files):,} data files; at most {MOST_FILES:,} are allowed: "
                "commit fewer at a time, or write larger ones"
            )
        for file in files:
            check_is_no_copy(self._place(file).path)  # before anything is read from S3
        statistics = partial(self._statistics, {})
        added: list[NewDataFile] = []
        copies: list[FileCopy] = []
        with closing(FooterReader(self.objects).metadata(files)) as batches:
            for batch, footers in batches:
                added += map(partial(self._new_file, statistics, copies), batch, footers)
                budget.check()
        # After the checks of all files: a refused commit leaves no copy in S3.
        map_in_parallel(lambda copy: copy.make(self.objects), copies)
        return added

    def _statistics(
        self, by_columns: dict[frozenset[int], FileStatistics], without: frozenset[int]
    ) -> FileStatistics:
        """The statistics of files without some columns, whose values are known otherwise."""
        if without not in by_columns:
            columns = [column for column in self.columns if column.column_id not in without]
            by_columns[without] = FileStatistics(
                columns, self.last_column_id, self.default_column_ids, may_lack=self.are_registered
            )
        return by_columns[without]

    def _new_file(
        self,
        statistics: Callable[[frozenset[int]], FileStatistics],
        copies: list[FileCopy],
        file: WrittenFile,
        footer: ParquetMetadata,
    ) -> NewDataFile:
        path, is_relative = self._place(file)
        # DuckDB and Iceberg clients answer count(*) from this number alone.
        if file.record_count != footer.num_rows:
            raise BadRequest(
                f"the manifest says that {path.rpartition('/')[2]} has {file.record_count} rows; "
                f"it has {footer.num_rows}"
            )
        match = self._match(file, footer)
        footer, in_path = match.footer, match.stats_in_path()
        # Nobody has counted the NaN in a file that the client has not written.
        without_nan = NOTHING_COUNTED if match.names else file.without_nan
        of_columns = statistics(frozenset(s.column_id for s in in_path))
        stats = of_columns.file_stats(path, footer, without_nan) + in_path
        self._check_constants(file, footer, {column.column_id for column, _ in match.in_path})
        keys = self.partition_keys or client_keys(self.partition_fields)
        if self.partition_keys or not self.partition_fields:
            values = partition_values(self.partition_keys, self.columns, stats, buckets(file))
        else:
            values = client_values(self.partition_fields, self.columns, stats, file.partition)
        is_elsewhere = not (is_relative or self.partitions_elsewhere)
        if is_elsewhere or self._lacks_default(keys, stats):
            values = ()
        if not values:
            self._check_buckets(file, path)
        lineage = row_lineage(footer, self.next_row_id)
        if lineage.hidden:
            source = normalised(file.file_path)
            path = path_of_copy(path if is_relative else self._path_of_registered(source))
            is_relative = True
            target = self.data_location + path.removeprefix(self.directory)
            copies.append(
                FileCopy(source, target, footer.file_size, footer.footer_size, lineage.hidden)
            )
        return NewDataFile(
            path=path,
            path_is_relative=is_relative,
            record_count=footer.num_rows,
            file_size_bytes=footer.file_size,
            footer_size=footer.footer_size,
            row_group_count=footer.row_group_count,
            partition_values=values,
            directory_kind=directory_kind(path, keys, values) if values else "",
            stats=stats,
            has_row_ids=lineage.has_row_ids,
            names=match.names,
            mapping_id=match.mapping_id,
        )

    def _match(self, file: WrittenFile, footer: ParquetMetadata) -> MatchedFile:
        """A file with its own field ids, or with those that the names of its columns mean."""
        has_ids = any(id_ is not None for leaf in footer.leaves for id_ in leaf.ids)
        if self.as_they_are is None or has_ids or not footer.leaves:
            if not self.are_registered:
                self._path(file)  # files with field ids are where the table's properties say
            return MatchedFile(footer, (), None, ())
        return self.as_they_are.matched(file, footer)

    def _place(self, file: WrittenFile) -> Place:
        """Where a file is.

        Raises:
            BadRequest: it is where no file of the table may be.
        """
        location = normalised(file.file_path)
        if self.as_they_are is not None and not location.startswith(self.data_location):
            place = self.as_they_are.places.place(location)
            if place is not None:
                return place
        return Place(self._path(file), True)

    def _path(self, file: WrittenFile) -> str:
        path = relative(file.file_path, self.data_location, "a data file", ELSEWHERE)
        return self.directory + path

    def _path_of_registered(self, source: str) -> str:
        """The path of a file of a registered table, as if it was in the table's directory."""
        # The names of files in different directories may be the same.
        digest = sha256(source.encode()).hexdigest()[:16]
        return f"{self.directory}{digest}-{source.rpartition('/')[2]}"

    def _lacks_default(
        self, keys: Iterable[PartitionColumn], stats: Iterable[FileColumnStats]
    ) -> bool:
        """Whether the file lacks a column with a default by which the table is partitioned."""
        missing = self.default_column_ids - {row.column_id for row in stats}
        return any(key.column_id in missing for key in keys)

    def _check_constants(
        self, file: WrittenFile, footer: ParquetMetadata, in_path: Collection[int]
    ) -> None:
        """Refuse a file that lacks a column whose value Iceberg takes from the manifest."""
        # https://iceberg.apache.org/spec/#column-projection
        constants = {id_ for id_, transform, _ in file.partition if transform == "identity"}
        if not constants:
            return
        constants -= {id_ for leaf in footer.leaves for id_ in leaf.ids if id_ is not None}
        for column in leaves(self.columns):
            if column.column_id in constants.difference(in_path):
                raise refused(
                    file.file_path,
                    f"it lacks the column {column.column_name}, whose value is in the manifest "
                    "alone, where DuckLake does not read it: write the rows again",
                )

    def _check_buckets(self, file: WrittenFile, path: str) -> None:
        """Refuse a file without a certain bucket: DuckDB would not find its rows in filters."""
        values = buckets(file)
        columns = {column.column_id: column for column in self.columns}
        for key in filter(is_bucket, self.partition_keys):
            column = columns[key.column_id]
            if column.column_type not in BUCKET_TYPES:
                raise BadRequest(
                    f"the table is partitioned by {key.transform} of {column.column_name}, and "
                    f"Iceberg has no such buckets of {column.column_type}: write with DuckDB, or "
                    "change the partitioning"
                )
            if not self.shows_partitions:
                raise BadRequest(
                    f"the table is partitioned by {key.transform} of {column.column_name}, which "
                    "this warehouse does not show, because a client that it names misreads "
                    "partitions: write through the warehouse without clients"
                )
            if (key.column_id, key.transform) not in values:
                raise CommitFailed(
                    f"the table is partitioned by {key.transform} now, and was not when the "
                    "client wrote its files: write them again"
                )
            raise BadRequest(
                f"the file {path.rpartition('/')[2]} has no certain partition values, without "
                "which DuckLake would not find its rows: write one value to a file"
            )


def buckets(file: WrittenFile) -> dict[tuple[int, str], Any]:
    """The client's bucket values, by column_id and DuckLake's transform."""
    return {
        (source_id, f"bucket({match[1]})"): value
        for source_id, transform, value in file.partition
        if (match := BUCKET.fullmatch(transform)) and isinstance(value, int)
    }


class RowLineage(NamedTuple):
    """How DuckLake may read the row lineage in a file."""

    has_row_ids: bool
    """Whether the file carries the ids of its rows."""
    hidden: tuple[int, ...]
    """The field ids of columns that DuckLake must not see."""


def row_lineage(file: ParquetMetadata, next_row_id: int) -> RowLineage:
    """The row lineage of a file.

    Args:
        next_row_id: the first row id that the table never had.
    """
    # Iceberg and DuckLake reserve the same field ids, and DuckLake takes row ids and snapshots from
    # such columns, also where they are NULL. A client's sequence numbers are not DuckLake's
    # snapshots.
    ids = {leaf.ids for leaf in file.leaves}
    hidden = (LAST_UPDATED,) if (LAST_UPDATED,) in ids else ()
    if (ROW_ID,) not in ids:
        return RowLineage(False, hidden)
    of_leaves = zip(file.leaves, file.row_groups, strict=True)
    groups = [group for leaf, column in of_leaves if leaf.ids == (ROW_ID,) for group in column]
    groups = [group for group in groups if group.num_values]
    # If only some rows have an id of the table, all get new ones. Spark's MERGE writes NULL for new
    # rows, which DuckLake would read as their id; DuckDB writes ids of its own for rows that a
    # transaction inserts and then updates.
    if not groups or not all(_is_valid(group, next_row_id) for group in groups):
        return RowLineage(False, (*hidden, ROW_ID))
    return RowLineage(True, hidden)


def _is_valid(group: RowGroup, next_row_id: int) -> bool:
    low, high = group.min_value, group.max_value
    if group.null_count != 0 or low is None or high is None:
        return False
    return 0 <= int(low) <= int(high) < next_row_id
