"""A table as a commit finds it, and the files of a small commit, read at the same time.

PostgreSQL reads the table while another thread reads the files from S3; only the plan needs both.
It parses and checks the files as if they had not been read before.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...access.authorized_lake import AuthorizedLake
from ...ducklake import queries
from ...ducklake.column_tree import ColumnNode
from ...ducklake.connection.catalog_connection import run_batched
from ...ducklake.paths import table_location
from ...ducklake.rows.objects import PartitionColumn, Schema, Table
from ...iceberg.manifest import PartitionField
from ...iceberg.table_metadata import Snapshot as ListedSnapshot
from ...iceberg.table_metadata import TableMetadata
from ...mapping.partitions import client_specs
from ...runtime.prefetch import meanwhile
from ...storage.objects import ObjectReader
from ...virtual_files.virtual_files import VirtualTable
from ..request.client_files import ClientFiles
from .added_files import FooterReader
from .changed_files import net_change
from .file_statistics import normalised, relative


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at the newest snapshot."""

    lake: AuthorizedLake
    schema: Schema
    table: Table
    files: VirtualTable
    document: TableMetadata
    json: Mapping[str, Any]
    """The table metadata as clients know it, with the current snapshot alone."""
    columns: tuple[ColumnNode, ...]
    """All columns, also those that clients do not see."""
    next_row_id: int
    """The first row id that the table never had."""

    @property
    def location(self) -> str:
        """The directory of the table, with a slash at its end."""
        return table_location(self.lake.lake, self.schema, self.table)

    @property
    def metadata_location(self) -> str:
        """Where the metadata file is; it contains a fingerprint of all that clients know."""
        return self.files.metadata_location(self.document)

    @property
    def head(self) -> ListedSnapshot | None:
        """The snapshot of the branch `main`; None for a table without one."""
        return self.document.snapshots[-1] if self.document.snapshots else None

    @property
    def partition_id(self) -> int | None:
        """The partitioning of new files."""
        return self.files.history.partitioning.current

    @property
    def partition_keys(self) -> tuple[PartitionColumn, ...]:
        """The keys of that partitioning."""
        return tuple(self.files.history.partitioning.columns.get(self.partition_id, ()))

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The fields of that partitioning as a client gave them; empty if none did."""
        return client_specs(self.files.history.tags).get(self.partition_id or 0, ())

    @property
    def with_default(self) -> frozenset[int]:
        """Ids of columns with an initial default, which are not NULL in files without them."""
        columns = self.files.history.columns
        return frozenset(c.column_id for c in columns if c.initial_default is not None)


def table_state(
    lake: AuthorizedLake, schema: Schema, table: Table, files: VirtualTable
) -> TableState:
    """Read a table.

    Raises:
        Refused: the table cannot be served exactly, so that nobody can write to it either.
    """
    table_id, document = table.table_id, files.metadata()
    now = run_batched(lake.con, queries.columns_now(table_id), queries.next_row_id(table_id))
    return TableState(lake, schema, table, files, document, document.json(refs_only=True), *now)


MOST = 4
"""New manifests of a small commit, and data files that it adds."""

MOST_BYTES = 64 * 1024
"""The size of its new manifests in all."""


@contextmanager
def prefetch_client_files(
    reader: ObjectReader, staging: str, data_location: str, manifest_list: str
) -> Iterator[ObjectReader]:
    """Read the files of a commit in another thread, for the duration of the block.

    Gives a reader that answers from memory after the block. What the thread has not read, or could
    not, it reads from S3, so that an error is raised where the file is needed.

    Args:
        staging: the directory of the client's manifests, with a slash at its end.
        data_location: that of its data files. Nothing outside of the two is read.
        manifest_list: of the commit's last snapshot.
    """
    pieces: dict[tuple[str, int, int], bytes] = {}

    def read_and_store(*piece: *tuple[str, int, int]) -> bytes:
        pieces[piece] = reader.read_range(*piece)
        return pieces[piece]

    def read_stored(*piece: *tuple[str, int, int]) -> bytes:
        body = pieces.pop(piece, None)
        return reader.read_range(*piece) if body is None else body

    storing = replace(reader, read_range=read_and_store)
    with meanwhile(lambda: _read(storing, staging, data_location, manifest_list)):
        yield replace(reader, read_range=read_stored)


def _read(reader: ObjectReader, staging: str, data_location: str, manifest_list: str) -> None:
    client = ClientFiles(reader, staging, None)
    listed = client.manifests(manifest_list)
    directory = normalised(staging)
    new = [m for m in listed if normalised(m.manifest_path).startswith(directory)]
    if len(new) > MOST or sum(manifest.manifest_length for manifest in new) > MOST_BYTES:
        return
    added = net_change(client.entries(new), []).added
    if len(added) <= MOST:
        for file in added:
            relative(file.file_path, data_location, "a data file")
        FooterReader(reader).read(added)
