"""The layout of a table changes after its files were read: what was generated then is still cached.

Random histories of native and Iceberg writers found that all rows of a table were gone for Iceberg
clients: the column by which its files were partitioned was dropped, so that they became
unpartitioned; and the manifest of unpartitioned files, which was empty before, kept its name.
"""

from contextlib import closing

import pytest
from polynya.mapping.partitions import Partitions
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from pyiceberg.exceptions import ServerError

from tests.support.servers.in_process import bridge

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
"""
BY_A = (
    "CREATE TABLE {t}(k INTEGER, a INTEGER, b VARCHAR, d DATE)",
    "ALTER TABLE {t} SET PARTITIONED BY (a)",
    "INSERT INTO {t} SELECT i, i % 2, 'x', '2030-01-01' FROM range(40) AS r(i)",
)
MORE = "INSERT INTO {t} BY NAME SELECT 100 + i AS k FROM range(20) AS r(i)"
DELETE = "DELETE FROM {t} WHERE k IN (1, 2, 101)"
RESET = "ALTER TABLE {t} RESET PARTITIONED BY"
DROP = "ALTER TABLE {t} DROP COLUMN a"
LAYOUTS = {
    "the column is dropped": (*BY_A, RESET, DROP, MORE, DELETE),
    "after a delete": (*BY_A, DELETE, RESET, DROP, MORE),
    "after inlined rows": (*BY_A, "INSERT INTO {t} VALUES (50, 1, 'in', NULL)", RESET, DROP),
    "and comes again": (*BY_A, RESET, DROP, "ALTER TABLE {t} ADD COLUMN a INTEGER", MORE),
    "another column": (*BY_A, "ALTER TABLE {t} SET PARTITIONED BY (b)", DROP, MORE, DELETE),
    "one of two columns": (
        BY_A[0],
        "ALTER TABLE {t} SET PARTITIONED BY (a, b)",
        BY_A[2],
        RESET,
        DROP,
        MORE,
        "ALTER TABLE {t} DROP COLUMN b",
    ),
    "buckets": (BY_A[0], "ALTER TABLE {t} SET PARTITIONED BY (bucket(4, a))", BY_A[2], RESET, DROP),
    "parts of a date": (
        BY_A[0],
        "ALTER TABLE {t} SET PARTITIONED BY (year(d), month(d))",
        BY_A[2],
        RESET,
        "ALTER TABLE {t} DROP COLUMN d",
        DELETE,
    ),
    "another type": (*BY_A, RESET, "ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT", MORE, DELETE),
    "another name": (*BY_A, "ALTER TABLE {t} RENAME COLUMN a TO c", MORE, RESET, DELETE),
    "merged": (*BY_A, MORE, RESET, DROP, "CALL ducklake_merge_adjacent_files('lake')"),
}


# The column goes, with rows in files; files are merged.
IN_CI = {"the column is dropped", "merged"}
CASES = [
    pytest.param(layout, marks=[pytest.mark.slow] * (layout not in IN_CI)) for layout in LAYOUTS
]
DELIVERIES = ["object-lambda", pytest.param("materialize", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=DELIVERIES)
def warm(request, lake, moto):
    """The lake, PyIceberg on it, and a DuckDB that may write."""
    one = lake.write(f"warm_layouts_{request.param.partition('-')[0]}", SCRIPT)
    with (
        bridge(one, moto, delivery=request.param, settings={"CHUNK_FILES": "2"}) as served,
        closing(pyiceberg.open(served.catalog_uri, served.warehouse, served.s3_endpoint)) as client,
        connect(LAKE, moto) as con,
    ):
        attach(con, one, read_only=False)
        yield one, client, con


@pytest.mark.parametrize("layout", CASES)
def test_rows_are_right_after_each_statement(layout, warm, moto):
    one, client, con = warm
    table = f"t{[*LAYOUTS].index(layout)}"
    with closing(native.open(one, moto)) as truth:
        for sql in LAYOUTS[layout]:
            con.execute(sql.format(t=f"lake.{table}"))
            wrong = differences(truth, client, table)
            assert not wrong, (sql, wrong)


def test_a_manifest_of_other_files_is_an_error(lake, moto, monkeypatch):
    """The fault above, planted again: the list is refused, instead of missing rows."""
    monkeypatch.setattr(Partitions, "fields_of", lambda *_: ())
    one = lake.write("warm_layouts_planted", SCRIPT)
    with (
        bridge(one, moto, delivery="materialize", settings={"CHUNK_FILES": "2"}) as served,
        closing(pyiceberg.open(served.catalog_uri, served.warehouse, served.s3_endpoint)) as client,
        connect(LAKE, moto) as con,
    ):
        attach(con, one, read_only=False)
        for sql in (*BY_A, RESET):
            con.execute(sql.format(t="lake.t"))
            client.rows("main", "t", None)
        con.execute(DROP.format(t="lake.t"))
        with pytest.raises(ServerError, match="have 0 data files, and the catalog has 2"):
            client.rows("main", "t", None)


def differences(truth: native.Native, client: pyiceberg.PyIceberg, table: str) -> list[str]:
    rows = from_arrow(client.rows("main", table, None), truth.columns("main", table))
    return difference(truth.canonical("main", table), rows)
