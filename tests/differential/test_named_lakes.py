"""Lakes of what clients misread without new footers, random ones and one of all types of added
files: each client reads its own warehouse, such as `lake+spark`, at every snapshot and with
conditions, as DuckLake has the rows.

POLYNYA_FIRST_LAKE=100 and POLYNYA_LAKES=20 choose other seeds.
"""

import os
import re
from contextlib import closing
from pathlib import Path

import pytest
from polynya_local.clients import native, spark
from polynya_local.clients.native import write_lake
from polynya_local.clients.spark_jars import why_not

from tests.matrix import run
from tests.matrix.added_types import added_types
from tests.matrix.random_lakes import write_random_lake
from tests.support import rest

MATRIX = Path(__file__).parents[2] / ".venv-matrix" / "bin" / "python"
FIRST, LAKES = (
    int(os.environ.get(f"POLYNYA_{name}", n)) for name, n in (("FIRST_LAKE", 1), ("LAKES", 2))
)
SNAPSHOTS = 100  # of each table, at most
KNOWN = {
    # It has no NULL for a list or a struct.
    "ClickHouse": r"is \[\], not NULL|s is \{.*NULL.*\}, not (NULL|\{)",
    "DataFusion": r"data type: Timestamp\(ms\)",
    # Conditions on the past are bound to the current columns.
    "Daft": r" at \d+ of .*: ValueError: Could not find field",
    "PyIceberg": r" at \d+ of .*: Could not find field",
    "Spark": r" at \d+ of .*: .*Cannot find field",
}
"""By client: what its own faults look like, which no footer makes up for (docs/clients/)."""
without_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
without_matrix = pytest.mark.skipif(not MATRIX.exists(), reason="`make matrix` makes .venv-matrix")
CLIENTS = [
    *("DuckDB", "PyIceberg"),
    pytest.param("Spark", marks=[pytest.mark.spark, without_spark]),
    *(pytest.param(name, marks=without_matrix) for name in run.OUTSIDE),
]


@pytest.fixture(scope="module", params=[*range(FIRST, FIRST + LAKES), "added_types"])
def written(request, postgres_server, moto):
    name = f"random_lake_{request.param}"
    database = postgres_server.create_database(name)
    if request.param == "added_types":
        return write_lake(name, added_types(), database, f"s3://lakes/{name}", moto)
    lake, script = write_random_lake(request.param, name, database, f"s3://lakes/{name}", moto)
    print("\n".join(script))
    return lake


@pytest.fixture(scope="module")
def served(written, moto):
    with run.serve(written, moto, "client", "object-lambda") as served:
        yield served


@pytest.fixture(scope="module")
def judge(written, moto):
    with closing(native.open(written, moto)) as judge:
        yield judge


@pytest.fixture(scope="module", autouse=True)
def spark_session():
    yield
    spark.stop()


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_reads_what_ducklake_has(client, written, served, judge):
    bridge, where = served
    where = {**where, "warehouse": f"lake+{client.lower()}"}
    catalog = rest.Rest(bridge.catalog_uri, where["warehouse"])
    seen = {client: run.Seen()}
    with closing(run.opened(client, str(MATRIX), where)) as reader:
        for table in judge.tables():
            own = (written.name, judge, catalog, table, {client: reader}, seen)
            run.read_table(*own, SNAPSHOTS, filters_past=True)
    print(client, seen[client].same, "answers are right")
    known = re.compile(KNOWN.get(client, "(?!)"))
    faults = [": ".join(fault) for fault in seen[client].faults]
    wrong = [fault for fault in faults if not known.search(fault)]
    assert not wrong, "\n".join(wrong)
    assert seen[client].same > 0
