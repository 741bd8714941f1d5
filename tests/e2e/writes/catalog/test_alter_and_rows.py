"""Alterations together with rows: in one commit, of rows that exist, and of hidden columns."""

import pyarrow as pa
import pytest
import urllib3
from pyiceberg.exceptions import BadRequestError
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, StringType

from tests.support.catalog_versions import SERVED
from tests.support.writes.altered import INLINED, SETUP, altered, newest, reading

FLOATS = """
CREATE TABLE t(id BIGINT, f FLOAT);
INSERT INTO t SELECT range, [0.1, 0.7, -0.1, 'inf', NULL, 3.4e38, 1e-45][1 + range % 7]
  FROM range(21);
"""


def update(name, *arguments):
    def action(table):
        with table.update_schema() as change:
            getattr(change, name)(*arguments)

    return action


def _commit_without(both, name):
    """The error of a commit that drops a column."""
    table = both.table()
    schema = table.schema().model_dump(mode="json", by_alias=True)
    schema["fields"] = [field for field in schema["fields"] if field["name"] != name]
    updates = [
        {"action": "add-schema", "schema": {**schema, "schema-id": schema["schema-id"] + 1}},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    url = f"{both.uri}/v1/lake/namespaces/main/tables/t"
    answer = urllib3.request("POST", url, json={"requirements": [], "updates": updates})
    assert answer.status == 400
    return answer.json()["error"]["message"]


def test_a_float_that_becomes_double_keeps_its_rows_in_native_filters(lake, moto):
    with altered(lake, moto, FLOATS) as both:
        update("update_column", "f", DoubleType())(both.table())
        with reading(both.twins.lake, moto) as con:
            con.execute("CREATE TABLE memory.main.t AS SELECT id, f FROM lake.t WHERE true")
            values = con.execute("SELECT DISTINCT f FROM memory.main.t WHERE f IS NOT NULL")
            for (value,) in values.fetchall():
                for condition in ("f = {}", "f >= {}", "f <= {}", "f > {}", "f < {}"):
                    where = condition.format(f"'{value!r}'::DOUBLE")
                    counts = [
                        con.execute(f"SELECT count(*) FROM {of} WHERE {where}").fetchone()
                        for of in ("lake.t", "memory.main.t")
                    ]
                    assert counts[0] == counts[1], where
            extremes = "SELECT min(f), max(f) FROM {} WHERE id >= 0"
            assert (
                con.execute(extremes.format("lake.t")).fetchall()
                == con.execute(extremes.format("memory.main.t")).fetchall()
            )


def test_a_float_does_not_become_double_while_rows_are_inlined(lake, moto):
    with (
        altered(lake, moto, FLOATS + "INSERT INTO t VALUES (50, 0.3);") as both,
        pytest.raises(BadRequestError, match="ducklake_flush_inlined_data first"),
    ):
        update("update_column", "f", DoubleType())(both.table())


def test_rows_and_an_alteration_in_one_commit(lake, moto):
    with altered(lake, moto, SETUP + INLINED) as both:
        before = newest(both.twins.lake)
        table = both.table()
        with table.transaction() as change:
            change.append(pa.table({"id": [-1], "i": pa.array([5], pa.int32())}))
            with change.update_schema() as schema:
                schema.add_column("n", StringType()).update_column("i", LongType())
            change.set_properties(a="b")
        assert newest(both.twins.lake) == before + 1
        [[made]] = both.twins.lake.database.run(
            "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 1"
        )
        assert made == "altered_table:1,inserted_into_table:1"
        row = both.table().scan(row_filter="id = -1").to_arrow().to_pylist()
        assert [(one["i"], one["n"]) for one in row] == [(5, None)]
        with reading(both.twins.lake, moto) as con:
            assert con.execute("SELECT i, n FROM lake.t WHERE id = -1").fetchall() == [(5, None)]
            assert con.execute("SELECT count(*) FROM lake.t WHERE n IS NULL").fetchone() == (23,)
        table = both.table()
        assert table.current_snapshot().schema_id == table.schema().schema_id


def test_a_commit_that_changes_nothing_is_no_snapshot(lake, moto):
    with altered(lake, moto, SETUP) as both:
        both.table().transaction().set_properties(a="b").commit_transaction()
        before = newest(both.twins.lake)
        both.table().transaction().set_properties(a="b").commit_transaction()
        assert newest(both.twins.lake) == before


def test_a_client_chooses_how_often_commits_are_tried(lake, moto):
    name = "commit.retry.num-retries"
    with altered(lake, moto, SETUP) as both:
        default = both.table().properties[name]
        for chosen in ("3", "0"):
            both.table().transaction().set_properties({name: chosen}).commit_transaction()
            assert both.table().properties[name] == chosen
        both.table().transaction().remove_properties(name).commit_transaction()
        assert both.table().properties[name] == default
        both.table().transaction().remove_properties(name).commit_transaction()
        catalog, schema = both.table().catalog, both.table().schema()
        created = catalog.create_table("main.chosen", schema, properties={name: "7"})
        assert created.properties[name] == "7" == catalog.load_table("main.chosen").properties[name]


@pytest.mark.parametrize("alteration", ["schema", "properties"])
def test_a_native_change_is_shown_after_its_snapshot_has_expired(alteration, lake, moto):
    """The alteration, which by itself is no snapshot of Iceberg, is then the first to show it."""
    with altered(lake, moto, SETUP + INLINED) as both:
        both.twins.native("DELETE FROM t WHERE id < 5", also_here=True)
        deleted = newest(both.twins.lake)
        if alteration == "schema":
            both.alter(update("add_column", "n", LongType()), "ALTER TABLE t ADD COLUMN n BIGINT")
        else:
            both.table().transaction().set_properties(a="b").commit_transaction()
        expire = f"CALL ducklake_expire_snapshots('lake', versions => [{deleted}])"
        both.twins.native(expire, also_here=True)
        with reading(both.twins.lake, moto) as con:
            wanted = con.execute("SELECT count(*) FROM lake.t").fetchone()
        table = both.table()
        assert (len(table.scan().to_arrow()),) == wanted == (17,)
        listed = [s.snapshot_id for s in table.metadata.snapshots]
        assert deleted not in listed and table.metadata.current_snapshot_id == deleted + 1


def test_columns_that_clients_do_not_see_stay(lake, moto):
    hidden = "CREATE TABLE t(id BIGINT, h HUGEINT, s VARCHAR); INSERT INTO t VALUES (1, 2, 'a');"
    with altered(lake, moto, hidden) as both:
        both.alter(update("delete_column", "s"), "ALTER TABLE t DROP COLUMN s")
        both.check_catalogs()
        both.alter(update("add_column", "n", StringType()), "ALTER TABLE t ADD COLUMN n VARCHAR")
        both.check_catalogs()
        with pytest.raises(BadRequestError, match="columns h and H"):
            update("add_column", "H", StringType())(both.table())
        with pytest.raises(BadRequestError, match="columns h and h"):
            update("rename_column", "n", "h")(both.table())


def test_a_column_of_the_partitioning_or_the_order_cannot_be_dropped(lake, moto):
    with altered(lake, moto, SETUP) as both:
        with both.table().update_spec() as change:
            change.add_field("s", IdentityTransform(), "s")
        both.twins.native("ALTER TABLE t SET SORTED BY (i)", also_here=True)
        assert "partitioned by s" in _commit_without(both, "s")  # PyIceberg would not send it
        assert "SORTED BY i" in _commit_without(both, "i")
        both.twins.native("ALTER TABLE t SET SORTED BY (lower(s))", also_here=True)
        with pytest.raises(BadRequestError, match="SORTED BY lower"):
            update("rename_column", "d", "e")(both.table())


def test_a_name_of_ducklakes_own_columns_is_refused_where_rows_are_inlined(lake, moto):
    # Tables of inlined rows have it: DuckLake 1.1 has renamed it, and takes `row_id` for a column.
    name = "row_id" if SERVED.version == "1.0" else "_ducklake_row_id"
    with (
        altered(lake, moto, SETUP) as both,
        pytest.raises(BadRequestError, match=f"the column name {name} "),
    ):
        update("add_column", name, StringType())(both.table())


def test_not_null_is_required_and_can_be_dropped(lake, moto):
    rows = "INSERT INTO t VALUES (1, 'a'); INSERT INTO t SELECT range, 'b' FROM range(20);"
    with altered(lake, moto, "CREATE TABLE t(id BIGINT NOT NULL, s VARCHAR);" + rows) as both:
        schema = both.table().schema()
        assert [field.required for field in schema.fields] == [True, False]
        with pytest.raises(ValueError, match="Mismatch in fields"):
            both.table().append(pa.table({"id": [5]}))
        both.table().append(pa.table({"id": [5]}, schema=schema.as_arrow().remove(1)))
        both.twins.native("INSERT INTO t (id) SELECT 5 FROM range(1)")
        both.check_rows()
        both.twins.native("DELETE FROM t WHERE id = 3", also_here=True)
        both.check_rows()
        both.alter(update("make_column_optional", "id"), "ALTER TABLE t ALTER id DROP NOT NULL")
        assert not both.table().schema().fields[0].required
        both.table().append(pa.table({"id": pa.array([None], pa.int64()), "s": ["n"]}))
        both.twins.native("INSERT INTO t SELECT NULL, 'n' FROM range(1)")
        both.check_rows()
