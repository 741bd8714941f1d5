"""Options that several commands share; `polynya_pipeline.common.options` has those of the jobs."""

from typing import Annotated

import typer
from polynya_pipeline.common.options import TLS

DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="DATABASE_URL",
        help="The lake's PostgreSQL: postgresql://user:password@host:port/database. SELECT is "
        f"enough. {TLS}",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Everything, as one JSON document.")]
