"""The virtual files of a lake: key -> bytes, built when they are first read, and cached.

With the delivery `materialize` they are built earlier: loadTable puts all files of the table's
metadata document into the bucket.
"""

from collections.abc import Sequence
from functools import partial

from pg8000.native import Connection

from ..ducklake import history, queries
from ..ducklake.connection.catalog_connection import run_batched
from ..ducklake.connection.database import Database, retried
from ..ducklake.rows.objects import Lake, Schema, Table
from ..iceberg.table_metadata import TableMetadata
from ..mapping.tables import check_lake, check_rows
from ..runtime.errors import NoSuchKey
from ..runtime.settings import Config
from ..storage.file_cache import FileCache
from ..storage.objects import ObjectReader
from .bucket_files import BucketFiles, BuildContext, build_context
from .names import FILE_KINDS, Name, parse
from .table_files import VirtualTable

MANIFESTS = frozenset(FILE_KINDS.values())


def materialize(files: VirtualTable, document: TableMetadata, context: BuildContext) -> None:
    """Put into the bucket what is missing of the document and all files to which it refers.

    Nothing happens with another delivery.

    Raises:
        ServiceUnavailable: it takes longer than one request may, or the bucket does not answer.
        Misconfigured: the role may not list the bucket.
    """
    if context.bucket is None:
        return
    # Several snapshots of one commit have the same list.
    snapshot_ids = dict.fromkeys(snapshot.sequence_number for snapshot in document.snapshots)
    lists = [*files.lists(snapshot_ids).values()]
    restore = partial(_restore, files, document, lists)
    BucketFiles(context.bucket, context, restore).ensure(lists, files.document_name(document))


def _restore(
    files: VirtualTable, document: TableMetadata, lists: Sequence[Name], names: Sequence[Name]
) -> None:
    """Put these into the bucket: the document, its lists, or files to which they refer."""
    missing = {name for name in names if name.kind in MANIFESTS}
    for manifest_list in reversed(lists):  # the manifests of one list are read together
        if missing:
            listed = files.manifests(manifest_list.snapshot_id)
            to_restore = [manifest for manifest in listed if manifest.name in missing]
            files.cache_manifests(to_restore)
            missing.difference_update(manifest.name for manifest in to_restore)
    remaining = [name for name in names if name.kind not in MANIFESTS or name in missing]
    for number, name in enumerate(remaining, 1):
        files.restore(name, document.body if name.kind == "table" else None)
        files.check_time("files", number, len(remaining))


class VirtualFiles:
    """The virtual files of one lake."""

    def __init__(
        self, config: Config, database: Database, cache: FileCache, object_reader: ObjectReader
    ) -> None:
        """`object_reader` reads the lake's own files."""
        self._prefix = config.files.virtual_prefix
        self._database = database
        self._cache = cache
        self._context = build_context(config, cache, object_reader)

    @property
    def location(self) -> str:
        """The location below which all virtual files are."""
        return self._context.virtual_location

    def read(self, key: str) -> bytes:
        """The bytes of a virtual file, which never change.

        Raises:
            NoSuchKey: the key names no virtual file, or its rows in the catalog were rewritten.
            Refused: the lake, the table or this file cannot be served exactly.
            ServiceUnavailable: the database or S3 does not answer.
        """
        name = parse(key, self._prefix)
        return self._cache.get_or_build(key, lambda: self._build(name))

    def table_files(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        snapshot_id: int,
        since: int = 0,
        limit: int | None = None,
    ) -> VirtualTable:
        """The files of one table as of a snapshot. Arguments and errors: as `open_table`."""
        return open_table(con, lake, schema, table, snapshot_id, self._context, since, limit)

    def materialize(self, files: VirtualTable, document: TableMetadata) -> None:
        """With the delivery `materialize`, put all files of the document into the bucket.

        Raises:
            ServiceUnavailable: it takes longer than one request may, or the bucket does not answer.
            Misconfigured: the role may not list the bucket.
        """
        materialize(files, document, self._context)

    @retried
    def _build(self, name: Name) -> bytes:
        with self._database.transaction() as con:
            return self._build_within(con, name)

    def _build_within(self, con: Connection, name: Name) -> bytes:
        lake, schema_and_table = run_batched(
            con, queries.lake(), queries.table_of_uuid(name.table_uuid)
        )
        check_lake(lake.version, lake.encrypted)
        if schema_and_table is None:
            raise NoSuchKey("the catalog holds no such table")
        schema, table = schema_and_table
        if not table.begin_snapshot <= name.snapshot_id <= lake.snapshot_id:
            raise NoSuchKey("the catalog holds no such snapshot of the table")
        since = 0 if name.kind == "table" else name.snapshot_id
        failure = NoSuchKey("the catalog holds no such file")
        for snapshot_id in _build_snapshots(name, lake, table):
            try:
                files = self.table_files(con, lake, schema, table, snapshot_id, since)
                return files.build(name)
            except NoSuchKey as error:
                failure = error
        raise failure


def open_table(
    con: Connection,
    lake: Lake,
    schema: Schema,
    table: Table,
    snapshot_id: int,
    context: BuildContext,
    since: int = 0,
    limit: int | None = None,
) -> VirtualTable:
    """Read the history of a table as of a snapshot.

    Args:
        since: the first snapshot whose files are needed; 0: as many as are listed.
        limit: without `since`, how many of the newest snapshots; None: as many as are listed.

    Raises:
        Refused: the table's own rows in the catalog are broken.
    """
    check_rows(schema, table)
    limit = None if since else limit or context.settings.snapshot_limit
    rows = history.read(con, lake, schema, table, snapshot_id, since=since, limit=limit)
    return VirtualTable(con, rows, context)


def _build_snapshots(name: Name, lake: Lake, table: Table) -> list[int]:
    """The snapshots as of which a file may have been named, the likeliest first.

    The metadata document is named as of its own snapshot. All other files are named as of the
    newest one, because partition specs depend on the columns of the newest schema; for a reader
    that is pinned to an older snapshot, as of that one.
    """
    if name.kind == "table":
        return [name.snapshot_id]
    newest = lake.snapshot_id if table.end_snapshot is None else table.end_snapshot - 1
    return list(dict.fromkeys((newest, name.snapshot_id)))
