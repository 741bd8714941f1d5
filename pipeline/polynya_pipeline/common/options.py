"""Command-line options that several commands have."""

import os
from enum import StrEnum
from typing import Annotated

import typer


def _add_credentials(database: str | None) -> str | None:
    from .database import add_credentials

    # Only URLs have this parameter: files and libpq's connection strings do not.
    if database is None or not database.startswith(("postgresql://", "postgres://")):
        return database
    return add_credentials(database, os.environ.get("DATABASE_CREDENTIALS", ""))


def _read_lake_file(address: str | None) -> str | None:
    """The address of a lake; for `lakes.toml#sales`, that of the lake `sales` in the file.

    The lake's other settings become environment variables of this process, as on AWS.
    """
    file, separator, name = (address or "").rpartition("#")
    if not separator or not file.endswith(".toml"):
        return address
    from polynya.catalog.lakes_document import settings_of_lake

    lakes = lakes_file(file)
    if name not in lakes:
        raise typer.BadParameter(f"{file} has no lake {name!r}; it has {', '.join(lakes)}")
    settings = dict(lakes[name])
    address = settings.pop("database_url")
    data_path = settings.pop("data_path", None)
    # With a catalog in PostgreSQL, data_path says where files must be; it overrides nothing.
    if data_path and not address.startswith(("postgres:", "postgresql:")):
        os.environ[DATA_PATH] = data_path
    os.environ |= {"WAREHOUSE": name, **settings_of_lake(name, settings, os.environ)}
    return address


def one_of_file(addresses: list[str] | None) -> list[str] | None:
    """The addresses; a single one may be that of a lake in a file, such as `lakes.toml#sales`."""
    return [str(_read_lake_file(addresses[0]))] if addresses and len(addresses) == 1 else addresses


DATA_PATH = "POLYNYA_DATA_PATH"
"""The environment variable of the option --data-path."""


def _job_address(address: str | None) -> str | None:
    return _add_credentials(_read_lake_file(address))


TLS = (
    "?sslmode= is disable, require, verify-ca or verify-full (the default, unless the host is this "
    "machine); &sslrootcert=FILE names the file of trusted certificates."
)
"""What the help says about the URL of a database."""

POSTGRESQL = (
    "The lake's PostgreSQL: postgresql://user:password@host:port/database, or the ARN of a secret "
    'whose JSON has the key "url" or those of RDS. The variable DATABASE_CREDENTIALS (secret:ARN, '
    "or iam) says where role and password of a URL come from."
)
"""What the help of a job says about its lake."""

OF_FILE = "Or lakes.toml#NAME: one lake of a file for `serve --lakes`."

Database = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        envvar="DATABASE_URL",
        callback=_add_credentials,
        help=f"{POSTGRESQL} {TLS}",
    ),
]
JobAddress = Annotated[
    str | None,
    typer.Argument(
        metavar="ADDRESS",
        show_default=False,
        callback=_job_address,
        is_eager=True,
        help=f"{POSTGRESQL} {OF_FILE}",
    ),
]
JobDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="ADDRESS",
        envvar="DATABASE_URL",
        show_default=False,
        callback=_add_credentials,
        help=f"The same as ADDRESS, which is used if both are given. {TLS}",
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


class Delivery(StrEnum):
    """The values of the setting DELIVERY."""

    OBJECT_LAMBDA = "object-lambda"
    MATERIALIZE = "materialize"


LakeAddress = Annotated[
    str | None,
    typer.Argument(
        metavar="ADDRESS",
        show_default=False,
        help="The lake: metadata.ducklake (a file of DuckDB), sqlite:lake.sqlite, "
        "postgresql://user:password@host:port/database, the string after ATTACH: "
        "'ducklake:postgres:dbname=lake host=…', or lakes.toml#NAME, one lake of a file for "
        "`serve --lakes`.",
        callback=_read_lake_file,
        is_eager=True,
    ),
]
AnyDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DATABASE_URL",
        show_default=False,
        help=f"The same as ADDRESS, which is used if both are given. Reading needs no more than "
        f"SELECT. {TLS}",
    ),
]
LakeSchema = Annotated[
    str,
    typer.Option(
        "--metadata-schema",
        metavar="NAME",
        envvar="METADATA_SCHEMA",
        help="The schema of DuckLake's tables. In a file, the default means main.",
    ),
]
DataPath = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        envvar=DATA_PATH,
        show_envvar=False,
        show_default=False,
        help="Where the data is, if it is not where the catalog says: a folder, or "
        "s3://bucket/prefix/. DuckLake's own option is DATA_PATH with OVERRIDE_DATA_PATH.",
    ),
]
DeliveryOption = Annotated[
    Delivery,
    typer.Option(
        "--delivery",
        help="object-lambda: metadata files are generated when they are read. materialize: they "
        "are put into the data bucket when a table is loaded.",
    ),
]


def lakes_file(path: str) -> dict[str, dict[str, str]]:
    """The settings of the lakes in a file, by their names: TOML, with a table for each.

    Raises:
        typer.BadParameter: the file cannot be read, or does not have this form.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            lakes = tomllib.load(file)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"the file of the lakes cannot be read: {error}") from None
    for name, settings in lakes.items():
        is_table = isinstance(settings, dict)
        texts = [v for k, v in settings.items() if k != "commits"] if is_table else [None]
        if not all(isinstance(text, str) for text in texts) or "database_url" not in settings:
            raise typer.BadParameter(
                f"the lake {name} must be a table that has database_url, its address, and further "
                "settings; all of them are texts"
            )
    return lakes


def address_of(address: str | None, database: str | None) -> str:
    """The address of the lake that a command is about.

    Raises:
        typer.BadParameter: none is given.
    """
    if chosen := address or database:
        return chosen
    raise typer.BadParameter(
        "which lake? Give its address: metadata.ducklake, sqlite:lake.sqlite or postgresql://…",
        param_hint="ADDRESS",
    )
