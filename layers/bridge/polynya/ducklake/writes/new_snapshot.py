"""A snapshot that is being written: its ids, and the list of what it changes."""

from pg8000.native import Connection, identifier

from ...errors import Refused
from ..connection.statements import run_batched
from ..queries import CATALOG_SCHEMA, layout
from ..rows.writers.layout import VERSIONS, WRITABLE_VERSIONS, Layout
from . import snapshots
from .objects import tables
from .snapshots import Snapshot

CATALOG = f"""
SELECT pg_get_userbyid(c.relowner), pg_get_userbyid(c.relowner) = current_user,
  (SELECT value FROM ducklake_metadata WHERE key = 'version'), txid_current()
FROM pg_class AS c
WHERE c.relname = 'ducklake_snapshot' AND c.relnamespace = {CATALOG_SCHEMA}"""

FINISH = """
UPDATE ducklake_snapshot SET schema_version = :schema_version,
  next_catalog_id = :next_catalog_id, next_file_id = :next_file_id
WHERE snapshot_id = :snapshot_id"""


class NewSnapshot:
    """The next snapshot of the lake, claimed by this transaction.

    Until the transaction ends, no other writer of the lake can commit, so what is read after the
    claim stays true.
    """

    def __init__(
        self, con: Connection, before: Snapshot, transaction_id: int, layout: Layout
    ) -> None:
        self.con = con
        self.layout = layout
        """What the catalog has that not every version has."""
        self.before = before
        self.transaction_id = transaction_id
        """PostgreSQL's own, by which it says afterwards whether the transaction took place."""
        self.snapshot_id = before.snapshot_id + 1
        self._catalog_id = before.next_catalog_id
        self._file_id = before.next_file_id
        self._has_new_schema_version = False
        self._tables_versioned: set[int] = set()
        self._changes: list[str] = []

    @property
    def schema_version(self) -> int:
        """That of the snapshot: a new one if a table was created or altered, or a name changed."""
        return self.before.schema_version + self._has_new_schema_version

    def catalog_id(self) -> int:
        """A new id of a schema, a table, a view, a partitioning or a sort order."""
        self._catalog_id += 1
        return self._catalog_id - 1

    def file_ids(self, count: int) -> int:
        """The first of so many new ids of data files or delete files."""
        self._file_id += count
        return self._file_id - count

    def change(self, *texts: str) -> None:
        """Add to `changes_made`, each text once."""
        self._changes += [text for text in texts if text not in self._changes]

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

    def finish(self, author: str | None) -> None:
        """Write the final rows of ducklake_snapshot and ducklake_snapshot_changes."""
        row = self.row
        self.con.run(
            FINISH,
            snapshot_id=row.snapshot_id,
            schema_version=row.schema_version,
            next_catalog_id=row.next_catalog_id,
            next_file_id=row.next_file_id,
        )
        made = ",".join(self._changes)
        snapshots.changes(self.con, row.snapshot_id, made, None, author, None)


def claim(con: Connection) -> NewSnapshot:
    """Claim the next snapshot, within a transaction that writes.

    Tables that the transaction creates belong to the owner of the catalog, for its default
    privileges hold for them then, and DuckDB can drop them.

    Raises:
        Refused: the catalog has a version that Polynya cannot write to.
        DatabaseError: another writer has claimed it (SQLSTATE 23505).
    """
    [[owner, is_owner, version, transaction_id]] = con.run(CATALOG)
    if version not in WRITABLE_VERSIONS:
        raise Refused(
            f"the catalog has DuckLake version {version}, and Iceberg clients can write to "
            f"{VERSIONS} only; write with DuckDB"
        )
    if not is_owner:
        con.run(f"SET LOCAL ROLE {identifier(owner)}")
    before, has = run_batched(con, snapshots.newest(), layout())
    snapshot = NewSnapshot(con, before, transaction_id, has)
    snapshots.claim(con, snapshot.row)
    return snapshot
