"""One view of the catalog for many processes: PostgreSQL exports the snapshot of a transaction.

Where it cannot (some poolers, another server behind the same name), `join` says so; what is read
then may be newer.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, literal
from polynya.ducklake.connection.database import BEGIN, GONE_TABLE

from ..common.database import connect, sqlstate, translate_errors
from ..common.errors import Overtaken


@dataclass(frozen=True, slots=True)
class SharedSnapshot:
    """Where the catalog is, and as whose transaction sees it. The URL may hold a password."""

    database: str
    metadata_schema: str
    exported: str | None = None


@contextmanager
def exported(database: str, metadata_schema: str) -> Iterator[tuple[Connection, SharedSnapshot]]:
    """A transaction that others can join as long as this lasts; `exported` None: they cannot."""
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
def joined(view: SharedSnapshot) -> Iterator[tuple[Connection, bool]]:
    """A transaction in another process; and whether it sees what the exporting one sees."""
    with _connected(view.database, view.metadata_schema) as con:
        con.run(BEGIN)
        is_same = False
        if view.exported is not None:
            try:
                con.run(f"SET TRANSACTION SNAPSHOT {literal(view.exported)}")
                is_same = True
            except DatabaseError:
                con.run("ROLLBACK")
                con.run(BEGIN)
        yield con, is_same


@contextmanager
def _connected(database: str, metadata_schema: str) -> Iterator[Connection]:
    with closing(connect(database, metadata_schema)) as con, translate_errors(metadata_schema):
        try:
            yield con
        except DatabaseError as error:
            if sqlstate(error) == GONE_TABLE and _is_catalog(con):
                raise Overtaken(
                    "tables of the catalog were dropped while they were read; try again"
                ) from None
            raise


def _is_catalog(con: Connection) -> bool:
    con.run("ROLLBACK")
    [[found]] = con.run("SELECT to_regclass('ducklake_metadata') IS NOT NULL")
    return bool(found)
