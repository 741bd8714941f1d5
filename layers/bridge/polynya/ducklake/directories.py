"""How a writer names the directories of partitioned files: `p=1/t_day=2024-01-30/`."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from urllib.parse import quote, quote_plus

from .rows.objects import PartitionColumn

HASH = re.compile("[0-9a-f]{4,}")

PARTS = ("year", "month", "day", "hour")

EPOCH = date(1970, 1, 1)


def directory_kind(path: str, keys: Sequence[PartitionColumn], values: Sequence[str | None]) -> str:
    """The directory of a file, with how a value is written in place of the value.

    Files of one kind and of equal values are in one directory, unless directories are named by
    hashes.

    Args:
        path: of the file.
        keys: DuckLake's, in the order of the values.
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
    """Texts in which writers have these values in names of directories, each with its own name."""
    times: dict[int, list[int]] = {}
    for key, value in zip(keys, values, strict=False):
        if value is None:
            continue
        if key.transform in PARTS and value.isdecimal():
            times.setdefault(key.column_id, []).append(int(value))
        else:
            yield f"{key.partition_key_index}", value
            yield f"{key.partition_key_index} quoted", quote(value, safe="")
            yield f"{key.partition_key_index} quoted for forms", quote_plus(value)
    for column_id, parts in times.items():
        # A part has the number of a coarser one now and then, around 1970.
        for count in range(len(parts), 0, -1):
            for name, text in _times(parts[:count]):
                yield f"{name} of {column_id}", text


def _times(parts: Sequence[int]) -> Iterator[tuple[str, str]]:
    """A year, a month, a day or an hour in Iceberg's two spellings.

    Args:
        parts: of the calendar, coarsest first; all but the last are coarser.
    """
    part = PARTS[len(parts) - 1]
    year, month, day, hour = (*parts, *(1, 1, 1, 0)[len(parts) :])
    yield f"{part} for people", "-".join([f"{year:04}", *(f"{n:02}" for n in parts[1:])])
    try:
        days = (date(year, month, day) - EPOCH).days
    except ValueError:
        return
    numbers = (year - 1970, (year - 1970) * 12 + month - 1, days, days * 24 + hour)
    yield f"{part} since 1970", str(numbers[len(parts) - 1])
