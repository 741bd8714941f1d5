"""The data files that a commit adds, as DuckLake will know them: from their footers."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from .... import budget
from ....ducklake.column_tree import ColumnNode
from ....ducklake.rows.partitions import PartitionColumn
from ....ducklake.writes.files import NewDataFile
from ....errors import BadRequest, CommitFailed
from ....iceberg.avro.written import WrittenFile
from ....iceberg.parquet.metadata import ParquetMetadata
from ....parallel import in_parallel
from ....storage.objects.reader import ObjectReader
from ....translate.commits.file_statistics import FileStatistics
from ....translate.commits.partition_values import partition_values
from ....translate.commits.paths import normalised, relative
from ....translate.commits.row_ids import row_lineage
from ....translate.commits.schema.partitioning import BUCKET, is_bucket
from ....translate.partitions import BUCKET_TYPES
from .file_copies import FileCopy, check_is_no_copy, path_of_copy
from .footers import FooterReader

Values = tuple[str | None, ...]

MOST_FILES = 10_000
"""With 20 columns these take 19 s of CPU time on a busy core, of which the 5 s of DuckDB run
beside the others (docs/performance.md), and 200 MB."""


@dataclass(frozen=True, slots=True)
class AddedFiles:
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
    next_row_id: int = 0
    """The first row id that the table never had."""

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
            check_is_no_copy(self._path(file))  # before anything is read from S3
        statistics = FileStatistics(self.columns, self.last_column_id, self.with_default)
        added: list[NewDataFile] = []
        copies: list[FileCopy] = []
        with closing(FooterReader(self.reader).metadata(files)) as batches:
            for batch, found in batches:
                added += map(partial(self._new_file, statistics, copies), batch, found)
                budget.check()
        in_parallel(lambda copy: copy.make(self.reader), copies)
        return added

    def _new_file(
        self,
        statistics: FileStatistics,
        copies: list[FileCopy],
        file: WrittenFile,
        found: ParquetMetadata,
    ) -> NewDataFile:
        path = self._path(file)
        if file.record_count != found.num_rows:
            raise BadRequest(
                f"the manifest says that {path.rpartition('/')[2]} has {file.record_count} rows; "
                f"it has {found.num_rows}"
            )
        stats = statistics.of(path, found, file.without_nan)
        values = partition_values(self.partition_keys, self.columns, stats, buckets(file))
        if not values:
            self._check_buckets(file, path)
        lineage = row_lineage(found, self.next_row_id)
        if lineage.hidden:
            path = path_of_copy(path)
            target = self.data_location + path.removeprefix(self.directory)
            source = normalised(file.file_path)
            copies.append(FileCopy.of(source, target, found, lineage.hidden))
        return NewDataFile(
            path=path,
            record_count=found.num_rows,
            file_size_bytes=found.file_size,
            footer_size=found.footer_size,
            row_group_count=found.row_group_count,
            partition_values=with_directory(values, path),
            stats=stats,
            has_row_ids=lineage.has_row_ids,
        )

    def _path(self, file: WrittenFile) -> str:
        return self.directory + relative(file.file_path, self.data_location, "a data file")

    def _check_buckets(self, file: WrittenFile, path: str) -> None:
        """Refuse a file without a certain bucket: DuckDB would not find its rows in filters."""
        told = buckets(file)
        columns = {column.column_id: column for column in self.columns}
        for key in filter(is_bucket, self.partition_keys):
            column = columns[key.column_id]
            if column.column_type not in BUCKET_TYPES:
                raise BadRequest(
                    f"the table is partitioned by {key.transform} of {column.column_name}, and "
                    f"Iceberg has no such buckets of {column.column_type}: write with DuckDB, or "
                    "change the partitioning"
                )
            if (key.column_id, key.transform) not in told:
                raise CommitFailed(
                    f"the table is partitioned by {key.transform} now, and was not when the "
                    "client wrote its files: write them again"
                )
            raise BadRequest(
                f"the file {path.rpartition('/')[2]} has no certain partition values, without "
                "which DuckLake would not find its rows: write one value to a file"
            )


def with_directory(values: Values, path: str) -> Values:
    """The partition values of a file, and one more, of no key: its directory.

    ducklake_merge_adjacent_files merges files of equal values, and ends with an internal error if
    these are in different directories: clients have other ones than DuckLake.
    """
    return (*values, path.rpartition("/")[0]) if values else ()


def buckets(file: WrittenFile) -> dict[tuple[int, str], Any]:
    """The bucket values that the client says, by column_id and DuckLake's transform."""
    return {
        (source_id, f"bucket({match[1]})"): value
        for source_id, transform, value in file.partition
        if (match := BUCKET.fullmatch(transform)) and isinstance(value, int)
    }
