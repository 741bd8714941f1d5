"""The page's pictures, as SVG: shapes are computed here, the templates draw them.

`history` draws the history of a table: rows as a line, files and bytes as bars, a mark for each
snapshot, to scale or one step for each. `growth` draws the files and the bytes of the lake.
`bounds` draws how the bounds of a column overlap: a line for each file, from its least to its
greatest value, placed by their order. Where a vertical line through the picture meets few of the
lines, a filter for that value leaves few files. `sizes` draws how many data files have which size:
a bar for each power of two. `bar` is a bar in a line of a table.

Nothing has a style of its own, because the policy of the page forbids it: a class says what a shape
means, and the stylesheet how that looks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TypeGuard

from polynya_pipeline.common.errors import counted

from ..queries.lake_snapshots import LakeSize
from ..queries.listed_files import BoundsOverlap, SizeClass
from ..reports.table_history import SnapshotSummary
from .links import size, time_text

WIDTH = 960
LEFT, RIGHT = 112, 20
ROWS_TOP, ROWS_BOTTOM = 16, 150
FILES_TOP, FILES_BOTTOM = 190, 240
BYTES_TOP, BYTES_BOTTOM = 280, 330
WIDEST_BAR, THINNEST_BAR = 26, 3
WIDEST_TO_SCALE = 12
MOST_TICKS = 4
FLAT = 0.3
"""An axis begins at zero unless its values differ by less than this share of the greatest one."""

SHAPES = {
    "append": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "delete": "M-5.5,-4.5h11l-5.5,10z",
    "update": "M0,-6.5l6.5,6.5l-6.5,6.5l-6.5,-6.5z",
    "rewrite": "M-4.5,-4.5h9v9h-9z",
    "create": "M0,-6.5l6.2,4.5l-2.4,7.3h-7.6l-2.4,-7.3z",
    "alter": "M-1.6,-6h3.2v4.4h4.4v3.2h-4.4v4.4h-3.2v-4.4h-4.4v-3.2h4.4z",
}
"""A shape for each kind, around the point 0,0: not everybody can tell colours apart."""
WORDS = {
    "append": "rows added",
    "delete": "rows deleted",
    "update": "rows added and deleted",
    "rewrite": "files rewritten, the same rows",
    "create": "created, without rows",
    "alter": "altered: no rows changed",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A snapshot in the picture."""

    snapshot_id: int
    kind: str
    shape: str
    x: float
    y: float
    bar_x: float
    bar_width: float
    files_y: float
    bytes_y: float
    title: str
    is_shown: bool
    is_left_out: bool
    has_rows: bool
    """Whether the number of rows is known and on the axis; else the mark is at its foot, and no
    line leads there."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A label below the picture."""

    x: float
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from the least value that is drawn to the greatest."""

    least: int
    """0, unless that would hide every change."""
    most: int
    top: int
    bottom: int

    @classmethod
    def fit(cls, values: Iterable[int], top: int, bottom: int) -> "Axis":
        values = list(values)
        least, most = min(values, default=0), max(values, default=0)
        spread = most - least
        is_flat = 0 < spread < FLAT * most
        margin = max(1, spread // 4)
        return cls(max(0, least - margin) if is_flat else 0, most, top, bottom)

    def has(self, value: int | None) -> TypeGuard[int]:
        """Whether a value is known, and not below the axis."""
        return value is not None and value >= self.least

    def y(self, value: int) -> float:
        """The position of a value; one below the axis is at its foot."""
        if self.most <= self.least:
            return float(self.bottom)
        share = max(0.0, (value - self.least) / (self.most - self.least))
        return round(self.bottom - (self.bottom - self.top) * share, 1)


@dataclass(frozen=True, slots=True)
class History:
    """The whole picture."""

    marks: list[Mark]
    line: str
    """The path of the rows."""
    area: str
    ticks: list[Tick]
    rows: Axis
    files: Axis
    bytes: Axis
    kinds: dict[str, tuple[str, str]]
    """The shape and the words of each kind that occurs."""
    summary: str
    """The picture in a sentence."""


def history(
    snapshots: Sequence[SnapshotSummary], shown: int, scale: str = "time"
) -> History | None:
    """The picture of these snapshots, oldest first; None: there are less than two.

    Args:
        shown: the chosen snapshot of the lake; the last mark up to it is that of the shown state.
        scale: `time`, or `steps`: the same room for each snapshot.
    """
    if len(snapshots) < 2:
        return None
    # An axis that includes the empty beginning of a table would hide what changed since.
    counts = [of.counts for of in snapshots if of.kind != "create"]
    rows = Axis.fit((c.rows for c in counts if c.rows is not None), ROWS_TOP, ROWS_BOTTOM)
    files = Axis.fit((c.files for c in counts), FILES_TOP, FILES_BOTTOM)
    sizes = Axis.fit((c.bytes for c in counts), BYTES_TOP, BYTES_BOTTOM)
    current = max((m.snapshot_id for m in snapshots if m.snapshot_id <= shown), default=None)
    is_to_scale = scale == "time" and snapshots[0].time < snapshots[-1].time
    places = _places([snapshot.time for snapshot in snapshots], is_to_scale=is_to_scale)
    step = (WIDTH - LEFT - RIGHT) / len(snapshots)
    widest, share = (WIDEST_TO_SCALE, 0.25) if is_to_scale else (WIDEST_BAR, 0.7)
    width = min(widest, max(THINNEST_BAR, step * share))
    marks = [
        Mark(
            snapshot_id=snapshot.snapshot_id,
            kind=snapshot.kind,
            shape=SHAPES[snapshot.kind],
            x=round(x, 1),
            y=rows.y(snapshot.counts.rows) if rows.has(snapshot.counts.rows) else ROWS_BOTTOM,
            bar_x=round(x - width / 2, 1),
            bar_width=round(width, 1),
            files_y=files.y(snapshot.counts.files),
            bytes_y=sizes.y(snapshot.counts.bytes),
            title=_title(snapshot),
            is_shown=snapshot.snapshot_id == current,
            is_left_out=bool(snapshot.left_out),
            has_rows=rows.has(snapshot.counts.rows),
        )
        for x, snapshot in zip(places, snapshots, strict=True)
    ]
    kinds = {snapshot.kind for snapshot in snapshots}
    pieces = _pieces(marks)
    return History(
        marks=marks,
        line="".join(map(_line, pieces)),
        area="".join(
            f"{_line(piece)}L{piece[-1].x},{ROWS_BOTTOM}L{piece[0].x},{ROWS_BOTTOM}z"
            for piece in pieces
        ),
        ticks=_time_ticks(snapshots) if is_to_scale else _ticks(snapshots, marks),
        rows=rows,
        files=files,
        bytes=sizes,
        kinds={kind: (SHAPES[kind], WORDS[kind]) for kind in SHAPES if kind in kinds},
        summary=_summary(snapshots),
    )


def _places(times: Sequence[datetime], *, is_to_scale: bool) -> list[float]:
    """Where each of these times is, from left to right."""
    room = WIDTH - LEFT - RIGHT
    if not is_to_scale:
        return [LEFT + (place + 0.5) * room / len(times) for place in range(len(times))]
    span = (times[-1] - times[0]).total_seconds()
    inner, begin = room - WIDEST_BAR, LEFT + WIDEST_BAR / 2
    # No mark is outside of the picture, even if a clock was put back.
    shares = [max(0.0, min(1.0, (time - times[0]).total_seconds() / span)) for time in times]
    return [begin + inner * share for share in shares]


def _pieces(marks: Sequence[Mark]) -> list[list[Mark]]:
    """Adjacent marks whose rows are known: nothing is drawn where they are not."""
    groups = groupby(marks, key=lambda mark: mark.has_rows)
    return [list(group) for has_rows, group in groups if has_rows]


def _line(marks: Sequence[Mark]) -> str:
    """The path of the rows: a step at each snapshot, because between two nothing changes."""
    path = f"M{marks[0].x},{marks[0].y}"
    return path + "".join(f"H{mark.x}V{mark.y}" for mark in marks[1:])


def _ticks(snapshots: Sequence[SnapshotSummary], marks: Sequence[Mark]) -> list[Tick]:
    last = len(snapshots) - 1
    places = sorted({round(last * part / (MOST_TICKS - 1)) for part in range(MOST_TICKS)})
    if last < 2 * MOST_TICKS:
        places = sorted({0, last})
    return [
        Tick(
            marks[place].x,
            _anchor(place, last),
            f"{snapshots[place].snapshot_id}: {snapshots[place].time:%Y-%m-%d %H:%M}",
        )
        for place in places
    ]


def _time_ticks(snapshots: Sequence[SnapshotSummary]) -> list[Tick]:
    first, last = snapshots[0].time, snapshots[-1].time
    span = last - first
    form = "%Y-%m-%d" if span > timedelta(days=4) else "%Y-%m-%d %H:%M"
    form = f"{form}:%S" if span < timedelta(minutes=5) else form
    times = [first + span * part / (MOST_TICKS - 1) for part in range(MOST_TICKS)]
    begin, end = LEFT + WIDEST_BAR / 2, WIDTH - RIGHT - WIDEST_BAR / 2
    return [
        Tick(
            round(begin + (end - begin) * place / (MOST_TICKS - 1), 1),
            _anchor(place, MOST_TICKS - 1),
            f"{time.astimezone(UTC):{form}}",
        )
        for place, time in enumerate(times)
    ]


def _anchor(place: int, last: int) -> str:
    if place == 0 and last > 0:
        return "start"
    return "end" if place == last and last > 0 else "middle"


def _title(snapshot: SnapshotSummary) -> str:
    parts = [
        f"Snapshot {snapshot.snapshot_id}, {time_text(snapshot.time)}",
        "; ".join(snapshot.words) or snapshot.kind,
        _counted(snapshot),
        " – ".join(filter(None, [snapshot.message, snapshot.author])),
        f"left out: {snapshot.left_out}" if snapshot.left_out else "",
    ]
    return "\n".join(filter(None, parts))


def _counted(snapshot: SnapshotSummary) -> str:
    files = counted(snapshot.counts.files, "file")
    if snapshot.counts.rows is None:
        return f"{files}, whose live rows are not known without reading them"
    return f"{counted(snapshot.counts.rows, 'row')} in {files}"


def _summary(snapshots: Sequence[SnapshotSummary]) -> str:
    first, last = snapshots[0], snapshots[-1]
    return (
        f"From snapshot {first.snapshot_id} to {last.snapshot_id} the table went from "
        f"{_counted(first)} to {_counted(last)}."
    )


@dataclass(frozen=True, slots=True)
class Growth:
    """The picture of the lake's files and bytes over time."""

    lines: tuple[tuple[Axis, str, str], ...]
    """The axis, the word for one, and the path of each: rows, files and bytes."""
    ticks: list[Tick]
    summary: str


GROWTH = {"rows": (16, 76), "files": (116, 176), "bytes": (216, 276)}
NOUNS = {"rows": "row", "files": "file", "bytes": ""}


def growth(sizes: Sequence[LakeSize]) -> Growth | None:
    """The picture of how the lake grew, oldest first; None: it has one size only."""
    if len({(of.files, of.bytes) for of in sizes}) < 2:
        return None
    times = [of.time for of in sizes]
    places = [round(x, 1) for x in _places(times, is_to_scale=times[0] < times[-1])]
    lines = []
    for name, strip in GROWTH.items():
        values = [getattr(of, name) for of in sizes]
        axis = Axis.fit(values, *strip)
        lines.append((axis, NOUNS[name], _steps(places, [axis.y(value) for value in values])))
    ends = ((places[0], times[0]), (places[-1], times[-1]))
    return Growth(
        lines=tuple(lines),
        ticks=[
            Tick(x, _anchor(place, 1), f"{time.astimezone(UTC):%Y-%m-%d %H:%M}")
            for place, (x, time) in enumerate(ends)
        ],
        summary=f"From {_size(sizes[0])} to {_size(sizes[-1]).rstrip(',')}.",
    )


def sparkline(sizes: Sequence[LakeSize]) -> str:
    """The path of a lake's bytes over time, 120 wide and 28 high; empty: they did not change."""
    most = max((of.bytes for of in sizes), default=0)
    if len({of.bytes for of in sizes}) < 2:
        return ""
    begin, end = sizes[0].time, sizes[-1].time
    width = (end - begin).total_seconds() or 1.0
    xs = [round(118 * (of.time - begin).total_seconds() / width + 1, 1) for of in sizes]
    return _steps(xs, [round(27 - 26 * of.bytes / most, 1) for of in sizes])


def _size(of: LakeSize) -> str:
    return f"{counted(of.rows, 'row')} in {counted(of.files, 'file')}, {size(of.bytes)},"


def _steps(xs: Sequence[float], ys: Sequence[float]) -> str:
    return f"M{xs[0]},{ys[0]}" + "".join(f"H{x}V{y}" for x, y in zip(xs[1:], ys[1:], strict=True))


BOUNDS_WIDTH, BOUNDS_LEFT, BOUNDS_RIGHT = 960, 14, 14
BOUNDS_TOP = 12
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
    """The share in words."""


def bounds(overlap: BoundsOverlap) -> Bounds | None:
    """The picture of the bounds of files; None: no file has bounds."""
    if not overlap.spans:
        return None
    number = len(overlap.spans)
    step = max(THINNEST + 0.5, min(THICKEST + 3, MOST_HEIGHT / number))
    unit = (BOUNDS_WIDTH - BOUNDS_LEFT - BOUNDS_RIGHT) / max(1, overlap.places - 1)
    lines = [
        Line(
            x=round(BOUNDS_LEFT + (span.first - 1) * unit, 1)
            if overlap.places > 1
            else BOUNDS_LEFT,
            y=round(BOUNDS_TOP + place * step, 1),
            width=round(max(3, (span.last - span.first) * unit), 1),
            height=round(step * 0.8, 1),
            title=f"file {span.data_file_id}: {span.lower} … {span.upper}",
        )
        for place, span in enumerate(overlap.spans)
    ]
    share = 100 * overlap.mean_depth / overlap.files
    return Bounds(
        lines=lines,
        height=round(BOUNDS_TOP + number * step + 8, 1),
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


SIZES_WIDTH, SIZES_TOP, BOTTOM = 960, 24, 150
SIZES_LEFT, SIZES_RIGHT = 84, 14


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


def sizes(classes: Sequence[SizeClass], small_bytes: int = 0) -> Sizes | None:
    """The picture of the sizes of files; None: there are no files.

    Args:
        small_bytes: smaller files are marked.
    """
    if not classes:
        return None
    first, last = classes[0].exponent, classes[-1].exponent
    by_exponent = {size_class.exponent: size_class for size_class in classes}
    most = max(size_class.files for size_class in classes)
    step = (SIZES_WIDTH - SIZES_LEFT - SIZES_RIGHT) / max(6, last - first + 1)
    columns = []
    for place, exponent in enumerate(range(first, last + 1)):
        size_class = by_exponent.get(exponent, SizeClass(exponent, 0, 0))
        height = round((BOTTOM - SIZES_TOP) * size_class.files / most, 1)
        columns.append(
            Column(
                x=round(SIZES_LEFT + place * step + step * 0.08, 1),
                y=BOTTOM - height,
                width=round(step * 0.84, 1),
                height=height,
                files=size_class.files,
                label=size(2**exponent),
                title=f"{counted(size_class.files, 'file')} of {size(2**exponent)} to "
                f"{size(2 ** (exponent + 1))}, {size(size_class.bytes)} together",
                is_small=2 ** (exponent + 1) <= small_bytes,
            )
        )
    return Sizes(columns, most, _sizes_summary(classes))


def _sizes_summary(classes: Sequence[SizeClass]) -> str:
    files, total = (
        sum(size_class.files for size_class in classes),
        sum(size_class.bytes for size_class in classes),
    )
    return f"{counted(files, 'file')}, {size(total // files)} each on average."


def bar(value: int, most: int) -> float:
    """The length of a bar for a value, 100 for the largest one; small ones stay visible."""
    if value <= 0 or most <= 0:
        return 0
    return max(1.5, round(100 * value / most, 1))
