"""The manifests of data files, built column by column with numpy."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.paths import location, table_location
from ...ducklake.queries.files.file_columns import Chunk, ChunkColumns, file_columns
from ...ducklake.rows.data_files import DataFile
from ...iceberg.avro.columnar import manifest_bytes
from ...iceberg.avro.columns import DataFiles
from ...iceberg.partition import PartitionSpec
from ...translate.metrics.data_files import NO_FILES, NO_FILES_WITH_ROW_IDS, data_files
from ...translate.metrics.measured_columns import columns_with_metrics
from ..names import Name
from ..table_context import TableContext
from ..table_names import Manifest

CHUNKS_PER_QUERY = 64
"""A query sorts their statistics: those of a million files would take longer than a statement may.
Without an index each query scans all statistics of the lake."""


def data_manifests(
    con: Connection,
    table: TableContext,
    manifests: Iterable[Manifest],
    check: Callable[[DataFile], None],
) -> Iterator[tuple[Name, bytes]]:
    """The name and the bytes of each manifest; adjacent chunks are read together.

    Args:
        check: is called with each file that was added to the table.

    Raises:
        Refused: `check` refuses a file.
    """
    nothing = NO_FILES_WITH_ROW_IDS if table.has_row_ids else NO_FILES
    by_chunk: dict[Chunk, list[Manifest]] = defaultdict(list)
    for manifest in manifests:
        by_chunk[Chunk(*manifest.name.numbers[1:])].append(manifest)
    for run in _runs(sorted(by_chunk)):
        for chunk, columns in zip(run, _read(con, table, run), strict=True):
            if table.mappings.paths:
                _check_added_files(con, table, chunk, check)
            files = _data_files(table, chunk, columns)
            schema = table.schemas.at(chunk.version)
            for manifest in by_chunk[chunk]:
                entries = files.get(manifest.spec, nothing)
                body = manifest_bytes(
                    entries,
                    schema,
                    manifest.spec,
                    sequence_number=chunk.version,
                    snapshot_id=table.snapshot_ids.of(chunk.version),
                )
                yield manifest.name, body


def _read(con: Connection, table: TableContext, run: Sequence[Chunk]) -> Iterator[ChunkColumns]:
    """The columns of each chunk, with the statistics that its version needs."""
    wanted = {
        version: columns_with_metrics(table.schemas, table.partitions, version)
        for version in {chunk.version for chunk in run}
    }
    column_ids = set().union(*wanted.values())
    history = table.history
    found = file_columns(
        con,
        history.lake,
        history.table.table_id,
        run,
        column_ids,
        with_row_ids=table.has_row_ids,
    )
    for chunk, columns in zip(run, found, strict=True):
        # Only its own columns: its bytes must not depend on which chunks are read with it.
        stats = [column for column in columns.stats if column.column_id in wanted[chunk.version]]
        yield columns._replace(stats=stats)


def _check_added_files(
    con: Connection, table: TableContext, chunk: Chunk, check: Callable[[DataFile], None]
) -> None:
    """Call `check` with each data file of a chunk."""
    lake, table_id = table.history.lake, table.history.table.table_id
    visible = queries.data_files_at(lake, table_id, chunk.version, chunk.first_id, chunk.last_id)
    for file in visible.run(con):
        check(file)


def _data_files(
    table: TableContext, chunk: Chunk, columns: ChunkColumns
) -> dict[PartitionSpec, DataFiles]:
    """The manifest entries of a chunk, by partition spec."""
    history = table.history
    directory = table_location(history.lake, history.schema, history.table)
    return data_files(
        *columns,
        table.schemas,
        table.partitions,
        lambda path, is_relative: location((directory, False), (path, is_relative)),
        chunk.version,
        table.snapshot_ids,
        has_row_ids=table.has_row_ids,
    )


def _runs(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Adjacent chunks, as many as one query reads."""
    run: list[Chunk] = []
    for chunk in chunks:
        if run and (chunk.first_id != run[-1].last_id + 1 or len(run) == CHUNKS_PER_QUERY):
            yield run
            run = []
        run.append(chunk)
    if run:
        yield run
