"""What DuckLake has a place for, or keeps in tags: written by a client, read and changed by all."""

import re

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.table.update.snapshot import ManageSnapshots
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from tests.support.writes.everywhere import MAINTENANCE, everywhere, plain

ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})

CREATED = "CREATE TABLE {}.main.{} AS SELECT range AS id, 'r' || range AS s FROM range(10)"
DELETED = "DELETE FROM {}.main.{} WHERE id % 3 = 0"
CHANGES = (
    "INSERT INTO {0} (id, s) VALUES (20, 'native')",
    "UPDATE {0} SET s = 'native' WHERE id = 4",
    "DELETE FROM {0} WHERE id = 5",
    "ALTER TABLE {0} ADD COLUMN n INTEGER",
    "INSERT INTO {0} (id, s, n) VALUES (21, 'native', 1)",
)


@pytest.fixture(scope="module")
def lake_of(lake, moto):
    with everywhere(lake, moto, "accepted") as one:
        yield one


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "maintained"])
def maintained(request):
    """Whether native DuckLake changes and maintains the table afterwards."""
    return request.param


def test_a_first_commit_with_deletes(lake_of, maintained):
    """A transaction that creates a table, fills it, and deletes some of the rows."""
    at, name, twin = lake_of, lake_of.new("first"), lake_of.new("twin")
    with at.commits():
        statements = [sql.format("ice", name) for sql in (CREATED, DELETED)]
        at.duckdb("BEGIN", *statements, "COMMIT")
    at.native("BEGIN", *(sql.format("lake", twin) for sql in (CREATED, DELETED)), "COMMIT")
    assert plain(at.check(name)) == plain(at.native(f"FROM main.{twin}"))
    if maintained:
        at.maintain(name, *CHANGES)


@pytest.mark.slow
def test_a_first_commit_with_many_deletes(lake_of):
    """They become a delete file of DuckLake's own form."""
    at, created = lake_of, CREATED.replace("range(10)", "range(200_000)")
    deleted = DELETED.replace("% 3 =", "% 3 <")
    statements = [sql.format("ice", "many") for sql in (created, deleted.replace("< 0", "< 2"))]
    with at.commits():
        at.duckdb("BEGIN", *statements, "COMMIT")
    rows = at.native("SELECT count(*), sum(id) FROM main.many")
    assert rows == [(66_666, sum(range(2, 200_000, 3)))]
    assert at.duckdb("SELECT count(*), sum(id) FROM ice.main.many") == rows
    deletes = "SELECT sum(delete_count) FROM ducklake_delete_file WHERE end_snapshot IS NULL"
    assert at.lake.database.run(deletes) == [[133_334]]


SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "s", StringType(), required=False),
    NestedField(3, "k", StringType(), required=True),
    identifier_field_ids=[1, 3],
)


def test_identifier_fields(lake_of, maintained):
    """They follow a rename and end with their column; earlier schemas have their own."""
    at, name = lake_of, lake_of.new("keyed")
    table = at.catalog.create_table(f"main.{name}", SCHEMA)

    def identifiers():
        return table.refresh().schema().identifier_field_names()

    assert identifiers() == {"id", "k"}
    rows = pa.Table.from_pylist(
        [{"id": 1, "s": "a", "k": "x"}, {"id": 2, "s": "b", "k": "y"}],
        schema=table.schema().as_arrow(),
    )
    with at.commits():
        table.append(rows)
    with at.commits():
        changed = table.upsert(rows.slice(1).set_column(1, "s", pa.array(["new"])))
    assert (changed.rows_updated, changed.rows_inserted) == (1, 0)
    assert at.check(name) == [(1, "a", "x"), (2, "new", "y")]
    with at.commits(), table.update_schema() as update:
        update.rename_column("k", "key").add_column("n", LongType())
    assert identifiers() == {"id", "key"}
    at.native(f"ALTER TABLE {name} RENAME COLUMN id TO number")
    assert identifiers() == {"number", "key"}
    document = table.schema().model_dump(mode="json", by_alias=True)
    twice = {**document, "schema-id": 49, "identifier-field-ids": [1, 1]}
    with at.commits():  # the specification has a set of ids: one that is there twice is there
        at.commit(name, {"action": "add-schema", "schema": twice}, SET_SCHEMA)
    assert identifiers() == {"number"}
    with at.commits(), table.update_schema() as update:
        update.set_identifier_fields("number", "key")
    before = table.schema().schema_id
    at.native(f"ALTER TABLE {name} DROP COLUMN key")
    assert identifiers() == set()
    assert table.schemas()[before].identifier_field_names() == {"number", "key"}
    with pytest.raises(BadRequestError, match="may have NULL in it"):
        document = table.schema().model_dump(mode="json", by_alias=True)
        identified = {**document, "schema-id": 50, "identifier-field-ids": [2]}
        identified["fields"][1]["required"] = True
        at.commit(name, {"action": "add-schema", "schema": identified}, SET_SCHEMA)
    if maintained:
        at.maintain(name, "INSERT INTO {0} VALUES (3, 'native', NULL)", "UPDATE {0} SET n = 1")


REQUIRED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "st", StructType(NestedField(6, "a", LongType(), required=True)), required=True),
    NestedField(3, "l", ListType(7, LongType(), element_required=True), required=True),
    NestedField(4, "m", MapType(8, StringType(), 9, LongType(), value_required=True)),
)
OPTIONAL = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "st", StructType(NestedField(3, "a", LongType(), required=False))),
    NestedField(4, "l", ListType(5, LongType(), element_required=False)),
    NestedField(6, "m", MapType(7, StringType(), 8, LongType(), value_required=False)),
)


def test_not_null_that_ducklake_does_not_check(lake_of, maintained):
    """Within columns and of nested ones it is optional for readers, because NULL can be there."""
    at, name = lake_of, lake_of.new("required")
    table = at.catalog.create_table(f"main.{name}", REQUIRED)
    assert table.schema().as_struct() == OPTIONAL.as_struct()
    rows = [{"id": 1, "st": {"a": 1}, "l": [1]}, {"id": 2, "st": None, "l": None}]
    with at.commits():
        table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    at.native(f"INSERT INTO {name} VALUES (3, NULL, NULL, NULL), (4, {{a: NULL}}, [NULL], NULL)")
    assert len(at.check(name)) == 4
    assert table.refresh().schema().as_struct() == OPTIONAL.as_struct()
    null = table.scan(row_filter="st IS NULL", selected_fields=("id",)).to_arrow()
    assert sorted(null["id"].to_pylist()) == [2, 3]
    assert at.duckdb(f"SELECT id FROM ice.main.{name} WHERE l IS NULL ORDER BY id") == [(2,), (3,)]
    if maintained:
        at.maintain(name, "INSERT INTO {0} VALUES (5, NULL, NULL, NULL)")


SET_SCHEMA = {"action": "set-current-schema", "schema-id": -1}


def test_identifier_fields_of_columns_that_may_be_null(lake_of):
    at = lake_of
    at.native(
        "CREATE TABLE loose (id BIGINT NOT NULL, s VARCHAR)",
        "INSERT INTO loose VALUES (1, 'a')",
    )
    table = at.catalog.load_table("main.loose")
    with at.commits(), table.update_schema() as update:
        update.set_identifier_fields("id")
    assert table.schema().identifier_field_names() == {"id"}
    at.native("ALTER TABLE loose ALTER COLUMN id DROP NOT NULL")
    table.refresh()
    assert table.schema().identifier_field_names() == set()
    at.check("loose")


def test_tags_of_snapshots(lake_of):
    """A name for a snapshot, which stays while native writers go on, and ends with it."""
    at, name = lake_of, lake_of.new("tagged")
    table = at.catalog.create_table(f"main.{name}", ROWS.schema)
    with at.commits():
        table.append(ROWS)
    first = table.current_snapshot().snapshot_id
    at.native(f"INSERT INTO {name} VALUES (9, 'native')")
    before = at.newest()
    with at.commits():
        table.refresh().manage_snapshots().create_tag(first, "release", 60_000).commit()
    native = table.current_snapshot().snapshot_id
    with at.commits():
        table.manage_snapshots().create_tag(native, "ünï 'x'").commit()
    assert at.newest() == before + 2
    at.native(f"DELETE FROM {name} WHERE id = 1", *MAINTENANCE)
    table.refresh()
    assert table.current_snapshot().snapshot_id != native
    refs = table.refs()
    assert {n: (r.snapshot_id, r.max_ref_age_ms) for n, r in refs.items() if n != "main"} == {
        "release": (first, 60_000),
        "ünï 'x'": (native, None),
    }
    rows = table.scan(snapshot_id=table.snapshot_by_name("release").snapshot_id).to_arrow()
    assert plain(rows.to_pylist()) == plain(ROWS.to_pylist())
    shown = at.document(name, "?snapshots=refs")
    assert {first, native} < {snapshot["snapshot-id"] for snapshot in shown["snapshots"]}
    at.check(name)
    with at.commits():
        table.manage_snapshots().remove_tag("ünï 'x'").commit()
    with pytest.raises(BadRequestError, match="has no reference"):
        at.commit(name, {"action": "remove-snapshot-ref", "ref-name": "ünï 'x'"})
    at.expire()
    assert set(at.catalog.load_table(f"main.{name}").refs()) == {"main"}


REFUSED = {
    "a branch at an unknown snapshot": ("branch", 12345, "the branch 'b' is for the snapshot"),
    "an unknown snapshot": ("tag", 12345, "does not list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_references_that_are_refused(lake_of, case):
    at, name = lake_of, lake_of.new("refused")
    kind, snapshot_id, reason = REFUSED[case]
    table = at.catalog.create_table(f"main.{name}", ROWS.schema)
    table.append(ROWS)
    update = {"action": "set-snapshot-ref", "ref-name": "b", "type": kind}
    with pytest.raises(BadRequestError, match=reason):
        at.commit(name, {**update, "snapshot-id": snapshot_id})
    assert set(table.refresh().refs()) == {"main"}


def test_a_tag_of_the_snapshot_that_the_same_commit_adds(lake_of):
    at, name = lake_of, lake_of.new("tagged")
    table = at.catalog.create_table(f"main.{name}", ROWS.schema)
    with at.commits(), table.transaction() as change:
        change.append(ROWS)
        added = change.table_metadata.current_snapshot_id
        with ManageSnapshots(transaction=change) as references:
            references.create_tag(added, "first")
    assert table.refresh().snapshot_by_name("first").snapshot_id == added


@pytest.mark.slow
@pytest.mark.spark
def test_spark_tags_and_identifies(lake_of):
    from polynya_local.clients import spark

    at, name = lake_of, lake_of.new("spark")
    table = f"{spark.open(at.uri, 'lake', at.s3_endpoint).catalog}.main.{name}"

    def sql(text):
        with at.commits():
            return spark.session().sql(text.format(table)).collect()

    sql("CREATE TABLE {} (id BIGINT NOT NULL, s STRING)")
    sql("ALTER TABLE {} SET IDENTIFIER FIELDS id")
    sql("INSERT INTO {} VALUES (1, 'a')")
    sql("ALTER TABLE {} CREATE TAG release RETAIN 7 DAYS")
    sql("INSERT INTO {} VALUES (2, 'b')")
    assert sql("SELECT id FROM {} VERSION AS OF 'release'") == [(1,)]
    sql("ALTER TABLE {} CREATE OR REPLACE TAG release")
    assert sql("SELECT count(*) FROM {} VERSION AS OF 'release'") == [(2,)]
    assert at.catalog.load_table(f"main.{name}").schema().identifier_field_names() == {"id"}
    sql("ALTER TABLE {} DROP TAG release")
    assert set(at.catalog.load_table(f"main.{name}").refs()) == {"main"}
    sql("ALTER TABLE {} DROP IDENTIFIER FIELDS id")
    assert at.catalog.load_table(f"main.{name}").schema().identifier_field_names() == set()
    at.maintain(name, "UPDATE {0} SET s = 'native'")


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.spark
def test_the_optimizer_of_spark_sees_statistics_files(lake_of):
    """Each snapshot has the statistics that Spark computed for it; DuckLake's own have no NDV."""
    from polynya_local.clients import spark

    at, name = lake_of, lake_of.new("analyzed")
    catalog = spark.open(at.uri, "lake", at.s3_endpoint).catalog
    table, session = f"{catalog}.main.{name}", spark.session()
    at.catalog.create_table(f"main.{name}", pa.schema([("id", pa.int64()), ("k", pa.int64())]))
    first = pa.table({"id": range(1000), "k": [i % 4 for i in range(1000)]})
    second = pa.table({"id": range(1000, 2000), "k": [i % 8 for i in range(1000)]})
    settings = ("spark.sql.cbo.enabled", "spark.sql.iceberg.report-column-stats")

    def distinct(version=""):
        plan = session.sql(f"SELECT k FROM {table} {version}")._jdf.queryExecution().optimizedPlan()
        return int(re.search(r"Some\((\d+)\)", plan.stats().attributeStats().toString())[1])

    for number, rows in enumerate((first, second), 1):
        at.catalog.load_table(f"main.{name}").append(rows)
        with at.commits():
            call = f"CALL {catalog}.system.compute_table_stats('main.{name}')"
            session.sql(call).collect()
        assert len(at.catalog.load_table(f"main.{name}").metadata.statistics) == number
    before = at.catalog.load_table(f"main.{name}").snapshots()[0].snapshot_id
    for setting in settings:
        session.conf.set(setting, "true")
    try:
        assert (distinct(f"VERSION AS OF {before}"), distinct()) == (4, 8)
        at.native(f"INSERT INTO {name} VALUES (1, 99)")
        session.sql(f"REFRESH TABLE {table}")
        at.expire()
        assert at.catalog.load_table(f"main.{name}").metadata.statistics == []
    finally:
        for setting in settings:
            session.conf.unset(setting)


NOTE = "polynya.format-version-note"
UPGRADE = {"action": "upgrade-format-version"}


def test_format_version_1_becomes_2_with_a_note(lake_of, maintained):
    at, names = lake_of, [lake_of.new("old"), lake_of.new("staged")]
    version_1 = {"format-version": "1"}
    with at.commits():
        at.catalog.create_table(f"main.{names[0]}", ROWS.schema, properties=version_1)
    with (
        at.commits(),
        at.catalog.create_table_transaction(
            f"main.{names[1]}", ROWS.schema, properties=version_1
        ) as staged,
    ):
        staged.append(ROWS)
    for name in names:
        table = at.catalog.load_table(f"main.{name}")
        assert table.format_version == 2
        assert "version 1 was asked for" in table.properties[NOTE]
        with at.commits():
            table.append(ROWS)
        with pytest.raises(BadRequestError, match="follows from the table"):
            table.transaction().remove_properties(NOTE).commit_transaction()
    assert len(at.check(names[0])) == 2
    assert len(at.check(names[1])) == 4
    at.native(f"UPDATE {names[0]} SET s = 'native' WHERE id = 2")
    for version, shown, has_note in ((2, 2, False), (1, 2, True), (3, 3, False)):
        with at.commits():
            at.commit(names[0], {**UPGRADE, "format-version": version})
        document = at.document(names[0])
        assert (document["format-version"], NOTE in document["properties"]) == (shown, has_note)
    for lower in ({**UPGRADE, "format-version": 1}, {**UPGRADE, "format-version": 2}, SET_VERSION):
        with pytest.raises(BadRequestError, match="has format version 3, and keeps it"):
            at.commit(names[0], lower)
    at.check(names[0])
    if maintained:
        at.native(f"ALTER TABLE {names[1]} ADD COLUMN n INTEGER DEFAULT 7")
        document = at.document(names[1])
        assert (document["format-version"], NOTE in document["properties"]) == (3, True)
        for name in names:
            at.maintain(name, "INSERT INTO {0} (id, s) VALUES (9, 'native')")


SET_VERSION = {"action": "set-properties", "updates": {"format-version": "1"}}


@pytest.mark.slow
@pytest.mark.spark
def test_spark_asks_for_format_version_1(lake_of):
    from polynya_local.clients import spark

    at, names = lake_of, [lake_of.new("old"), lake_of.new("selected")]
    catalog = spark.open(at.uri, "lake", at.s3_endpoint).catalog
    version_1 = "USING iceberg TBLPROPERTIES ('format-version' = '1')"
    for name, sql in zip(
        names,
        (
            f"CREATE TABLE {{}} (id BIGINT, s STRING) {version_1}",
            f"CREATE TABLE {{}} {version_1} AS "
            "SELECT * FROM VALUES (1L, 'a'), (2L, 'b') AS v(id, s)",
        ),
        strict=True,
    ):
        table = f"{catalog}.main.{name}"
        for statement in (sql, "INSERT INTO {} VALUES (3, 'c')", "DELETE FROM {} WHERE id = 1"):
            with at.commits():
                spark.session().sql(statement.format(table))
        document = at.document(name)
        assert (document["format-version"], NOTE in document["properties"]) == (2, True)
    assert at.check(names[0]) == [(3, "c")]
    assert at.check(names[1]) == [(2, "b"), (3, "c")]
    at.maintain(names[1], "UPDATE {0} SET s = 'native'")


def test_a_required_column_of_a_table_without_rows(lake_of):
    at, name = lake_of, lake_of.new("added")
    table = at.catalog.create_table(f"main.{name}", ROWS.schema)
    with at.commits(), table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("k", LongType(), required=True).set_identifier_fields("k")
    assert table.refresh().schema().find_field("k").required
    assert table.schema().identifier_field_names() == {"k"}
    at.native(f"INSERT INTO {name} VALUES (1, 'a', 2)")
    with pytest.raises(duckdb.Error, match="NOT NULL constraint failed"):
        at.native(f"INSERT INTO {name} VALUES (1, 'a', NULL)")
    at.check(name)
    with pytest.raises(BadRequestError, match="existing rows have NULL in it"), at.commits():
        table.update_schema(allow_incompatible_changes=True).add_column(
            "n", LongType(), required=True
        ).commit()


@pytest.mark.slow
def test_a_default_after_rows_of_the_same_transaction(lake_of):
    at, name = lake_of, lake_of.new("defaults")
    statements = (
        f"CREATE TABLE ice.main.{name} (a VARCHAR) WITH ('format-version' = '3')",
        f"INSERT INTO ice.main.{name} VALUES ('before')",
        f"ALTER TABLE ice.main.{name} ADD COLUMN b BOOLEAN DEFAULT false",
        f"ALTER TABLE ice.main.{name} ALTER COLUMN b SET DEFAULT true",
        f"INSERT INTO ice.main.{name} (a) VALUES ('after')",
    )
    with at.commits():
        at.duckdb("BEGIN", *statements, "COMMIT")
    assert at.check(name) == [("after", True), ("before", False)]
    at.native(f"INSERT INTO {name} (a) VALUES ('native')")
    assert at.check(name) == [("after", True), ("before", False), ("native", True)]
    at.maintain(name, "UPDATE {0} SET b = NULL WHERE a = 'before'")


DEFAULTS = {
    "int": (IntegerType(), -7, "-7"),
    "long": (LongType(), 2**40, str(2**40)),
    "string": (StringType(), "it's", "'it''s'"),
    "empty string": (StringType(), "", "''"),
    "boolean": (BooleanType(), False, "'false'"),
    "double": (DoubleType(), 0.1, "0.1"),
    "decimal": (DecimalType(9, 2), "1.50", "1.50"),
    "date": (DateType(), "2024-01-02", "'2024-01-02'"),
    "timestamp": (TimestampType(), "2024-01-02T03:04:05.250000", "'2024-01-02 03:04:05.25'"),
    "timestamptz": (
        TimestamptzType(),
        "2024-01-02T03:04:05.250000+00:00",
        "'2024-01-02 03:04:05.25+00'",
    ),
    "binary": (BinaryType(), "aabb00ff", "'\\xAA\\xBB\\x00\\xFF'"),
    "uuid": (UUIDType(), "0198c3f4-1234-7abc-8def-0123456789ab", ""),
}
VALUES = """
SELECT column_name, initial_default, default_value, default_value_type
FROM ducklake_column JOIN ducklake_table AS t USING (table_id)
WHERE table_name = :name AND column_id > 2 AND ducklake_column.end_snapshot IS NULL
ORDER BY column_id"""


def renamed(field):
    return {**field, "name": f"d{field['id']}", "write-default": None}


def test_defaults_as_native_ones(lake_of, maintained):
    """A column with a default is added by both, and new rows get it natively."""
    at, name, twin = lake_of, lake_of.new("defaults"), lake_of.new("twin")
    at.native(f"CREATE TABLE {twin} (id BIGINT, s VARCHAR)", f"INSERT INTO {twin} VALUES (1, 'a')")
    version_3 = {"format-version": "3"}
    at.catalog.create_table(f"main.{name}", ROWS.schema, properties=version_3)
    at.native(f"INSERT INTO {name} VALUES (1, 'a')")
    new = [
        {"id": id_, "name": f"c{id_}", "required": False, "type": str(type_)}
        | {"initial-default": value, "write-default": value}
        for id_, (type_, value, _) in enumerate(DEFAULTS.values(), 3)
    ]
    at.alter(name, lambda fields: [*fields, *new])
    types = at.native(f"SELECT column_name, column_type FROM (DESCRIBE {name}) OFFSET 2")
    at.native(
        *(
            f"ALTER TABLE {twin} ADD COLUMN {column} {type_} {native and 'DEFAULT'} {native}"
            for (column, type_), (_, _, native) in zip(types, DEFAULTS.values(), strict=True)
        )
    )
    stored = {n: at.lake.database.run(VALUES, name=n) for n in (name, twin)}
    rows = zip(stored[name], stored[twin], DEFAULTS.values(), strict=True)
    assert [(one, other) for one, other, how in rows if how[2] and one[1:2] != other[1:2]] == []
    for n in (name, twin):
        at.native(f"INSERT INTO {n} (id, s) VALUES (2, 'new')")
    last = f"c{len(DEFAULTS) + 2}"  # natively a UUID is no literal
    columns = f"SELECT * EXCLUDE ({last}) FROM main."
    assert plain(at.native(columns + name)) == plain(at.native(columns + twin))
    fields = at.document(name)["schemas"][-1]["fields"][2:]
    assert [f["write-default"] for f in fields] == [value for _, value, _ in DEFAULTS.values()]
    at.check(name)
    at.alter(name, lambda s: [*s[:2], *map(renamed, s[2:])])
    at.native(f"INSERT INTO {name} (id) VALUES (3)")
    assert at.native(f"SELECT * EXCLUDE (id) FROM main.{name} WHERE id = 3") == [(None,) * 13]
    at.alter(name, lambda s: [*s[:2], {**s[2], "write-default": 12}, *s[3:]])
    at.native(f"INSERT INTO {name} (id) VALUES (4)")
    assert at.native(f"SELECT d3 FROM main.{name} WHERE id = 4") == [(12,)]
    at.check(name)
    if maintained:
        at.maintain(name, "UPDATE {0} SET s = 'native'", "ALTER TABLE {0} ALTER d3 SET DEFAULT 5")
        assert at.document(name)["schemas"][-1]["fields"][2]["write-default"] == 5


def test_hashed_directories_and_a_nested_sort_field(lake_of):
    """With `write.object-storage.enabled` files are below write.data.path, as all others."""
    at, name = lake_of, lake_of.new("hashed")
    nested = StructType(NestedField(3, "a", LongType(), required=False))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "st", nested))
    order = SortOrder(
        SortField(3, IdentityTransform(), SortDirection.DESC),
        SortField(1, BucketTransform(8), SortDirection.ASC, NullOrder.NULLS_LAST),
    )
    properties = {"write.object-storage.enabled": "true"}
    table = at.catalog.create_table(f"main.{name}", schema, sort_order=order, properties=properties)
    assert table.properties["write.object-storage.enabled"] == "true"
    assert table.sort_order().fields == order.fields
    with at.commits():
        table.append(pa.table({"id": [1], "st": [{"a": 2}]}, schema=table.schema().as_arrow()))
    [file] = [task.file.file_path for task in table.scan().plan_files()]
    assert file.rpartition(str(table.metadata.table_uuid))[2].count("/") > 2
    assert at.check(name) == [(1, {"a": 2})]
