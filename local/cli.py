"""The command `polynya`."""

import typer

from pipeline.commands import ingest, publish, verify

from .demo import demo
from .doctor import doctor
from .indexes import indexes
from .inspect import inspect
from .serve import serve

app = typer.Typer(
    name="polynya",
    help="Lets any Apache Iceberg client read a DuckLake, on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(serve)
app.command()(demo)
app.command()(inspect)
app.command()(doctor)
app.command()(indexes)
app.command()(ingest)
app.command()(publish)
app.command()(verify)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
