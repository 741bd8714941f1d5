"""Options that several commands share; `polynya_pipeline.common.options` has those of the jobs."""

from enum import StrEnum
from typing import Annotated

import typer
from polynya_pipeline.common.options import TLS


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
        "postgresql://user:password@host:port/database, or the string after ATTACH: "
        "'ducklake:postgres:dbname=lake host=…'.",
    ),
]
AnyDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DATABASE_URL",
        show_default=False,
        help=f"The same as ADDRESS, which is used if both are given. The role of a PostgreSQL "
        f"needs SELECT only. {TLS}",
    ),
]
LakeSchema = Annotated[
    str,
    typer.Option(
        "--metadata-schema",
        metavar="NAME",
        envvar="METADATA_SCHEMA",
        help="The schema of DuckLake's tables. In a file it is main, without this option too.",
    ),
]
DataPath = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        show_default=False,
        help="Where the data is, if it is not where the catalog says: a folder, or "
        "s3://bucket/prefix/. DuckLake's own option is DATA_PATH with OVERRIDE_DATA_PATH.",
    ),
]
DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DATABASE_URL",
        help="The lake's PostgreSQL: postgresql://user:password@host:port/database. The role "
        f"needs SELECT only. {TLS}",
    ),
]
WriterUrl = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DATABASE_URL",
        help="The lake's PostgreSQL, with the role that writes: "
        f"postgresql://user:password@host:port/database. {TLS}",
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


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document with everything.")]
