"""How many data files have which size: a bar for each power of two."""

from collections.abc import Sequence
from dataclasses import dataclass

from polynya.ducklake.rows.listed_files import SizeClass

from ..words import counted, size

WIDTH, TOP, BOTTOM = 960, 24, 150
LEFT, RIGHT = 84, 14
SMALL = 24
"""Files below 2^24 bytes, 16 MB, are many requests for few rows, if there are many of them."""


@dataclass(frozen=True, slots=True)
class Column:
    """The files of one size."""

    x: float
    y: float
    width: float
    height: float
    files: int
    label: str
    title: str
    is_small: bool


@dataclass(frozen=True, slots=True)
class Sizes:
    """The whole picture."""

    columns: list[Column]
    most: int
    summary: str


def sizes(classes: Sequence[SizeClass]) -> Sizes | None:
    """The picture; None: there are no files."""
    if not classes:
        return None
    first, last = classes[0].exponent, classes[-1].exponent
    by_exponent = {one.exponent: one for one in classes}
    most = max(one.files for one in classes)
    step = (WIDTH - LEFT - RIGHT) / max(6, last - first + 1)
    columns = []
    for place, exponent in enumerate(range(first, last + 1)):
        one = by_exponent.get(exponent, SizeClass(exponent, 0, 0))
        height = round((BOTTOM - TOP) * one.files / most, 1)
        columns.append(
            Column(
                x=round(LEFT + place * step + step * 0.08, 1),
                y=BOTTOM - height,
                width=round(step * 0.84, 1),
                height=height,
                files=one.files,
                label=size(2**exponent),
                title=f"{counted(one.files, 'file')} of {size(2**exponent)} to "
                f"{size(2 ** (exponent + 1))}, {size(one.bytes)} together",
                is_small=exponent < SMALL,
            )
        )
    return Sizes(columns, most, _summary(classes))


def _summary(classes: Sequence[SizeClass]) -> str:
    files, total = sum(one.files for one in classes), sum(one.bytes for one in classes)
    small = sum(one.files for one in classes if one.exponent < SMALL)
    text = f"{counted(files, 'file')}, {size(total // files)} each on average"
    return f"{text}; {small:,} of them are smaller than {size(2**SMALL)}."
