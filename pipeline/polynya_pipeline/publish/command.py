"""The job `publish` on the command line."""

from typing import Annotated

import typer

from ..common import options
from ..common.errors import JobError, json_text, report_error


def publish(
    address: options.JobAddress = None,
    database: options.JobDatabase = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help='schema.table; "a.b"."c" if a name contains a dot. May be repeated.',
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="All tables of this schema. May be repeated."),
    ] = None,
    metadata_schema: options.MetadataSchema = "public",
    s3_endpoint: options.S3Endpoint = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="DESTINATION",
            help="Write standalone Iceberg tables instead, each as DESTINATION/schema/table: a "
            "folder or s3://bucket/prefix. Data files stay where they are.",
        ),
    ] = None,
    snapshots: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="The number of snapshots of each table, newest first. Default: as many as are "
            "listed (SNAPSHOT_LIMIT).",
        ),
    ] = None,
    register: Annotated[
        str | None,
        typer.Option(
            metavar="glue:DATABASE",
            help="Register the published tables in AWS's Glue catalog, for engines that read no "
            "other catalog. Needs DELIVERY=materialize, or --export to S3.",
        ),
    ] = None,
    deregister: Annotated[
        bool,
        typer.Option(
            "--deregister",
            help="Remove Glue's tables that an earlier run registered and that the lake no "
            "longer has. Default: they stay.",
        ),
    ] = False,
    master: options.Master = "none",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what is missing; write nothing.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Generate the files that Iceberg clients read, in advance. The catalog is not changed.

    The files go into the store that the functions read, which the functions' settings name:
    VIRTUAL_BUCKET, DELIVERY, CACHE_TABLE, CACHE_BUCKET and others. Existing files are not generated
    again. Default: all tables of the lake.

    Exit codes: 0 done (tables that cannot be served are named and left out); 2 usage error, or a
    table given by --table cannot be served; 3 another run was faster; 4 PostgreSQL or the storage
    is unavailable or denies access; 1 any other error.
    """
    from ..common.progress import Reporter
    from ..common.spark import session
    from . import job
    from .report import show

    try:
        options.use_s3(s3_endpoint)
        report = job.publish(
            database=options.address_of(address, database),
            metadata_schema=metadata_schema,
            tables=table or (),
            namespaces=namespace or (),
            export=export,
            snapshots=snapshots,
            register=register,
            deregister=deregister,
            spark=None if master == "none" else session(master),
            dry_run=dry_run,
            reporter=Reporter(),
        )
    except JobError as error:
        raise typer.Exit(report_error(error, as_json)) from None
    if as_json:
        print(json_text(report.json))
    else:
        show(report)
