"""Options that the jobs have in common."""

import os
from typing import Annotated

import typer


def _signed_in(database: str) -> str:
    from .database import with_credentials

    return with_credentials(database, os.environ.get("DATABASE_CREDENTIALS", ""))


TLS = (
    "?sslmode= is disable, require, verify-ca or verify-full (the default, unless the host is this "
    "machine); &sslrootcert=FILE has the certificates to trust."
)
"""What the help says of a database's URL."""

Database = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="DATABASE_URL",
        callback=_signed_in,
        help="The lake's PostgreSQL: postgresql://user:password@host:port/database, or the ARN of "
        'a secret: its JSON has the key "url", or those of RDS. The variable DATABASE_CREDENTIALS '
        f"(secret:ARN, or iam) says where role and password of a URL come from. {TLS}",
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
Master = Annotated[
    str,
    typer.Option(
        metavar="MASTER",
        help="local[2], local[*]; for publish and verify also none: without Spark. Under "
        "spark-submit its own master counts.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Everything, as one JSON document.")]


def use_s3(endpoint: str | None) -> None:
    """Before any client is made; tasks on this machine inherit it."""
    if endpoint:
        os.environ["AWS_ENDPOINT_URL_S3"] = endpoint
