"""The job `ingest` on the command line."""

from typing import Annotated

import typer

from ..common.errors import JobError, json_text, report_error
from ..common.options import AsJson, Database, Master, MetadataSchema, S3Endpoint, use_s3
from .summary import Format, Mode


def ingest(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help='schema.table; "a.b"."c" if a name contains a dot.'),
    ],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Files or folders that Spark can read."),
    ],
    database: Database,
    metadata_schema: MetadataSchema = "public",
    s3_endpoint: S3Endpoint = None,
    format: Annotated[Format, typer.Option(help="The format of the files.")] = Format.PARQUET,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="DDL",
            help="The schema of the files as Spark's DDL: 'id bigint, at timestamp'. Default: "
            "that of the table, or what Spark infers from the files.",
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="append; overwrite: replaces all rows of the table; overwrite-partitions: "
            "replaces the partitions that the new rows belong to."
        ),
    ] = Mode.APPEND,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Names the job: a second run with the same token changes nothing.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the table if it does not exist.")
    ] = False,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="With --create: region, day(at), bucket(8, id). May be repeated.",
        ),
    ] = None,
    comment: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --create: the table's comment.")
    ] = None,
    evolve: Annotated[
        bool,
        typer.Option(
            "--evolve",
            help="Add columns, and fields of structs, that the table lacks; write NULL for those "
            "that the files lack.",
        ),
    ] = False,
    files: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The approximate number of files to write."),
    ] = None,
    author: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The snapshot's author.")
    ] = None,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The snapshot's commit message.")
    ] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Overwrite even if there are no new rows.")
    ] = False,
    remove_orphans: Annotated[
        bool,
        typer.Option(
            "--remove-orphans",
            help="First delete the files that earlier runs with this token have left.",
        ),
    ] = False,
    master: Master = "local[*]",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write files into a table of a DuckLake, as one snapshot, exactly once.

    The commit is one PostgreSQL transaction: other readers and writers, including DuckDB, see all
    of it or nothing. A file that does not fit the table fails the job before anything is written.

    Exit codes: 0 done, or done by an earlier run; 2 usage error; 3 a conflict with another writer;
    4 PostgreSQL or the storage is unavailable or denies access; 1 any other error.
    """
    from ..common.progress import Reporter
    from ..common.spark import session
    from . import job, sources
    from .catalog import Table

    def frame(table: Table | None) -> object:
        return sources.frame(session(master), paths, format, table, schema, evolve=evolve)

    try:
        use_s3(s3_endpoint)
        summary = job.ingest(
            frame,
            table,
            database=database,
            metadata_schema=metadata_schema,
            mode=mode,
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
    except JobError as error:
        raise typer.Exit(report_error(error, as_json)) from None
    if as_json:
        print(json_text(summary.json))
        return
    for line in summary.lines:
        print(line)
