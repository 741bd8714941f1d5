"""The job `verify` on the command line."""

from pathlib import Path
from typing import Annotated

import typer

from ..common import options
from ..common.errors import JobError, json_text, report_error
from .findings import Level


def verify(
    address: options.JobAddress = None,
    database: options.JobDatabase = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help='schema.table; "a.b"."c" if a name contains a dot. Default: all tables.',
        ),
    ] = None,
    metadata_schema: options.MetadataSchema = "public",
    s3_endpoint: options.S3Endpoint = None,
    level: Annotated[
        list[Level] | None,
        typer.Option(
            metavar="LEVEL",
            help="catalog: invariants and statistics; storage: every file exists; metadata: the "
            "documents that Iceberg clients get; client: what Spark reads. May be repeated. "
            "Default: catalog and storage.",
        ),
    ] = None,
    footers: Annotated[
        bool,
        typer.Option("--footers", help="storage: also rows, field ids and bounds in the files."),
    ] = False,
    catalog_uri: Annotated[
        str | None,
        typer.Option(metavar="URL", help="For metadata and client: the Iceberg REST catalog."),
    ] = None,
    catalog_s3_endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The S3 that this catalog's files are in. Default: AWS."),
    ] = None,
    warehouse: Annotated[
        str, typer.Option(metavar="NAME", help="The warehouse of this catalog.")
    ] = "lake",
    master: options.Master = "none",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report to this file, as JSON.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the report to this file, as an HTML page."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check that a lake agrees with its catalog. Nothing is changed.

    Exit codes: 0 no finding; 1 a finding, or any other error; 2 usage error; 4 PostgreSQL or the
    storage is unavailable or denies access. Files that no snapshot names are noted, but are not
    findings.
    """
    from ..common.progress import Reporter
    from ..common.spark import session
    from . import job
    from .findings import show

    try:
        options.use_s3(s3_endpoint)
        lake_report = job.verify(
            database=options.address_of(address, database),
            metadata_schema=metadata_schema,
            levels=level or (Level.CATALOG, Level.STORAGE),
            table=table,
            footers=footers,
            catalog_uri=catalog_uri,
            bridge_s3_endpoint=catalog_s3_endpoint,
            warehouse=warehouse,
            spark=None if master == "none" else session(master),
            reporter=Reporter(),
        )
    except JobError as error:
        raise typer.Exit(report_error(error, as_json)) from None
    document = json_text(lake_report.json)
    if report:
        report.write_text(document + "\n")
    if page:
        page.write_text(lake_report.page)
    if as_json:
        print(document)
    else:
        show(lake_report)
    raise typer.Exit(1 if lake_report.findings else 0)
