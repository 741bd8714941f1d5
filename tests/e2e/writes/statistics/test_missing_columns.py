"""Files that lack columns of the table: their statistics say that all rows are NULL there.

Without them DuckLake's rewrite of another file forgets these NULLs, and its filters are wrong. The
judge is native DuckLake: its statistics of a file of NULLs, and its rows.
"""

import pyarrow as pa
import pytest
from pyiceberg.expressions import IsNull, NotNull

from tests.support.servers.in_process import bridge
from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

# The type of the column that the files lack, a value, and whether clients see it.
COLUMNS = {
    "integer": ("INTEGER", "7", True),
    "text": ("VARCHAR", "'x'", True),
    "float": ("DOUBLE", "1.5", True),
    "decimal": ("DECIMAL(9, 2)", "1.25", True),
    "date": ("DATE", "DATE '2020-01-01'", True),
    "struct": ("STRUCT(a INTEGER, b VARCHAR[])", "struct_pack(a := 1, b := ['x'])", True),
    "list": ("INTEGER[]", "[1, 2]", True),
    "map": ("MAP(VARCHAR, INTEGER)", "map(['k'], [1])", True),
    "hidden": ("HUGEINT", "5", False),
    "geometry": ("GEOMETRY", "'POINT(1 2)'::GEOMETRY", False),
    "variant": ("VARIANT", "42::VARIANT", False),
}
UNCOUNTED = {"variant"}
"""DuckLake's own counts of NULL are wrong there (docs/developers/ducklake.md)."""

NULLS = "INSERT INTO {t} (id) VALUES (21), (22), (23)"
REWRITE = "CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)"
MERGE = "CALL ducklake_merge_adjacent_files('lake', '{name}')"
FLUSH = "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')"
SINCE = {
    "rewrite of another file": ["DELETE FROM {t} WHERE id = 1", REWRITE],
    "rewrite of the file": ["DELETE FROM {t} WHERE id = 22", REWRITE],
    "rewrite of both": ["DELETE FROM {t} WHERE id IN (1, 22)", REWRITE],
    "update, rewrite": ["UPDATE {t} SET id = id + 100 WHERE id > 20", REWRITE],
    "merge": [MERGE],
    "rewrite, merge, rewrite": ["DELETE FROM {t} WHERE id = 22", REWRITE, MERGE, REWRITE],
    "flush, compaction": [
        INLINE,
        "DELETE FROM {t} WHERE id IN (2, 22)",
        "INSERT INTO {t} (id) VALUES (31)",
        FLUSH,
        REWRITE,
        MERGE,
    ],
}
STATS = """
SELECT column_id, value_count, null_count, min_value, max_value, contains_nan
FROM "__ducklake_metadata_lake".public.ducklake_file_column_stats
JOIN "__ducklake_metadata_lake".public.ducklake_table AS t USING (table_id)
WHERE t.table_name = '{name}' AND column_id > 1 AND data_file_id = (
  SELECT max(data_file_id) FROM "__ducklake_metadata_lake".public.ducklake_data_file AS f
  WHERE f.table_id = t.table_id)
ORDER BY column_id"""


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("missing", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found


@pytest.fixture
def twin(served, moto):
    with opened(*served, moto) as found:
        yield found


def run(twin, *statements):
    """Change the table and its twin."""
    for sql in statements:
        twin.con.execute(sql.format(t=twin.source, name=twin.name))
        if not sql.startswith("CALL"):
            twin.con.execute(sql.format(t=twin.memory))


def start(twin, served, moto, column):
    """A table with two files that have the column, and one of a client that lacks it."""
    type_, value, _ = COLUMNS[column]
    run(
        twin,
        DO_NOT_INLINE,
        f"CREATE TABLE {{t}} (id BIGINT, c {type_})",
        f"INSERT INTO {{t}} SELECT i, {value} FROM range(1, 4) AS r(i)",
        f"INSERT INTO {{t}} SELECT i, {value} FROM range(11, 14) AS r(i)",
    )
    lacking = parquet({("id", 1): pa.array([21, 22, 23], pa.int64())})
    status, message = HandMade(served[1], moto).commit(twin.name, lacking)
    assert status == 200, message
    twin.con.execute(NULLS.format(t=twin.memory))


def check(twin, column):
    """Filters by the column, natively."""
    _, value, _ = COLUMNS[column]
    conditions = ["c IS NULL", "c IS NOT NULL", "c IS NULL AND id > 11", "c IS NOT NULL OR id > 22"]
    if column not in {"geometry", "variant"}:
        conditions += [f"c = {value}", f"c <> {value}"]
    for where in conditions:
        sql = f"SELECT count(*), count(c), min(id), max(id) FROM {{}} WHERE {where}"
        found = twin.con.execute(sql.format(twin.source)).fetchall()
        assert found == twin.con.execute(sql.format(twin.memory)).fetchall(), where


@pytest.mark.parametrize("column", COLUMNS)
def test_statistics_are_those_of_a_native_insert_of_nulls(twin, served, moto, column):
    start(twin, served, moto, column)
    ours = twin.con.execute(STATS.format(name=twin.name)).fetchall()
    run(twin, NULLS)
    native = twin.con.execute(STATS.format(name=twin.name)).fetchall()
    if column in UNCOUNTED:
        native = [(id_, 0, 3, *rest) for id_, _, _, *rest in native]
    assert ours == native


@pytest.mark.slow(but=["[integer-"])
@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("column", COLUMNS)
def test_filters_find_the_rows_after_native_operations(twin, served, moto, column, since):
    start(twin, served, moto, column)
    check(twin, column)
    for statement in SINCE[since]:
        run(twin, statement)
        check(twin, column)


@pytest.mark.parametrize("column", [name for name, (_, _, is_shown) in COLUMNS.items() if is_shown])
def test_clients_are_told_that_all_rows_are_null(twin, served, moto, column):
    start(twin, served, moto, column)
    table = twin.table()
    field = table.schema().find_field("c")
    files = sorted((task.file for task in table.scan().plan_files()), key=_first_id)
    assert [*files[-1].lower_bounds] == [*files[-1].upper_bounds] == [1]
    if not field.field_type.is_primitive:
        return
    assert [file.null_value_counts[field.field_id] for file in files] == [0, 0, 3]
    assert [file.value_counts[field.field_id] for file in files] == [3, 3, 3]
    for condition, ids in ((IsNull("c"), [21, 22, 23]), (NotNull("c"), [1, 2, 3, 11, 12, 13])):
        found = table.scan(row_filter=condition).to_arrow()
        assert sorted(found["id"].to_pylist()) == ids


def _first_id(file):
    return file.lower_bounds[1]
