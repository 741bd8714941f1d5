"""The subcommands of `polynya`; `__main__` runs them."""

from importlib.metadata import version
from typing import Annotated

import typer
from polynya_pipeline.commands import ingest
from polynya_pipeline.publish.command import publish

from .demo.command import demo
from .doctor import doctor
from .indexes import indexes
from .inspect import inspect
from .lakes.verify import verify
from .serve import serve
from .writes import writes

app = typer.Typer(
    name="polynya",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(value: bool) -> None:
    if value:
        print(f"polynya {version('polynya')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Let Apache Iceberg clients read the tables of a DuckLake.

    Begin with `polynya serve metadata.ducklake`: the file or the database that follows
    'ducklake:' in DuckDB's ATTACH. It prints where clients connect; README.md has what to type in
    each. `demo` needs the extra polynya[demo]; `ingest`, `publish` and `verify` need
    polynya[pipeline].
    """


app.command()(serve)
app.command()(demo)
app.command()(inspect)
app.command()(doctor)
app.command()(indexes)
app.command(short_help="Check whether Iceberg clients can write, or set it up.")(writes)
app.command(short_help="Write files into a table of a DuckLake, with Spark.")(ingest)
app.command(short_help="Generate metadata files, or export Iceberg tables.")(publish)
app.command()(verify)
