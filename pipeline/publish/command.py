"""The job `publish` on the command line."""

import json
from typing import Annotated

import typer

from ..common.errors import JobError
from ..common.exits import fail
from ..common.options import AsJson, Database, Master, MetadataSchema, S3Endpoint, use_s3


def publish(
    database: Database,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help='schema.table; "a.b"."c" where a name holds a dot. May be given again.',
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="All tables of this schema. May be given again."),
    ] = None,
    metadata_schema: MetadataSchema = "public",
    s3_endpoint: S3Endpoint = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Instead, write Iceberg tables that stand alone, each as PLACE/schema/table: a "
            "folder or s3://bucket/prefix. Data files stay where they are.",
        ),
    ] = None,
    snapshots: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Of each table, newest first. Default: as many as are listed (SNAPSHOT_LIMIT).",
        ),
    ] = None,
    master: Master = "none",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is missing; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the files that Iceberg clients will read before they ask; the catalog is not changed.

    They go into the store that the functions read, which the settings name as they do for the
    functions: VIRTUAL_BUCKET, DELIVERY, CACHE_TABLE, CACHE_BUCKET and the others. What is there
    already is not made again. Default: all tables of the lake.

    Exit codes: 0 done (tables that cannot be served are named and left out); 2 asked for wrongly,
    or a table asked for by its name cannot be served; 3 another run was faster; 4 PostgreSQL or
    the storage cannot be reached or refuses; 1 anything else.
    """
    from ..common.progress import Reporter
    from ..common.session import session
    from .job import publish as run
    from .report_table import show

    try:
        use_s3(s3_endpoint)
        published = run(
            database=database,
            metadata_schema=metadata_schema,
            tables=table or (),
            namespaces=namespace or (),
            export=export,
            snapshots=snapshots,
            spark=None if master == "none" else session(master),
            dry_run=dry_run,
            reporter=Reporter(),
        )
    except JobError as error:
        raise typer.Exit(fail(error, as_json)) from None
    if as_json:
        print(json.dumps(published.json, ensure_ascii=False, indent=2))
    else:
        show(published)
