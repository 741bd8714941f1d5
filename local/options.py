"""Options that several commands have; `pipeline.options` has those of Spark's jobs as well."""

from typing import Annotated

import typer

from pipeline.options import TLS

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
