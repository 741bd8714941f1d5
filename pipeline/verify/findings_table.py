"""A report of `verify` on the terminal."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .findings import Report


def show(report: Report) -> None:
    """Print findings, notes and the summary on stdout."""
    out = Console(
        file=sys.stdout, markup=False, highlight=False, width=None if sys.stdout.isatty() else 200
    )
    if report.findings or report.notes:
        grid = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("level", "check", "about"):
            grid.add_column(name, no_wrap=True)
        grid.add_column("message", overflow="fold")
        for style, found in (("", report.findings), ("dim", report.notes)):
            for f in found:
                grid.add_row(
                    *(Text(text) for text in (f.level, f.check, f.about, f.message)), style=style
                )
        out.print(grid)
    out.print(report.summary, style="bold red" if report.findings else "bold green", soft_wrap=True)
