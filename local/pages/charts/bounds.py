"""How the bounds of a column overlap: a line for each file, from its least to its greatest value.

Values are placed by their order. Where a vertical line through the picture meets few of the lines,
a filter for that value leaves few files.
"""

from dataclasses import dataclass

from polynya.ducklake.rows.listed_files import BoundsOverlap

WIDTH, LEFT, RIGHT = 960, 14, 14
TOP = 12
MOST_HEIGHT, THICKEST, THINNEST = 320, 12.0, 2.0


@dataclass(frozen=True, slots=True)
class Line:
    """A file."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """The whole picture."""

    lines: list[Line]
    height: float
    least: str
    greatest: str
    share: float
    """How many of 100 files a filter for one value leaves, on average."""
    verdict: str
    """In words."""


def bounds(overlap: BoundsOverlap) -> Bounds | None:
    """The picture; None: no file has bounds."""
    if not overlap.spans:
        return None
    number = len(overlap.spans)
    step = max(THINNEST + 0.5, min(THICKEST + 3, MOST_HEIGHT / number))
    unit = (WIDTH - LEFT - RIGHT) / max(1, overlap.places - 1)
    lines = [
        Line(
            x=round(LEFT + (span.first - 1) * unit, 1) if overlap.places > 1 else LEFT,
            y=round(TOP + place * step, 1),
            width=round(max(3, (span.last - span.first) * unit), 1),
            height=round(step * 0.8, 1),
            title=f"file {span.data_file_id}: {span.lower} … {span.upper}",
        )
        for place, span in enumerate(overlap.spans)
    ]
    share = 100 * overlap.mean_depth / overlap.files
    return Bounds(
        lines=lines,
        height=round(TOP + number * step + 8, 1),
        least=overlap.spans[0].lower,
        greatest=max(overlap.spans, key=lambda span: span.last).upper,
        share=round(share, 1),
        verdict=_verdict(overlap, share),
    )


def _verdict(overlap: BoundsOverlap, share: float) -> str:
    files = overlap.files
    left = f"A filter for one value reads {overlap.mean_depth:,.1f} of {files:,} files on average"
    if files < 2:
        return "One file: there is nothing to skip."
    if share <= 10 or overlap.mean_depth <= 1.5:
        return f"{left}: pruning works well for this column."
    if share <= 50:
        return f"{left}: pruning helps."
    return f"{left}: pruning does not help for this column, because the files overlap."
