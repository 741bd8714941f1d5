"""Lakes that ducklake-dataframe and ducklake-sdk wrote, with Polars (tests/lakes/others/polars)."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.processes.serving import serving
from pyiceberg.expressions import GreaterThan, LessThan

from tests.support import rest
from tests.support.file_lakes import FileLake, NativeFile

OTHERS = Path(__file__).parents[1] / "lakes/others/polars"
NESTED = [
    {"i": 1, "s": {"a": 1, "b": "x"}, "l": [1, 2]},
    {"i": 2, "s": {"a": 2, "b": "y"}, "l": [3]},
]
"""As ducklake-dataframe wrote them, and reads them again; DuckDB reads NULL in them."""
FIRST, LAST = datetime(2020, 1, 1, 1, 2, 3, 456789), datetime(2021, 6, 7, 8, 9, 10, 1)


@pytest.fixture(scope="module", params=["dataframe", "sdk"])
def lake(request, tmp_path_factory) -> FileLake:
    folder = tmp_path_factory.mktemp("polars")
    shutil.copytree(OTHERS / request.param / "data", folder / "data")
    lake = FileLake(request.param, "sqlite", folder)
    text = (OTHERS / request.param / "lake.sql").read_text()
    with closing(sqlite3.connect(lake.file)) as con:
        con.executescript(text.replace("{{DATA_PATH}}", str(lake.data)))
    return lake


@pytest.fixture(scope="module")
def bridge(lake):
    settings = {"SCAN_PLANNING": "server"}
    with serving(lake.address, None, delivery="object-lambda", settings=settings) as bridge:
        yield bridge


@pytest.fixture(scope="module")
def clients(bridge):
    where = bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint
    with closing(pyiceberg.open(*where)) as one, closing(duckdb.open(*where)) as other:
        yield one, other


def rows(reader, table: str) -> list[dict]:
    return sorted(reader.rows("main", table, None).to_pylist(), key=lambda row: row["i"])


@pytest.mark.parametrize("lake", ["dataframe"], indirect=True)
def test_columns_that_were_added_again_and_nested_columns_and_times(lake, bridge, clients):
    iceberg, by_duckdb = clients
    with closing(NativeFile(lake)) as native:
        readded = native.query("SELECT i, c FROM lake.readded ORDER BY i")
        numbers = native.query("SELECT i FROM lake.times ORDER BY i")
    assert readded == [(1, None), (2, None), (3, 7)]
    for reader in clients:
        assert [(row["i"], row["c"]) for row in rows(reader, "readded")] == readded
    assert rows(iceberg, "nested") == NESTED
    # PyIceberg cannot open a file with a time in nanoseconds, whatever columns it reads.
    assert [(row["i"],) for row in rows(by_duckdb, "times")] == numbers
    properties = rest.Rest(bridge.catalog_uri, bridge.warehouse).load_table("main", "times")
    assert "nanoseconds" in properties["properties"]["polynya.hidden-columns-reason"]


@pytest.mark.slow  # the texts are in CI, in test_values.py and test_bound_texts.py
@pytest.mark.parametrize("lake", ["sdk"], indirect=True)
def test_bounds_with_t_and_zone_let_clients_and_plans_skip_files(lake, bridge, clients):
    iceberg, _ = clients
    with closing(NativeFile(lake)) as native:
        expected = native.query("SELECT i, ts, tz::VARCHAR FROM lake.moments ORDER BY ts")
    assert len(expected) == 40 and expected[-1][1] == LAST
    table = iceberg._catalog.load_table(("main", "moments"))
    cases = {
        GreaterThan("ts", (LAST - timedelta(microseconds=1)).isoformat()): [LAST],
        LessThan("ts", (FIRST - timedelta(seconds=18)).isoformat()): [
            FIRST - timedelta(seconds=19)
        ],
        GreaterThan("tz", (LAST - timedelta(seconds=1)).replace(tzinfo=UTC).isoformat()): [LAST],
    }
    for planner in ("client", "server"):
        iceberg._catalog.properties["scan-planning-mode"] = planner
        for filter_, moments in cases.items():
            scan = table.scan(filter_)
            assert len([*scan.plan_files()]) == 1, (planner, filter_)
            assert scan.to_arrow()["ts"].to_pylist() == moments
