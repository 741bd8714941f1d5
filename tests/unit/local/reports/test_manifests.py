"""Bounds of nanoseconds are shown as times; the judge is DuckDB."""

import duckdb
import pytest
from polynya_local.reports.manifests import _value_text
from pyiceberg.conversions import to_bytes
from pyiceberg.types import TimestampNanoType, TimestamptzNanoType

TIMES = {
    "the smallest of DuckDB": -9_223_286_400_000_000_000,
    "before 1970": -1,
    "1970": 0,
    "a day": 1_709_164_800_000_000_000,
    "nanoseconds": 1_709_168_523_000_000_004,
    "the greatest": 2**63 - 2,
}


@pytest.mark.parametrize("nanos", TIMES.values(), ids=TIMES)
def test_nanoseconds_are_a_time(nanos):
    sql = "SELECT strftime(make_timestamp_ns($1), '%Y-%m-%dT%H:%M:%S.%n')"
    [[time]] = duckdb.execute(sql, [nanos]).fetchall()
    for type_, zone in ((TimestampNanoType(), ""), (TimestamptzNanoType(), "+00:00")):
        assert _value_text(type_, to_bytes(type_, nanos)) == time + zone
