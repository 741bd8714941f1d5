"""The context that virtual files of all tables share in a process, and the one of a table.

`BuildContext` has all from which files are built besides the rows of the catalog: the settings, the
cache, the last metadata documents, and the virtual files to which each virtual file refers.
`TableContext` follows from a table's history without a query.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.paths import file_location
from ..ducklake.queries.history import TableHistory
from ..ducklake.queries.new_rows import Earlier
from ..ducklake.rows.files import AssignedRowIds, DataFile, DeleteFile
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import CatalogState, Lake, Snapshot
from ..iceberg.table_metadata import TableMetadata, lineage_fields
from ..iceberg.types import Field
from ..mapping import adaptations, properties
from ..mapping.adaptations import Adaptations, AddedFiles, ShownFile
from ..mapping.hidden_columns import Hidden
from ..mapping.misread_columns import (
    lacks_vectors,
    may_be_large,
    misread,
    misreads_partitions,
    scales,
)
from ..mapping.name_mappings import Mappings, column_ids, mappings, unnamed_fields
from ..mapping.partitions import Partitions, client_specs, partitions
from ..mapping.schemas import (
    Schemas,
    Visibility,
    Withheld,
    needs_version_3,
    oldest_defaults,
    schemas,
    withheld_in_added_files,
)
from ..mapping.snapshots import SnapshotIds
from ..mapping.tables import shown_until
from ..runtime.errors import Refused
from ..runtime.settings import Config, FileSettings, chosen
from ..storage.bucket_store import DeliveryBucket
from ..storage.file_cache import Cache, FileCache
from ..storage.objects import ObjectReader
from .added_file_columns import converted_in_added_files
from .names import Name, ShownTable, VirtualFileNames
from .variants import Variants

NO_VALUE_OF_PATH = (
    "an added file cannot get the columns that are in its path, and the named clients misread "
    "partitions: ask for the lake without these clients"
)

CAPACITY = 200_000
"""The number of keys in a `ReferenceCache`; they take some 40 MB."""


class ReferenceCache:
    """The keys of the virtual files to which a file refers, by its key."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """`capacity`: the number of keys, referring and referred to."""
        self._keys: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._capacity = capacity
        self._size = 0
        self._lock = Lock()

    def get(self, key: str) -> tuple[str, ...] | None:
        """The keys to which a file refers; None if its bytes have not been read."""
        with self._lock:
            keys = self._keys.get(key)
            if keys is not None:
                self._keys.move_to_end(key)
            return keys

    def put(self, key: str, keys: Iterable[str]) -> None:
        """Remember to which keys a file refers."""
        keys = tuple(keys)
        with self._lock:
            before = self._keys.pop(key, None)
            self._size += len(keys) - (-1 if before is None else len(before))
            self._keys[key] = keys

    def trim(self) -> None:
        """Drop the least recently used keys beyond the capacity.

        It is called after an answer, not in `put`: an answer may need more keys than that.
        """
        with self._lock:
            while self._size > self._capacity:
                self._size -= 1 + len(self._keys.popitem(last=False)[1])


DOCUMENTS = 8
"""How many documents a process keeps; one of a thousand snapshots takes some megabytes."""

PART_OF_A_LAKE = 8
"""Each of several lakes keeps this part of the documents, the keys and the results."""
READS = 2 * DOCUMENTS
"""How many results of `StateCache` a process keeps."""

Result = TypeVar("Result")


class StateCache:
    """Results of the last requests, for requests that see the same or a later state."""

    def __init__(self, capacity: int = READS) -> None:
        """`capacity`: the number of results."""
        self._capacity = capacity
        self._results: OrderedDict[Hashable, tuple[CatalogState, int, Any]] = OrderedDict()
        self._lock = Lock()

    def get_or_read(self, lake: Lake, key: Hashable, read: Callable[[], Result]) -> Result:
        """The result of `read`, now or in a transaction that saw the same state as this one.

        Args:
            lake: as this transaction sees it.
            key: names the result, with everything on which it depends besides the state.
        """
        if lake.state is None:
            return read()
        result: Result | None = self.current(lake, key)
        result = read() if result is None else result
        self._put(lake.state, lake.snapshot_id, key, result)
        return result

    def current(self, lake: Lake, key: Hashable) -> Any:
        """The result under a key in the same state; None: there is none."""
        # The snapshot is compared too, so that no commit is missed on a server that only resembles
        # PostgreSQL.
        state = lake.state, lake.snapshot_id
        *read_in, result = self._results.get(key, (None, None))
        return result if lake.state is not None and tuple(read_in) == state else None

    def earlier(self, lake: Lake, key: Hashable) -> Earlier[Any] | None:
        """The last result under a key, if it is known which transactions have written since."""
        state, _, result = self._results.get(key, (None, None, None))
        if state is None or lake.state is None:
            return None
        transactions = lake.state.transactions_since(state)
        return None if transactions is None else Earlier(result, transactions)

    def keep(self, lake: Lake, key: Hashable, result: Any) -> None:
        """Keep a result of this transaction for `earlier`."""
        if lake.state is not None and lake.state.is_committed:
            self._put(lake.state, lake.snapshot_id, key, result)

    def _put(self, state: CatalogState, snapshot_id: int, key: Hashable, result: Any) -> None:
        with self._lock:
            self._results.pop(key, None)  # the newest is the last
            self._results[key] = state, snapshot_id, result
            if len(self._results) > self._capacity:
                self._results.popitem(last=False)


class RowIds(NamedTuple):
    """The row ids of a table, by the catalog."""

    assigned: Sequence[AssignedRowIds]
    next_row_id: int


class Source(NamedTuple):
    """The values from which a document is built, except the current time."""

    history: TableHistory
    schemas: Schemas
    unservable: Sequence[UnservableRange]
    row_ids: RowIds | None


class MetadataCache:
    """The last documents of each table, with what they were built from."""

    def __init__(self, capacity: int = DOCUMENTS) -> None:
        """`capacity`: the number of documents."""
        self._capacity = capacity
        self._documents: OrderedDict[Hashable, tuple[Source, float, TableMetadata]] = OrderedDict()
        self._lock = Lock()

    def get_or_build(
        self,
        history: TableHistory,
        schemas: Schemas,
        unservable: Sequence[UnservableRange],
        build: Callable[[int], TableMetadata],
        row_ids: RowIds | None = None,
        clients: frozenset[str] | None = None,
        hidden_ids: tuple[int, ...] = (),
    ) -> TableMetadata:
        """The document of this history: the cached one, or a new one from `build`.

        Args:
            unservable: the snapshots that the document leaves out.
            build: builds the document, given the time in milliseconds since 1970.
            row_ids: of a table of format version 3.
            clients, hidden_ids: as in `TableContext`.
        """
        now_ms = int(time.time() * 1000)
        until_ms = same_until(history, now_ms)
        if until_ms <= now_ms:
            return build(now_ms)
        # A document does not depend on the lake's newest snapshot.
        table_history = replace(history, lake=replace(history.lake, snapshot_id=0), snapshot_id=0)
        source = Source(table_history, schemas, unservable, row_ids)
        # One document for clients that see the columns which need version 3, and one for the
        # others.
        key = history.table.table_uuid, schemas.format_version > 2, clients, hidden_ids
        cached, cached_until_ms, document = self._documents.get(key, (None, 0.0, None))
        if document is None or cached != source or cached_until_ms <= now_ms:
            document = build(now_ms)
        with self._lock:
            self._documents[key] = source, until_ms, document
            self._documents.move_to_end(key)
            if len(self._documents) > self._capacity:
                self._documents.popitem(last=False)
        return document


def same_until(history: TableHistory, now_ms: float) -> float:
    """Until when the document of now depends on the catalog alone, in milliseconds since 1970."""
    # The document has the current time in place of future ones.
    if any(_milliseconds(snapshot) > now_ms for snapshot in history.snapshots):
        return now_ms
    return shown_until(history.tags, now_ms)


def _milliseconds(snapshot: Snapshot) -> float:
    return snapshot.snapshot_time.timestamp() * 1000


BuildElsewhere = Callable[[str], object]
"""Builds the file of a key in another process, and puts the files to which it refers into the same
store."""

RunSoon = Callable[[Callable[[], object]], object]
"""Runs a function beside the request, or not at all if there is too much to do."""


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The context of the files of all tables of a lake. It is made once in a process."""

    settings: FileSettings
    location: Callable[[str], str]
    """Where clients find a virtual file, by its key."""
    cache: Cache
    object_reader: ObjectReader
    bucket: DeliveryBucket | None = None
    """The bucket that clients read, with the delivery `materialize`."""
    staging_location: str | None = None
    """The setting: where clients put the files of a commit. None: they may not write."""
    renew_seconds: float = math.inf
    """Older objects of the bucket are renewed, before a lifecycle rule removes them."""
    build_elsewhere: BuildElsewhere | None = None
    """None: every file is built in this process."""
    build_soon: Callable[[str], object] | None = None
    """Builds the file of a key that will be asked for soon; None: it is built when it is read."""
    generates_when_read: bool = False
    """Clients get every virtual file that has a name, not only those that were put into a store."""
    documents: MetadataCache = field(default_factory=MetadataCache)
    references: ReferenceCache = field(default_factory=ReferenceCache)
    states: StateCache = field(default_factory=StateCache)

    @property
    def virtual_location(self) -> str:
        """The location below which all virtual files are."""
        return self.location(self.settings.virtual_prefix)

    @property
    def is_served(self) -> properties.IsServed:
        """Which properties a table has under their own names.

        Raises:
            Misconfigured: the setting CUSTOM_PROPERTIES is wrong.
        """
        return properties.table_properties(self.settings.custom_properties)


def build_context(
    config: Config,
    cache: FileCache,
    object_reader: ObjectReader,
    build_elsewhere: BuildElsewhere | None = None,
    build_soon: Callable[[str], object] | None = None,
) -> BuildContext:
    """The context of a lake in a function."""
    part = PART_OF_A_LAKE if config.lake else 1
    context = BuildContext(
        settings=config.files,
        location=config.storage.location,
        cache=cache,
        object_reader=object_reader,
        bucket=cache.bucket,
        renew_seconds=config.storage.ttl_seconds,
        staging_location=config.staging_location if config.writes else None,
        build_elsewhere=build_elsewhere,
        build_soon=build_soon,
        generates_when_read=cache.bucket is None,
        documents=MetadataCache(DOCUMENTS // part),
        references=ReferenceCache(CAPACITY // part),
        states=StateCache(READS // part),
    )
    _ = context.is_served  # a wrong setting is found before the first table that has properties
    return context


class Audience(NamedTuple):
    """Who gets the files of a table, as far as others get other files."""

    shows_version_3: bool | None = None
    """Show columns that need format version 3; None: as the settings say."""
    clients: frozenset[str] | None = None
    """Make up for the faults of these; None: of those of the settings."""
    hidden_ids: tuple[int, ...] = ()
    """Columns of the top level that the caller does not see, by column_id, ascending."""


EVERYBODY = Audience()


@dataclass(frozen=True, slots=True)
class TableContext:
    """The context from which all files of a table are built, within one transaction."""

    con: Connection
    context: BuildContext
    history: TableHistory
    schemas: Schemas
    published: Schemas
    """The same, or without the defaults of columns that clients find in all files."""
    partitions: Partitions
    mappings: Mappings
    snapshot_ids: SnapshotIds
    names: VirtualFileNames
    prefix: str
    """The key prefix of the table's virtual files."""
    location: str
    """The same as a location, for clients."""
    shows_version_3: bool = False
    """It shows columns that need format version 3, which others do not see."""
    clients: frozenset[str] | None = None
    """The clients whose faults its files make up for, if others get other files."""
    hidden_ids: tuple[int, ...] = ()
    """The columns that the caller does not see, by column_id; the history does not have them."""
    converted: frozenset[int] = frozenset()
    """The columns that are hidden because added files have finer values."""
    has_vectors: bool = False
    """Deletes of a table of format version 3 are deletion vectors, and not the position deletes
    that it might have from before."""

    @property
    def format_version(self) -> int:
        """The format version of the table."""
        return self.published.format_version

    @property
    def has_row_ids(self) -> bool:
        """Whether clients know the ids of rows."""
        return self.format_version >= 3

    @property
    def variants(self) -> Variants:
        """The columns of variants."""
        context = self.context
        return Variants(self.con, self.history, context.cache, context.object_reader, self.prefix)

    def written(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The columns of a file of inlined rows: the fields, and in v3 those of row lineage."""
        return (*fields, *lineage_fields(fields)) if self.has_row_ids else fields

    def location_of(self, file: DataFile | DeleteFile) -> str:
        """The location of one of the lake's own files."""
        history = self.history
        return file_location(history.lake, history.schema, history.table, file)

    def needs_path(self, file: DataFile) -> bool:
        """Whether the path of a data file has values that clients find nowhere else, if the file is
        not adapted."""
        in_path = self.partitions.in_path.get(file.mapping_id)
        return bool(in_path) and self.partitions.are_left_out

    def shown_file(self, file: DataFile, snapshot_id: int) -> ShownFile:
        """Where clients find a data file when they read a snapshot.

        Raises:
            Refused: the file cannot be changed for them, and they may not get it as it is.
        """
        name = self.names.data_file(file, snapshot_id)
        if name is None:
            if self.needs_path(file):
                raise Refused(NO_VALUE_OF_PATH)
            return self.shown_itself(file)
        return self.shown_as(name)

    def shown_as(self, name: Name) -> ShownFile:
        """Where clients find a data file that has more columns for them."""
        return ShownFile(self.virtual_location(name), name.numbers[0], name.snapshot_id)

    def shown_itself(self, file: DataFile) -> ShownFile:
        """The lake's own file. Raises: as `shown_file`."""
        if self.hidden_ids:
            raise Refused("a data file would be shown as it is, with columns that are hidden")
        return ShownFile(self.location_of(file), file.file_size_bytes, file.begin_snapshot)

    def key(self, name: Name) -> str:
        """The key of a virtual file."""
        return name.key(self.context.settings.virtual_prefix)

    def virtual_location(self, name: Name) -> str:
        """The location of a virtual file, for clients."""
        return self.context.location(self.key(name))


def _schemas(
    con: Connection,
    history: TableHistory,
    context: BuildContext,
    prefix: str,
    shows_version_3: bool | None,
    converted: Withheld,
    clients: frozenset[str],
) -> tuple[Schemas, bool]:
    """The schemas of a table, and whether they have columns that others do not see."""
    table, settings = history.table, context.settings
    named = chosen(clients)
    is_registered = properties.is_registered(history.tags)
    # There may be a mapping for each added file.
    in_added_files = column_ids(history.mapped_names) if named else set[frozenset[int]]()
    all_added = frozenset[int]().union(*in_added_files)
    unsigned = may_be_large(history.columns, named, all_added)
    large = queries.files_from_2_31(history.lake, table.table_id, unsigned)
    decimals = scales(history.columns, named, all_added)
    rescaled = queries.added_files_of_other_scale(history.lake, table.table_id, decimals)
    if is_registered:
        in_added_files.add(frozenset())
    values = large.run(con), rescaled.run(con)
    of_clients = misread(history.columns, named, *values, in_added_files) if named else {}
    lacks_any = bool(history.mapped_names) or is_registered
    oldest = {} if lacks_any else oldest_defaults(history.columns, table.begin_snapshot)
    lacking = queries.lacking_files(history.lake, table.table_id, oldest).run(con)

    def columns(withheld: Withheld | None) -> Schemas:
        """The schemas, which have write defaults only if the table has version 3 anyway."""
        visibility = Visibility(settings.hidden_types, withheld, converted, of_clients)
        without = _columns(visibility)
        if without.format_version < 3 or all(c.default_value is None for c in history.columns):
            return without
        return _columns(visibility._replace(shows_write_defaults=True))

    def _columns(visibility: Visibility) -> Schemas:
        return schemas(
            history.columns,
            table.begin_snapshot,
            history.snapshot_id,
            visibility,
            least_version=properties.least_version(history.tags),
            may_lack=None if lacks_any else lacking,
            first_added_file=history.partitioning.first_added_file,
            identifiers=history.identifiers,
            required_later=properties.required_columns(history.tags),
        )

    def is_refused(of: Schemas) -> bool:
        refuses_hidden = settings.inexact_columns == "refuse"
        return of.is_refused_at(history.snapshot_id, refuses_hidden=refuses_hidden)

    without = columns(None)
    if shows_version_3 is None:
        when = settings.format_version_3
        shows_version_3 = when == "always-shown" or without.least_version > 2
        # The programs that wrote the files are looked up only if they matter.
        if_needed = when == "when-needed" and not shows_version_3 and is_refused(without)
    else:
        if_needed = False
    if not (shows_version_3 or if_needed) or not needs_version_3(history.columns):
        return without, False
    variants = Variants(con, history, context.cache, context.object_reader, prefix)
    of_added = withheld_in_added_files(history.columns, history.mapped_names, table.begin_snapshot)
    every = columns(variants.withheld() | of_added)
    # Without any column the table is refused, and `every` has the reason.
    helps = (
        not if_needed or not is_refused(every) or not every.schema_at(history.snapshot_id).fields
    )
    return (every, True) if helps and every != without else (without, False)


def table_context(
    con: Connection,
    history: TableHistory,
    context: BuildContext,
    shows_version_3: bool | None = None,
    clients: frozenset[str] | None = None,
    hidden: Hidden | None = None,
) -> TableContext:
    """The context of a table; no query is made, unless columns of variants are to be shown, files
    with a TIME were added, a column has had a default since the table began, or a client is named
    that misreads large unsigned integers, or decimals of added files.

    Args:
        shows_version_3: show columns that need format version 3; None: as the settings say.
        clients: make up for the faults of these; None: of those of the settings.
        hidden: columns that the caller does not see, and the history does not have.
    """
    table, settings = history.table, context.settings
    prefix = f"{settings.virtual_prefix}/{table.table_uuid}"
    table_location = context.location(prefix)
    lists = {column.column_id for column in history.columns if column.column_type == "list"}
    of_files = mappings(history.mapped_names, lists)
    converted = converted_in_added_files(
        con, history, of_files, prefix, context.cache, context.object_reader
    )
    specs, ids = client_specs(history.tags), SnapshotIds(history.chosen_ids)
    of_files = replace(of_files, unnamed=unnamed_fields(of_files.table_paths, history.columns))

    def shown_to(of: frozenset[str]) -> ShownTable:
        own = (con, history, context, prefix, shows_version_3, converted)
        shown, is_marked = _schemas(*own, of)
        are_misread = partial(misreads_partitions, chosen(of))
        columns = history.partitioning, shown, history.snapshot_id, specs
        parts = partitions(*columns, are_misread)
        added = AddedFiles(of_files, parts.in_path)
        adapted = None
        if of & adaptations.ANY or hidden:
            adapted = Adaptations(shown, history.columns, of, added, hidden)
        without_vectors = lacks_vectors(chosen(of))
        published = shown.without_defaults() if without_vectors else shown
        published = published if published.format_version < 3 else shown
        has_vectors = published.format_version >= 3 and not without_vectors
        some = adapted if adapted and adapted.are_some else None
        return ShownTable(shown, published, has_vectors, is_marked, parts, some)

    shown = shown_to_all = shown_to(settings.clients)
    if clients is not None and clients != settings.clients:
        shown = shown_to(clients)
    # Files that only some clients get have names of their own.
    clients = None if shown == shown_to_all else clients
    return TableContext(
        con=con,
        context=context,
        history=history,
        schemas=shown.schemas,
        published=shown.published,
        partitions=shown.partitions,
        mappings=of_files,
        snapshot_ids=ids,
        names=VirtualFileNames(
            *(history, shown, ids, table_location, settings.chunk_files, clients), hidden
        ),
        prefix=prefix,
        location=table_location,
        shows_version_3=shown.shows_version_3,
        clients=clients,
        hidden_ids=hidden.column_ids if hidden else (),
        converted=frozenset(converted),
        has_vectors=shown.has_vectors,
    )
