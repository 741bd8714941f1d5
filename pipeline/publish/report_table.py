"""A report of `publish` on the terminal."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .report import Report

COLUMNS = ("table", "snapshots", "manifests", "existing", "lists", "existing", "files", "bytes")
TEXT_COLUMNS = ("table", "metadata")


def show(report: Report) -> None:
    """Print one line for each table and the summary on stdout."""
    out = Console(
        file=sys.stdout, markup=False, highlight=False, width=None if sys.stdout.isatty() else 200
    )
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in (*COLUMNS, "metadata"):
        is_text = name in TEXT_COLUMNS
        grid.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for table in report.tables:
        numbers = (
            table.snapshots,
            table.manifests_built,
            table.manifests_existing,
            table.lists_built,
            table.lists_existing,
            table.files,
            table.bytes,
        )
        text = table.refused or table.metadata_location or ""
        grid.add_row(Text(table.name), *(f"{number:,}" for number in numbers), Text(text))
    if report.tables:
        out.print(grid)
    out.print(report.summary, style="bold green", soft_wrap=True)
    if report.glue_summary:
        out.print(report.glue_summary, style="bold green", soft_wrap=True)
