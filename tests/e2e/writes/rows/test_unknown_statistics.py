"""Values whose bounds are not certain: native filters find them, also after native INSERTs.

DuckDB takes NULL in ducklake_table_column_stats for "no values so far".
"""

import pyarrow as pa
import pytest

from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.starts import DO_NOT_INLINE, INLINE
from tests.support.writes.writable import judging

LATE = (
    "CREATE TABLE {t} (id BIGINT)",
    "INSERT INTO {t} SELECT i FROM range(3) AS r(i)",
    "ALTER TABLE {t} ADD COLUMN v BIGINT",
)
DOUBLES = "CREATE TABLE {t} (id BIGINT, v DOUBLE)"
NAN = float("nan")

# Statements before the commit, the values that it appends, where statistics are written, and the
# value of the native INSERTs afterwards.
CASES = {
    "a column that was added later": (LATE, pa.array([5, 6]), True, "9"),
    "the same with inlined rows": ((INLINE, *LATE), pa.array([5, 6]), True, "9"),
    "only NULL before": (
        ("CREATE TABLE {t} (id BIGINT, v BIGINT)", "INSERT INTO {t} VALUES (1, NULL)"),
        pa.array([5, 6]),
        True,
        "9",
    ),
    "a file without statistics": (
        ("CREATE TABLE {t} (id BIGINT, v BIGINT)",),
        pa.array([5, 6]),
        ["id"],
        "9",
    ),
    "bounds before, and a file without statistics": (
        ("CREATE TABLE {t} (id BIGINT, v BIGINT)", "INSERT INTO {t} VALUES (1, 7)"),
        pa.array([5, 100]),
        ["id"],
        "9",
    ),
    # PyArrow's own bounds leave NaN out, by which DuckDB's Parquet reader loses it (exactness.md).
    "NaN, and no statistics": ((DOUBLES,), pa.array([5.0, NAN]), ["id"], "9"),
    "texts too long for a bound": (
        ("CREATE TABLE {t} (id BIGINT, v VARCHAR)",),
        pa.array(["é" * 200, "zé" * 200]),
        True,
        "'x'",
    ),
}


@pytest.fixture(scope="module")
def client_and_judge(served, moto):
    lake, servers, _ = served
    with judging(lake, moto) as judge:
        yield HandMade(servers, moto), judge


@pytest.mark.slow(but=["[only NULL before]", "[a file without statistics]"])
@pytest.mark.parametrize("case", CASES)
def test_native_filters_find_all_rows(client_and_judge, case):
    client, judge = client_and_judge
    before, values, write_statistics, native = CASES[case]
    name = f"unknown{list(CASES).index(case)}"
    judge.query(DO_NOT_INLINE)
    for sql in before:
        for of in ("lake.main", "memory.main")[: 1 if "CALL" in sql else 2]:
            judge.con.execute(sql.format(t=f"{of}.{name}"))
    rows = {("id", 1): pa.array([20, 21]), ("v", 2): values}
    assert client.commit(name, parquet(rows, write_statistics=write_statistics)) == (200, "")
    judge.con.register("appended", pa.table({"id": rows["id", 1], "v": values}))
    judge.query(f"INSERT INTO memory.main.{name} FROM appended")
    judge.check(f"main.{name}", name)
    for id_ in (30, 31):
        for of in ("lake.main", "memory.main"):
            judge.query(f"INSERT INTO {of}.{name} VALUES ({id_}, {native})")
        judge.check(f"main.{name}", name)


EXTRA_STATS = """
SELECT extra_stats FROM "__ducklake_metadata_lake".public.ducklake_table_column_stats
JOIN "__ducklake_metadata_lake".public.ducklake_table USING (table_id)
WHERE table_name = 'with_variant' AND column_id = 2"""


@pytest.mark.slow
def test_what_native_ducklake_knows_of_a_column_that_clients_do_not_see_stays(client_and_judge):
    client, judge = client_and_judge
    judge.query(DO_NOT_INLINE)
    judge.query("CREATE TABLE lake.main.with_variant (id BIGINT, v VARIANT)")
    judge.query("INSERT INTO lake.main.with_variant VALUES (1, {'a': 1}::VARIANT)")
    before = judge.query(EXTRA_STATS)
    rows = {("id", 1): pa.array([2])}
    assert client.commit("with_variant", parquet(rows)) == (200, "")
    assert judge.query(EXTRA_STATS) == before != [(None,)]
    judge.query("INSERT INTO lake.main.with_variant VALUES (3, {'a': 500}::VARIANT)")
    for condition, ids in (("v.a::INT = 1", [1]), ("v.a::INT > 400", [3]), ("v IS NULL", [2])):
        found = judge.query(f"SELECT id FROM lake.main.with_variant WHERE {condition}")
        assert found == [(id_,) for id_ in ids], condition
