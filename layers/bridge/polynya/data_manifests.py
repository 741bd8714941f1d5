"""The manifests of data files, made column by column; it stands on numpy."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from pg8000.native import Connection

from .ducklake import queries
from .ducklake.file_columns import Chunk, file_columns
from .ducklake.paths import location, table_location
from .ducklake.rows import DataFile
from .iceberg.columnar import manifest_bytes
from .table_names import Manifest
from .table_view import TableView
from .translate.data_files import NO_FILES, columns_with_metrics, data_files
from .virtual_names import Name


def data_manifests(
    con: Connection,
    view: TableView,
    manifests: Iterable[Manifest],
    check: Callable[[DataFile], None],
) -> Iterator[tuple[Name, bytes]]:
    """Each manifest with its bytes; chunks that are next to each other are read in one pass.

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
        newest = max(chunk.version for chunk in run)
        wanted = columns_with_metrics(view.schemas, view.partitions, newest)
        for chunk, columns in zip(run, file_columns(con, lake, table_id, run, wanted), strict=True):
            if view.mappings.paths:
                for file in queries.data_files_at(con, lake, table_id, chunk.version, *chunk[:2]):
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
    """Chunks that are next to each other."""
    run: list[Chunk] = []
    for chunk in chunks:
        if run and chunk.first_id != run[-1].last_id + 1:
            yield run
            run = []
        run.append(chunk)
    if run:
        yield run
