"""PyIceberg alters a table; native DuckLake alters its twin in the same way."""

import duckdb
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from tests.support.catalog_versions import SERVED
from tests.support.writes.altered import INLINED, SETUP, altered, newest
from tests.support.writes.writable import judging

STRUCT = StructType(
    NestedField(1, "a", IntegerType(), required=False),
    NestedField(2, "b", ListType(3, IntegerType(), element_required=False), required=False),
)


def update(*calls):
    """An action that makes these calls of UpdateSchema, each a name and its arguments."""

    def action(table):
        with table.update_schema() as change:
            for name, *arguments in calls:
                getattr(change, name)(*arguments)

    return action


TOP_LEVEL = [
    (update(("add_column", "n", StringType())), ["ALTER TABLE t ADD COLUMN n VARCHAR"]),
    (
        update(("add_column", "n1", StringType()), ("add_column", "n2", STRUCT)),
        [
            "ALTER TABLE t ADD COLUMN n1 VARCHAR",
            "ALTER TABLE t ADD COLUMN n2 STRUCT(a INTEGER, b INTEGER[])",
        ],
    ),
    (
        update(("rename_column", "s", "S2 x"), ("delete_column", "n1")),
        ['ALTER TABLE t RENAME COLUMN s TO "S2 x"', "ALTER TABLE t DROP COLUMN n1"],
    ),
    (
        update(("update_column", "i", LongType()), ("update_column", "d", DecimalType(12, 2))),
        ["ALTER TABLE t ALTER i TYPE BIGINT", "ALTER TABLE t ALTER d TYPE DECIMAL(12, 2)"],
    ),
    (
        update(("rename_column", "n", "i"), ("rename_column", "i", "n")),
        [
            "ALTER TABLE t RENAME COLUMN n TO other",
            "ALTER TABLE t RENAME COLUMN i TO n",
            "ALTER TABLE t RENAME COLUMN other TO i",
        ],
    ),
    (update(("delete_column", "i")), ["ALTER TABLE t DROP COLUMN i"]),
    (update(("add_column", "i", DoubleType())), ["ALTER TABLE t ADD COLUMN i DOUBLE"]),
    (
        update(("update_column", "d", None, None, "hello")),
        ["COMMENT ON COLUMN t.d IS 'hello'"],
    ),
    (
        update(("update_column", "d", None, None, "hell"), ("rename_column", "d", "e")),
        ["COMMENT ON COLUMN t.d IS 'hell'", "ALTER TABLE t RENAME COLUMN d TO e"],
    ),
]
NESTED = [
    (
        update(("add_column", ("st", "c"), IntegerType())),
        ["ALTER TABLE t ADD COLUMN st.c INTEGER"],
    ),
    (update(("rename_column", ("st", "b"), "b2")), ["ALTER TABLE t RENAME COLUMN st.b TO b2"]),
    (
        update(("update_column", ("st", "a"), LongType())),
        ["ALTER TABLE t ALTER st TYPE STRUCT(a BIGINT, b2 VARCHAR, c INTEGER)"],
    ),
    (update(("delete_column", ("st", "a"))), ["ALTER TABLE t DROP COLUMN st.a"]),
    (
        update(("add_column", ("l", "z"), StringType())),
        ["ALTER TABLE t ADD COLUMN l.element.z VARCHAR"],
    ),
    (
        update(
            ("rename_column", ("l", "element", "x"), "x2"),
            ("delete_column", ("l", "element", "y")),
        ),
        [
            "ALTER TABLE t RENAME COLUMN l.element.x TO x2",
            "ALTER TABLE t DROP COLUMN l.element.y",
        ],
    ),
    (
        update(("add_column", ("m", "r"), StringType())),
        ["ALTER TABLE t ADD COLUMN m.value.r VARCHAR"],
    ),
    (update(("delete_column", "l")), ["ALTER TABLE t DROP COLUMN l"]),
]
STEPS = {"top level": TOP_LEVEL, "nested": NESTED}
STATES = {"files": SETUP, "inlined": SETUP + INLINED}


@pytest.mark.slow("[top level-", "[nested-files]")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("steps", STEPS)
def test_each_alter_by_pyiceberg_is_that_of_duckdb(lake, moto, steps, state):
    with altered(lake, moto, STATES[state]) as both:
        for action, native in STEPS[steps]:
            both.alter(action, *native)
            both.check_catalogs()
        both.check_rows()
        both.work()


RESERVED = ("Row_ID", "end_snapshot", "_ducklake_internal_snapshot_id", "ctid")


def test_column_names_are_refused_that_native_ducklake_cannot_inline(lake, moto, monkeypatch):
    """With such a column, set_option('data_inlining_row_limit', …) fails for the whole lake."""
    monkeypatch.setattr(SERVED, "version", "1.0")  # 1.1: rows/test_versions.py
    with altered(lake, moto, SETUP) as both, judging(both.twins.lake, moto) as judge:
        judge.query("CALL lake.set_option('data_inlining_row_limit', 5)")
        for name in RESERVED:
            with pytest.raises(duckdb.Error, match=rf"(?i){name}.*(reserved|system column)"):
                judge.query(f'CREATE TABLE lake.main.reserving (a INTEGER, "{name}" INTEGER)')
        judge.query("CALL lake.set_option('data_inlining_row_limit', 0)")
        before = newest(both.twins.lake)
        for name in RESERVED:
            schema = Schema(NestedField(1, name, IntegerType(), required=False))
            for action in (
                lambda table, schema=schema: both.pyiceberg.create_table("main.x", schema),
                update(("add_column", name, IntegerType())),
                update(("rename_column", "i", name)),
            ):
                with pytest.raises(BadRequestError, match=f"reserves the column name {name} "):
                    action(both.table())
        assert newest(both.twins.lake) == before
        # Within a column they are free, as native DuckLake has them.
        update(("add_column", ("st", "row_id"), IntegerType()))(both.table())
        judge.query("CALL lake.set_option('data_inlining_row_limit', 5)")
