"""The claims of catalog rows about data files, and which of them are published.

Any program may have written a row: bounds, counts, `contains_nan` and partition values can be
wrong, also in lakes that only DuckDB writes (`ducklake_add_data_files` takes the values from the
names of directories). A missing claim costs time, a wrong one loses rows. So a claim is published
only if it can be read and nothing in the rows of the same file contradicts it. The functions judge
many files at once; the rules for plans are the same in SQL (`ducklake.queries.planned_files`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..iceberg.avro.row_encoder import Texts
from ..iceberg.manifest import PartitionField
from ..iceberg.types import BUCKET, TRUNCATE, hash_of
from ..types.names import iceberg_type, to_bytes, value
from ..types.numbers import precision_and_scale
from ..types.temporal import HOUR
from .bounds import drop_utc_offset

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Doubt(NamedTuple):
    """A claim that is not published, because something contradicts it."""

    column_id: int
    what: str
    """The fault, one of the following; `{column}` is the name of the column."""
    data_file_ids: Sequence[int]


NO_COLUMN = "statistics of the column {column}, which the name mapping of the file does not have"
UNREADABLE = "a bound of {column} that is no value of its type"
UNORDERED = "a lower bound of {column} above the upper one"
NOT_THE_VALUE = "a partition value of {column} that the statistics of the same file contradict"
NO_VALUE = "partition values, such as that of {column}, that are not there or cannot be read"
NO_BUCKET = "a bucket of {column} that may be one of another function: the file was added"
NO_NAN = "no NaN in {column}, which nothing has checked"
MISCOUNTED = "numbers of values and of NULLs in {column} that are not those of the rows together"
WITHOUT_LOSS = frozenset((NO_NAN, MISCOUNTED))
"""Faults that many programs write, and with which no reader loses rows."""


def is_measured(sizes: Numbers, values: Numbers, nulls: Numbers, record_counts: Numbers) -> Mask:
    """Whether the statistics of a column come from a program that has read the values.

    DuckDB writes all numbers, and so do commits of Iceberg clients. Other programs leave some out,
    write 0, or count NULLs twice; they also cut bounds, and do not look for NaN.
    """
    measured: Mask = (sizes > 0) & (values >= 0) & (values + nulls == record_counts)
    return measured


EXACT_DIGITS = 15
"""A decimal with more digits may have been rounded, by a program that has it as a double."""


def is_rounded(type_name: str, text: str | None) -> bool:
    """Whether an unmeasured bound may be one of a decimal that has lost digits."""
    if text is None or precision_and_scale(type_name) is None:
        return False
    return sum(map(str.isdigit, text)) > EXACT_DIGITS


WIDENED = {"timestamp", "timestamptz"}
MILLISECOND = 1000


def widened(type_name: str, upper: Texts, unmeasured: Mask) -> Texts:
    """Upper bounds, of which unmeasured ones cover the whole last millisecond.

    Delta tables have statistics in milliseconds, cut off.
    """
    if type_name not in WIDENED or not unmeasured.any():
        return upper
    micros = upper.data.view("<i8").copy()
    is_cut = unmeasured[present(upper)] & (micros % MILLISECOND == 0)
    micros[is_cut] += MILLISECOND - 1
    return Texts(micros.view(np.uint8), upper.lengths, upper.present)


def unreadable(
    texts: Sequence[str | None], read: Texts, doubtful: Mask, written_types: Sequence[str | None]
) -> Mask:
    """Which doubtful bounds are texts that are no values of the type the file was written in.

    Args:
        read: the bounds that are published.
        doubtful: the files whose bounds are checked.
        written_types: of the column in each file; None: it has no such column.
    """
    is_unreadable = np.zeros(len(texts), np.bool_)
    for place in np.flatnonzero(doubtful & ~present(read)).tolist():
        text, type_name = texts[place], written_types[place]
        if text is not None and type_name is not None:
            is_unreadable[place] = not _is_value(type_name, text)
    return is_unreadable


ODD = re.compile(r"-?(infinity|inf|nan)|[0-9]{4,}-[0-9]{2}-[0-9]{2}.*")
"""Values that Iceberg does not have, or Python: years before 1 and after 9999."""


def _is_value(type_name: str, text: str) -> bool:
    if ODD.fullmatch(text):
        return True
    try:
        value(type_name, drop_utc_offset(type_name, text))
    except (ValueError, OverflowError):
        return False
    return True


def unordered(
    type_name: str, lower: Texts, upper: Texts, texts: tuple[Sequence[str | None], ...]
) -> Mask:
    """Which files have a lower bound above the upper one.

    Args:
        texts: the same bounds as the catalog has them.
    """
    both = present(lower) & present(upper)
    if type_name == "string":  # in the order of their bytes, as UTF-8 is
        pairs = zip(both.tolist(), *texts, strict=True)
        above = (is_pair and low > high for is_pair, low, high in pairs)
        return np.fromiter(above, np.bool_, len(both))
    layout = iceberg_type(type_name).layout
    if layout:
        return both & (_fixed(lower, layout) > _fixed(upper, layout))
    order: Callable[[bytes], Any] = _unscaled if precision_and_scale(type_name) else bytes
    pairs = zip(both.tolist(), items(lower), items(upper), strict=True)
    above = (is_pair and order(low) > order(high) for is_pair, low, high in pairs)
    return np.fromiter(above, np.bool_, len(both))


def _unscaled(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def present(texts: Texts) -> Mask:
    """Which texts are present."""
    return np.ones(len(texts.lengths), np.bool_) if texts.present is None else texts.present


def drop_texts(texts: Texts, dropped: Mask) -> Texts:
    """The texts without those that are dropped."""
    is_present = present(texts) & ~dropped
    data = texts.data[np.repeat(~dropped, texts.lengths)]
    return Texts(data, np.where(is_present, texts.lengths, 0), is_present)


def items(texts: Texts) -> list[bytes]:
    """The texts one by one; an absent one is empty."""
    data = texts.data.tobytes()
    ends = np.cumsum(texts.lengths)
    starts = (ends - texts.lengths).tolist()
    return [data[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]


def _fixed(texts: Texts, layout: str) -> NDArray[Any]:
    """The values of a fixed layout; those that are absent are 0."""
    values = np.frombuffer(texts.data.tobytes(), np.dtype(layout))
    if len(values) == len(texts.lengths):
        return values
    every = np.zeros(len(texts.lengths), values.dtype)
    every[present(texts)] = values
    return every


class SourceStats(NamedTuple):
    """The statistics of the source column of a partition field, in n files."""

    lower: Texts
    upper: Texts
    """Only those that are values of the column."""
    nulls: Numbers
    """Negative: not known."""


def contradicted(
    field: PartitionField,
    type_name: str,
    values: Sequence[Any],
    stats: SourceStats,
    record_counts: Numbers,
) -> Mask:
    """Which partition values of n files cannot be those of all rows of their file.

    Args:
        type_name: Iceberg's type of the source column.
        values: Iceberg's values, one for each file.
    """
    is_null = np.fromiter((item is None for item in values), np.bool_, len(values))
    has_bounds = present(stats.lower) | present(stats.upper)
    of_null = has_bounds | ((stats.nulls >= 0) & (stats.nulls != record_counts))
    wrong = np.where(is_null, of_null, stats.nulls > 0)
    agree = _agreement(field.transform, type_name, values)
    for bound in (stats.lower, stats.upper):
        wrong |= present(bound) & ~is_null & ~agree(bound)
    if match := BUCKET.fullmatch(field.transform):
        buckets = int(match[1])
        outside = (item is not None and not 0 <= item < buckets for item in values)
        wrong |= np.fromiter(outside, np.bool_, len(values))
        return wrong | _has_other_bucket(buckets, type_name, values, stats)
    return wrong


CUT_AT = 256
"""DuckDB cuts bounds to so many bytes: of longer texts they have only the beginning."""


def _agreement(transform: str, type_name: str, values: Sequence[Any]) -> Callable[[Texts], Mask]:
    """A function that compares the values with the transform of a bound."""
    numbers = NUMBERED.get(transform)
    if numbers is not None and type_name in UNITS:
        of_values = np.array([item or 0 for item in values], np.int64)
        unit = UNITS[type_name]
        return lambda bound: numbers(_fixed(bound, unit.layout), unit) == of_values
    if transform == "identity":
        encoded = {item: to_bytes(type_name, item) for item in set(values) - {None}}
        return lambda bound: np.fromiter(
            (
                encoded.get(item) == text or len(text) >= CUT_AT
                for item, text in zip(values, items(bound), strict=True)
            ),
            np.bool_,
            len(values),
        )
    if (match := TRUNCATE.fullmatch(transform)) and type_name in CUT:
        width, decoded = int(match[1]), CUT[type_name]
        return lambda bound: np.fromiter(
            (
                item == decoded(text)[:width]
                for item, text in zip(values, items(bound), strict=True)
            ),
            np.bool_,
            len(values),
        )
    return lambda bound: np.ones(len(values), np.bool_)  # nothing can be said


CUT: Mapping[str, Callable[[bytes], Any]] = {"string": bytes.decode, "binary": bytes}


class Unit(NamedTuple):
    """How a number counts time since 1970."""

    layout: str
    code: str
    """numpy's."""
    hour: int
    """How many are an hour; 0: it has no hours."""


UNITS: Mapping[str, Unit] = {
    "date": Unit("<i4", "D", 0),
    **dict.fromkeys(("timestamp", "timestamptz"), Unit("<i8", "us", HOUR)),
}


def _part(code: str) -> Callable[[NDArray[Any], Unit], Numbers]:
    def part(numbers: NDArray[Any], unit: Unit) -> Numbers:
        moments = numbers.astype(np.int64).view(f"datetime64[{unit.code}]")
        return moments.astype(f"datetime64[{code}]").astype(np.int64)

    return part


NUMBERED: Mapping[str, Callable[[NDArray[Any], Unit], Numbers]] = {
    "year": _part("Y"),
    "month": _part("M"),
    "day": _part("D"),
    "hour": lambda numbers, unit: numbers.astype(np.int64) // unit.hour,
}
"""Iceberg's transforms of times, of many values at once."""


def _has_other_bucket(
    buckets: int, type_name: str, values: Sequence[Any], stats: SourceStats
) -> Mask:
    """Which files have one value, and it belongs to another bucket."""
    both = present(stats.lower) & present(stats.upper)
    hashes: dict[bytes, int] = {}
    is_other = np.zeros(len(values), np.bool_)
    layout = iceberg_type(type_name).layout
    pairs = zip(both.tolist(), values, items(stats.lower), items(stats.upper), strict=True)
    for place, (is_pair, item, low, high) in enumerate(pairs):
        if not is_pair or low != high or item is None or len(low) >= CUT_AT:
            continue
        if low not in hashes:
            number = int(np.frombuffer(low, layout)[0]) if layout else 0
            hashed = number.to_bytes(8, "little", signed=True) if layout else low
            hashes[low] = hash_of(hashed)
        is_other[place] = hashes[low] % buckets != item
    return is_other
