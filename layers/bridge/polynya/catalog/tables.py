"""Creates a table by its own request, or stages its creation."""

from dataclasses import dataclass, field

from ..access.vended_credentials import TableScope
from ..access.writable import check_may_write_table
from ..catalog import OpenTable, without_config
from ..ducklake.writes.new_snapshot import NewSnapshot
from ..iceberg import rest
from ..iceberg.commits.requests import CreateTableRequest
from ..namespaces import Namespace
from .catalog import CommitCatalog
from .committer import check_time
from .names import check_name_is_free
from .writing.plans import write_plans


@dataclass(frozen=True, slots=True)
class Created:
    """The answer, and what credentials for its table allow."""

    body: rest.LoadTableResult = field(repr=False)
    scope: TableScope | None
    """None: no credentials are vended."""


@dataclass(frozen=True, slots=True)
class TableCreation:
    """One createTable request."""

    catalog: CommitCatalog
    namespace: Namespace
    request: CreateTableRequest
    with_credentials: bool

    def write(self, snapshot: NewSnapshot) -> Created:
        """Create the table; or find what the same request has created before."""
        if uuids := self.catalog.changed_before(snapshot.con):
            landed = self._created(*self.catalog.landed_table(snapshot.con, uuids[0]))
            snapshot.con.run("ROLLBACK")
            return landed
        self._write(snapshot)
        catalog, is_staged = self.catalog.catalog, self.request.stage_create
        opened = catalog.find_table(snapshot.con, self.namespace, self.request.name)
        body = catalog.load_table_result(opened, is_staged=is_staged)
        created = self._created(body, opened)
        if is_staged:
            # Nothing of it remains: the client sends it again with its commit.
            snapshot.con.run("ROLLBACK")
            del created.body["metadata-location"]  # type: ignore[misc]
        check_time()
        return created

    def _write(self, snapshot: NewSnapshot) -> None:
        lake = self.catalog.catalog.readable(snapshot.con)
        schema = lake.schema(self.namespace)
        names = schema.namespace, self.request.name
        check_may_write_table(self.catalog.catalog.rights, *names)
        check_name_is_free(lake, schema, self.request.name)
        plan = self.catalog.creator(lake, schema).of_request(self.request)
        write_plans(snapshot, [plan], self.catalog.request_key)
        snapshot.finish(self.catalog.principal)

    def _created(self, body: rest.LoadTableResult, opened: OpenTable) -> Created:
        wanted = self.with_credentials
        return Created(body, self.catalog.catalog.credentials_scope(opened) if wanted else None)


def create(
    catalog: CommitCatalog,
    namespace: Namespace,
    request: CreateTableRequest,
    *,
    with_credentials: bool = False,
) -> rest.LoadTableResult:
    """Create a table, or stage its creation.

    Args:
        with_credentials: vend credentials for the files of this table, as loadTable does.

    Raises:
        AlreadyExists: a table or a view has this name.
        NoSuchNamespace: the namespace does not exist.
        BadRequest: DuckLake cannot have such a table.
    """
    creation = TableCreation(catalog, namespace, request, with_credentials)
    created = catalog.commit(creation.write)
    if created.scope is None:
        return without_config(created.body) if with_credentials else created.body
    # After the transaction, in which other writers would wait for STS too.
    return catalog.catalog.with_credentials(
        created.body,
        created.scope,
        namespace,
        request.name,
        is_landed=not request.stage_create,
    )
