"""The data files that a commit adds, as rows for the catalog: what their footers in S3 say.

Files with columns that DuckLake would take for its own are copied. A copy differs in five bytes of
its footer for each such column; S3 copies the rest.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from ...ducklake.column_tree import ColumnNode
from ...ducklake.directories import directory_kind
from ...ducklake.rows.objects import PartitionColumn
from ...ducklake.writes.files import NewDataFile
from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.manifest import PartitionField
from ...iceberg.parquet.files import with_field_ids
from ...iceberg.parquet.footer import TAIL, NotParquet
from ...iceberg.parquet.metadata import Footer, ParquetMetadata, footer_length, metadata
from ...iceberg.table_metadata import LAST_UPDATED, ROW_ID
from ...iceberg.types import BUCKET
from ...mapping.partitions import BUCKET_TYPES
from ...runtime import budget
from ...runtime.errors import BadRequest, CommitFailed, Misconfigured, NoSuchKey
from ...runtime.prefetch import in_parallel
from ...storage.objects import AT_A_TIME, ObjectReader, copy_with_end
from .changed_files import row_lineage
from .file_statistics import FileStatistics, client_values, normalised, partition_values, relative
from .files_without_ids import AddedFiles, MatchedFile, Place
from .partition_and_sort_keys import is_bucket

FIRST_GUESS, LEAST_GUESS = 64 * 1024, 4 * 1024
"""How much of a file's end one request reads. Later files are taken to be like the first ones:
64 KB of 10,000 files would take S3 and Lambda 9 s."""

FIRST_BATCH, BATCH = 32, 1000
"""Files that are read together."""

LONGEST_FOOTER = 16 * 1024 * 1024
"""Enough for 1,000 columns and 100 row groups."""

MOST_BYTES = 128 * 1024 * 1024
"""The size of all footers of a commit; those of 10,000 files with 20 columns are 60 MB."""


class FooterReader:
    """Reads the footers of one commit."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._guess = FIRST_GUESS
        self._bytes = 0
        # Several footers are read at the same time.
        self._lock = Lock()

    def metadata(
        self, files: Sequence[WrittenFile]
    ) -> Generator[tuple[Sequence[WrittenFile], list[ParquetMetadata]], None, None]:
        """The files in batches, with what their footers say.

        While the caller works on one batch, DuckDB reads the next one, and S3 a later one.

        Raises:
            BadRequest: a file cannot be read, or the footers are too long in all.
        """
        batches = [files[:FIRST_BATCH], *_batches(files[FIRST_BATCH:])] if files else []
        with _one_thread() as fetch, _one_thread() as parse:
            # What is handed over is forgotten, because it takes several times a footer's size.
            parsed = deque(parse(_parsed, fetch(self.read, batch)) for batch in batches)
            for batch in batches:
                yield batch, parsed.popleft().result()

    def read(self, files: Sequence[WrittenFile]) -> list[Footer]:
        """The footers of these files, in order. Raises: as `metadata`."""
        footers = in_parallel(self._footer, files, AT_A_TIME)
        longest = max(len(footer.tail) for footer in footers)
        self._guess = min(FIRST_GUESS, max(LEAST_GUESS, 2 * longest))
        return footers

    def _footer(self, file: WrittenFile) -> Footer:
        size = file.file_size_in_bytes
        if size <= TAIL:
            raise BadRequest("a data file of the commit is too short for a Parquet file")
        try:
            return Footer(size, self._tail(normalised(file.file_path), size))
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise BadRequest(
                "a data file of the commit does not exist in S3, or is shorter than the manifest "
                "says, or cannot be read"
            ) from None
        except NotParquet as error:
            raise _unreadable(error) from None

    def _tail(self, location: str, size: int) -> bytes:
        """The end of a file, from the first byte of the footer."""
        start = max(0, size - self._guess)
        # One byte more, to see that the file ends there.
        tail = self._reader.read_range(location, start, size + 1)
        if len(tail) != size - start:
            raise NotParquet("it is longer or shorter than the manifest says")
        length = footer_length(tail)
        if not TAIL < length <= min(size, LONGEST_FOOTER):
            raise NotParquet("its footer is longer than the file, or than 16 MB")
        self._count(length)
        if length > len(tail):
            tail = self._reader.read_range(location, size - length, size)
        return tail[-length:]

    def _count(self, length: int) -> None:
        with self._lock:
            self._bytes += length
            if self._bytes > MOST_BYTES:
                raise BadRequest(
                    f"the footers of the added data files have more than {MOST_BYTES >> 20} MB: "
                    "commit fewer files at a time, or write files with fewer row groups or columns"
                )


def _batches(files: Sequence[WrittenFile]) -> Iterator[Sequence[WrittenFile]]:
    return (files[start : start + BATCH] for start in range(0, len(files), BATCH))


def _unreadable(error: NotParquet) -> BadRequest:
    """The error of a file that is no Parquet file that DuckDB reads."""
    return BadRequest(f"a data file of the commit cannot be read: {error}")


def _parsed(footers: Future[list[Footer]]) -> list[ParquetMetadata]:
    try:
        return metadata(footers.result())
    except NotParquet as error:
        raise _unreadable(error) from None


@contextmanager
def _one_thread() -> Iterator[Callable[..., Future[Any]]]:
    """A function that hands work to one thread; what has not begun at the end is given up."""
    pool = ThreadPoolExecutor(1)
    try:
        # The time budget of the request is in the context.
        yield lambda work, item: pool.submit(copy_context().run, work, item)
    finally:
        pool.shutdown(cancel_futures=True)


# Nothing in the catalog hides a column from DuckLake that has one of its reserved field ids: no
# column mapping, no merge group. So the copy has other ids.
UNKNOWN_IDS = {ROW_ID: 2147483446, LAST_UPDATED: 2147483445}
"""Iceberg reserves the ids from 2147483447 on, and no column of a table gets as far as these."""


PREFIX = "polynya-"
"""Names of copies begin with it; template.yaml permits no others."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file, and where its copy is to be."""

    source: str
    target: str
    file_size: int
    footer_size: int
    hidden: tuple[int, ...]
    """The field ids that the copy does not have."""

    def make(self, reader: ObjectReader) -> None:
        """Write the copy to S3.

        Raises:
            BadRequest: the file is gone, or its footer has an unexpected form.
            Misconfigured, ServiceUnavailable: S3 does not take it.
        """
        start = self.file_size - self.footer_size - TAIL
        try:
            footer = reader.read_range(self.source, start, self.file_size)
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise _is_gone() from None
        renumbered = with_field_ids(footer, {id_: UNKNOWN_IDS[id_] for id_ in self.hidden})
        if renumbered is None:
            raise BadRequest(
                "a data file of the commit has columns of row lineage (_row_id, "
                "_last_updated_sequence_number) that cannot be hidden from DuckLake: append, "
                "or delete and insert instead of updating"
            )
        try:
            copy_with_end(self.source, self.target, start, renumbered)
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
        raise BadRequest(f"a data file of the commit has a name that begins with {PREFIX}")


NOTHING_COUNTED: frozenset[int] = frozenset()

ELSEWHERE = (
    "; files without field ids may also be below the table's directory, and where `add_files` in "
    "the authorization policy permits it, but not in the directory of another table"
)

MOST_FILES = 10_000
"""With 20 columns these take 6 s of CPU time without what S3 takes (docs/performance.md), and 200
MB."""


@dataclass(frozen=True, slots=True)
class AppendedFiles:
    """Reads the added files of one table."""

    reader: ObjectReader
    data_location: str
    """The directory of the client's data files, with a slash at its end."""
    directory: str
    """The name of that directory within the table's own, with a slash at its end."""
    columns: tuple[ColumnNode, ...]
    last_column_id: int
    with_default: frozenset[int]
    partition_keys: tuple[PartitionColumn, ...]
    partition_fields: tuple[PartitionField, ...] = ()
    """The spec as a client gave it: that of the files, if there are no keys."""
    next_row_id: int = 0
    """The first row id that the table never had."""
    as_they_are: AddedFiles | None = None
    """What may be added without field ids; None: nothing."""

    def read(self, files: Sequence[WrittenFile]) -> list[NewDataFile]:
        """The rows of the files for the catalog, in order.

        A file with columns that DuckLake would take for its own is copied without them.

        Raises:
            BadRequest: a file is not in the table's place for data files, or DuckLake would not
                read it as the client means it.
        """
        if len(files) > MOST_FILES:
            raise BadRequest(
                f"the commit adds {len(files):,} data files; {MOST_FILES:,} are the most: commit "
                "fewer at a time, or write larger ones"
            )
        for file in files:
            check_is_no_copy(self._place(file).path)  # before anything is read from S3
        statistics = partial(self._statistics, {})
        added: list[NewDataFile] = []
        copies: list[FileCopy] = []
        with closing(FooterReader(self.reader).metadata(files)) as batches:
            for batch, footers in batches:
                added += map(partial(self._new_file, statistics, copies), batch, footers)
                budget.check()
        # After the checks of all files: a refused commit leaves no copy in S3.
        in_parallel(lambda copy: copy.make(self.reader), copies)
        return added

    def _statistics(
        self, by_columns: dict[frozenset[int], FileStatistics], without: frozenset[int]
    ) -> FileStatistics:
        """The statistics of files whose values of some columns are not in them."""
        if without not in by_columns:
            columns = [column for column in self.columns if column.column_id not in without]
            by_columns[without] = FileStatistics(columns, self.last_column_id, self.with_default)
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
        # Nobody has counted the NaN of a file that the client has not written.
        without_nan = NOTHING_COUNTED if match.names else file.without_nan
        of_columns = statistics(frozenset(s.column_id for s in in_path))
        stats = of_columns.of(path, footer, without_nan) + in_path
        if self.partition_keys or not self.partition_fields:
            values = partition_values(self.partition_keys, self.columns, stats, buckets(file))
        else:
            values = client_values(self.partition_fields, self.columns, stats, file.partition)
        if not values:
            self._check_buckets(file, path)
        lineage = row_lineage(footer, self.next_row_id)
        if lineage.hidden:
            path = path_of_copy(path)
            target = self.data_location + path.removeprefix(self.directory)
            source = normalised(file.file_path)
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
            # Without keys DuckLake puts no file there itself.
            directory_kind=(
                directory_kind(path, self.partition_keys, values)
                if values and self.partition_keys
                else ""
            ),
            stats=stats,
            has_row_ids=lineage.has_row_ids,
            names=match.names,
            mapping_id=match.mapping_id,
        )

    def _match(self, file: WrittenFile, footer: ParquetMetadata) -> MatchedFile:
        """A file with its field ids, or with those that its columns have by their names."""
        has_ids = any(id_ is not None for leaf in footer.leaves for id_ in leaf.ids)
        if self.as_they_are is None or has_ids or not footer.leaves:
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
            place = self.as_they_are.place(location)
            if place is not None:
                return place
        return Place(self._path(file), True)

    def _path(self, file: WrittenFile) -> str:
        path = relative(file.file_path, self.data_location, "a data file", ELSEWHERE)
        return self.directory + path

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
    """The bucket values that the client says, by column_id and DuckLake's transform."""
    return {
        (source_id, f"bucket({match[1]})"): value
        for source_id, transform, value in file.partition
        if (match := BUCKET.fullmatch(transform)) and isinstance(value, int)
    }
