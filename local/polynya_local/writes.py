"""`polynya writes`: whether Iceberg clients can write to a lake, and the tables that this needs.

`polynya serve --writes` checks the same before it starts; without a policy, all callers may write.
"""

import json
from collections.abc import Collection
from contextlib import ExitStack, closing
from typing import Annotated, Any

import typer
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, identifier
from polynya.access.policy import is_directory
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import (
    ConnectionLost,
    qualified,
    sqlstate,
    transaction,
)
from polynya.ducklake.connection.database import BEGIN, NO_GRANT, Database
from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.rows.objects import VERSIONS, WRITABLE_VERSIONS, Lake, WriterRights
from polynya.ducklake.writes import new_snapshot
from polynya.ducklake.writes.changed_uploads import are_recorded
from polynya.ducklake.writes.new_snapshot import claim_snapshot_id
from polynya.mapping.tables import check_lake
from polynya.runtime.errors import Misconfigured, PolynyaError, Refused, ServiceUnavailable
from polynya.storage.s3_locations import is_s3
from polynya_pipeline.common.database import connect
from polynya_pipeline.common.errors import JobError, say
from polynya_pipeline.common.options import AnyDatabase, LakeAddress, LakeSchema, address_of
from polynya_pipeline.common.progress import Failed

from . import reach
from .indexes import create_indexes, missing_indexes
from .lakes.address import PostgresLake, parse
from .lakes.catalog_file import checked
from .repair import repair as repair_rows


def everybody_may_write(*directories: str) -> str:
    """The setting AUTHORIZATION for `--writes`: without a policy nobody may write.

    Args:
        directories: from which files may be added.
    """
    return json.dumps({"rules": [rule_for_everybody(directories)]})


def rule_for_everybody(directories: Collection[str]) -> dict[str, Any]:
    """The rule of a policy that permits everything.

    Args:
        directories: from which files may be added; those that a policy cannot name are left out.
    """
    everything = {"tables": {"*": ["*"]}, "write": {"*": ["*"]}}
    places = [path for path in directories if is_directory(path)]
    return {"principals": ["*"], **everything, "add_files": places}


def writes(
    address: LakeAddress = None,
    database: AnyDatabase = None,
    metadata_schema: LakeSchema = "public",
    setup: Annotated[
        bool,
        typer.Option(
            "--setup",
            help="Create the tables polynya_commits and polynya_changed_uploads where they are "
            "missing, as the owner of DuckLake's tables, and the indexes of `polynya indexes`, "
            "without which a commit to any table costs a scan of all files; the role must be the "
            "owner or a member of it.",
        ),
    ] = False,
    without_indexes: Annotated[
        bool, typer.Option("--no-indexes", help="With --setup: create no index.")
    ] = False,
    print_sql: Annotated[
        bool, typer.Option("--print", help="Print the SQL of --setup instead.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Repair the rows for which `polynya doctor` names this option, in a lake at any "
            "address, in one transaction.",
        ),
    ] = False,
) -> None:
    """Check whether Iceberg clients can write to a DuckLake with this role.

    Writes need the table polynya_commits beside DuckLake's own, which records what clients
    committed. The exit code is 1 if something is missing.
    """
    try:
        if repair:
            _repair(address_of(address, database), metadata_schema)
            return
        lake_address = parse(address_of(address, database))
        if not isinstance(lake_address, PostgresLake):
            checked(lake_address)
            say(
                "the catalog is in a file: clients can write with `polynya serve --writes`, and "
                "no set-up is needed"
            )
            return
        url = lake_address.url
        reach.check(url, metadata_schema)
        with closing(connect(url, metadata_schema)) as con:
            with transaction(con, BEGIN):
                lake, rights = queries.lake().run(con), writer_rights().run(con)
            missing = [] if without_indexes else missing_indexes(url, metadata_schema)
            if print_sql:
                print(
                    "\n".join([_script(rights, metadata_schema), *_wrap_as_owner(rights, missing)])
                )
                return
            if setup:
                # A lake that cannot be written gets no table.
                if problems := _problems_of_lake(lake):
                    _fail("; ".join(problems))
                _set_up(con, rights, metadata_schema)
                _index(url, metadata_schema, missing, rights.owner)
            with transaction(con, BEGIN):
                problems = write_problems(con, metadata_schema)
    except (PolynyaError, JobError, Failed) as error:
        _fail(str(error))
    except (DatabaseError, ConnectionLost):
        _fail("the catalog database does not answer, or the role may not read its tables")
    if problems:
        _fail("; ".join(problems))
    say(f"Iceberg clients can write with the role {rights.role}")


def _repair(address: str, metadata_schema: str) -> None:
    """Repair a lake, and print what was repaired.

    Raises:
        PolynyaError: it cannot be read or written; nothing is changed.
    """
    # Imported here: DuckDB takes a second, which the rest of the command does not need.
    from .lakes.opened import opened, translate_read_errors

    with opened(address, metadata_schema, None) as lake, ExitStack() as stack:
        mirror = lake.mirror
        if mirror is not None:
            stack.enter_context(translate_read_errors(mirror.name))
            stack.enter_context(mirror.writing())
        con = stack.enter_context(closing(connect(lake.database, lake.metadata_schema)))
        with transaction(con):
            snapshot = claim_snapshot_id(con)
            done = [*repair_rows(snapshot, queries.lake().run(con))]
            if not done:
                con.run("ROLLBACK")
                say("there is nothing to repair")
                return
            snapshot.finish(None, "polynya writes --repair")
            if mirror is not None:
                mirror.write_back(con)
    for what in done:
        say(what)


def check_writes(
    address: str, metadata_schema: str, data_path: str | None, *, is_for_everybody: bool
) -> None:
    """Raise if `polynya serve` cannot let clients write to the lake; nothing is copied yet.

    Args:
        is_for_everybody: it listens beyond this machine, and knows no callers.

    Raises:
        PolynyaError: they cannot, or the database cannot be read.
    """
    if is_for_everybody:
        raise Misconfigured(
            "--writes with --host would let everybody write who reaches this machine: leave one of "
            "them out, or say who may call with --tokens or --oidc-issuer"
        )
    if data_path is not None:
        raise Misconfigured(
            "--writes with --data-path would put files where DuckLake's own writers do not look "
            "for them: leave one of them out"
        )
    lake = parse(address)
    if not isinstance(lake, PostgresLake):
        return  # whoever may write the file may write the lake
    reach.check(lake.url, metadata_schema)
    with closing(Database(lake.url, metadata_schema)) as opened:
        with opened.transaction() as con:
            catalog, rights = queries.lake().run(con), writer_rights().run(con)
            problems = write_problems(con, metadata_schema)
        has_parts = are_recorded(catalog.layout) and queries.has_sinks(catalog)
        is_complete = rights.commits_owner is not None and has_parts
        is_of_others = rights.commits_owner not in (None, rights.owner)
        may_create = rights.may_be_owner and not is_of_others and not _problems_of_lake(catalog)
        if may_create and not is_complete:
            _create(lake.url, metadata_schema, rights)
            with opened.transaction() as con:
                problems = write_problems(con, metadata_schema)
    if problems:
        raise Misconfigured("Iceberg clients cannot write: " + "; ".join(problems))
    if not catalog.is_small and missing_indexes(lake.url, metadata_schema):
        say("the lake lacks indexes, so that commits are slow: `polynya writes --setup` adds them")


def _create(url: str, metadata_schema: str, rights: WriterRights) -> None:
    """Do what `polynya writes --setup` does.

    Raises:
        Misconfigured: the role may not.
        ServiceUnavailable: the database does not answer.
    """
    try:
        with closing(connect(url, metadata_schema)) as con:
            _set_up(con, rights, metadata_schema)
    except (Failed, JobError) as error:
        raise Misconfigured(str(error)) from None
    except ConnectionLost:
        raise ServiceUnavailable("the catalog database does not answer") from None


def write_problems(con: Connection, metadata_schema: str) -> list[str]:
    """Why Iceberg clients cannot write, in sentences with the remedy.

    Raises:
        Misconfigured: the schema has no snapshot of a lake.
    """
    lake, rights = queries.lake().run(con), writer_rights().run(con)
    return [*_problems_of_lake(lake), *_problems_of_role(rights, metadata_schema)]


def _problems_of_lake(lake: Lake) -> list[str]:
    problems = []
    try:
        check_lake(lake)
    except Refused as refusal:
        problems.append(str(refusal))
    else:
        if lake.version not in WRITABLE_VERSIONS:
            problems.append(
                f"the catalog has version {lake.version}, and only {VERSIONS} can be written"
            )
    if not is_s3(lake.data_path):
        problems.append(
            f"the lake's data is in {lake.data_path}, not in S3, where clients would write their "
            "files: DuckDB can write this lake"
        )
    return problems


def _problems_of_role(rights: WriterRights, metadata_schema: str) -> list[str]:
    role, owner = identifier(rights.role), identifier(rights.owner)
    table = f"{identifier(metadata_schema)}.polynya_commits"
    problems = []
    if not rights.may_be_owner:
        problems.append(
            f"the role {rights.role} is not a member of {rights.owner}, which owns DuckLake's "
            f"tables: GRANT {owner} TO {role}"
        )
    if rights.commits_owner is None:
        problems.append("the table polynya_commits is missing: run `polynya writes --setup`")
    elif rights.commits_owner != rights.owner:
        problems.append(
            f"the table polynya_commits belongs to {rights.commits_owner}, not to {rights.owner}: "
            f"ALTER TABLE {table} OWNER TO {owner}"
        )
    elif rights.readers:
        readers = ", ".join(map(identifier, rights.readers))
        problems.append(
            f"readers may not read polynya_commits: GRANT SELECT ON {table} TO {readers}"
        )
    return problems


def _set_up(con: Connection, rights: WriterRights, metadata_schema: str) -> None:
    """Create what is missing, and print what was created.

    Raises:
        Failed: the database refuses it.
    """
    try:
        new_snapshot.set_up(con, rights)
    except DatabaseError as error:
        state = sqlstate(error)
        why = (
            f"the role {rights.role} must be {rights.owner} or a member of it, which must be "
            f"allowed to create tables in the schema {metadata_schema}"
            if state == NO_GRANT
            else f"the database answered with SQLSTATE {state}"
        )
        raise Failed(f"polynya_commits cannot be created: {why}") from None
    if rights.commits_owner is None:
        say(f"created the table polynya_commits, which belongs to {rights.owner}")
    else:
        say("the table polynya_commits was there already")
    if rights.readers:
        say(f"granted SELECT on it to {', '.join(rights.readers)}")


def _index(url: str, metadata_schema: str, statements: list[str], owner: str) -> None:
    """Create indexes; failures are only reported, because commits are correct without them."""
    try:
        create_indexes(url, metadata_schema, statements, owner)
    except (Failed, DatabaseError) as error:
        why = str(error) if isinstance(error, Failed) else f"the role cannot become {owner}"
        say(f"commits will be slower than they could be, because indexes are missing: {why}")


def _script(rights: WriterRights, metadata_schema: str) -> str:
    sql = (qualified(statement, metadata_schema) for statement in new_snapshot.statements(rights))
    return ";\n".join(["BEGIN", *sql, "COMMIT"]) + ";"


def _wrap_as_owner(rights: WriterRights, statements: list[str]) -> list[str]:
    """Statements that are in no transaction, as the owner of DuckLake's tables runs them."""
    if not statements:
        return []
    return [f"SET ROLE {identifier(rights.owner)};", *statements, "RESET ROLE;"]


def _fail(words: str) -> None:
    say(words)
    raise typer.Exit(1)
