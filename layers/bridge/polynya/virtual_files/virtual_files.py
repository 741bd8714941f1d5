"""The virtual files of a lake: key -> bytes, built when they are first read, and cached.

Files refer to each other from the top: table metadata -> manifest lists -> manifests -> rows and
delete files. They are built from the bottom, because a file holds the length of the files to which
it refers. With the delivery `materialize` they are built earlier: loadTable puts all files of the
table's metadata document into the bucket.
"""

import time
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.connection.catalog_connection import (
    keeping_prepared,
    plan_by_index,
    run_batched,
)
from ..ducklake.connection.database import Database, retried
from ..ducklake.queries import history
from ..ducklake.queries.history import TableHistory, states
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import Lake, Schema, Table
from ..iceberg.table_metadata import TableMetadata
from ..mapping.adaptations import ShownFile
from ..mapping.hidden_columns import Hidden, without_columns
from ..mapping.tables import check_lake, check_rows
from ..runtime.errors import HiddenFromCaller, NoSuchKey, PolynyaError
from ..runtime.settings import Config
from ..storage.file_cache import FileCache
from ..storage.objects import ObjectReader
from .adapted_data_files import AdaptedDataFiles
from .bucket_files import BucketFiles, are_put
from .cached_files import CachedFiles, FileKind
from .contexts import (
    EVERYBODY,
    Audience,
    BuildContext,
    BuildElsewhere,
    RunSoon,
    build_context,
    same_until,
    table_context,
)
from .documents import Documents, EarlierDocuments
from .inlined_rows import InlinedRows, LiveRows
from .manifest_lists import ExpiredLists, ManifestLists
from .manifests import MANIFESTS, cache_manifests, manifests_at
from .names import DATA_FILE, DOCUMENTS, Manifest, Name, parse
from .position_deletes import DeleteFiles, DeletionVectors
from .scan_files import ListedFiles, PaddedDeletes, PaddedFiles, PaddedRows, ScanFiles

ALL_KINDS: tuple[type[FileKind], ...] = (
    AdaptedDataFiles,
    Documents,
    EarlierDocuments,
    ManifestLists,
    ExpiredLists,
    *MANIFESTS.values(),
    InlinedRows,
    DeleteFiles,
    DeletionVectors,
    PaddedRows,
    PaddedDeletes,
)
"""All kinds of files. The form of their names is in `names.KINDS`, which needs no builder."""


class VirtualTable(CachedFiles):
    """The virtual files of a table as of `history.snapshot_id` and before.

    Everything is read from one connection, within the caller's transaction.
    """

    def __init__(
        self,
        con: Connection,
        history: TableHistory,
        context: BuildContext,
        shows_version_3: bool | None = None,
        clients: frozenset[str] | None = None,
        hidden: Hidden | None = None,
    ) -> None:
        """Arguments: as `table_context`."""
        if hidden is not None:
            history = without_columns(history, hidden.column_ids)
        table = table_context(con, history, context, shows_version_3, clients, hidden)
        super().__init__(table, ALL_KINDS)
        self.history = history
        """The table's rows in the catalog; `unservable` has the snapshots that they do not let
        Polynya serve."""

    def same_until(self) -> float:
        """Until when the current metadata document depends on the catalog alone and not on the
        time, in milliseconds since 1970."""
        return same_until(self.history, time.time() * 1000)

    @property
    def unservable(self) -> list[UnservableRange]:
        """The ranges of snapshots that cannot be served exactly, with the reasons."""
        return self.files_of(Documents).unservable

    def unservable_defaults(self) -> dict[str, list[UnservableRange]]:
        """The snapshots that show files without a column that has a default, by its dotted name."""
        return self.files_of(Documents).unservable_defaults()

    def metadata(self) -> TableMetadata:
        """The metadata document of the table.

        Raises:
            Refused: the table cannot be served exactly.
        """
        return self.files_of(Documents).metadata()

    def metadata_location(self, document: TableMetadata) -> str:
        """Where clients find the document as a file."""
        return self.table.virtual_location(self.table.names.document(document))

    def materialize(self, document: TableMetadata, *, is_committed: bool = False) -> list[str]:
        """With the delivery `materialize`, put the missing ones of the document and all files to
        which it refers into the bucket. Returns the keys of these objects; with another delivery
        none.

        Args:
            is_committed: as `BucketFiles.ensure`.

        Raises:
            ServiceUnavailable: it takes longer than one request may, or the bucket does not answer.
            Misconfigured: the role may not list the bucket.
        """
        bucket = self.table.context.bucket
        if bucket is not None:
            # A list is known by DuckLake's id, which is the sequence number.
            ids = dict.fromkeys(snapshot.sequence_number for snapshot in document.snapshots)
            names = self.table.names
            expired = [names.expired_list(s.sequence_number) for s in document.summaries]
            files = BucketFiles(bucket, self, document, [*self.lists(ids).values()], expired)
            return files.ensure(is_committed=is_committed)
        return []

    def build_soon(self, document: TableMetadata) -> None:
        """Build the newest manifest list, if the host does so before it is asked for: the next
        commit of the same client begins with it. The transaction may have ended."""
        build_soon, snapshots = self.table.context.build_soon, document.snapshots
        if build_soon is not None and snapshots:
            [name] = self.lists([snapshots[-1].sequence_number]).values()
            build_soon(self.table.key(name))

    def live_rows(self) -> LiveRows:
        """The live rows of the table."""
        return LiveRows(self.table, self.files_of(InlinedRows))

    def scan_files(self) -> ScanFiles:
        """The files of the table for scans that this server plans."""
        # A plan names files before they are built, unless they have to be in the bucket first.
        generated = PaddedFiles if self.table.context.bucket is None else ListedFiles
        return ScanFiles(self.table, generated(self))

    def list_body(self, snapshot_id: int) -> bytes:
        """The manifest list of a listed snapshot, from the cache or built.

        Raises: as `FileKind.build`.
        """
        [name] = self.lists([snapshot_id]).values()
        return self.body(name)

    def body_at(self, location: str) -> bytes | None:
        """The bytes of the virtual file at a location; None if this table has no such file.

        Raises: as `FileKind.build`.
        """
        name = self.name_at(location)
        return self.body(name) if name else None

    def name_at(self, location: str) -> Name | None:
        """The name of the virtual file at a location; None if it is not one of this table.

        Raises:
            NoSuchKey: the location is below that of virtual files, but is no virtual file's name.
        """
        prefix = self.table.context.virtual_location
        if not location.startswith(f"{prefix}/"):
            return None
        virtual_prefix = self.table.context.settings.virtual_prefix
        name = parse(virtual_prefix + location.removeprefix(prefix), virtual_prefix)
        return name if name.table_uuid == self.history.table.table_uuid else None

    def own_files(self, locations: Iterable[str]) -> dict[str, ShownFile]:
        """The lake's own data files behind those that clients get with more columns, by location.

        Other files are absent.

        Args:
            locations: where clients find files of the table, or claim to.
        """
        ids: dict[str, int] = {}
        for location in locations:
            with suppress(NoSuchKey):
                name = self.name_at(location)
                if name is not None and name.kind == DATA_FILE:
                    ids[location] = name.numbers[1]
        if not ids:
            return {}
        of_table = self.history.lake, self.history.table.table_id, [*set(ids.values())]
        files = queries.data_files_of(*of_table).run(self.table.con)
        own = {file.data_file_id: self.table.shown_itself(file) for file in files}
        return {location: own[id_] for location, id_ in ids.items() if id_ in own}

    def lists(self, snapshot_ids: Iterable[int]) -> dict[int, Name]:
        """The manifest lists of snapshots, by snapshot id.

        Args:
            snapshot_ids: in ascending order.
        """
        return {
            snapshot_id: self.table.names.manifest_list(snapshot_id, state)
            for snapshot_id, state in states(self.history.events, snapshot_ids)
        }

    def manifests(self, snapshot_id: int) -> list[Manifest]:
        """The manifests in the list of a snapshot; some may prove to be empty."""
        return manifests_at(self.table, snapshot_id)

    def manifest(self, name: Name) -> Manifest:
        """One of the results of `manifests`, by its name."""
        return self.table.names.manifest(name)

    def cache_manifests(self, manifests: Iterable[Manifest]) -> None:
        """Build and cache the manifests that are not cached yet; they are read together.

        Raises:
            ServiceUnavailable: it takes longer than one request may.
            Refused: one of them cannot be built exactly.
        """
        cache_manifests(self, manifests)

    def cache_list(self, name: Name, manifests: Sequence[Manifest]) -> None:
        """Build and cache the manifest list of these manifests. Raises: as `cache_manifests`."""
        self.put(name, self.files_of(ManifestLists).bytes_of(name.snapshot_id, manifests))

    def cache_document(self, document: TableMetadata) -> None:
        """Cache the metadata document as a file. Raises: as `metadata`."""
        self.body(self.table.names.document(document))


NOT_HIDDEN = (
    "the table is not served to you: the authorization policy hides columns of it, which only "
    "`polynya serve` does, with --tokens or --oidc-issuer, the delivery object-lambda, and without "
    "--sts-role"
)

FEW_FILES = 1_000
"""PostgreSQL finds the rows about this many files by index in less time than it plans a
statement."""


class VirtualFiles:
    """The virtual files of one lake."""

    def __init__(
        self,
        config: Config,
        database: Database,
        cache: FileCache,
        object_reader: ObjectReader,
        build_elsewhere: BuildElsewhere | None = None,
        run_soon: RunSoon | None = None,
    ) -> None:
        """Nothing is read before it is needed.

        Args:
            object_reader: reads the lake's own files.
            build_elsewhere: for large files; None: they are built in this process.
            run_soon: for files that will be asked for soon; None: they are built when they are
                read.
        """
        self._prefix = config.files.virtual_prefix
        self.database = database
        self._cache = cache
        self._run_soon = run_soon
        # With the delivery `materialize` a commit puts its files itself.
        build_soon = self._build_soon if run_soon and cache.bucket is None else None
        self._context = build_context(config, cache, object_reader, build_elsewhere, build_soon)
        self._check_data_path = config.check_data_path
        self._small_tables: set[int] = set()  # the ids of tables

    @property
    def location(self) -> str:
        """The location below which all virtual files are."""
        return self._context.virtual_location

    @property
    def object_reader(self) -> ObjectReader:
        """Reads the lake's own files."""
        return self._context.object_reader

    def are_put(self, keys: Sequence[str]) -> bool:
        """Whether the files of a table that `materialize` has put are in the bucket, and none has
        to be renewed; with another delivery there are no keys.

        Raises:
            ServiceUnavailable: the bucket does not answer.
        """
        context = self._context
        if context.bucket is None or not keys:
            return True
        return are_put(context.bucket, keys, context.renew_seconds)

    def read(self, key: str) -> bytes:
        """The bytes of a virtual file, which never change.

        Raises:
            NoSuchKey: the key names no virtual file, or its rows in the catalog were rewritten.
            Refused: the lake, the table or this file cannot be served exactly.
            ServiceUnavailable: the database or S3 does not answer.
        """
        name = parse(key, self._prefix)
        return self._cache.get_or_build(key, lambda: self._build(name))

    def _build_soon(self, key: str) -> None:
        def build() -> None:
            with suppress(PolynyaError):  # a later reader of the file gets the error
                self.read(key)

        if self._run_soon is not None:
            self._run_soon(build)

    def build(self, key: str) -> bytes:
        """The bytes of a virtual file, for the process that has the lease of it. Those to which it
        refers are cached. Raises: as `read`."""
        return self._build(parse(key, self._prefix))

    def table_files(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        snapshot_id: int,
        since: int = 0,
        limit: int | None = None,
        *,
        audience: Audience = EVERYBODY,
    ) -> VirtualTable:
        """Read the history of a table as of a snapshot.

        Args:
            since: the first snapshot whose files are needed; 0: as many as are listed.
            limit: without `since`, how many of the newest snapshots; None: as many as are listed.

        Raises:
            Refused: the table's own rows in the catalog are broken.
            HiddenFromCaller: this host cannot keep columns from callers.
        """
        check_rows(schema, table)
        hidden = self._hidden(audience.hidden_ids)
        whole = limit or self._context.settings.client_snapshot_limit
        if since and self._has_since(lake, (schema, table, snapshot_id, 0, whole), since):
            since = 0
        limit = None if since else whole
        states, sums = self._context.states, ("file sums", lake.definitions, table.table_id, limit)

        def read() -> TableHistory:
            arguments = con, lake, schema, table, snapshot_id
            if since:
                return history.read(*arguments, since=since)
            return history.read(*arguments, limit=limit, earlier=states.earlier(lake, sums))

        self.plan_statements(con, lake, [table.table_id])
        try:
            rows = states.get_or_read(lake, (schema, table, snapshot_id, since, limit), read)
        except Exception:
            # The table may have grown, so that the plan took too long: the next try has another.
            self._small_tables.discard(table.table_id)
            raise
        self._count_files(table.table_id, rows.file_sums.groups.files)
        self.plan_statements(con, lake, [table.table_id])
        if not since and rows.file_sums.can_grow:
            states.keep(lake, sums, rows.file_sums)
        shown_to = audience.shows_version_3, audience.clients, hidden
        return VirtualTable(con, rows, self._context, *shown_to)

    def _hidden(self, column_ids: tuple[int, ...]) -> Hidden | None:
        names_key = self._context.settings.names_key
        if column_ids and (not names_key or self._context.bucket is not None):
            raise HiddenFromCaller(NOT_HIDDEN)
        return Hidden(column_ids, names_key) if column_ids else None

    def plan_statements(self, con: Connection, lake: Lake, table_ids: Iterable[int]) -> None:
        """Choose how PostgreSQL plans the statements about these tables, by their size."""
        if not lake.is_small:
            plan_by_index(con, self._small_tables.issuperset(table_ids))

    def _count_files(self, table_id: int, files: int) -> None:
        """Remember whether a table is small."""
        if files <= FEW_FILES:
            self._small_tables.add(table_id)
        else:
            self._small_tables.discard(table_id)

    def _has_since(self, lake: Lake, key: Hashable, since: int) -> bool:
        """Whether a history was read in this state that begins no later than at a snapshot."""
        rows: TableHistory | None = self._context.states.current(lake, key)
        return rows is not None and rows.since <= since

    @retried
    def _build(self, name: Name) -> bytes:
        with self.database.transaction() as con:
            return self._build_within(con, name)

    def _build_within(self, con: Connection, name: Name) -> bytes:
        with keeping_prepared(con):
            lake, schema_and_table = run_batched(
                con, queries.lake(), queries.table_of_uuid(name.table_uuid)
            )
        check_lake(lake)
        self.database.keep_prepared(lake.is_small)
        self._check_data_path(lake.data_path)
        if schema_and_table is None:
            raise NoSuchKey("the catalog holds no such table")
        schema, table = schema_and_table
        if not table.begin_snapshot <= name.snapshot_id <= lake.snapshot_id:
            raise NoSuchKey("the catalog holds no such snapshot of the table")
        # A document lists as many snapshots as the settings say, any other file needs its own.
        since = 0 if name.kind in DOCUMENTS else name.snapshot_id
        failure = NoSuchKey("the catalog holds no such file")
        for snapshot_id in _build_snapshots(name, lake, table):
            try:
                files = self.table_files(
                    *(con, lake, schema, table, snapshot_id, since),
                    audience=Audience(name.shows_version_3, name.clients, name.hidden_ids),
                )
                return files.kinds[name.kind].build(name)
            except NoSuchKey as error:
                failure = error
        raise failure


def _build_snapshots(name: Name, lake: Lake, table: Table) -> list[int]:
    """The snapshots as of which a file may have been named, the likeliest first."""
    # The newest one, because partition specs depend on the columns of the newest schema; for a
    # reader that is pinned to an older snapshot, that one.
    newest = lake.snapshot_id if table.end_snapshot is None else table.end_snapshot - 1
    snapshot_ids = [newest, name.snapshot_id]
    if name.kind in DOCUMENTS:
        # The newest one also shows the changes of snapshots without a row, which have expired.
        snapshot_ids.reverse()
    return list(dict.fromkeys(snapshot_ids))
