"""The manifests of data files, built column by column with numpy."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.file_columns import Chunk, file_columns
from ...ducklake.paths import location, table_location
from ...ducklake.rows import DataFile
from ...iceberg.avro.columnar import manifest_bytes
from ...translate.metrics.data_files import NO_FILES, data_files
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
    by_chunk: dict[Chunk, list[Manifest]] = defaultdict(list)
    for manifest in manifests:
        by_chunk[Chunk(*manifest.name.numbers[1:])].append(manifest)
    history = table.history
    lake, table_id = history.lake, history.table.table_id
    directory = table_location(lake, history.schema, history.table)
    for run in _runs(sorted(by_chunk)):
        wanted = {
            version: columns_with_metrics(table.schemas, table.partitions, version)
            for version in {chunk.version for chunk in run}
        }
        every = set().union(*wanted.values())
        for chunk, found in zip(run, file_columns(con, lake, table_id, run, every), strict=True):
            # Only its own columns: its bytes must not depend on which chunks are read with it.
            stats = [column for column in found.stats if column.column_id in wanted[chunk.version]]
            columns = found._replace(stats=stats)
            if table.mappings.paths:
                visible = queries.data_files_at(lake, table_id, chunk.version, *chunk[:2])
                for file in visible.run(con):
                    check(file)
            files = data_files(
                *columns,
                table.schemas,
                table.partitions,
                lambda path, is_relative: location((directory, False), (path, is_relative)),
                chunk.version,
            )
            schema = table.schemas.at(chunk.version)
            for manifest in by_chunk[chunk]:
                entries = files.get(manifest.spec, NO_FILES)
                yield manifest.name, manifest_bytes(entries, schema, manifest.spec, chunk.version)


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
