"""A snapshot of PostgreSQL that many processes read: one transaction exports it, others import it.

If that is impossible (some poolers, several servers behind one name), `joined` says so; what is
read then may be newer.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, literal
from polynya.ducklake.connection.database import BEGIN, GONE_COLUMN, GONE_TABLE

from ..common.database import connect, sqlstate, translate_errors
from ..common.errors import Overtaken


@dataclass(frozen=True, slots=True)
class SharedSnapshot:
    """The catalog database, and a snapshot of it. Spark sends it to the executors."""

    database: str = field(repr=False)
    """A URL, which may contain a password, or the ARN of a secret."""
    metadata_schema: str
    exported: str | None = None
    """PostgreSQL's name of the exported snapshot; None: it cannot be exported."""


@contextmanager
def exported(database: str, metadata_schema: str) -> Iterator[tuple[Connection, SharedSnapshot]]:
    """Begin a transaction whose snapshot others can import until the block ends."""
    with _connected(database, metadata_schema) as con:
        con.run(BEGIN)
        try:
            [[name]] = con.run("SELECT pg_export_snapshot()")
        except DatabaseError:
            con.run("ROLLBACK")
            con.run(BEGIN)
            name = None
        yield con, SharedSnapshot(database, metadata_schema, name)


@contextmanager
def joined(snapshot: SharedSnapshot) -> Iterator[tuple[Connection, bool]]:
    """Begin a transaction in another process; gives whether it reads the exported snapshot."""
    with _connected(snapshot.database, snapshot.metadata_schema) as con:
        con.run(BEGIN)
        is_shared = False
        if snapshot.exported is not None:
            try:
                con.run(f"SET TRANSACTION SNAPSHOT {literal(snapshot.exported)}")
                is_shared = True
            except DatabaseError:
                con.run("ROLLBACK")
                con.run(BEGIN)
        yield con, is_shared


@contextmanager
def _connected(database: str, metadata_schema: str) -> Iterator[Connection]:
    with closing(connect(database, metadata_schema)) as con, translate_errors(metadata_schema):
        try:
            yield con
        except DatabaseError as error:
            if sqlstate(error) in (GONE_TABLE, GONE_COLUMN) and _is_catalog(con):
                raise Overtaken(
                    "tables of the catalog were dropped or migrated while they were read; try again"
                ) from None
            raise


def _is_catalog(con: Connection) -> bool:
    con.run("ROLLBACK")
    [[found]] = con.run("SELECT to_regclass('ducklake_metadata') IS NOT NULL")
    return bool(found)
