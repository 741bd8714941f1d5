"""The manifests of data files, made column by column; it stands on numpy."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.paths import location, table_location
from ...ducklake.queries.file_columns import Chunk, file_columns
from ...ducklake.rows import DataFile
from ...iceberg.avro.columnar import manifest_bytes
from ...translate.metrics.data_files import NO_FILES, data_files
from ...translate.metrics.measured_columns import columns_with_metrics
from ..names import Name
from ..table_context import TableContext
from ..table_names import Manifest

CHUNKS_OF_A_PASS = 64
"""A pass sorts their statistics: those of a million files would take longer than a statement may.
Without an index each pass scans all statistics of the lake."""


def data_manifests(
    con: Connection,
    view: TableContext,
    manifests: Iterable[Manifest],
    check: Callable[[DataFile], None],
) -> Iterator[tuple[Name, bytes]]:
    """Each manifest with its bytes; chunks that are next to each other are read together.

    Args:
        check: what is called with each file that was added to the table.
    """
    of_chunk: dict[Chunk, list[Manifest]] = defaultdict(list)
    for manifest in manifests:
        of_chunk[Chunk(*manifest.name.numbers[1:])].append(manifest)
    history = view.history
    lake, table_id = history.lake, history.table.table_id
    directory = table_location(lake, history.schema, history.table)
    for run in _runs(sorted(of_chunk)):
        wanted = {
            version: columns_with_metrics(view.schemas, view.partitions, version)
            for version in {chunk.version for chunk in run}
        }
        every = set().union(*wanted.values())
        for chunk, found in zip(run, file_columns(con, lake, table_id, run, every), strict=True):
            # Only its own: with whom a chunk is read must not be seen in its bytes.
            stats = [column for column in found.stats if column.column_id in wanted[chunk.version]]
            columns = found._replace(stats=stats)
            if view.mappings.paths:
                visible = queries.data_files_at(lake, table_id, chunk.version, *chunk[:2])
                for file in visible.run(con):
                    check(file)
            files = data_files(
                *columns,
                view.schemas,
                view.partitions,
                lambda path, is_relative: location((directory, False), (path, is_relative)),
                chunk.version,
            )
            schema = view.schemas.at(chunk.version)
            for manifest in of_chunk[chunk]:
                entries = files.get(manifest.spec, NO_FILES)
                yield manifest.name, manifest_bytes(entries, schema, manifest.spec, chunk.version)


def _runs(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Chunks that are next to each other, as many as are read in one pass."""
    run: list[Chunk] = []
    for chunk in chunks:
        if run and (chunk.first_id != run[-1].last_id + 1 or len(run) == CHUNKS_OF_A_PASS):
            yield run
            run = []
        run.append(chunk)
    if run:
        yield run
