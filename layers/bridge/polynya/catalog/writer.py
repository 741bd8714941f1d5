"""A DuckLake as an Iceberg catalog that clients change: the answers to the operations that write.

An operation is an attempt that can be repeated (`WritableCatalog.commit`). A commit to tables plans
in one transaction that reads, and writes in another one, if the tables are still as planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from pg8000.native import Connection

from ..access.authorized_lake import AuthorizedLake
from ..access.policy import Rights
from ..commits.attempts import RequestKey, check_time, commit, load_after_commit, took_place
from ..commits.plan.current_table import TableState, table_state
from ..commits.plan.existing_table import Planner
from ..commits.plan.new_table import Creator
from ..commits.plan.registered_table import Registrar
from ..commits.plan.table_plan import TablePlan
from ..commits.request.table_commit import TableCommit, table_commit
from ..commits.write.delete_uploads import DeleteFiles
from ..commits.write.plans import check_files, write_plans
from ..ducklake import queries
from ..ducklake.connection.database import BEGIN_COMMIT, Database, retried
from ..ducklake.queries.history import unservable_reason
from ..ducklake.rows.objects import Schema
from ..ducklake.writes import new_snapshot
from ..ducklake.writes.new_snapshot import CommitRow, NewSnapshot, claim_snapshot_id
from ..mapping.properties import staging_root
from ..rest import answers as rest
from ..rest.requests import CommitTableRequest
from ..runtime.errors import (
    AlreadyExists,
    BadRequest,
    CommitStateUnknown,
    ConcurrentCommit,
    Forbidden,
    NoSuchTable,
    PolynyaError,
)
from ..runtime.namespaces import Namespace, dotted
from ..runtime.settings import Config
from ..storage.file_cache import Store
from ..storage.object_store import ObjectStore, store_below
from .lakes import Lakes
from .names import check_new_name
from .reader import Catalog, OpenTable, ShownTable, open_catalog


class TableChange(NamedTuple):
    """A table of a commit, by its name."""

    namespace: Namespace
    name: str
    commit: TableCommit

    @property
    def full_name(self) -> str:
        """The name for people."""
        return dotted(*self.namespace, self.name)

    @property
    def uuid(self) -> str | None:
        """The table that the client means, whatever its name is now."""
        return self.commit.uuid or self.commit.asserted_uuid


class Planned(NamedTuple):
    """The plan of a commit for one table, and the lake at the time of the plan."""

    plan: TablePlan
    lake: AuthorizedLake
    state: TableState | None
    """None: the table did not exist."""


def is_committed(con: Connection, target: TableChange, rights: Rights) -> bool:
    """Whether this part of a commit has taken place before, as far as it can be recognised."""
    if target.uuid is None:
        return False
    change = target.commit
    statement = new_snapshot.committed(
        target.uuid, change.snapshot_ids, creates=change.creates, stages=change.main is None
    )
    if not statement.run(con):
        return False
    if change.snapshots:
        return True
    # Others may know the uuid, which is in the paths of files: it does not prove who created the
    # table.
    table = queries.table_of_uuid(target.uuid).run(con)
    return table is None or rights.may_write_table(table[0].namespace, table[1].table_name)


def _is_served_after(planned: Planned, snapshot: NewSnapshot) -> bool:
    """Whether it is certain that a table can be served after a commit.

    If so, it is not read again while all other writers of the lake wait.
    """
    state = planned.state
    if state is None or not planned.plan.only_adds_files or snapshot.has_new_objects:
        return False
    # A catalog may have rows of snapshots that do not exist yet.
    return unservable_reason(state.files.unservable, snapshot.snapshot_id) is None


def answer_nothing(snapshot: NewSnapshot, row: CommitRow) -> None:
    """Answer a request whose answer has no content."""


Result = TypeVar("Result")


@dataclass(frozen=True)
class WritableCatalog:
    """One lake, as one caller may change it."""

    reader: Catalog
    objects: ObjectStore
    searches: Store | None = None
    """Keeps the rows that a long search by key has found; None: they are not kept."""
    principal: str | None = None
    """The caller, for `author` in DuckLake's list of snapshots."""
    client: str = ""
    """The client as it names itself: `X-Client-Version`, or else `User-Agent`."""
    request_key: RequestKey | None = None
    """The `Idempotency-Key` of the request that is answered."""

    @property
    def database(self) -> Database:
        """The catalog database."""
        return self.reader.database

    def commit_table(
        self, namespace: Namespace, name: str, request: CommitTableRequest
    ) -> rest.CommitTableResponse:
        """Commit the changes of one table.

        Raises:
            NoSuchTable: it does not exist.
            AlreadyExists: it was to be created.
            CommitFailed: a requirement does not hold.
            BadRequest: DuckLake cannot represent the commit.
            CommitStateUnknown: it is not known whether the commit took place.
        """
        change = table_commit(request.requirements, request.updates)
        [answer] = self.commit_targets([TableChange(namespace, name, change)])
        return {
            "metadata-location": answer["metadata-location"],
            "metadata": answer["metadata"],
        }

    # One attempt

    def commit_targets(self, targets: Sequence[TableChange]) -> list[rest.LoadTableResult]:
        """Commit to several tables as one snapshot; returns each as it is now."""
        try:
            settled: set[str] = set()
            answers = commit(lambda: self._attempt(targets, settled))
        except PolynyaError as error:
            # After a 4xx some clients delete the files that they uploaded.
            if error.status < 500:
                with self.database.transaction() as con:
                    if committed := self._committed(con, targets):
                        return committed
            raise
        if answers is not None:
            return answers
        with load_after_commit("the commit took place, and the table"):
            return self._answers(targets)

    @retried
    def _answers(self, targets: Sequence[TableChange]) -> list[rest.LoadTableResult]:
        """The answers to a commit that took place now."""
        with self.database.transaction() as con:
            tables = [self._shown(con, target, is_committed=True) for target in targets]
        for shown in tables:
            self.reader.keep_loaded(shown)
            shown.files.build_soon(shown.document)
        return [shown.body for shown in tables]

    def _attempt(
        self, targets: Sequence[TableChange], settled: set[str]
    ) -> list[rest.LoadTableResult] | None:
        """The answers to a commit that took place before, or changes nothing; None: it has taken
        place now.

        Args:
            settled: as `check_files`, from the attempts before.
        """
        with self.database.transaction() as con:
            # Before the plan, because the requirements of a commit that took place no longer hold.
            if committed := self._committed(con, targets):
                return committed
            planned = [self.planned(con, target) for target in targets]
            if len({p.plan.table_uuid for p in planned}) < len(planned):
                raise BadRequest("a table is in the transaction twice, under two names")
            if all(p.plan.is_empty for p in planned):
                return [self._shown(con, target).body for target in targets]
        delete_files = DeleteFiles(self.objects)
        # For the next snapshot, which this commit will be unless another writer is faster.
        plans = [delete_files.uploaded(p.plan, p.lake.snapshot_id + 1) for p in planned]

        def write(snapshot: NewSnapshot) -> None:
            tables = (p.state.table.table_id for p in planned if p.state)
            self.reader.virtual_files.plan_statements(snapshot.con, planned[0].lake.lake, tables)
            for target, p in zip(targets, planned, strict=True):
                self._check_unchanged(snapshot, target, p)
                check_files(snapshot, p.lake.lake, p.plan, settled)
            final = [delete_files.uploaded(plan, snapshot.snapshot_id) for plan in plans]
            write_plans(snapshot, final, self.request_key)
            snapshot.finish(self.principal)
            for target, p in zip(targets, planned, strict=True):
                # A table that cannot be served is not committed. Its files are put after COMMIT,
                # because until then all other writers of the lake wait.
                if not _is_served_after(p, snapshot):
                    self._check_answer(snapshot, target)
            check_time(sum(len(plan.added) for plan in final))

        self._write(write)
        return None

    def commit(
        self,
        write: Callable[[NewSnapshot], Result],
        answer_again: Callable[[NewSnapshot, CommitRow], Result],
    ) -> Result:
        """Commit the snapshot that `write` writes; returns what `write` returns.

        Args:
            write: ends with `finish`.
            answer_again: gives the answer if this request took place before, from what it recorded.

        Raises:
            CommitStateUnknown: it cannot be found out whether the commit took place.
            CommitFailed: other writers were faster each time, or the time is up.
            BadRequest: the request's key belongs to another request.
            PolynyaError: what `write` raises; nothing is written.
        """

        def write_once(snapshot: NewSnapshot) -> Result:
            rows = self._recorded(snapshot.con)
            if not rows:
                return write(snapshot)
            answer = answer_again(snapshot, rows[0])
            snapshot.con.run("ROLLBACK")
            return answer

        return commit(lambda: self._write(write_once))

    def finish(
        self, snapshot: NewSnapshot, uuid: str, change: str | None, summary: str | None = None
    ) -> None:
        """Write the end of a snapshot, and the key of this request, if it has one.

        Args:
            uuid: of what is changed.
            change: for DuckLake's list of changes, with a new schema version; None: DuckLake has no
                name for the change, or the snapshot has it already.
            summary: the values from which the answer is made, besides the state of the lake.
        """
        if change is not None:
            snapshot.change_names()
            snapshot.change(change)
        if self.request_key:
            rows = self.request_key.rows_with_key([CommitRow(uuid, None, 0, None, summary)])
            new_snapshot.add(snapshot.con, snapshot.snapshot_id, rows)
        snapshot.finish(self.principal)

    def _recorded(self, con: Connection) -> list[CommitRow]:
        """The rows that this request has recorded, if it took place before; else empty.

        Raises:
            BadRequest: its key belongs to another request.
        """
        key = self.request_key
        return key.own_rows(new_snapshot.rows_of_key(key.key).run(con)) if key else []

    def _write(self, write: Callable[[NewSnapshot], Result]) -> Result:
        """One attempt of any operation: the transaction that claims a snapshot and writes it.

        Raises:
            ConcurrentCommit: another writer has claimed the snapshot, or COMMIT did not take place.
            CommitStateUnknown: it cannot be found out whether the commit took place.
        """
        try:
            with self._claimed() as snapshot:
                result = write(snapshot)
        except CommitStateUnknown as error:
            if not error.is_transient:
                raise  # by `write`, about an earlier request
            # The answer is complete: later changes of its table do not belong to it.
            if not took_place(self.database, snapshot.transaction_id):
                raise ConcurrentCommit(
                    "the connection to the catalog was lost before COMMIT"
                ) from None
        return result

    @contextmanager
    def _claimed(self) -> Iterator[NewSnapshot]:
        """A transaction that has claimed the next snapshot.

        Raises:
            ConcurrentCommit: another writer has claimed it.
        """
        if self.reader.snapshot_id is not None:
            raise Forbidden("a lake that is pinned to a snapshot is read-only")
        with self.database.transaction(BEGIN_COMMIT) as con:
            yield claim_snapshot_id(con)

    def _committed(
        self, con: Connection, targets: Sequence[TableChange]
    ) -> list[rest.LoadTableResult]:
        """The tables as they are now, if all of this commit took place before; else empty.

        Raises:
            CommitStateUnknown: it took place, and a table can no longer be loaded.
        """
        # A change without a new snapshot cannot be recognised, but was committed with the others.
        recognisable = [t for t in targets if t.commit.snapshots or t.commit.creates]
        rights = self.reader.rights
        if recognisable and all(is_committed(con, target, rights) for target in recognisable):
            uuids = [target.uuid or "" for target in recognisable]
        else:
            uuids = list(dict.fromkeys(row.table_uuid for row in self._recorded(con)))
        return [self.committed_table(con, uuid)[0] for uuid in uuids]

    def committed_table(
        self, con: Connection, table_uuid: str
    ) -> tuple[rest.LoadTableResult, OpenTable]:
        """A table that this request has changed before, as it is now.

        Raises:
            CommitStateUnknown: it cannot be loaded any more.
        """
        lake = self.reader.readable(con)
        table = queries.table_of_uuid(table_uuid).run(con)
        with load_after_commit("the commit took place, and the table"):
            if table is None or table[1].end_snapshot is not None or not lake.may_read(*table):
                # Not its name: it may be one that the caller may not read.
                raise NoSuchTable("it was dropped, or the caller may not read it")
            opened = OpenTable.open_for_caller(lake, *table)
            return self.reader.load_table_result(opened), opened

    def planned(self, con: Connection, target: TableChange) -> Planned:
        """The plan of a change for a table as it is now. Raises: as `commit_table`."""
        opened = self._opened(con, target)
        if opened is None:
            return self._creation(con, target)
        if target.commit.creates:
            raise AlreadyExists(f"Requirement failed: table already exists: {target.full_name}")
        lake, schema, table = opened.readable, opened.schema, opened.table
        # The name in the catalog counts, not the one in the path: `a+b` can mean the table `a b`.
        lake.check_may_write(schema, table)
        settings = self.reader.settings
        planner = Planner(
            self.objects,
            settings.staging_location,
            settings.equality_deletes,
            self.searches,
            settings.storage.is_materialized,
            self.client,
        )
        with planner.reading_early(lake, schema, table, target.commit) as planner:
            state = self._state(opened)
        return Planned(planner.plan(state, target.commit), lake, state)

    def _creation(self, con: Connection, target: TableChange) -> Planned:
        if not target.commit.creates:
            raise NoSuchTable(f"Table does not exist: {target.full_name}")
        lake = self.reader.readable(con)
        schema = lake.schema(target.namespace)
        check_new_name(lake, schema, target.name)
        creator = self.creator(lake, schema)
        is_registration = target.commit.source is not None
        create = Registrar(creator).plan if is_registration else creator.plan_commit
        plan = create(target.name, target.commit)
        return Planned(plan, lake, None)

    def creator(self, lake: AuthorizedLake, schema: Schema) -> Creator:
        """Plans the creation of tables in a schema."""
        catalog = self.reader
        places = (catalog.settings.staging_location, catalog.virtual_files.location)
        limits = catalog.settings.equality_deletes
        return Creator(lake, schema, self.objects, *places, limits, client=self.client)

    def _check_unchanged(
        self, snapshot: NewSnapshot, target: TableChange, planned: Planned
    ) -> None:
        """Check, after the claim, that the table is still the one that was planned with.

        Raises:
            ConcurrentCommit: it has changed; the commit is planned again.
        """
        before, newest = planned.lake.snapshot_id, snapshot.before.snapshot_id
        if before == newest:
            return  # nobody has committed since
        if planned.state is not None:
            # This is mostly so, and then the table need not be read while all other writers wait.
            lake, table = planned.state.lake.lake, planned.state.table
            if queries.changes_others_only(lake, table, before, newest).run(snapshot.con):
                return
        opened = self._opened(snapshot.con, target)
        state = self._state(opened) if opened else None
        locations = [s.metadata_location if s else None for s in (planned.state, state)]
        if locations[0] != locations[1]:
            raise ConcurrentCommit(f"{target.full_name} has changed; load it again")

    def _opened(self, con: Connection, target: TableChange) -> OpenTable | None:
        """The table of a commit; None if there is none."""
        with suppress(NoSuchTable):
            return self.reader.find_table(con, target.namespace, target.name)
        return None

    def _state(self, opened: OpenTable) -> TableState:
        files = self.reader.table_files(opened)
        return table_state(opened.readable, opened.schema, opened.table, files)

    def _check_answer(self, snapshot: NewSnapshot, target: TableChange) -> None:
        """Check that a table can be served, after all of the snapshot is written.

        Raises: as `Catalog.load_table_result`.
        """
        opened = self.reader.find_table(snapshot.con, target.namespace, target.name)
        # The answer after COMMIT needs the same results, unless others commit until then.
        lake = replace(opened.readable.lake, state=snapshot.state_after)
        opened = replace(opened, readable=replace(opened.readable, lake=lake))
        self.reader.load_table_result(opened, is_staged=True)

    def _shown(
        self, con: Connection, target: TableChange, *, is_committed: bool = False
    ) -> ShownTable:
        opened = self.reader.find_table(con, target.namespace, target.name)
        return self.reader.shown_table(opened, is_committed=is_committed)


def open_writable_catalog(config: Config, lakes: Lakes[Any]) -> WritableCatalog:
    """A lake as a catalog that clients change; the database is not connected yet."""
    # A commit may name files of the lake, and manifests that clients staged.
    staging = staging_root(config.staging_location, config.data_path)
    objects = store_below(lakes.shared.objects, config.data_path, staging)
    return WritableCatalog(open_catalog(config, lakes), objects, lakes.shared.searches(config))
