"""What a run of `publish` has done, on the terminal."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .run import Published

COLUMNS = ("table", "snapshots", "manifests", "kept", "lists", "kept", "files", "bytes", "metadata")


def show(published: Published) -> None:
    out = Console(
        file=sys.stdout, markup=False, highlight=False, width=None if sys.stdout.isatty() else 200
    )
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        is_text = name in {"table", "metadata"}
        grid.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for one in published.tables:
        numbers = (
            one.snapshots,
            one.manifests_made,
            one.manifests_kept,
            one.lists_made,
            one.lists_kept,
            one.files,
            one.bytes,
        )
        words = one.refused or one.metadata_location or ""
        grid.add_row(Text(one.name), *(f"{number:,}" for number in numbers), Text(words))
    if published.tables:
        out.print(grid)
    out.print(published.summary, style="bold green", soft_wrap=True)
