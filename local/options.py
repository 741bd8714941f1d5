"""Options that several commands have."""

from typing import Annotated

import typer

DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DATABASE_URL",
        help="The lake's PostgreSQL: postgresql://user:password@host:port/database. SELECT is "
        "enough.",
    ),
]
MetadataSchema = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        envvar="METADATA_SCHEMA",
        help="The PostgreSQL schema of DuckLake's tables.",
    ),
]
S3Endpoint = Annotated[
    str | None, typer.Option(metavar="URL", help="The S3 that holds the data. Default: AWS.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Everything, as one JSON document.")]
