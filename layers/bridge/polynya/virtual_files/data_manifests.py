"""The manifests of data files, built column by column with numpy.

PostgreSQL reads and sorts the next chunks while this process encodes those before.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.paths import location, table_location
from ..ducklake.queries.file_columns import FEW, Chunk, ChunkColumns, file_columns
from ..ducklake.rows.files import DataFile
from ..iceberg.avro.columnar import manifest_bytes
from ..iceberg.avro.row_encoder import DataFiles
from ..iceberg.manifest import PartitionSpec
from ..mapping.data_files import NO_FILES, NO_FILES_WITH_ROW_IDS, data_files
from ..mapping.manifests import columns_with_metrics
from ..runtime.prefetch import prefetch
from .contexts import TableContext
from .names import Manifest, Name

CHUNKS_PER_QUERY = 32
"""A query sorts their statistics before its first row, while the chunks of the query before are
encoded. Without an index each query scans all statistics of the lake."""

FIRST_CHUNKS = 4
"""Chunks of the first query, during which there is nothing to encode; each query has twice as many
as the one before."""

COLUMNS_AHEAD = 640
"""The most columns of chunks that are read before they are encoded; a column of 2,048 files takes
some 130 kB of memory."""


class FoundChunk(NamedTuple):
    """A chunk as read from PostgreSQL."""

    chunk: Chunk
    columns: ChunkColumns
    added_files: list[DataFile]
    """The data files of the chunk, if any file was added to the table; else empty."""


def data_manifests(
    con: Connection,
    table: TableContext,
    manifests: Iterable[Manifest],
    check: Callable[[DataFile], None],
) -> Generator[tuple[Name, bytes], None, None]:
    """The name and the bytes of each manifest; adjacent chunks are read together.

    The connection belongs to another thread until the generator ends or is closed.

    Args:
        check: is called with each file that was added to the table.

    Raises:
        Refused: `check` refuses a file.
    """
    nothing = NO_FILES_WITH_ROW_IDS if table.has_row_ids else NO_FILES
    by_chunk: dict[Chunk, list[Manifest]] = defaultdict(list)
    for manifest in manifests:
        _, first, last, *_ = manifest.name.numbers
        by_chunk[Chunk(first, last, manifest.window)].append(manifest)
    chunks = sorted(by_chunk, key=lambda chunk: (chunk.first_id, chunk.last_id, chunk.version))
    with closing(_read_chunks(con, table, chunks)) as read_chunks:
        for chunk, columns, added_files in read_chunks:
            for file in added_files:
                check(file)
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


def _read_chunks(
    con: Connection, table: TableContext, chunks: Sequence[Chunk]
) -> Generator[FoundChunk, None, None]:
    """The content of each chunk, read ahead if they are many."""
    read_chunks = _in_runs(con, table, chunks)
    if len(chunks) <= FEW:  # PostgreSQL reads them at once
        return read_chunks
    columns = columns_with_metrics(table.schemas, table.partitions, chunks[-1].version)
    most = COLUMNS_AHEAD // (len(columns) or 1)
    return prefetch(read_chunks, min(max(1, most), CHUNKS_PER_QUERY))


def _in_runs(
    con: Connection, table: TableContext, chunks: Iterable[Chunk]
) -> Generator[FoundChunk, None, None]:
    for run in _runs(chunks):
        for chunk, columns in zip(run, _read(con, table, run), strict=True):
            yield FoundChunk(chunk, columns, _added_files(con, table, chunk))


def _read(con: Connection, table: TableContext, run: Sequence[Chunk]) -> Iterator[ChunkColumns]:
    """The columns of each chunk, with the statistics that its version needs."""
    ids_by_version = {
        version: columns_with_metrics(table.schemas, table.partitions, version)
        for version in {chunk.version for chunk in run}
    }
    column_ids = set().union(*ids_by_version.values())
    history = table.history
    chunk_columns = file_columns(
        con,
        history.lake,
        history.table.table_id,
        run,
        column_ids,
        with_row_ids=table.has_row_ids,
    )
    for chunk, columns in zip(run, chunk_columns, strict=True):
        # Only its own columns: its bytes must not depend on which chunks are read with it.
        ids = ids_by_version[chunk.version]
        stats = [column for column in columns.stats if column.column_id in ids]
        yield columns._replace(stats=stats)


def _added_files(con: Connection, table: TableContext, chunk: Chunk) -> list[DataFile]:
    """The data files of a chunk, if any file was added to the table; else an empty list."""
    if not table.mappings.paths:
        return []
    lake, table_id = table.history.lake, table.history.table.table_id
    ids = (chunk.first_id, chunk.last_id)
    return queries.data_files_at(lake, table_id, chunk.version, *ids).run(con)


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
        chunk.window,
        table.snapshot_ids,
        has_row_ids=table.has_row_ids,
    )


def _runs(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Adjacent chunks, as many as one query reads."""
    run: list[Chunk] = []
    most = FIRST_CHUNKS
    for chunk in chunks:
        if run and (chunk.first_id != run[-1].last_id + 1 or len(run) == most):
            yield run
            run = []
            most = min(2 * most, CHUNKS_PER_QUERY)
        run.append(chunk)
    if run:
        yield run
