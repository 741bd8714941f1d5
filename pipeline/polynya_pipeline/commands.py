"""The jobs as one command: `python -m polynya_pipeline ingest`, and in `job.py` for spark-submit.

The command `polynya` has the same three subcommands.
"""

import typer

from .ingest.command import ingest
from .publish.command import publish
from .verify.command import verify

__all__ = ["app", "ingest", "publish", "verify"]

app = typer.Typer(
    name="pipeline",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(ingest)
app.command()(verify)
app.command()(publish)
