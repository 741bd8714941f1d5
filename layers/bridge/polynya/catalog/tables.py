"""Operations that create, drop and rename tables, and commits to several tables.

Each operation is one snapshot of DuckLake.
"""

from dataclasses import dataclass, field

from ..access.vended_credentials import TableScope
from ..commits.attempts import check_time
from ..commits.request.table_commit import table_commit
from ..commits.write.plans import write_plans
from ..ducklake import queries
from ..ducklake.paths import path_in_schema, table_location
from ..ducklake.rows.objects import Schema, quoted
from ..ducklake.writes import inlined, tables
from ..ducklake.writes.new_snapshot import CommitRow, NewSnapshot
from ..rest import answers
from ..rest.requests import CommitTransactionRequest, CreateTableRequest, RenameTableRequest
from ..runtime.errors import BadRequest
from ..runtime.namespaces import Namespace, dotted
from .names import check_new_name, destination_schema
from .reader import OpenTable, drop_config
from .writer import TableChange, WritableCatalog, answer_nothing


@dataclass(frozen=True, slots=True)
class Created:
    """The answer, and the scope of credentials for its table."""

    body: answers.LoadTableResult = field(repr=False)
    scope: TableScope | None
    """None: no credentials are vended."""


@dataclass(frozen=True, slots=True)
class TableCreation:
    """One createTable request."""

    catalog: WritableCatalog
    namespace: Namespace
    request: CreateTableRequest
    with_credentials: bool

    def write(self, snapshot: NewSnapshot) -> Created:
        """Create the table."""
        self._write(snapshot)
        catalog, is_staged = self.catalog.reader, self.request.stage_create
        opened = catalog.find_table(snapshot.con, self.namespace, self.request.name)
        body = catalog.load_table_result(opened, is_staged=is_staged)
        created = self._created(body, opened)
        if is_staged:
            # Nothing of the table remains: the client sends it again with its commit.
            snapshot.con.run("ROLLBACK")
            del created.body["metadata-location"]  # type: ignore[misc]
        check_time()
        return created

    def answer_again(self, snapshot: NewSnapshot, row: CommitRow) -> Created:
        """Find the table that the same request has created before."""
        return self._created(*self.catalog.committed_table(snapshot.con, row.table_uuid))

    def _write(self, snapshot: NewSnapshot) -> None:
        lake = self.catalog.reader.readable(snapshot.con)
        schema = lake.schema(self.namespace)
        check_new_name(lake, schema, self.request.name)
        plan = self.catalog.creator(lake, schema).plan_request(self.request)
        write_plans(snapshot, [plan], self.catalog.request_key)
        snapshot.finish(self.catalog.principal)

    def _created(self, body: answers.LoadTableResult, opened: OpenTable) -> Created:
        catalog = self.catalog.reader
        return Created(body, catalog.credentials_scope(opened) if self.with_credentials else None)


def create(
    catalog: WritableCatalog,
    namespace: Namespace,
    request: CreateTableRequest,
    *,
    with_credentials: bool = False,
) -> answers.LoadTableResult:
    """Create a table, or stage its creation.

    Args:
        with_credentials: vend credentials for the files of this table, as loadTable does.

    Raises:
        AlreadyExists: a table or a view has this name.
        NoSuchNamespace: the namespace does not exist.
        BadRequest: DuckLake cannot have such a table.
    """
    creation = TableCreation(catalog, namespace, request, with_credentials)
    created = catalog.commit(creation.write, creation.answer_again)
    if created.scope is None:
        return drop_config(created.body) if with_credentials else created.body
    # After the transaction, in which other writers would wait for STS too.
    return catalog.reader.add_credentials(
        created.body,
        created.scope,
        namespace,
        request.name,
        is_committed=not request.stage_create,
    )


def drop(catalog: WritableCatalog, namespace: Namespace, name: str) -> None:
    """Drop a table, as DROP TABLE does. No file is deleted: older snapshots need them.

    Raises:
        NoSuchTable: it does not exist.
    """

    def write(snapshot: NewSnapshot) -> None:
        opened = catalog.reader.find_table(snapshot.con, namespace, name)
        opened.readable.check_may_write(opened.schema, opened.table)
        table_id = opened.table.table_id
        tables.end(snapshot.con, snapshot.snapshot_id, table_id)
        catalog.finish(snapshot, opened.table.table_uuid, f"dropped_table:{table_id}")

    catalog.commit(write, answer_nothing)


def rename(catalog: WritableCatalog, request: RenameTableRequest) -> None:
    """Rename a table, also into another namespace; its files stay where they are.

    Raises:
        NoSuchTable: it does not exist.
        NoSuchNamespace: the destination does not exist.
        AlreadyExists: a table or a view has the new name.
    """
    source, new_name = request.source, request.destination.name
    namespace = tuple(source.namespace)

    def write(snapshot: NewSnapshot) -> None:
        opened = catalog.reader.find_table(snapshot.con, namespace, source.name)
        lake, name = opened.readable, opened.table.table_name
        lake.check_may_write(opened.schema, opened.table)
        schema = destination_schema(lake, request.destination.namespace)
        check_new_name(lake, schema, new_name, renamed=opened.schema.name_of(name))
        _rename(snapshot, opened, schema, new_name)
        # DuckLake's word for it.
        change = f"created_table:{quoted(*schema.namespace, new_name)}"
        catalog.finish(snapshot, opened.table.table_uuid, change)

    catalog.commit(write, answer_nothing)


def _rename(snapshot: NewSnapshot, opened: OpenTable, schema: Schema, name: str) -> None:
    con, lake, table = snapshot.con, opened.readable.lake, opened.table
    path = table.path, table.path_is_relative
    if schema.schema_id != opened.schema.schema_id:
        # The files are not moved, and the path may be relative to the schema that the table leaves.
        path = path_in_schema(table_location(lake, opened.schema, table), lake, schema)
    ids = (snapshot.snapshot_id, table.table_id, schema.schema_id)
    tables.rename(con, *ids, name, path)
    snapshot.change_schema_of(table.table_id)
    columns = queries.columns_now(table.table_id).run(con)
    inlined.add_missing_versions(con, table.table_id)
    inlined.add_table(con, snapshot.row, table.table_id, columns, snapshot.layout)


def commit_transaction(catalog: WritableCatalog, request: CommitTransactionRequest) -> None:
    """Commit the changes of all tables of a transaction, or of none.

    Raises:
        NoSuchTable: a table does not exist.
        AlreadyExists: a table was to be created.
        CommitFailed: a requirement does not hold.
        BadRequest: DuckLake cannot represent it, or a table is in it twice.
        CommitStateUnknown: it is not known whether the commit took place.
    """
    catalog.commit_targets(targets(request))


def targets(request: CommitTransactionRequest) -> list[TableChange]:
    """The tables of a transaction.

    Raises:
        BadRequest: there is none, one has no name, or one occurs twice.
    """
    by_name: dict[tuple[str, ...], TableChange] = {}
    for change in request.table_changes:
        if change.identifier is None:
            raise BadRequest("each change of a transaction must name its table (`identifier`)")
        names = (*change.identifier.namespace, change.identifier.name)
        # DuckLake does not distinguish letter case.
        key = tuple(name.casefold() for name in names)
        if key in by_name:
            raise BadRequest(f"the table {dotted(*names)} is in the transaction twice")
        commit = table_commit(change.requirements, change.updates)
        by_name[key] = TableChange(names[:-1], names[-1], commit)
    if not by_name:
        raise BadRequest("the transaction has no changes (`table-changes`)")
    return list(by_name.values())
