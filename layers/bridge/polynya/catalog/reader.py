"""Tables and views of a lake: the answers to the REST operations that read them, without HTTP."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from pg8000.native import Connection

from ..access.authorized_lake import AuthorizedLake
from ..access.vended_credentials import CredentialVending, TableScope
from ..ducklake import queries
from ..ducklake.connection.catalog_connection import Statement, keeping_prepared
from ..ducklake.connection.database import ALONE, retried
from ..ducklake.rows.objects import Schema, Table, View
from ..iceberg.table_metadata import TableMetadata
from ..mapping.manifests import fingerprint
from ..mapping.views import view_metadata
from ..rest import answers
from ..runtime.errors import (
    BadRequest,
    HiddenFromCaller,
    NoSuchTable,
    PolynyaError,
    hiding_reasons,
)
from ..runtime.namespaces import Namespace, dotted, path_segment
from ..runtime.settings import Config
from ..virtual_files.contexts import Audience
from ..virtual_files.virtual_files import NOT_HIDDEN, VirtualTable
from .lakes import Lakes
from .loaded_tables import CachedAnswer, LoadedTable, LoadedTables, LoadRequest
from .warehouse import CLIENT_PLANS, SCAN_PLANNING_MODE, LakeCatalog

Result = TypeVar("Result")

MOST_PLAN_KEYS = 100
"""Files of a plan for which a session policy is tried; some twenty fit."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One table, within the transaction that found it."""

    readable: AuthorizedLake
    schema: Schema
    table: Table
    hidden_ids: tuple[int, ...]
    """The columns that the caller does not see, by column_id."""

    @classmethod
    def open_for_caller(cls, readable: AuthorizedLake, schema: Schema, table: Table) -> OpenTable:
        """A table that the caller may read. Raises: as `AuthorizedLake.hidden_ids`."""
        return cls(readable, schema, table, readable.hidden_ids(schema, table))


@dataclass(frozen=True, slots=True)
class ShownTable:
    """The answer to loadTable, and the table and document from which it was made."""

    opened: OpenTable
    files: VirtualTable
    document: TableMetadata
    until_ms: float
    """Until when it depends on the catalog alone, in milliseconds since 1970."""
    body: answers.LoadTableResult
    keys: tuple[str, ...]
    """The objects of a bucket to which it leads, with the delivery `materialize`."""


@dataclass(frozen=True)
class Catalog(LakeCatalog):
    """One lake, as of its newest snapshot or pinned to one, as one caller may read it."""

    loaded: LoadedTables = field(default_factory=LoadedTables)

    # Tables

    @retried
    def load_table(
        self,
        namespace: Namespace,
        table: str,
        snapshots: str | None = None,
        with_credentials: bool = False,
    ) -> LoadedTable:
        """The table metadata.

        Args:
            snapshots: `refs` for the current snapshot alone.
            with_credentials: vend credentials for the files of this table, if the settings do so;
                those of a writer to callers who may write it.

        Raises:
            NoSuchTable: the table or its namespace does not exist.
            Refused: the table cannot be served exactly.
        """
        if snapshots not in {None, "all", "refs"}:
            raise BadRequest("snapshots must be one of: all, refs")
        refs_only = snapshots == "refs"
        request = self._cacheable(namespace, table, refs_only, with_credentials)
        answer = self.loaded.unchanged(request, self._ask) if request else None
        if (
            answer is not None
            and self._is_for_caller(answer)
            and self.virtual_files.are_put(answer.keys)
        ):
            if answer.scope is None:
                return answer.loaded
            return self._add_new_credentials(answer.loaded.body, answer.scope, namespace, table)
        with self.open_table(namespace, table) as opened:
            shown = self.shown_table(opened, refs_only=refs_only)
            scope = self.credentials_scope(opened) if with_credentials else None
        loaded = _loaded(shown, without=with_credentials and scope is None)
        if request and (scope is None or (self.vending and self.vending.scopes_last)):
            self._keep(shown, {request: loaded}, scope)
        return (
            loaded
            if scope is None
            else self._add_new_credentials(shown.body, scope, namespace, table)
        )

    def _add_new_credentials(
        self,
        body: answers.LoadTableResult,
        scope: TableScope,
        namespace: Namespace,
        table: str,
    ) -> LoadedTable:
        """An answer with new credentials."""
        return LoadedTable.from_body(self.add_credentials(body, scope, namespace, table), etag=None)

    def keep_loaded(self, shown: ShownTable) -> None:
        """Keep the answers to loadTable for a table that was just changed: clients
        usually load a table again that they have changed."""
        namespace, name = shown.opened.schema.namespace, shown.opened.table.table_name
        request = self._cacheable(namespace, name, False, False)
        if request is None or not self.loaded.is_asked:
            return
        loaded = _loaded(shown)
        answers = {request: loaded}
        # Clients that ask for credentials, and get none, mostly get the same.
        if self.vending is None and not shown.body["config"]:
            answers[request._replace(with_credentials=True)] = loaded
        self._keep(shown, answers)

    def _keep(
        self,
        shown: ShownTable,
        answers: Mapping[LoadRequest, LoadedTable],
        scope: TableScope | None = None,
    ) -> None:
        if shown.until_ms <= time.time() * 1000:
            return
        opened = shown.opened
        lake, may_write = opened.readable.lake, self._may_write(opened)
        of_table = lake.snapshot_id, opened.schema, opened.table, may_write
        cached = {
            request: CachedAnswer(*of_table, loaded, shown.keys, shown.until_ms, scope)
            for request, loaded in answers.items()
        }
        with suppress(PolynyaError):  # the client has its answer
            self.loaded.keep(lake, cached, self._ask)

    def _cacheable(
        self, namespace: Namespace, table: str, refs_only: bool, with_credentials: bool
    ) -> LoadRequest | None:
        """The values on which an answer depends; None for one that is not kept."""
        # A name with a `+` may mean another table for other callers (`AuthorizedLake.table`), and
        # other callers may see other columns.
        is_other = self.rights.hidden or "+" in "".join((*namespace, table))
        if self.snapshot_id is not None or is_other:
            return None
        shown = (self.shows_version_3, self.clients)
        return LoadRequest(namespace, table, refs_only, with_credentials, *shown)

    def _ask(self, statement: Statement[Result]) -> Result:
        with self.database.transaction(ALONE) as con, keeping_prepared(con):
            return statement.run(con)

    def _is_for_caller(self, answer: CachedAnswer) -> bool:
        """Whether the caller would get this answer too."""
        names = answer.schema.namespace, answer.table.table_name
        may_write = self.settings.writes and self.rights.may_write_table(*names)
        return self.rights.may_read_table(*names) and may_write == answer.may_write

    @retried
    def load_credentials(self, namespace: Namespace, table: str) -> answers.LoadCredentialsResponse:
        """New credentials for the files of a table.

        Raises:
            NoSuchTable: the table or its namespace does not exist; or nothing is vended, and the
                path can only mean a table of that name.
        """
        if self.vending is None:
            raise NoSuchTable(f"Table does not exist: {dotted(*namespace, table)}/credentials")
        with self.open_table(namespace, table) as opened:
            scope = self._scope(self.vending, opened)
        return self.vending.refresh_credentials(scope, self.rights.holder)

    @retried
    def check_table_exists(self, namespace: Namespace, table: str) -> None:
        """Check that a table exists.

        Raises:
            NoSuchTable: it does not.
        """
        with self.open_table(namespace, table):
            pass

    # Views

    @retried
    def load_view(self, namespace: Namespace, view: str) -> answers.LoadViewResult:
        """The view metadata. There is no file of it: clients read the answer.

        Raises:
            NoSuchView: the view or its namespace does not exist.
        """
        with self._lake() as lake:
            return self.load_view_result(lake, *lake.view(namespace, view))

    def load_view_result(
        self, lake: AuthorizedLake, schema: Schema, view: View
    ) -> answers.LoadViewResult:
        """The answer to loadView."""
        ids = (lake.snapshot_id, view.view_id)
        tags = queries.tags_at(*ids).run(lake.con)
        texts = queries.view_texts(*ids).run(lake.con)
        comments = queries.view_column_comments_at(lake.lake, *ids).run(lake.con)
        location = self.virtual_files.location
        metadata = view_metadata(schema, view, texts, tags, comments, location)
        # Java keeps the metadata that it has as long as this is the same.
        name = f"{metadata['current-version-id']}-{fingerprint(metadata)}.metadata.json"
        metadata_location = f"{metadata['location']}/{name}"
        return {"metadata-location": metadata_location, "metadata": metadata, "config": {}}

    # Transactions

    @contextmanager
    def open_table(self, namespace: Namespace, name: str) -> Iterator[OpenTable]:
        """A table within a transaction of the block. Raises: as `find_table`."""
        with self.database.transaction() as con:
            opened = self.find_table(con, namespace, name)
            with hiding_reasons(bool(opened.hidden_ids)):
                yield opened

    def find_table(self, con: Connection, namespace: Namespace, name: str) -> OpenTable:
        """A table within a transaction.

        Raises:
            NoSuchTable: there is none that the caller may read.
            NoSuchWarehouse: the lake does not have the pinned snapshot.
            HiddenFromCaller: as `AuthorizedLake.hidden_ids`.
        """
        of_this_name = queries.table_at(self.snapshot_id, namespace, name)
        lake, match = self._read_lake(con, of_this_name)
        readable = self._readable(con, lake)
        return OpenTable.open_for_caller(readable, *readable.table(namespace, name, match))

    def table_files(self, opened: OpenTable) -> VirtualTable:
        """The virtual files of a table.

        Raises:
            Refused: the table's own rows in the catalog are broken.
            HiddenFromCaller: the caller may not see a column, and that cannot be kept.
        """
        lake, hidden_ids = opened.readable, opened.hidden_ids
        if hidden_ids and not (self.vending and self.vending.hides_columns):
            raise HiddenFromCaller(NOT_HIDDEN)
        return self.virtual_files.table_files(
            *(lake.con, lake.lake, opened.schema, opened.table, lake.snapshot_id),
            # False would hide columns that the settings show.
            audience=Audience(self.shows_version_3 or None, self.clients, hidden_ids),
        )

    def load_table_result(
        self,
        opened: OpenTable,
        *,
        refs_only: bool = False,
        is_staged: bool = False,
        is_committed: bool = False,
    ) -> answers.LoadTableResult:
        """The answer to loadTable; with the delivery `materialize` its files are put.

        Args:
            opened: the table.
            refs_only: list only the newest snapshot.
            is_staged: the transaction will be rolled back: put no files.
            is_committed: this request has committed the newest snapshot.

        Raises:
            Refused: the table cannot be served exactly.
        """
        shown = self.shown_table(
            opened, refs_only=refs_only, is_staged=is_staged, is_committed=is_committed
        )
        return shown.body

    def shown_table(
        self,
        opened: OpenTable,
        *,
        refs_only: bool = False,
        is_staged: bool = False,
        is_committed: bool = False,
    ) -> ShownTable:
        """As `load_table_result`, with the values from which the answer was made."""
        # Not only for readers: a commit that took place before is answered so too.
        with hiding_reasons(bool(opened.hidden_ids)):
            return self._shown(opened, refs_only, is_staged, is_committed)

    def _shown(
        self, opened: OpenTable, refs_only: bool, is_staged: bool, is_committed: bool
    ) -> ShownTable:
        files = self.table_files(opened)
        # Before the document, which may contain the current time.
        until_ms = files.same_until()
        document = files.metadata()
        keys = [] if is_staged else files.materialize(document, is_committed=is_committed)
        body: answers.LoadTableResult = {
            "metadata-location": files.metadata_location(document),
            "metadata": document.json(refs_only=refs_only),
            "config": self._table_config(opened, files),
        }
        return ShownTable(opened, files, document, until_ms, body, tuple(keys))

    def _table_config(self, opened: OpenTable, files: VirtualTable) -> dict[str, str]:
        # Only the manifests of a staged snapshot have its files.
        by_client = files.metadata().staged or self.planned_by_client(
            opened, files, files.history.snapshot_id
        )
        return {SCAN_PLANNING_MODE: CLIENT_PLANS} if by_client else {}

    def planned_by_client(
        self, opened: OpenTable, files: VirtualTable, snapshot_id: int
    ) -> str | None:
        """Why clients have to plan the scans of a snapshot; None: they need not."""
        scans = files.scan_files()
        if scans.has_hive_partitions:
            return "files that were added to it have a column in their path"
        if scans.inlined_rows_renamed(snapshot_id) and self._may_write(opened):
            return "writers have to name its inlined rows as its manifests do"
        return None

    # Credentials

    def credentials_scope(self, opened: OpenTable) -> TableScope | None:
        """The scope of credentials for a table; None if the settings vend none."""
        return None if self.vending is None else self._scope(self.vending, opened)

    def add_credentials(
        self,
        body: answers.LoadTableResult,
        scope: TableScope,
        namespace: Namespace,
        table: str,
        *,
        is_committed: bool = False,
    ) -> answers.LoadTableResult:
        """Add new credentials to an answer. It sends a request to STS: call it outside of a
        transaction.

        Args:
            is_committed: the request has changed the lake; if STS fails it is answered without
                credentials.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        refresh = self._refresh_path(namespace, table)
        assert self.vending is not None  # of which the scope is
        credentials = self.vending.table_credentials(
            scope, refresh, self.rights.holder, is_committed=is_committed
        )
        if not credentials:
            return drop_config(body)
        config = {**body["config"], **credentials["config"]}
        return {**body, **credentials, "config": config}  # type: ignore[typeddict-item]

    def plan_scope(self, opened: OpenTable, locations: Collection[str]) -> TableScope | None:
        """The scope of credentials for these files of a table.

        None if the settings vend none, or if they would not be narrower than those of the table.
        """
        if self.vending is None or len(locations) > MOST_PLAN_KEYS:
            return None
        scope = self._scope(self.vending, opened, may_write=False)
        return self.vending.file_scope(scope, locations)

    def plan_credentials(
        self, scope: TableScope, namespace: Namespace, table: str
    ) -> list[answers.StorageCredential]:
        """The field `storage-credentials` of a plan, from STS: call it outside of a transaction.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        assert self.vending is not None  # of which the scope is
        refresh = self._refresh_path(namespace, table)
        return self.vending.plan_credentials(scope, refresh, self.rights.holder)

    def _refresh_path(self, namespace: Namespace, table: str) -> str:
        names = f"namespaces/{path_segment(namespace)}/tables/{quote(table, safe='')}"
        return f"v1/{self._warehouse.prefix}/{names}/credentials"

    def _scope(
        self, vending: CredentialVending, opened: OpenTable, *, may_write: bool = True
    ) -> TableScope:
        virtual = f"{self.virtual_files.location}/{opened.table.table_uuid}"
        lake = opened.readable
        may_write, hidden_ids = may_write and self._may_write(opened), opened.hidden_ids
        if hidden_ids and not vending.hides_columns:
            raise HiddenFromCaller(NOT_HIDDEN)
        scope = vending.scope(
            *(lake.con, lake.lake, opened.schema, opened.table, virtual),
            may_write=may_write and not hidden_ids,
        )
        return vending.without_columns(scope, hidden_ids) if hidden_ids else scope

    def _may_write(self, opened: OpenTable) -> bool:
        """Whether the caller may write a table. A pinned lake is read-only."""
        names = opened.schema.namespace, opened.table.table_name
        may = self.settings.writes and self.snapshot_id is None
        return may and opened.readable.rights.may_write_table(*names)


def drop_config(body: answers.LoadTableResult) -> answers.LoadTableResult:
    """The answer to a client that asked for credentials and gets none.

    DuckDB takes a table's configuration for vended credentials, whatever keys it has: it demands a
    region, and uses no others. Only Java's clients read the fields that are left out, and request
    credentials only if their user wants some.
    """
    return {**body, "config": {}}


def _loaded(shown: ShownTable, *, without: bool = False) -> LoadedTable:
    """The answer without credentials; `without`: for a client that has asked for some."""
    body = drop_config(shown.body) if without else shown.body
    # The location has the fingerprint of the document, of which this answer is all, or the end.
    end = (body["metadata-location"], len(body["metadata"]["snapshots"]))
    return LoadedTable.from_body(body, etag=f'"{fingerprint(*end)}"')


def open_catalog(config: Config, lakes: Lakes[Any]) -> Catalog:
    """A lake as a catalog; the database is not connected yet."""
    files, shared = lakes.virtual_files(config), lakes.shared
    return Catalog(
        config,
        lakes.database(config),
        files,
        vending=shared.new_vending(config, shared.aws),
        client_properties=shared.client_properties,
        aws=shared.aws,
        loaded=shared.loaded_tables(config),
    )
