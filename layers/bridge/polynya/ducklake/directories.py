"""How a writer names the directories of partitioned files: `p=1/t_day=2024-01-30/`."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from itertools import takewhile
from urllib.parse import quote, quote_plus

from .rows.objects import PartitionColumn

HASH = re.compile("[0-9a-f]{4,}")

PARTS = ("year", "month", "day", "hour")
EPOCHS = tuple(f"epoch_{part}" for part in PARTS)

EPOCH = date(1970, 1, 1)


def directory_kind(path: str, keys: Sequence[PartitionColumn], values: Sequence[str | None]) -> str:
    """The directory of a file, with how a value is written in place of the value.

    Files of one kind and of equal values are in one directory, unless directories are named by
    hashes.

    Args:
        path: of the file.
        keys: in the order of the values, with transforms of DuckLake where it has them.
    """
    names: dict[str, str] = {}
    for name, text in _spellings(keys, values):
        names.setdefault(text, name)

    def kind(level: str) -> str:
        key, separator, text = level.partition("=")
        if not separator:
            return "{hash}" if HASH.fullmatch(level) else level
        # A text that is no known spelling (of NULL, for example) is a kind of its own.
        return f"{key}={{{names[text]}}}" if text in names else level

    return "".join(f"{kind(level)}/" for level in path.split("/")[:-1]) or "/"


def _spellings(
    keys: Sequence[PartitionColumn], values: Sequence[str | None]
) -> Iterator[tuple[str, str]]:
    """The texts that writers have for these values in names of directories, each with its own
    name."""
    calendar: dict[int, dict[str, int]] = {}
    texts: list[tuple[str, str]] = []
    for key, value in zip(keys, values, strict=False):
        if value is None:
            continue
        if key.transform in PARTS and re.fullmatch("[0-9]{1,9}", value):
            calendar.setdefault(key.column_id, {})[key.transform] = int(value)
        if key.transform in EPOCHS:
            for name, text in _times(_calendar(EPOCHS.index(key.transform), value)):
                yield f"{name} of {key.column_id}", text
        name = f"{key.partition_key_index}"
        texts += [(name, value), (f"{name} in ISO 8601", _iso_8601(value))]
    for column_id, numbers in calendar.items():
        parts = [numbers[part] for part in takewhile(numbers.__contains__, PARTS)]
        # Around 1970, a part sometimes has the same number as a coarser one.
        for count in range(len(parts), 0, -1):
            for name, text in _times(parts[:count]):
                yield f"{name} of {column_id}", text
    for name, text in texts:
        yield name, text
        yield f"{name} quoted", quote(text, safe="")
        yield f"{name} quoted for forms", quote_plus(text)


def _iso_8601(value: str) -> str:
    """A timestamp or a time as PyIceberg writes it; other values as they are."""
    for type_ in (datetime, time):
        with suppress(ValueError):
            return type_.fromisoformat(value).isoformat()
    return value


def _calendar(finest: int, value: str) -> tuple[int, ...]:
    """The parts of a number of years, months, days or hours since 1970; empty if there are none.

    Args:
        finest: the index in PARTS.
    """
    with suppress(ValueError, OverflowError):
        number = int(value)
        if finest == 0:
            return (1970 + number,)
        if finest == 1:
            return 1970 + number // 12, number % 12 + 1
        days, hour = (number, 0) if finest == 2 else divmod(number, 24)
        day = EPOCH + timedelta(days)
        return (day.year, day.month, day.day, hour)[: finest + 1]
    return ()


def _times(parts: Sequence[int]) -> Iterator[tuple[str, str]]:
    """A year, a month, a day or an hour in Iceberg's two spellings.

    Args:
        parts: of the calendar, coarsest first; all but the last are coarser.
    """
    if not parts:
        return
    part = PARTS[len(parts) - 1]
    year, month, day, hour = (*parts, *(1, 1, 1, 0)[len(parts) :])
    yield f"{part} for people", "-".join([f"{year:04}", *(f"{n:02}" for n in parts[1:])])
    try:
        days = (date(year, month, day) - EPOCH).days
    except ValueError:
        return
    numbers = (year - 1970, (year - 1970) * 12 + month - 1, days, days * 24 + hour)
    yield f"{part} since 1970", str(numbers[len(parts) - 1])
