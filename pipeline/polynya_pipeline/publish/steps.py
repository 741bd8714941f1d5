"""The steps of `publish`, each for one table at a time.

1. `select_tables`: which tables to publish.
2. `find_missing_lists`: which manifest lists are missing at the destination, or refer to missing
   manifests.
3. `plan_in_executor`, `plan_in_driver`: which manifests these lists refer to; executors query them
   if they can.
4. `build_in_executor`: builds the missing manifests, and the files that these refer to.
5. `copy_data_files`: lets S3 copy the data files that are changed for clients, if the settings say
   so.
6. `write_lists`: writes the missing lists, then the metadata document that refers to them.
7. `Registrar`: registers the tables in AWS's Glue catalog, and removes those that are gone.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.iceberg.avro.manifests import manifest_paths
from polynya.storage.s3_locations import is_s3
from polynya.virtual_files.adapted_data_files import AdaptedDataFiles
from polynya.virtual_files.manifests import DataManifests
from polynya.virtual_files.names import GENERATOR, Manifest, Name, parse
from polynya.virtual_files.virtual_files import VirtualTable

from ..common import storage
from ..common.errors import BadInput, Conflict, Unavailable
from ..common.text_values import TableName
from .destinations import PublishSettings
from .glue import GlueDatabase, NotOurs, Registration
from .table import PublishedTable
from .tasks import Answer, Part, Task, run_parts

Selected = tuple[Schema, Table]


def select_tables(
    con: Connection, lake: Lake, tables: Iterable[TableName], namespaces: Iterable[str]
) -> list[Selected]:
    """The tables with these names and in these namespaces, each once; without both, all tables.

    Raises:
        BadInput: a table or a namespace does not exist.
    """
    tables, namespaces = list(tables), list(namespaces)
    schemas = select_schemas(con, lake, namespaces) if namespaces or not tables else []
    selected: dict[int, Selected] = {}
    for schema in schemas:
        for table in queries.tables_at(lake.snapshot_id, schema.schema_id).run(con):
            selected[table.table_id] = (schema, table)
    for name in tables:
        table_at = queries.table_at(lake.snapshot_id, name.namespace, name.table_name)
        schema_and_table = table_at.run(con)
        if schema_and_table is None:
            raise BadInput(f"no table {name}")
        selected[schema_and_table[1].table_id] = schema_and_table
    return list(selected.values())


def select_schemas(con: Connection, lake: Lake, namespaces: Sequence[str]) -> list[Schema]:
    """The schemas with these names, as people write them; without names, all schemas.

    Raises:
        BadInput: a namespace does not exist.
    """
    schemas = queries.schemas_at(lake.snapshot_id).run(con)
    if not namespaces:
        return schemas
    by_name = {schema.full_name: schema for schema in schemas}
    if not any(schema.parents for schema in schemas):  # no dot can be one between levels
        by_name |= {schema.schema_name: schema for schema in schemas}
    if missing := next((name for name in namespaces if name not in by_name), None):
        raise BadInput(f"no namespace {missing}")
    return [by_name[name] for name in namespaces]


def plan_parts(number: int, table: PublishedTable) -> Iterator[Part]:
    """The work of executors for a table.

    Args:
        number: the position of the table among those that are published together.
    """
    if table.incomplete:
        yield Part(number, table.destination, table.history, tuple(table.incomplete))


def plan_in_executor(task: Task) -> list[Answer]:
    """The keys of the manifests of each snapshot.

    Returns:
        Nothing if the executor cannot read the driver's snapshot of PostgreSQL.
    """
    return run_parts(task, _keys)


def _keys(con: Connection, is_shared: bool, part: Part) -> list[Any]:
    # The rows may be newer than the driver's, which then queries itself.
    if not is_shared:
        return []
    destination = part.destination
    files = VirtualTable(con, part.history, destination.build_context(destination.files()))
    prefix = destination.settings.virtual_prefix
    return [
        [snapshot_id, [manifest.name.key(prefix) for manifest in files.manifests(snapshot_id)]]
        for snapshot_id in part.snapshot_ids
    ]


def record_plans(table: PublishedTable, answer: Iterable[Sequence[Any]]) -> None:
    """Record the keys that an executor found."""
    prefix = table.destination.settings.virtual_prefix
    for snapshot_id, keys in answer:
        names = [parse(key, prefix) for key in keys]
        table.plans[snapshot_id] = [table.files.manifest(name) for name in names]


def plan_in_driver(table: PublishedTable) -> None:
    """Query the manifests of the snapshots that no executor found.

    Raises:
        Refused, NoSuchKey: the table cannot be served.
    """
    for snapshot_id in table.incomplete:
        if snapshot_id not in table.plans:
            table.plans[snapshot_id] = table.files.manifests(snapshot_id)


def build_parts(number: int, table: PublishedTable) -> Iterator[Part]:
    """The work of executors for a table; records how many manifests are missing.

    Args:
        number: the position of the table among those that are published together.
    """
    for snapshot_id, manifests in _missing_manifests(table).items():
        keys = tuple(table.key(manifest.name) for manifest in manifests)
        yield Part(number, table.destination, table.history, (snapshot_id,), keys)


def _missing_manifests(table: PublishedTable) -> dict[int, list[Manifest]]:
    """The missing manifests, each once, by the newest snapshot whose list refers to it."""
    newest: dict[Manifest, int] = {}
    for snapshot_id in sorted(table.plans, reverse=True):
        for manifest in table.plans[snapshot_id]:
            newest.setdefault(manifest, snapshot_id)
    names = set(table.files.missing(manifest.name for manifest in newest))
    result = table.result
    result.manifests_built = len(names)
    result.manifests_existing = max(result.manifests_existing, len(newest) - len(names))
    missing: dict[int, list[Manifest]] = {}
    for manifest, snapshot_id in newest.items():
        if manifest.name in names:
            missing.setdefault(snapshot_id, []).append(manifest)
    return missing


def build_in_executor(task: Task) -> list[Answer]:
    """The number and the bytes of the files that were written, for each part."""
    return run_parts(task, _build)


def _build(con: Connection, is_shared: bool, part: Part) -> list[int]:
    destination = part.destination
    store = destination.files()
    # Rows that are newer than the driver's may include partial files.
    history = part.history if is_shared else replace(part.history, has_partial=True)
    files = VirtualTable(con, history, destination.build_context(store))
    prefix = destination.settings.virtual_prefix
    manifests = [files.manifest(parse(key, prefix)) for key in part.keys]
    if not is_shared:
        # Only manifests that these rows give too; the driver builds the others.
        (snapshot_id,) = part.snapshot_ids
        current = set(files.manifests(snapshot_id))
        manifests = [manifest for manifest in manifests if manifest in current]
    files.cache_manifests(manifests)
    return [store.written, store.bytes_written]


def find_missing_lists(table: PublishedTable) -> None:
    """Record the incomplete snapshots of a table.

    Raises:
        Refused: the table cannot be served.
        NoSuchKey: a file that the table needs does not exist.
        Unavailable: the destination cannot be read.
    """
    bodies = table.store.get_many([table.key(name) for name in table.lists.values()])
    listed = {
        snapshot_id: [_name(table, path) for path in manifest_paths(body)]
        for snapshot_id, body in zip(table.lists, bodies, strict=True)
        if body is not None
    }
    manifests = list(dict.fromkeys(name for names in listed.values() for name in names))
    table.listed = manifests
    missing = set(table.files.missing(manifests))
    table.incomplete = [
        snapshot_id
        for snapshot_id in table.lists
        if snapshot_id not in listed or not missing.isdisjoint(listed[snapshot_id])
    ]
    result = table.result
    result.snapshots = len(table.lists)
    result.manifests_existing = len(manifests) - len(missing)
    result.lists_built = len(table.incomplete)
    result.lists_existing = len(table.lists) - len(table.incomplete)


def _name(table: PublishedTable, location: str) -> Name:
    """The name of a manifest, from its location in a list."""
    prefix = table.destination.settings.virtual_prefix
    file_name = location.rpartition("/")[2]
    return parse(f"{prefix}/{table.history.table.table_uuid}/{GENERATOR}/{file_name}", prefix)


MANIFESTS_AT_ONCE = 16


def copy_data_files(table: PublishedTable) -> None:
    """Copy the data files of all manifests that are changed for clients and not in the bucket that
    clients read.

    Raises:
        Refused: a file cannot be changed.
        Misconfigured, ServiceUnavailable: S3 does not copy them.
    """
    copies, manifests = table.files.files_of(AdaptedDataFiles), table.files.files_of(DataManifests)
    referring = [n for n in table.manifests if n.kind == manifests.kind and manifests.may_refer(n)]
    for start in range(0, len(referring), MANIFESTS_AT_ONCE):
        keys = [table.key(name) for name in referring[start : start + MANIFESTS_AT_ONCE]]
        bodies = filter(None, table.store.get_many(keys))
        locations = [location for body in bodies for location in manifests.paths(body)]
        names = dict.fromkeys(map(table.files.name_at, locations))
        copies.copy_missing([name for name in names if name is not None])


HINT = "version-hint.text"
MOST_AHEAD = 1000
"""How many documents may be newer than the hint: runs that were interrupted left them."""


@dataclass(frozen=True, slots=True)
class ExportPointer:
    """Points to the newest metadata document of an exported table, as in Iceberg's Hadoop tables.

    `version-hint.text` contains the N of `v<N>.metadata.json`. A reader that finds v<N+1> uses that
    one. So a document is written once, after everything it refers to, and the hint after it.
    """

    directory: str
    """The folder of the exported table."""

    def move(self, document: bytes) -> tuple[bool, str]:
        """Make this document the newest one, unless the newest one is of a newer snapshot.

        Returns:
            Whether the document is new, and the location of the newest document.

        Raises:
            BadInput: the newest document is that of another table.
            Conflict: another export of the table was faster.
            Unavailable: the directory cannot be read or written.
        """
        version = self.version()
        newest = storage.read_file(self._document(version)) if version else None
        is_new = newest != document
        if newest and self._is_ahead(newest, document):
            is_new = False  # a run that has read a newer snapshot of the lake was faster
        if is_new:
            version += 1
            # Never replaced: catalogs may have registered the existing document.
            if not storage.create(self._document(version), document):
                raise Conflict(
                    f"another run has exported to {self.directory} in the meantime; run again"
                )
        # After the document, which readers of the hint open; also if an interrupted run has written
        # only the document.
        hint = str(version).encode()
        if storage.read_file(self._hint) != hint:
            storage.replace(self._hint, hint)
        return is_new, self._document(version)

    def _is_ahead(self, newest: bytes, document: bytes) -> bool:
        """Whether the newest document has a higher sequence number than ours."""
        theirs, ours = json.loads(newest), json.loads(document)
        if theirs.get("table-uuid") != ours["table-uuid"]:
            raise BadInput(
                f"{self.directory} holds another table, perhaps of the same name: export to "
                "another directory, or remove it"
            )
        return bool(theirs["last-sequence-number"] > ours["last-sequence-number"])

    def version(self) -> int:
        """The version of the newest document; 0: there is none."""
        hint = storage.read_file(self._hint) or b"0"
        try:
            version = int(hint)
        except ValueError:
            raise Unavailable(f"{self._hint} contains no number") from None
        for ahead in range(version + 1, version + MOST_AHEAD):
            if storage.file_size(self._document(ahead)) is None:
                return ahead - 1
        raise Unavailable(f"{self._hint} is more than {MOST_AHEAD} versions old")

    @property
    def _hint(self) -> str:
        return f"{self.directory}/metadata/{HINT}"

    def _document(self, version: int) -> str:
        return f"{self.directory}/metadata/v{version}.metadata.json"


def write_lists(table: PublishedTable) -> None:
    """Write lists, then the metadata document; builds manifests that no executor has built.

    Raises:
        Refused, NoSuchKey: the table cannot be served.
        Conflict: another export of the table was faster.
        Unavailable: the destination cannot be written.
    """
    for snapshot_id in sorted(table.plans):
        table.files.cache_list(table.lists[snapshot_id], table.plans[snapshot_id])
    if table.destination.is_export:
        pointer = ExportPointer(table.destination.directory)
        result = table.result
        result.is_new, result.metadata_location = pointer.move(table.document.body)
    elif len(table.lists) == len(table.document.snapshots):
        # A document may only name lists that exist: a plain bucket generates nothing when read.
        _write_document(table)
    table.result.add_files(table.store.written, table.store.bytes_written)


def _write_document(table: PublishedTable) -> None:
    before = table.store.written
    table.files.cache_document(table.document)
    table.result.is_new = table.store.written > before
    table.result.metadata_location = table.files.metadata_location(table.document)


NAME = re.compile(r"[a-z0-9_]{1,255}")
"""Names that every engine accepts that reads Glue: Athena accepts no other characters."""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Registers the tables of a run in one database of Glue."""

    database: GlueDatabase
    deregisters: bool
    """Whether tables that the lake no longer has are removed from Glue."""

    def register(self, table: PublishedTable, selected: Sequence[Selected]) -> None:
        """Register a table whose metadata document is published; its result says what was done.

        Args:
            selected: all tables of the run.

        Raises:
            Unavailable: Glue does not answer, or denies access.
        """
        try:
            table.result.registered = self.database.register(_registration(table, selected))
        except NotOurs as error:
            table.result.not_registered = str(error)

    def deregister(
        self, lake: Lake, schemas: Iterable[Schema], selected: Sequence[Selected]
    ) -> list[str]:
        """Remove the tables that are gone; returns their names in Glue.

        Args:
            schemas: those of the run; empty: all.
            selected: all tables of the run.

        Raises:
            Unavailable: as `register`.
        """
        if not self.deregisters:
            return []
        names = set(_names(selected))
        return self.database.remove_others(lake.data_path, set(map(_mark, schemas)), names)


def registrar(
    register: str | None,
    deregister: bool,
    settings: PublishSettings,
    export: str | None,
    tables: Sequence[str],
) -> Registrar | None:
    """The registrar for the options `--register` and `--deregister`; None without `--register`.

    Raises:
        BadInput: the options contradict others, or there is no such database.
        Unavailable: Glue does not answer, or denies access.
    """
    if register is None:
        if deregister:
            raise BadInput("--deregister needs --register")
        return None
    catalog, _, name = register.partition(":")
    if catalog != "glue" or not NAME.fullmatch(name):
        raise BadInput(
            "--register must be glue:DATABASE, a database of lower-case letters, digits and _"
        )
    if export and not is_s3(export):
        raise BadInput("--register needs an --export to s3://bucket/prefix: Glue's readers use S3")
    if settings.storage and not settings.storage.is_materialized:
        raise BadInput(
            "--register needs DELIVERY=materialize or --export: Glue's readers use no S3 Object "
            "Lambda access point"
        )
    if deregister and tables:
        raise BadInput("--deregister needs whole schemas: leave out --table")
    database = GlueDatabase(name)
    database.check()
    return Registrar(database, deregister)


def _registration(table: PublishedTable, selected: Sequence[Selected]) -> Registration:
    history, location = table.history, table.result.metadata_location
    name = history.table.table_name.lower()
    if not NAME.fullmatch(name):
        raise NotOurs("Athena takes a-z, 0-9 and _ in names only; rename the table")
    if (number := _names(selected)[name]) > 1:
        raise NotOurs(
            f"{number} tables would have the Glue name {name}; publish each schema into a Glue "
            "database of its own, with --namespace"
        )
    if location is None:
        raise NotOurs("its metadata document is not published; leave out --snapshots")
    return Registration(
        name=name,
        namespace=_mark(history.schema),
        data_path=history.lake.data_path,
        snapshot_id=history.snapshot_id,
        metadata_location=location,
        document=table.document,
    )


def _mark(schema: Schema) -> str:
    """The mark of a schema in Glue: its name, or the names of several levels as JSON."""
    return json.dumps(schema.namespace) if schema.parents else schema.schema_name


def _names(selected: Sequence[Selected]) -> Counter[str]:
    """The number of tables for each Glue name, which is in lower case."""
    return Counter(table.table_name.lower() for _, table in selected)
