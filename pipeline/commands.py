"""The jobs on the command line: `polynya ingest`, `python -m pipeline ingest`, `spark-submit`.

Exit codes: 0 done; 1 failed, or findings; 2 asked for wrongly; 3 a conflict with another writer;
4 PostgreSQL or the storage cannot be reached or refuses.
"""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .common.errors import JobError
from .common.exits import fail
from .common.modes import APPEND, FORMATS, LEVELS, MODES
from .common.options import AsJson, Database, Master, MetadataSchema, S3Endpoint, use_s3
from .publish.command import publish

Mode = StrEnum("Mode", {name.upper().replace("-", "_"): name for name in MODES})  # type: ignore[misc]
Format = StrEnum("Format", {name.upper(): name for name in FORMATS})  # type: ignore[misc]
Level = StrEnum("Level", {name.upper(): name for name in LEVELS})  # type: ignore[misc]
MODE, FORMAT = Mode(APPEND), Format(FORMATS[0])


def ingest(
    table: Annotated[str, typer.Argument(help='schema.table; "a.b"."c" where a name holds a dot.')],
    paths: Annotated[list[str], typer.Argument(help="Files or folders that Spark can read.")],
    database: Database,
    metadata_schema: MetadataSchema = "public",
    s3_endpoint: S3Endpoint = None,
    format: Annotated[Format, typer.Option(help="Of the files.")] = FORMAT,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="DDL",
            help="The schema of the files in Spark's words: 'id bigint, at timestamp'. Default: "
            "that of the table, or what Spark finds in the files.",
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="append; overwrite: all rows of the table; overwrite-partitions: those of the "
            "partitions that the new rows are of."
        ),
    ] = MODE,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Names the job: a second run with the same token changes nothing.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the table when it is not there.")
    ] = False,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="For --create, may be given again: region, day(at), bucket(8, id).",
        ),
    ] = None,
    comment: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For --create: the table's comment.")
    ] = None,
    evolve: Annotated[
        bool,
        typer.Option(
            "--evolve",
            help="Add columns, and fields of structs, that the table lacks; NULL where the files "
            "lack one.",
        ),
    ] = False,
    files: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Into how many files, about.")
    ] = None,
    author: Annotated[str | None, typer.Option(help="For the snapshot.")] = None,
    message: Annotated[str | None, typer.Option(help="For the snapshot.")] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Overwrite even when there are no new rows.")
    ] = False,
    remove_orphans: Annotated[
        bool,
        typer.Option(
            "--remove-orphans",
            help="First delete the files that earlier runs with this token have left behind.",
        ),
    ] = False,
    master: Master = "local[*]",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write files into a table of a DuckLake, as one snapshot, exactly once.

    Everything is one PostgreSQL transaction: other readers and writers, DuckDB's too, see all of
    it or nothing. A file that does not fit the table ends the job before anything is written.

    Exit codes: 0 done, or done by an earlier run; 2 asked for wrongly; 3 a conflict with another
    writer; 4 PostgreSQL or the storage cannot be reached or refuses; 1 anything else.
    """
    from .common.progress import Reporter
    from .common.session import session
    from .ingest import sources
    from .ingest.catalog import Table
    from .ingest.job import Summary
    from .ingest.job import ingest as run

    def work() -> Summary:
        use_s3(s3_endpoint)

        def frame(table: Table | None) -> object:
            spark = session(master)
            return sources.frame(spark, paths, format.value, table, schema, evolve=evolve)

        return run(
            frame,
            table,
            database=database,
            metadata_schema=metadata_schema,
            mode=mode.value,
            token=token,
            create=create,
            partition_by=tuple(partition_by or ()),
            comment=comment,
            evolve=evolve,
            files=files,
            author=author,
            message=message,
            allow_empty=allow_empty,
            remove_orphans=remove_orphans,
            dry_run=dry_run,
            reporter=Reporter(),
        )

    try:
        summary = work()
    except JobError as error:
        raise typer.Exit(fail(error, as_json)) from None
    if as_json:
        print(json.dumps(summary.json, ensure_ascii=False, indent=2))
        return
    for line in summary.lines:
        print(line)


def verify(
    database: Database,
    table: Annotated[
        str | None, typer.Argument(help="schema.table. Default: all tables of the lake.")
    ] = None,
    metadata_schema: MetadataSchema = "public",
    s3_endpoint: S3Endpoint = None,
    level: Annotated[
        list[Level] | None,
        typer.Option(
            help="catalog: invariants and statistics; storage: every file is there; metadata: the "
            "documents that Iceberg clients get; client: what Spark reads. May be given again. "
            "Default: catalog and storage."
        ),
    ] = None,
    footers: Annotated[
        bool,
        typer.Option("--footers", help="storage: rows, field ids and bounds in the files too."),
    ] = False,
    catalog_uri: Annotated[
        str | None,
        typer.Option(metavar="URL", help="For metadata and client: where the lake is served."),
    ] = None,
    catalog_s3_endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The S3 of what is served. Default: AWS."),
    ] = None,
    warehouse: Annotated[str, typer.Option(metavar="NAME", help="Of that catalog.")] = "lake",
    master: Master = "none",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report here, as JSON.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report here, as an HTML page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a lake is as its catalog says. Nothing is changed.

    The exit code is 1 when anything is found, 0 when all is well; files that no snapshot knows
    are noted and are no finding.
    """
    from .common.progress import Reporter
    from .common.session import session
    from .verify.findings_table import show
    from .verify.job import verify as run

    try:
        use_s3(s3_endpoint)
        found = run(
            database=database,
            metadata_schema=metadata_schema,
            levels=[one.value for one in level or ()] or ("catalog", "storage"),
            table=table,
            footers=footers,
            catalog_uri=catalog_uri,
            bridge_s3_endpoint=catalog_s3_endpoint,
            warehouse=warehouse,
            spark=None if master == "none" else session(master),
            reporter=Reporter(),
        )
    except JobError as error:
        raise typer.Exit(fail(error, as_json)) from None
    document = json.dumps(found.json, ensure_ascii=False, indent=2)
    if report:
        report.write_text(document + "\n")
    if page:
        page.write_text(found.page)
    if as_json:
        print(document)
    else:
        show(found)
    raise typer.Exit(1 if found.findings else 0)


app = typer.Typer(
    name="pipeline",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(ingest)
app.command()(verify)
app.command()(publish)
