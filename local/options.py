"""Options that several commands share; `polynya_pipeline.common.options` has those of the jobs."""

from enum import StrEnum
from typing import Annotated

import typer
from polynya_pipeline.common.options import TLS


class Delivery(StrEnum):
    """The values of the setting DELIVERY."""

    OBJECT_LAMBDA = "object-lambda"
    MATERIALIZE = "materialize"


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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document with everything.")]
