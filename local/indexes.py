"""`polynya indexes`: prints or creates the indexes that a large lake needs."""

import sys
from contextlib import closing
from typing import Annotated

import typer
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.ducklake.connection.catalog_connection import sqlstate
from polynya.ducklake.connection.database import NO_GRANT, Database
from polynya.runtime.errors import Misconfigured, PolynyaError
from polynya_pipeline.common.database import connect
from polynya_pipeline.common.errors import JobError
from polynya_pipeline.common.options import AnyDatabase, LakeAddress, LakeSchema, address_of
from polynya_pipeline.common.progress import Failed, Progress

from . import reach
from .lakes.address import postgresql_url
from .reports.diagnosis import create_index, rights

NO_INDEXES = "`polynya serve` copies it into a PostgreSQL that has all indexes"
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
    files, so each new manifest costs a scan of all statistics. CREATE INDEX CONCURRENTLY does not
    block writers, and DuckLake ignores the indexes.
    """
    try:
        url = postgresql_url(address_of(address, database), NO_INDEXES)
        reach.check(url, metadata_schema)
        missing = _missing(url, metadata_schema)
        if not missing:
            print("polynya: no index is missing", file=sys.stderr)
        elif create_as is None:
            print("\n".join(missing))
        else:
            _create(create_as, metadata_schema, missing)
    except (PolynyaError, JobError, Failed) as error:
        print(f"polynya: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _missing(database: str, metadata_schema: str) -> list[str]:
    with closing(Database(database, metadata_schema)) as opened, opened.transaction() as con:
        role_rights = rights(con, metadata_schema)
    if role_rights is None:
        raise Misconfigured(f"there is no DuckLake in the schema {metadata_schema!r}")
    return [create_index(metadata_schema, table) for table in role_rights.unindexed]


def _create(owner: str, metadata_schema: str, missing: list[str]) -> None:
    con = connect(owner, metadata_schema)
    progress = Progress(sys.stderr)
    try:
        for statement in missing:
            with progress.stage(statement):
                _run(con, statement)
    finally:
        con.close()


def _run(con: Connection, statement: str) -> None:
    try:
        con.run(statement)  # in no transaction: CREATE INDEX CONCURRENTLY refuses to be in one
    except DatabaseError as error:
        state = sqlstate(error)
        why = NOT_OWNER if state == NO_GRANT else f"the database answered with SQLSTATE {state}"
        raise Failed(f"{statement} failed: {why}") from None
