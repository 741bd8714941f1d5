"""The subcommands of `polynya`; `__main__` runs them.

The modules of the commands import a web server and DuckDB's client, which take a second: each is
imported when its command is run.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup


class Subcommand(NamedTuple):
    """A function, or a group of commands, with the name of the command, in a module below this."""

    module: str
    short_help: str


SUBCOMMANDS = {
    "serve": Subcommand("serve", "Serve a DuckLake to Iceberg clients on this machine."),
    "demo": Subcommand(
        "demo.command", "Write a lake, serve it, and read it with real Iceberg clients."
    ),
    "inspect": Subcommand("inspect", "Show a table as Iceberg clients get it."),
    "doctor": Subcommand("doctor", "Check what Polynya serves of a lake, and whether it is exact."),
    "indexes": Subcommand("indexes", "Print or create the indexes that a large lake lacks."),
    "writes": Subcommand("writes", "Check whether Iceberg clients can write, or set it up."),
    "register": Subcommand(
        "register", "Register tables of another Iceberg catalog, without a copy."
    ),
    "token": Subcommand("token", "Make a token for `polynya serve --tokens`."),
    "aws": Subcommand("aws_check.command", "Prepare a deployment on AWS."),
    "ingest": Subcommand("jobs", "Write files into a table of a DuckLake, with Spark."),
    "publish": Subcommand("jobs", "Generate metadata files, or export Iceberg tables."),
    "verify": Subcommand("jobs", "Check that a lake agrees with its catalog."),
}
"""The subcommands, in the order of `polynya --help`."""


class Command(TyperCommand):
    """A command whose help names an argument once: `ADDRESS`, not `ADDRESS <str>`."""

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the arguments and options."""
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        super().format_options(ctx, formatter)


class Subcommands(TyperGroup):
    """The commands of SUBCOMMANDS, each imported when it is needed."""

    def __init__(self, **attributes: Any) -> None:
        """Set the names, from which Typer suggests one for a misspelt name."""
        super().__init__(**attributes)
        self.commands = dict.fromkeys(SUBCOMMANDS)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command with this name; None: there is none."""
        if (subcommand := SUBCOMMANDS.get(cmd_name)) is None:
            return None
        module = import_module(f".{subcommand.module}", __package__)
        function = getattr(module, cmd_name)
        if isinstance(function, typer.Typer):
            return typer.main.get_command(function)
        single = typer.Typer(**OF_ALL)
        single.command(cmd_name, cls=Command, short_help=subcommand.short_help)(function)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.short_help) for (name, command) in SUBCOMMANDS.items()]
            )


OF_ALL: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}
app = typer.Typer(
    name="polynya",
    cls=Subcommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **OF_ALL,
)


def _show_version(value: bool) -> None:
    if value:
        print(f"polynya {version('polynya')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Let Apache Iceberg clients read and write the tables of a DuckLake.

    Begin with `polynya serve metadata.ducklake`: the file or the database that follows
    'ducklake:' in DuckDB's ATTACH. It prints where clients connect; docs/clients has what to type
    in each. `demo` needs the extra polynya[demo]; `ingest`, `publish` and `verify` need
    polynya[pipeline].
    """
    if context.invoked_subcommand is None:
        print(context.get_help())
