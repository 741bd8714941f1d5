"""`polynya indexes`: what makes the bridge quick on a large lake, printed or, on demand, made."""

import sys
from contextlib import closing
from typing import Annotated

import typer
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.ducklake.connection.database import NO_GRANT, Database
from polynya.errors import Misconfigured, PolynyaError
from polynya_pipeline.common.database import connect, sqlstate
from polynya_pipeline.common.errors import JobError
from polynya_pipeline.common.options import MetadataSchema

from . import reach
from .options import DatabaseUrl
from .progress import Failed, Progress
from .reports.rights import create_index, rights

NOT_OWNER = "only the role that owns DuckLake's tables may make an index on them"


def indexes(
    database: DatabaseUrl,
    metadata_schema: MetadataSchema = "public",
    create_as: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Make what is missing with this role, which must own DuckLake's tables.",
        ),
    ] = None,
) -> None:
    """Print the indexes that DuckLake's tables lack, as SQL; with --create-as, make them.

    DuckLake makes none for ranges of files, so that each new manifest costs a scan of all
    statistics. They are made CONCURRENTLY: writers are not held up. DuckLake does not mind them.
    Without --create-as nothing is changed.
    """
    try:
        reach.check(database, metadata_schema)
        missing = _missing(database, metadata_schema)
        if not missing:
            print("polynya: nothing is missing", file=sys.stderr)
        elif create_as is None:
            print("\n".join(missing))
        else:
            _create(create_as, metadata_schema, missing)
    except (PolynyaError, JobError, Failed) as error:
        print(f"polynya: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _missing(database: str, metadata_schema: str) -> list[str]:
    with closing(Database(database, metadata_schema)) as opened, opened.transaction() as con:
        found = rights(con, metadata_schema)
    if found is None:
        raise Misconfigured(f"there is no DuckLake in the schema {metadata_schema!r}")
    return [create_index(metadata_schema, table) for table in found.unindexed]


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
        con.run(statement)
    except DatabaseError as error:
        state = sqlstate(error)
        why = NOT_OWNER if state == NO_GRANT else f"the database answered with SQLSTATE {state}"
        raise Failed(f"{statement} cannot be done: {why}") from None
