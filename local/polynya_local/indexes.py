"""`polynya indexes` prints or creates the indexes that a large lake lacks."""

import sys
from contextlib import closing
from typing import Annotated

import typer
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, identifier
from polynya.ducklake.connection.catalog_connection import sqlstate
from polynya.ducklake.connection.database import NO_GRANT, Database
from polynya.runtime.errors import Misconfigured, PolynyaError
from polynya_pipeline.common.database import connect
from polynya_pipeline.common.errors import JobError, say
from polynya_pipeline.common.options import AnyDatabase, LakeAddress, LakeSchema, address_of
from polynya_pipeline.common.progress import Failed, Progress

from . import reach
from .lakes.address import PostgresLake, parse
from .lakes.catalog_file import checked
from .reports.rights import index_statement, rights

NO_INDEXES = (
    "the catalog is in a file, and `polynya serve` copies it into a PostgreSQL that has all indexes"
)
NOT_OWNER = "only the owner of DuckLake's tables may create an index on them"


def indexes(
    address: LakeAddress = None,
    database: AnyDatabase = None,
    metadata_schema: LakeSchema = "public",
    create_as: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Create the missing indexes with this role, which must own DuckLake's tables.",
        ),
    ] = None,
) -> None:
    """Print or create the indexes that a large lake lacks.

    Prints them as SQL, or creates them with --create-as. DuckLake has no index for ranges of
    files, so each new manifest costs a scan of all statistics; and none for partition values, so
    each planned scan costs one of all values. CREATE INDEX CONCURRENTLY does not block writers, and
    DuckLake ignores the indexes.
    """
    try:
        lake = parse(address_of(address, database))
        if not isinstance(lake, PostgresLake):
            checked(lake)
            print(f"polynya: no index is missing: {NO_INDEXES}", file=sys.stderr)
            return
        url = lake.url
        reach.check(url, metadata_schema)
        missing = missing_indexes(url, metadata_schema)
        if not missing:
            say("no index is missing")
        elif create_as is None:
            print("\n".join(missing))
        else:
            create_indexes(create_as, metadata_schema, missing)
    except (PolynyaError, JobError, Failed) as error:
        say(str(error))
        raise typer.Exit(1) from None


def missing_indexes(database: str, metadata_schema: str) -> list[str]:
    """SQL that creates the indexes that a lake lacks.

    Raises:
        PolynyaError: the database cannot be read.
    """
    with closing(Database(database, metadata_schema)) as opened, opened.transaction() as con:
        role_rights = rights(con, metadata_schema)
    if role_rights is None:
        raise Misconfigured(f"there is no DuckLake in the schema {metadata_schema!r}")
    return [index_statement(metadata_schema, index) for index in role_rights.unindexed]


def create_indexes(
    url: str, metadata_schema: str, statements: list[str], owner: str | None = None
) -> None:
    """Create indexes, and show which.

    Args:
        owner: the role that creates them (SET ROLE); None: the connection's own.

    Raises:
        Failed: the database refuses one; those before it remain.
        JobError, ConnectionLost: the database cannot be reached.
    """
    progress = Progress(sys.stderr)
    with closing(connect(url, metadata_schema, needs_session=True)) as con:
        if owner is not None:
            con.run(f"SET ROLE {identifier(owner)}")
        for statement in statements:
            with progress.stage(statement):
                _run(con, statement)


def _run(con: Connection, statement: str) -> None:
    try:
        con.run(statement)  # in no transaction: CREATE INDEX CONCURRENTLY refuses to be in one
    except DatabaseError as error:
        state = sqlstate(error)
        why = NOT_OWNER if state == NO_GRANT else f"the database answered with SQLSTATE {state}"
        raise Failed(f"{statement} failed: {why}") from None
