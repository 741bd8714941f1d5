"""Dates, times, timestamps and intervals."""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial

from .numbers import hashed_as_long, whole_number
from .records import DuckLakeType, IcebergType, Literal

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.date().toordinal()
HOUR, DAY = 3_600_000_000, 86_400_000_000  # microseconds

TIME_TEXT = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]{1,9})?)")


def days(text: str) -> int:
    """Parse a date: days since 1970.

    Raises:
        ValueError: the text is not a date of the years 1 to 9999.
    """
    return date.fromisoformat(text).toordinal() - EPOCH_DAY


def time(text: str) -> int:
    """Parse a time of day: microseconds since midnight.

    Raises:
        ValueError: the text is not a time.
    """
    # Not datetime.time: DuckDB has 24:00:00.
    match = TIME_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time: {text!r}")
    hours, minutes, seconds = match.groups()
    micros = int(Decimal(seconds) * 1_000_000)
    return (int(hours) * 60 + int(minutes)) * 60_000_000 + micros


def timestamp(text: str) -> int:
    """Parse a timestamp without a time zone: microseconds since 1970.

    Raises:
        ValueError: the text is not a timestamp of the years 1 to 9999, or has a time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(f"a time zone in a timestamp: {text!r}")
    return _microseconds_since_epoch(moment.replace(tzinfo=UTC))


UTC_OFFSET = re.compile(r"[+]00(?::00)?$")


def utc_timestamp(text: str) -> int:
    """Parse a timestamp without a time zone, whose text may have the zone UTC all the same.

    DuckDB reads it in the same way.

    Raises:
        ValueError: the text is not a timestamp of the years 1 to 9999, or has another time zone.
    """
    return timestamp(UTC_OFFSET.sub("", text) if ":" in text else text)


def timestamptz(text: str) -> int:
    """Parse a timestamp with a time zone: microseconds since 1970.

    Raises:
        ValueError: the text is not a timestamp of the years 1 to 9999, or has no time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in a timestamptz: {text!r}")
    try:
        return _microseconds_since_epoch(moment.astimezone(UTC))
    except OverflowError:
        raise ValueError(f"not in the years 1 to 9999 in UTC: {text!r}") from None


# datetime has microseconds only: it reads the text before the fraction.
SECONDS = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8})(?:\.([0-9]{1,9}))?(\+00(?::00)?)?")


def nanoseconds(text: str, *, needs_zone: bool = False) -> int:
    """Parse a timestamp without a time zone, or in UTC: nanoseconds since 1970.

    Args:
        needs_zone: refuse a text that does not say that it is in UTC.

    Raises:
        ValueError: the text is not a timestamp of the years 1677 to 2262, or not in UTC.
    """
    match = SECONDS.fullmatch(text)
    if match is None or (needs_zone and not match[3]):
        raise ValueError(f"not certain nanoseconds: {text!r}")
    nanos = timestamp(match[1]) * 1000 + int((match[2] or "").ljust(9, "0"))
    if not -(2**63) < nanos < 2**63 - 1:  # DuckDB's infinities
        raise ValueError(f"not a time in nanoseconds: {text!r}")
    return nanos


def _microseconds_since_epoch(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _default(micros: int) -> str:
    return _moment(micros).replace(tzinfo=None).isoformat(timespec=MICROS)


def _time_of_day(micros: int) -> str:
    if micros >= DAY:
        raise ValueError("Iceberg has no 24:00:00")
    return _moment(micros).time().isoformat(timespec=MICROS)


MICROS = "microseconds"

MICROSECONDS = re.compile(r".*:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9:]{5})?")
"""A time of day without nanoseconds, which Python would ignore."""


def _date_text(literal: Literal) -> str:
    number = days(literal) if isinstance(literal, str) else whole_number(literal)
    return date.fromordinal(number + EPOCH_DAY).isoformat()


def _time_text(literal: Literal) -> str:
    micros = time(literal) if isinstance(literal, str) else whole_number(literal)
    if not 0 <= micros < DAY:
        raise ValueError(micros)
    return _trimmed(_moment(micros).time().isoformat())


def _moment_text(parse: Callable[[str], int]) -> Callable[[Literal], str]:
    """Spells a literal as DuckDB does: `isoformat` too writes four digits for years before 1000."""

    def spell(literal: Literal) -> str:
        if isinstance(literal, str) and not MICROSECONDS.fullmatch(literal):
            raise ValueError(literal)
        micros = parse(literal) if isinstance(literal, str) else whole_number(literal)
        return _trimmed(_moment(micros).replace(tzinfo=None).isoformat(" "))

    return spell


NANOSECONDS_TEXT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?(Z|\+00:00)?"
)


def _nanoseconds_text(literal: Literal, *, is_utc: bool) -> str:
    """Spells a literal as DuckDB does; a number may mean microseconds."""
    match = NANOSECONDS_TEXT.fullmatch(literal) if isinstance(literal, str) else None
    if match is None or bool(match[4]) != is_utc:
        raise ValueError(literal)
    moment = f"{match[1]} {match[2]}"
    timestamp(moment)
    return _trimmed(moment + (match[3] or ""))


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _year(days: int) -> int:
    return (EPOCH + timedelta(days)).year - 1970


def _month(days: int) -> int:
    day = EPOCH + timedelta(days)
    return (day.year - 1970) * 12 + day.month - 1


PARTS_OF_DATES: dict[str, Callable[[int], int]] = {"year": _year, "month": _month, "day": int}
PARTS_OF_TIMES: dict[str, Callable[[int], int]] = {
    "year": lambda micros: _year(micros // DAY),
    "month": lambda micros: _month(micros // DAY),
    "day": lambda micros: micros // DAY,
    "hour": lambda micros: micros // HOUR,
}

DATE = IcebergType(
    "date",
    ducklake="date",
    parse=days,
    layout="<i",
    default=lambda text: date.fromordinal(days(text) + EPOCH_DAY).isoformat(),
    avro={"type": "int", "logicalType": "date"},
    has_identity=True,
    hashed=hashed_as_long,
    parts=PARTS_OF_DATES,
    form="date",
    literal=_date_text,
)
TIME = IcebergType(
    "time",
    ducklake="time",
    hive="string",
    parse=time,
    layout="<q",
    default=lambda text: _time_of_day(time(text)),
    avro={"type": "long", "logicalType": "time-micros"},
    hashed=hashed_as_long,
    form="time",
    literal=_time_text,
)
TIMESTAMP = IcebergType(
    "timestamp",
    ducklake="timestamp",
    parse=utc_timestamp,
    layout="<q",
    default=lambda text: _default(utc_timestamp(text)),
    avro={"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    has_identity=True,
    hashed=hashed_as_long,
    parts=PARTS_OF_TIMES,
    form="timestamp",
    literal=_moment_text(timestamp),
)
TIMESTAMPTZ = IcebergType(
    "timestamptz",
    ducklake="timestamptz",
    hive="timestamp",
    parse=timestamptz,
    layout="<q",
    default=lambda text: _moment(timestamptz(text)).isoformat(timespec=MICROS),
    avro={"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    hashed=hashed_as_long,
    parts=PARTS_OF_TIMES,
    form="timestamptz",
    literal=_moment_text(timestamptz),
)


def _nanoseconds_json(text: str, zone: str = "") -> str:
    """Spells the text of a default as Iceberg's JSON does."""
    nanoseconds(text, needs_zone=bool(zone))
    moment, _, fraction = UTC_OFFSET.sub("", text).partition(".")
    offset = "+00:00" if zone else ""
    return f"{moment.replace(' ', 'T')}.{fraction.ljust(9, '0')}{offset}"


TIMESTAMP_NS = IcebergType(
    "timestamp_ns",
    ducklake="timestamp_ns",
    format_version=3,
    hive="string",
    parse=nanoseconds,
    layout="<q",
    default=_nanoseconds_json,
    has_loadable_default=False,
    form="timestamp_ns",
    literal=partial(_nanoseconds_text, is_utc=False),
)
TIMESTAMPTZ_NS = IcebergType(
    "timestamptz_ns",
    ducklake="timestamptz_ns",
    format_version=3,
    hive="string",
    parse=partial(nanoseconds, needs_zone=True),
    layout="<q",
    default=partial(_nanoseconds_json, zone="+00"),
    has_loadable_default=False,
    form="timestamptz_ns",
    literal=partial(_nanoseconds_text, is_utc=True),
)
ICEBERG = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)

INFINITIES = {"infinity": math.inf, "-infinity": -math.inf}
"""The infinite dates and timestamps."""


def _or_infinite(parse: Callable[[str], int]) -> Callable[[str], float]:
    return lambda text: INFINITIES[text] if text in INFINITIES else parse(text)


DAYS_IN_400_YEARS = 146_097


def _text_of_date(days: int) -> str:
    if abs(days) == 2**31 - 1:  # as DuckDB stores infinite dates
        return "infinity" if days > 0 else "-infinity"
    return "{} {}".format(*_date_and_era(days)).rstrip()


def _date_and_era(days: int) -> tuple[str, str]:
    """The date, and the suffix `(BC)` or an empty text."""
    # Python's years begin with 1 and end with 9999; the calendar repeats every 400 years.
    cycles, day_of_cycle = divmod(days + EPOCH_DAY - 1, DAYS_IN_400_YEARS)
    day = date.fromordinal(day_of_cycle + 1)
    year = day.year + 400 * cycles
    era = "" if year > 0 else "(BC)"
    return f"{year if year > 0 else 1 - year:04d}-{day.month:02d}-{day.day:02d}", era


def _text_of_time(micros: int) -> str:
    seconds, micros = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}".rstrip("0") if micros else text


def _text_of_timestamp(micros: int, zone: str = "") -> str:
    if abs(micros) == 2**63 - 1:  # as DuckDB stores infinite timestamps
        return "infinity" if micros > 0 else "-infinity"
    days, micros = divmod(micros, DAY)
    date, era = _date_and_era(days)
    return " ".join(filter(None, (date, era, _text_of_time(micros)))) + zone


def _text_of_nanoseconds(nanos: int) -> str:
    micros, remainder = divmod(nanos, 1000)
    if not remainder:
        return _text_of_timestamp(micros)
    whole = _text_of_timestamp(micros - micros % 1_000_000)
    return f"{whole}.{nanos % 1_000_000_000:09d}".rstrip("0")


NANOSECONDS = "nanoseconds need format version 3, which not every client reads"

DUCKLAKE = (
    DuckLakeType(
        "date",
        DATE,
        duckdb="DATE",
        order=_or_infinite(days),
        text=_text_of_date,
        in_files=frozenset({"DATE"}),
        has_same_buckets=True,
        has_same_calendar=True,
        spark="date",
        arrow=("date32",),
    ),
    DuckLakeType(
        "time",
        TIME,
        duckdb="TIME",
        postgres="time",
        order=time,
        text=_text_of_time,
        in_files=frozenset({"TIME"}),
        has_same_buckets=True,
        spark="time",
        arrow=("time64", "us"),
    ),
    DuckLakeType(
        "timetz",
        reason="DuckLake drops the offset in files and keeps it in inlined rows",
        duckdb="TIMETZ",
        postgres="timetz",
        has_counts=False,
    ),
    DuckLakeType(
        "timestamp",
        TIMESTAMP,
        duckdb="TIMESTAMP",
        order=_or_infinite(utc_timestamp),
        text=_text_of_timestamp,
        in_files=frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"}),
        has_same_buckets=True,
        has_same_calendar=True,
        spark="timestamp_ntz",
        arrow=("timestamp", "us"),
    ),
    DuckLakeType(
        "timestamp_s",
        TIMESTAMP,
        duckdb="TIMESTAMP_S",
        order=_or_infinite(utc_timestamp),
        text=_text_of_timestamp,
        in_files=frozenset({"TIMESTAMP_S"}),
        decimals=0,
        # The buckets differ, as for milliseconds and nanoseconds: DuckLake and Iceberg hash them
        # differently.
        read_as="timestamp_ntz",
        accepts=("timestamp_ntz",),
        # Parquet has no seconds: DuckLake writes microseconds.
        arrow=("timestamp", "us"),
    ),
    DuckLakeType(
        "timestamp_ms",
        TIMESTAMP,
        duckdb="TIMESTAMP_MS",
        order=_or_infinite(utc_timestamp),
        text=lambda millis: _text_of_timestamp(millis * 1000),
        in_files=frozenset({"TIMESTAMP_S", "TIMESTAMP_MS"}),
        decimals=3,
        read_as="timestamp_ntz",
        accepts=("timestamp_ntz",),
        arrow=("timestamp", "ms"),
    ),
    DuckLakeType(
        "timestamp_ns",
        TIMESTAMP_NS,
        reason=NANOSECONDS,
        duckdb="TIMESTAMP_NS",
        order=_or_infinite(nanoseconds),
        text=_text_of_nanoseconds,
        in_files=frozenset({"TIMESTAMP_NS"}),
        decimals=9,
        read_as="timestamp_ntz",
        accepts=("timestamp_ntz",),
        arrow=("timestamp", "ns"),
    ),
    DuckLakeType(
        "timestamptz",
        TIMESTAMPTZ,
        duckdb="TIMESTAMPTZ",
        order=_or_infinite(timestamptz),
        text=lambda micros: _text_of_timestamp(micros, "+00"),
        in_files=frozenset({"TIMESTAMP WITH TIME ZONE"}),
        # Other years, months, days and hours: DuckLake computes them in the time zone of the
        # writer's session.
        spark="timestamp",
        arrow=("timestamp", "us", "UTC"),
    ),
    DuckLakeType(
        "timestamptz_ns",
        TIMESTAMPTZ_NS,
        reason=NANOSECONDS,
        duckdb="TIMESTAMPTZ_NS",
        duckdb_1="TIMESTAMP_NS",  # in UTC: DuckDB adds the offset in a text
        in_files=frozenset({"TIMESTAMPTZ_NS"}),
        decimals=9,
    ),
    DuckLakeType(
        "interval",
        reason="Iceberg has no interval",
        duckdb="INTERVAL",
        postgres="interval",
        has_counts=False,
    ),
)
