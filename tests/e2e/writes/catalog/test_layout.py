"""PyIceberg changes partitioning, order, properties and comments; DuckDB changes the twin."""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb as duckdb_client
from polynya_local.clients import pyiceberg
from pyiceberg.exceptions import BadRequestError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import LongType, NestedField, TimestamptzType

from tests.support.catalog_versions import SERVED, catalog_of, to_1_1
from tests.support.servers.in_process import bridge
from tests.support.writes.altered import INLINED, SETUP, altered, reading
from tests.support.writes.writable import EMPTY, set_up_writes


def spec(*calls):
    """An action that makes these calls of UpdateSpec."""

    def action(table):
        with table.update_spec() as change:
            for name, *arguments in calls:
                getattr(change, name)(*arguments)

    return action


def order(*keys):
    """An action that replaces the sort order: keys of column, transform, descending."""

    def action(table):
        with table.update_sort_order() as change:
            for column, transform, is_descending in keys:
                add = change.desc if is_descending else change.asc
                add(column, transform, NullOrder.NULLS_LAST)

    return action


def rename(old, new):
    def action(table):
        with table.update_schema() as change:
            change.rename_column(old, new)

    return action


STEPS = [
    (
        spec(("add_field", "ts", DayTransform(), "ts_day")),
        ["ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts), day(ts))"],
    ),
    (
        spec(("remove_field", "ts_day")),
        ["ALTER TABLE t RESET PARTITIONED BY"],
    ),
    (
        order(("id", IdentityTransform(), True), ("s", IdentityTransform(), False)),
        ["ALTER TABLE t SET SORTED BY (id DESC NULLS LAST, s ASC NULLS LAST)"],
    ),
    (rename("s", "s2"), ["ALTER TABLE t RENAME COLUMN s TO s2"]),
    (order(("s2", IdentityTransform(), False)), ["ALTER TABLE t SET SORTED BY (s2)"]),
    (order(), ["ALTER TABLE t RESET SORTED BY"]),
    (
        spec(
            ("add_field", "s2", IdentityTransform(), "s2"),
            ("add_field", "ts", YearTransform(), "ts_year"),
        ),
        ["ALTER TABLE t SET PARTITIONED BY (s2, year(ts))"],
    ),
    (
        lambda table: table.transaction().set_properties(comment="a table").commit_transaction(),
        ["COMMENT ON TABLE t IS 'a table'"],
    ),
    (
        lambda table: table.transaction().remove_properties("comment").commit_transaction(),
        ["COMMENT ON TABLE t IS NULL"],
    ),
]
STATES = {"files": SETUP, "inlined": SETUP + INLINED}


@pytest.mark.slow("[files]")
@pytest.mark.parametrize("state", STATES)
def test_each_change_of_the_layout_is_that_of_duckdb(lake, moto, state):
    with altered(lake, moto, STATES[state]) as both:
        for action, native in STEPS:
            both.alter(action, *native)
            both.check_catalogs()
        both.work()


KEYS = """
SELECT c.transform FROM ducklake_partition_column AS c
JOIN ducklake_partition_info AS i USING (partition_id, table_id)
WHERE i.end_snapshot IS NULL ORDER BY c.partition_key_index"""


def test_times_count_from_1970_in_catalogs_of_1_1(lake, moto, monkeypatch):
    """Also of a timestamptz, which has no partitions in 1.0 that Iceberg clients could use."""
    monkeypatch.setattr(SERVED, "version", "1.0")  # nothing takes this lake back
    one = set_up_writes(lake.write("since_1970", EMPTY))
    to_1_1(one)
    day = PartitionSpec(PartitionField(2, 1000, DayTransform(), "c_day"))
    columns = (NestedField(1, "id", LongType()), NestedField(2, "c", TimestamptzType()))
    with (
        bridge(one, moto, writes=True) as served,
        closing(pyiceberg.open(served.catalog_uri, served.warehouse, served.s3_endpoint)) as client,
        closing(catalog_of(one)) as con,
    ):
        table = client._catalog.create_table("main.t", Schema(*columns), partition_spec=day)
        assert con.run(KEYS) == [["epoch_day"]]
        spec(("add_field", "id", BucketTransform(4), "b"))(table)
        assert con.run(KEYS) == [["epoch_day"], ["bucket(4)"]]
        fields = client._catalog.load_table("main.t").spec().fields
        assert [str(field.transform) for field in fields] == ["day", "bucket[4]"]


EMPTY_STEPS = [
    (
        spec(("add_field", "id", BucketTransform(4), "id_bucket")),
        ["ALTER TABLE t SET PARTITIONED BY (bucket(4, id))"],
    ),
    (
        spec(("add_field", "ts", DayTransform(), "ts_day")),
        ["ALTER TABLE t SET PARTITIONED BY (bucket(4, id), year(ts), month(ts), day(ts))"],
    ),
    (
        spec(("remove_field", "id_bucket"), ("add_field", "s", BucketTransform(3), "b")),
        ["ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts), day(ts), bucket(3, s))"],
    ),
]


def test_an_empty_table_is_partitioned_by_buckets(lake, moto):
    create, rows = SETUP.split(";", 1)
    with altered(lake, moto, create + ";") as both:
        for action, native in EMPTY_STEPS:
            both.alter(action, *native)
            both.check_catalogs()
        both.twins.native(rows, INLINED, also_here=True)
        fields_before = fields(both.table())
        both.check_rows()
        # New buckets of a table with files: native filters would not find the rows of older ones.
        spec(("add_field", "id", BucketTransform(4), "id_bucket"))(both.table())
        assert fields(both.table()) == [*fields_before, ("bucket[4]", "id_bucket")]
        with reading(both.twins.lake, moto) as con:
            assert con.execute("SELECT count(*) FROM lake.t WHERE id = 7").fetchall() == [(1,)]


def fields(table) -> list[tuple[str, str]]:
    """The transforms and the names of a table's spec."""
    return [(str(field.transform), field.name) for field in table.spec().fields]


NAMED = [
    ("add_field", "s", TruncateTransform(3), "s_trunc"),
    ("add_field", "ts", DayTransform(), "the day"),
    ("add_field", "f", IdentityTransform(), "f"),
    ("rename_field", "the day", "another day"),
    ("add_field", "st.a", BucketTransform(2), "st_a"),
    ("remove_field", "s_trunc"),
    ("remove_field", "f"),
    ("remove_field", "st_a"),
    ("rename_field", "another day", "day"),
    ("add_field", "i", IdentityTransform(), "number"),
]


def test_a_client_finds_its_fields_again_by_their_names(lake, moto):
    """Each change is one commit, also from one that DuckLake does not have to one that it has."""
    with altered(lake, moto, SETUP + INLINED) as both:
        expected: dict[str, str] = {}
        for call in NAMED:
            spec(call)(both.table())
            match call:
                case ("add_field", _, transform, name):
                    expected[name] = str(transform)
                case ("rename_field", name, new):
                    expected = {new if one == name else one: t for one, t in expected.items()}
                case ("remove_field", name):
                    del expected[name]
            assert fields(both.table()) == [(t, name) for name, t in expected.items()]
            found = both.table().scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()
            assert sorted(found) == [*range(20), 100, 101]


def test_what_ducklake_has_no_form_for_is_kept_or_refused(lake, moto):
    with altered(lake, moto, SETUP) as both:
        table = both.table()
        order(("id", BucketTransform(16), True))(table)
        for found in (table, both.table()):
            [field] = found.sort_order().fields
            assert str(field.transform) == "bucket[16]"
            assert (field.source_id, field.direction) == (1, SortDirection.DESC)
        both.table().transaction().set_properties({"a.b": "1", "c": "ü"}).commit_transaction()
        both.table().transaction().set_properties({"c": "2"}).remove_properties(
            "polynya.tag.a.b"
        ).commit_transaction()
        properties = both.table().properties
        tags = {name: value for name, value in properties.items() if name.startswith("polynya.")}
        assert tags == {"polynya.tag.c": "2"}
        with pytest.raises(BadRequestError, match=r"s3\.endpoint cannot be set"):
            table.transaction().set_properties({"s3.endpoint": "x"}).commit_transaction()


def test_a_partition_field_that_no_client_would_see_is_refused(lake, moto):
    """Java cannot read partition values of an older type of the column."""
    with altered(lake, moto, "CREATE TABLE t (id INTEGER, ts TIMESTAMP, s VARCHAR);") as both:
        with both.table().update_schema() as change:
            change.update_column("id", LongType())
        with pytest.raises(BadRequestError, match=r"identity of the column of .* type was changed"):
            spec(("add_field", "id", IdentityTransform(), "by_id"))(both.table())
        assert both.table().spec().fields == ()
        spec(("add_field", "id", BucketTransform(4), "id_bucket"))(both.table())
        assert [field.name for field in both.table().spec().fields] == ["id_bucket"]


def test_files_of_other_buckets_than_the_tables_are_refused(lake, moto):
    """The number of a spec may mean another one by the time of the commit."""
    with (
        altered(lake, moto, SETUP.split(";")[0] + ";") as both,
        closing(duckdb_client.open(both.uri, "lake", moto)) as client,
    ):
        spec(("add_field", "id", BucketTransform(4), "id_bucket"))(both.table())
        client.query("BEGIN")
        client.query("INSERT INTO ice.main.t (id, s) VALUES (100, 'a'), (101, 'b'), (102, 'c')")
        spec(("remove_field", "id_bucket"), ("add_field", "id", BucketTransform(8), "b"))(
            both.table()
        )
        assert both.table().spec().spec_id == 1
        with pytest.raises(RuntimeError, match=r"partitioned by bucket\(8\) now"):
            client.query("COMMIT")
        client.query("INSERT INTO ice.main.t (id, s) VALUES (100, 'a'), (101, 'b'), (102, 'c')")
        with reading(both.twins.lake, moto) as con:
            for id_ in (100, 101, 102):
                found = con.execute(f"SELECT count(*) FROM lake.t WHERE id = {id_}").fetchall()
                assert found == [(1,)]
