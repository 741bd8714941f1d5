"""Pictures: where things are drawn, and what the words say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from polynya_local.page import charts
from polynya_local.page.links import ago, number, size, time_text
from polynya_local.queries.lake_snapshots import LakeSize
from polynya_local.queries.listed_files import BoundsOverlap, BoundsSpan, SizeClass
from polynya_local.reports.table_history import Counts, SnapshotSummary
from polynya_pipeline.common.errors import counted

BARS = [(0, 10, 0), (10, 10, 100), (5, 10, 50), (1, 10_000, 1.5), (3, 0, 0), (-1, 10, 0)]


@pytest.mark.parametrize(("value", "most", "width"), BARS)
def test_a_bar_is_a_share_and_a_small_one_is_seen(value, most, width):
    assert charts.bar(value, most) == width


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MOMENT = SnapshotSummary(
    1, NOON, "append", ["inserted rows"], "append", "", "", Counts(0, 0, 0, 0, 0), 0, 0, ""
)


def moments(*rows: int) -> list[SnapshotSummary]:
    return [
        replace(MOMENT, snapshot_id=place, counts=replace(MOMENT.counts, rows=each, files=place))
        for place, each in enumerate(rows, 1)
    ]


def test_a_history_has_a_mark_for_each_snapshot_and_more_rows_are_higher():
    chart = charts.history(moments(10, 30, 20), shown=2)
    ys = [mark.y for mark in chart.marks]
    assert ys[1] < ys[2] < ys[0]
    xs = [mark.x for mark in chart.marks]
    assert xs == sorted(xs) and xs[0] > 84 and xs[-1] < 960
    assert [mark.is_shown for mark in chart.marks] == [False, True, False]
    assert chart.summary == (
        "From snapshot 1 to 3 the table went from 10 rows in 1 file to 20 rows in 3 files."
    )


def test_the_shown_mark_is_the_last_one_up_to_the_snapshot():
    chart = charts.history(moments(1, 2, 3), shown=99)
    assert [mark.is_shown for mark in chart.marks] == [False, False, True]


@pytest.mark.parametrize("scale", ["time", "steps"])
@pytest.mark.parametrize("number_of_snapshots", [2, 9, 10, 120])
def test_a_history_of_any_length_has_labels_in_the_picture(number_of_snapshots, scale):
    chart = charts.history(later(*range(number_of_snapshots)), 1, scale)
    assert len(chart.marks) == number_of_snapshots
    assert 1 <= len(chart.ticks) <= 4
    assert all(0 <= tick.x <= 960 for tick in chart.ticks)


def test_a_history_of_no_rows_is_flat():
    chart = charts.history(moments(0, 0), shown=1)
    assert len({mark.y for mark in chart.marks}) == 1


@pytest.mark.parametrize("number_of_snapshots", [0, 1])
def test_a_history_of_one_snapshot_is_no_picture(number_of_snapshots):
    assert charts.history(moments(*[5] * number_of_snapshots), shown=1) is None


def later(*hours: int) -> list[SnapshotSummary]:
    return [
        replace(of, time=NOON + timedelta(hours=hour))
        for of, hour in zip(moments(*range(len(hours))), hours, strict=True)
    ]


def test_time_is_to_scale_unless_each_snapshot_has_the_same_room():
    snapshots = later(0, 1, 10)
    first, second, third = (mark.x for mark in charts.history(snapshots, shown=1).marks)
    assert (second - first) / (third - first) == pytest.approx(0.1, abs=0.001)
    first, second, third = (mark.x for mark in charts.history(snapshots, 1, "steps").marks)
    assert second - first == pytest.approx(third - second, abs=0.2)


AXES = [
    ((0, 10), 0, 10),
    ((5, 10), 0, 10),
    ((1_000_000, 1_000_100), 999_975, 1_000_100),
    ((80, 100), 75, 100),
    ((7, 7), 0, 7),
    ((), 0, 0),
]


@pytest.mark.parametrize(("values", "least", "most"), AXES)
def test_an_axis_begins_at_zero_unless_that_hides_every_change(values, least, most):
    axis = charts.Axis.fit(values, 10, 110)
    assert (axis.least, axis.most) == (least, most)
    assert all(10 <= axis.y(value) <= 110 for value in values)


def test_that_a_table_began_with_nothing_hides_no_change():
    first, *others = moments(0, 60_000, 60_001, 59_998)
    chart = charts.history([replace(first, kind="create"), *others], shown=1)
    assert chart.rows.least > 59_000
    zero, second, third, fourth = (mark.y for mark in chart.marks)
    assert zero == chart.rows.bottom > fourth > second > third
    # The foot of the axis is not zero: no line leads from there.
    assert chart.line.startswith(f"M{chart.marks[1].x},{second}")


def test_the_growth_of_a_lake_has_a_line_each_for_rows_files_and_bytes():
    sizes = [LakeSize(1, NOON, 0, 0, 0), LakeSize(2, NOON + timedelta(days=1), 30, 2, 5000)]
    chart = charts.growth(sizes)
    assert [axis.most for axis, _, _ in chart.lines] == [30, 2, 5000]
    assert chart.summary == "From 0 rows in 0 files, 0 B, to 30 rows in 2 files, 5.0 kB."
    assert charts.growth(sizes[:1] * 3) is None


def test_sizes_have_a_bar_for_each_power_of_two_between():
    chart = charts.sizes([SizeClass(20, 4, 5_000_000), SizeClass(22, 2, 9_000_000)])
    assert [column.files for column in chart.columns] == [4, 0, 2]
    assert [column.height for column in chart.columns] == [126, 0, 63]
    assert chart.summary == "6 files, 2.3 MB each on average."
    chart = charts.sizes([SizeClass(20, 4, 5_000_000), SizeClass(22, 2, 9_000_000)], 2**22)
    assert [column.is_small for column in chart.columns] == [True, True, False]
    assert charts.sizes([]) is None


SPANS = [BoundsSpan(1, 1, 2, "a", "b"), BoundsSpan(2, 3, 4, "c", "d")]
VERDICTS = [
    (BoundsOverlap(SPANS, 2, 4, 1.0, 1), "works well"),
    (BoundsOverlap(SPANS, 2, 4, 2.0, 2), "does not help"),
    (BoundsOverlap(SPANS, 100, 4, 30.0, 50), "pruning helps"),
    (BoundsOverlap(SPANS[:1], 1, 2, 1.0, 1), "nothing to skip"),
]


@pytest.mark.parametrize(("overlap", "verdict"), VERDICTS)
def test_bounds_say_whether_pruning_works(overlap, verdict):
    assert verdict in charts.bounds(overlap).verdict


def test_bounds_that_do_not_overlap_are_drawn_like_stairs():
    chart = charts.bounds(BoundsOverlap(SPANS, 2, 4, 1.0, 1))
    first, second = chart.lines
    assert first.x + first.width <= second.x and first.y + first.height <= second.y
    assert (chart.least, chart.greatest) == ("a", "d")


def test_one_value_for_all_files_is_drawn():
    one = [BoundsSpan(1, 1, 1, "a", "a")]
    [line] = charts.bounds(BoundsOverlap(one, 1, 1, 1.0, 1)).lines
    assert line.width >= 3
    assert charts.bounds(BoundsOverlap([], 0, 0, 0.0, 0)) is None


WORDS = [
    (number(None), "–"),
    (number(1234567), "1,234,567"),
    (size(999), "999 B"),
    (size(1000), "1.0 kB"),
    (size(999_949), "999.9 kB"),
    (size(999_950), "1.0 MB"),
    (size(10**18), "1000000.0 TB"),
    (size(None), "–"),
    (counted(1, "file"), "1 file"),
    (counted(2000, "file"), "2,000 files"),
    (time_text(NOON), "2026-11-22 12:00:00 UTC"),
    (time_text(None), "–"),
    (ago(None), ""),
]


@pytest.mark.parametrize(("said", "wanted"), WORDS)
def test_numbers_and_times_in_words(said, wanted):
    assert said == wanted
