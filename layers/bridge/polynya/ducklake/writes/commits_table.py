"""The table of what Iceberg clients committed: `polynya_commits`, beside DuckLake's own tables.

DuckLake has no place for it that lasts: ducklake_expire_snapshots deletes what a snapshot's row
says, also that of a table's current snapshot. DuckLake ignores tables that it does not know.
"""

from contextlib import suppress

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, identifier

from ..connection.catalog_connection import ConnectionLost
from ..rows.writers.writer_rights import WriterRights

# A row is an Iceberg snapshot that a client committed. The commit of several has a row for each,
# in the order of `position`; a commit of a schema or of properties alone has one without an id.
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


def statements(rights: WriterRights) -> list[str]:
    """The statements of one transaction that create what is missing.

    The table belongs to the owner of DuckLake's tables, whose default privileges apply to it; the
    roles that may read DuckLake's snapshots may read it.
    """
    grants = (
        f"GRANT SELECT ON polynya_commits TO {'public' if name == 'public' else identifier(name)}"
        for name in rights.readers
    )
    created = (TABLE.strip(), INDEX_OF_TABLE.strip(), INDEX_OF_KEY.strip())
    return [f"SET LOCAL ROLE {identifier(rights.owner)}", *created, *grants]


def set_up(con: Connection, rights: WriterRights) -> None:
    """Create what is missing.

    Raises:
        DatabaseError: the database refuses a statement; nothing is created.
        ConnectionLost: the connection is gone.
    """
    con.run("BEGIN")
    try:
        for statement in statements(rights):
            con.run(statement)
        con.run("COMMIT")
    except BaseException:
        with suppress(DatabaseError, ConnectionLost):
            con.run("ROLLBACK")
        raise
