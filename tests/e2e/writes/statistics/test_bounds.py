"""Bounds of a table without values: a native INSERT after a client's append must not narrow them.

DuckLake has NULL for the bounds of a column without values, and its INSERT then writes those of its
own rows; filters lose all rows outside of them.
"""

import pyarrow as pa
import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

CREATE = "CREATE TABLE {t} (id BIGINT, s VARCHAR, d DATE)"
TYPES = pa.schema([("id", pa.int64()), ("s", pa.string()), ("d", pa.date32())])
VALUES = "INSERT INTO {{t}} VALUES ({0}, '{0}', DATE '2020-01-01' + {0})"
NULLS = "INSERT INTO {t} (id) VALUES (NULL)"
REWRITE = "CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)"
FLUSH = "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')"


def values(number):
    return VALUES.format(number)


STARTS = {
    "nothing": [],
    "NULL in a file": [NULLS],
    "NULL inlined": [INLINE, NULLS],
    "NULL, flushed": [INLINE, NULLS, FLUSH],
    "all rows deleted, rewritten": [values(500), "DELETE FROM {t}", REWRITE],
    "NULL, and all rows deleted": [NULLS, "DELETE FROM {t}", REWRITE],
}
FILTERS = ("id = 100", "id < 100", "s = '100'", "d > DATE '2020-02-01'")


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("bounds", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found, moto


@pytest.fixture
def twin(request, served):
    with opened(*served) as found:
        found.native(DO_NOT_INLINE, CREATE, *STARTS[request.param])
        yield found


# CI runs each start with one of both.
PAIRS = [
    pytest.param(start, inlining, marks=[pytest.mark.slow] * ((row + column) % 2))
    for row, start in enumerate(STARTS)
    for column, inlining in enumerate((DO_NOT_INLINE, INLINE))
]


@pytest.mark.parametrize(("twin", "inlining"), PAIRS, indirect=["twin"])
def test_filters_find_all_rows_after_a_native_insert(twin, inlining):
    rows = [{"id": n, "s": str(n), "d": DAYS + n} for n in (100, 200)]
    data = pa.Table.from_pylist(rows, schema=TYPES)
    twin.changes(f"{values(100)};{values(200)}", lambda: twin.table().append(data))
    twin.native(inlining, values(150))
    for where in FILTERS:
        counts = [
            twin.con.execute(f"SELECT count(*) FROM {source} WHERE {where}").fetchone()
            for source in (twin.source, twin.memory)
        ]
        assert counts[0] == counts[1], where
    extremes = "SELECT min({0}), max({0}), count({0}) FROM {1}"
    for column in ("id", "s", "d"):
        assert (
            twin.con.execute(extremes.format(column, twin.source)).fetchall()
            == twin.con.execute(extremes.format(column, twin.memory)).fetchall()
        ), column


DAYS = 18262
"""2020-01-01 in days since 1970."""
