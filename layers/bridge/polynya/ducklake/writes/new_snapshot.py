"""A snapshot that is being written, and `polynya_commits`: what Iceberg clients committed.

The table is beside DuckLake's own, and DuckLake ignores it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pg8000.native import Connection, identifier

from ...runtime.errors import Refused
from ..connection.catalog_connection import (
    Statement,
    constant,
    keeping_prepared,
    run_batched,
    select,
    transaction,
)
from ..queries import CATALOG_SCHEMA, STATE_AFTER, catalog, catalog_state, lake
from ..queries.writers import MAY_BECOME
from ..rows.objects import (
    STAGED,
    VERSIONS,
    WRITABLE_VERSIONS,
    CatalogState,
    Layout,
    WriterRights,
)
from . import changed_uploads, tables
from .rows import Snapshot, copy, insert_changes, insert_snapshot, newest_snapshot

COLUMNS = (
    *("table_uuid", "client_snapshot_id", "snapshot_id", "position", "operation", "summary"),
    *("idempotency_key", "principal", "route", "body_hash"),
)


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A row of polynya_commits, without DuckLake's snapshot."""

    table_uuid: str
    client_snapshot_id: int | None
    position: int
    operation: str | None
    summary: str | None
    idempotency_key: str | None = None
    principal: str | None = None
    route: str | None = None
    body_hash: str | None = None


def add(con: Connection, snapshot_id: int, rows: Iterable[CommitRow]) -> None:
    """Record commits at a snapshot."""
    values = [
        (
            *(row.table_uuid, row.client_snapshot_id, snapshot_id, row.position),
            *(row.operation, row.summary, row.idempotency_key),
            *(row.principal, row.route, row.body_hash),
        )
        for row in rows
    ]
    copy(con, "polynya_commits", COLUMNS, values)


OF_KEY = """
SELECT c.table_uuid::text, c.client_snapshot_id, c.position, c.operation, c.summary,
  c.idempotency_key::text, c.principal, c.route, c.body_hash
FROM polynya_commits AS c WHERE c.idempotency_key = CAST(:idempotency_key AS uuid)
ORDER BY c.table_uuid, c.position"""


def rows_of_key(idempotency_key: str) -> Statement[list[CommitRow]]:
    """The rows that a request with this key has written."""
    return select(CommitRow, OF_KEY, idempotency_key=idempotency_key)


COMMITTED = """
SELECT count(*) FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid)
  AND c.client_snapshot_id = ANY(CAST(:client_snapshot_ids AS bigint[]))"""

STAGED_IDS = """
SELECT count(*) FROM unnest(CAST(:client_snapshot_ids AS bigint[])) AS i(id)
WHERE EXISTS (SELECT FROM polynya_commits AS c
    WHERE c.table_uuid = CAST(:table_uuid AS uuid) AND c.client_snapshot_id = i.id)
  OR EXISTS (SELECT FROM ducklake_tag AS g JOIN ducklake_table AS t ON t.table_id = g.object_id
    WHERE t.table_uuid = CAST(:table_uuid AS uuid) AND g.key = :staged || i.id)"""

CREATED = """
SELECT count(*) FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid) AND c.position = 0"""


UUID_USED = """
SELECT EXISTS (SELECT FROM ducklake_table AS t WHERE t.table_uuid = CAST(:table_uuid AS uuid))
  OR EXISTS (SELECT FROM polynya_commits AS c WHERE c.table_uuid = CAST(:table_uuid AS uuid))"""


def uuid_was_used(table_uuid: str) -> Statement[bool]:
    """Whether a table has this uuid, or a dropped one had it."""
    return Statement(UUID_USED, {"table_uuid": table_uuid}, lambda rows: bool(rows[0][0]))


def committed(
    table_uuid: str, client_snapshot_ids: Sequence[int], *, creates: bool, stages: bool = False
) -> Statement[bool]:
    """Whether a commit has taken place, as far as it can be recognised.

    Args:
        client_snapshot_ids: of the Iceberg snapshots that it adds.
        creates: it creates the table, under a uuid that the client has chosen.
        stages: it does not set main.
    """
    ids = list(client_snapshot_ids)
    if ids:
        parameters: dict[str, Any] = {"table_uuid": table_uuid, "client_snapshot_ids": ids}
        sql, more = (STAGED_IDS, {"staged": STAGED}) if stages else (COMMITTED, {})
        return Statement(sql, parameters | more, lambda rows: rows[0][0] == len(ids))
    if creates:
        return Statement(CREATED, {"table_uuid": table_uuid}, lambda rows: rows[0][0] > 0)
    return constant(False)


# DuckLake itself has no lasting place for this: ducklake_expire_snapshots deletes a snapshot's row,
# also that of a table's current snapshot. A row is an Iceberg snapshot that a client committed. The
# commit of several has a row for each, in the order of `position`; a commit of a schema or of
# properties alone has one without an id.
TABLE = """
CREATE TABLE IF NOT EXISTS polynya_commits (
  table_uuid uuid NOT NULL,
  client_snapshot_id bigint,
  snapshot_id bigint NOT NULL,
  position integer NOT NULL,
  operation text,
  summary text,
  idempotency_key uuid,
  principal text,
  route text,
  body_hash text,
  UNIQUE (table_uuid, client_snapshot_id))"""

# For the snapshots of a table, whenever it is loaded.
INDEX_OF_TABLE = """
CREATE INDEX IF NOT EXISTS polynya_commits_of_table ON polynya_commits (table_uuid, snapshot_id)"""

# For a request that is sent again, before anything else is done with it.
INDEX_OF_KEY = """
CREATE INDEX IF NOT EXISTS polynya_commits_of_key ON polynya_commits (idempotency_key)
WHERE idempotency_key IS NOT NULL"""

# For what sinks read back, whenever a table is loaded.
INDEX_OF_SINKS = f"""
CREATE INDEX IF NOT EXISTS {catalog.INDEX_OF_SINKS} ON polynya_commits {catalog.INDEXED_SINKS}"""


# IF NOT EXISTS does not see what another transaction creates: of two at a time one would fail.
ONE_AT_A_TIME = "LOCK TABLE ducklake_snapshot IN SHARE UPDATE EXCLUSIVE MODE"


def statements(rights: WriterRights) -> list[str]:
    """The statements of one transaction that create the tables, their indexes and grants.

    They belong to the owner of DuckLake's tables, whose default privileges apply to them; the
    roles that may read DuckLake's snapshots may read polynya_commits.
    """
    grants = (
        f"GRANT SELECT ON polynya_commits TO {'public' if name == 'public' else identifier(name)}"
        for name in rights.readers
    )
    created = map(
        str.strip,
        (TABLE, INDEX_OF_TABLE, INDEX_OF_KEY, INDEX_OF_SINKS, changed_uploads.TABLE),
    )
    return [f"SET LOCAL ROLE {identifier(rights.owner)}", ONE_AT_A_TIME, *created, *grants]


def set_up(con: Connection, rights: WriterRights) -> None:
    """Create the tables, indexes and grants that are missing.

    Raises:
        DatabaseError: the database refuses a statement; nothing is created.
        ConnectionLost: the connection is gone.
    """
    with transaction(con):
        for statement in statements(rights):
            con.run(statement)


CATALOG = f"""
SELECT pg_get_userbyid(c.relowner), pg_get_userbyid(c.relowner) = current_user,
  {MAY_BECOME.format("c.relowner")},
  (SELECT value FROM ducklake_metadata WHERE key = 'version'), txid_current(), {STATE_AFTER}
FROM pg_class AS c
WHERE c.relname = 'ducklake_snapshot' AND c.relnamespace = {CATALOG_SCHEMA}"""

# The row is inserted first, because it is the lock; its other ids are written at the end.
FINISH = """
UPDATE ducklake_snapshot SET schema_version = :schema_version,
  next_catalog_id = :next_catalog_id, next_file_id = :next_file_id
WHERE snapshot_id = :snapshot_id"""


class NewSnapshot:
    """The next snapshot of the lake, claimed by this transaction: its ids, and what it changes.

    Until the transaction ends, no other writer of the lake can commit, so what is read after the
    claim stays true.
    """

    def __init__(
        self,
        con: Connection,
        before: Snapshot,
        transaction_id: int,
        layout: Layout,
        state_after: CatalogState | None = None,
    ) -> None:
        self.con = con
        self.layout = layout
        """The columns that the catalog has and not every version has."""
        self.before = before
        self.transaction_id = transaction_id
        """PostgreSQL's id of the transaction, by which one can ask afterwards whether it took
        place."""
        self.state_after = state_after
        """As `Lake.state`, when this transaction is committed; None: not known."""
        self.snapshot_id = before.snapshot_id + 1
        self._catalog_id = before.next_catalog_id
        self._file_id = before.next_file_id
        self._has_new_schema_version = False
        self._tables_versioned: set[int] = set()
        self._changes: list[str] = []

    @property
    def schema_version(self) -> int:
        """The snapshot's schema version: a new one if a table was created or altered, or a name
        changed."""
        return self.before.schema_version + self._has_new_schema_version

    def catalog_id(self) -> int:
        """A new id of a schema, a table, a view, a partitioning or a sort order."""
        self._catalog_id += 1
        return self._catalog_id - 1

    @property
    def has_new_objects(self) -> bool:
        """Whether it makes a schema, a table, a view, a partitioning or a sort order, so far."""
        return self._catalog_id != self.before.next_catalog_id

    def file_ids(self, count: int) -> int:
        """The first of so many new ids of data files, delete files or name mappings."""
        self._file_id += count
        return self._file_id - count

    def change(self, *texts: str) -> None:
        """Add to `changes_made`, each text once."""
        self._changes += [text for text in texts if text not in self._changes]

    def changes_table(self, table_id: int) -> bool:
        """Whether `changes_made` names a table by its id, so far."""
        return any(text.endswith(f":{table_id}") for text in self._changes)

    def change_schema_of(self, object_id: int) -> None:
        """Give the snapshot a new schema version because of a table."""
        self._has_new_schema_version = True
        if object_id not in self._tables_versioned:
            self._tables_versioned.add(object_id)
            tables.add_schema_version(self.con, self.row, object_id)

    def change_names(self) -> None:
        """Give the snapshot a new schema version because of a schema, a view, a tag or an order."""
        self._has_new_schema_version = True

    @property
    def row(self) -> Snapshot:
        """The row of ducklake_snapshot as it will be."""
        return Snapshot(self.snapshot_id, self.schema_version, self._catalog_id, self._file_id)

    def finish(
        self, author: str | None, message: str | None = None, token: str | None = None
    ) -> None:
        """Write the final rows of ducklake_snapshot and ducklake_snapshot_changes.

        Args:
            token: names the job that commits.
        """
        row = self.row
        self.con.run(
            FINISH,
            snapshot_id=row.snapshot_id,
            schema_version=row.schema_version,
            next_catalog_id=row.next_catalog_id,
            next_file_id=row.next_file_id,
        )
        changes_made = ",".join(self._changes)
        insert_changes(self.con, row.snapshot_id, changes_made, token, author, message)


def claim_snapshot_id(con: Connection, *, needs_owner: bool = True) -> NewSnapshot:
    """Claim the next snapshot, within a transaction that writes.

    Args:
        needs_owner: False: a role that cannot become the owner writes as itself.

    Raises:
        Refused: the catalog has a version that Polynya cannot write to.
        DatabaseError: another writer has claimed it (SQLSTATE 23505).
    """
    with keeping_prepared(con):
        return _claim(con, needs_owner)


def _claim(con: Connection, needs_owner: bool) -> NewSnapshot:
    [[owner, is_owner, may_become, version, transaction_id, state_text]] = con.run(CATALOG)
    if version not in WRITABLE_VERSIONS:
        raise Refused(
            f"the catalog has DuckLake version {version}, and Iceberg clients can write to "
            f"{VERSIONS} only; write with DuckDB"
        )
    if not is_owner and (may_become or needs_owner):
        # Tables that the transaction creates have to belong to the catalog's owner: its default
        # privileges hold for them then, and DuckDB can drop them at a flush.
        con.run(f"SET LOCAL ROLE {identifier(owner)}")
    before, current = run_batched(con, newest_snapshot(), lake())
    state_after = catalog_state(state_text, is_committed=False)
    snapshot = NewSnapshot(con, before, transaction_id, current.layout, state_after)
    insert_snapshot(con, snapshot.row)
    return snapshot
