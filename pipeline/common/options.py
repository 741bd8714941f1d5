"""Command-line options that several jobs have."""

import os
from typing import Annotated

import typer


def _with_credentials(database: str) -> str:
    from .database import with_credentials

    return with_credentials(database, os.environ.get("DATABASE_CREDENTIALS", ""))


TLS = (
    "?sslmode= is disable, require, verify-ca or verify-full (the default, unless the host is this "
    "machine); &sslrootcert=FILE has the certificates to trust."
)
"""What the help says about the URL of a database."""

Database = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="DATABASE_URL",
        callback=_with_credentials,
        help="The lake's PostgreSQL: postgresql://user:password@host:port/database, or the ARN of "
        'a secret whose JSON has the key "url" or those of RDS. The variable DATABASE_CREDENTIALS '
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
        help="Spark's master: local[2], local[*]; for publish and verify also none: without "
        "Spark. Under spark-submit, its own master is used.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as one JSON document.")]


def use_s3(endpoint: str | None) -> None:
    """Set the S3 endpoint of this process and of tasks on this machine.

    Must be called before the first S3 client is created.
    """
    if endpoint:
        os.environ["AWS_ENDPOINT_URL_S3"] = endpoint
