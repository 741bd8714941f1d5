"""A statement by an Iceberg client, and the same one by native DuckLake, write the same rows.

All rows of all tables of both catalogs are compared after the statements, from CREATE to DROP: a
row stays when it ends, with the snapshot that ended it. So do tables of inlined rows, whose columns
are compared too. `DIFFERENCES` has all that may differ. No statement changes ducklake_metadata.
"""

import re
from collections.abc import Callable
from contextlib import closing

import pytest
from polynya_local.clients.native import Lake
from polynya_local.lakes.mirrored_tables import COMMITS
from polynya_local.processes.serving import serving
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
)
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from tests.support.catalog_versions import SERVED, VERSIONS
from tests.support.file_lakes import KINDS, FileLake, empty, query, writing
from tests.support.servers.in_process import bridge
from tests.support.writes.twins import IGNORED, catalog_rows, twins
from tests.support.writes.writable import client_of

pytestmark = pytest.mark.versions("1.0")

COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "i", IntegerType()),
    NestedField(3, "f", FloatType()),
    NestedField(4, "d", DecimalType(9, 2)),
    NestedField(5, "s", StringType()),
    NestedField(6, "ts", TimestampType()),
    NestedField(
        7,
        "st",
        StructType(NestedField(9, "a", IntegerType()), NestedField(10, "b", StringType())),
    ),
    NestedField(8, "l", ListType(11, IntegerType(), element_required=False)),
)
DEFINITION = """(id BIGINT NOT NULL, i INTEGER, f FLOAT, d DECIMAL(9, 2), s VARCHAR, ts TIMESTAMP,
  st STRUCT(a INTEGER, b VARCHAR), l INTEGER[])"""
DAYS = PartitionSpec(PartitionField(6, 1000, DayTransform(), "ts_day"))
BY_S = SortOrder(SortField(5, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_LAST))

Action = Callable[[RestCatalog], object]


def schema(*calls: tuple) -> Action:
    """Calls of UpdateSchema, in one commit."""

    def action(catalog: RestCatalog) -> None:
        with catalog.load_table("main.t").update_schema() as change:
            for name, *arguments in calls:
                getattr(change, name)(*arguments)

    return action


def spec(*calls: tuple) -> Action:
    """Calls of UpdateSpec."""

    def action(catalog: RestCatalog) -> None:
        with catalog.load_table("main.t").update_spec() as change:
            for name, *arguments in calls:
                getattr(change, name)(*arguments)

    return action


def order(*columns: str) -> Action:
    def action(catalog: RestCatalog) -> None:
        with catalog.load_table("main.t").update_sort_order() as change:
            for column in columns:
                change.desc(column, IdentityTransform(), NullOrder.NULLS_FIRST)

    return action


def tables(method: str, *arguments, **named) -> Action:
    """A call of the catalog."""
    return lambda catalog: getattr(catalog, method)(*arguments, **named)


def promote(name: str, type_: object) -> tuple:
    return ("update_column", name, type_)


STATEMENTS: list[tuple[str, Action, list[str]]] = [
    ("CREATE SCHEMA", tables("create_namespace", "other"), ["CREATE SCHEMA other"]),
    ("CREATE", tables("create_table", "main.t", COLUMNS), [f"CREATE TABLE t {DEFINITION}"]),
    (
        "ADD",
        schema(("add_column", "c1", LongType())),
        ["ALTER TABLE t ADD COLUMN c1 BIGINT"],
    ),
    (
        "ADD a nested column",
        schema(("add_column", ("st", "c"), StringType())),
        ["ALTER TABLE t ADD COLUMN st.c VARCHAR"],
    ),
    ("RENAME", schema(("rename_column", "c1", "c2")), ["ALTER TABLE t RENAME COLUMN c1 TO c2"]),
    (
        "RENAME a nested column",
        schema(("rename_column", "st.c", "e")),
        ["ALTER TABLE t RENAME COLUMN st.c TO e"],
    ),
    ("PROMOTE int", schema(promote("i", LongType())), ["ALTER TABLE t ALTER i TYPE BIGINT"]),
    ("PROMOTE float", schema(promote("f", DoubleType())), ["ALTER TABLE t ALTER f TYPE DOUBLE"]),
    (
        "PROMOTE decimal",
        schema(promote("d", DecimalType(12, 2))),
        ["ALTER TABLE t ALTER d TYPE DECIMAL(12, 2)"],
    ),
    (
        "DROP NOT NULL",
        schema(("make_column_optional", "id")),
        ["ALTER TABLE t ALTER id DROP NOT NULL"],
    ),
    (
        "COMMENT ON COLUMN",
        schema(("update_column", "i", None, None, "the i")),
        ["COMMENT ON COLUMN t.i IS 'the i'"],
    ),
    (
        "COMMENT ON TABLE",
        lambda catalog: (
            catalog.load_table("main.t").transaction().set_properties(comment="a")
        ).commit_transaction(),
        ["COMMENT ON TABLE t IS 'a'"],
    ),
    (
        "SET PARTITIONED BY",
        spec(("add_field", "s", IdentityTransform(), "s"), ("add_field", "ts", MonthTransform())),
        ["ALTER TABLE t SET PARTITIONED BY (s, year(ts), month(ts))"],
    ),
    ("SET SORTED BY", order("s"), ["ALTER TABLE t SET SORTED BY (s DESC NULLS FIRST)"]),
    (
        "RENAME a column of both",
        schema(("rename_column", "s", "text")),
        ["ALTER TABLE t RENAME COLUMN s TO text"],
    ),
    (
        "another SET PARTITIONED BY",
        spec(
            ("remove_field", "s"),
            ("remove_field", "ts_month"),
            ("add_field", "id", BucketTransform(4), "b"),
        ),
        ["ALTER TABLE t SET PARTITIONED BY (bucket(4, id))"],
    ),
    ("RESET PARTITIONED BY", spec(("remove_field", "b")), ["ALTER TABLE t RESET PARTITIONED BY"]),
    ("RESET SORTED BY", order(), ["ALTER TABLE t RESET SORTED BY"]),
    ("DROP COLUMN", schema(("delete_column", "i")), ["ALTER TABLE t DROP COLUMN i"]),
    (
        "DROP a nested column",
        schema(("delete_column", "st.e")),
        ["ALTER TABLE t DROP COLUMN st.e"],
    ),
    (
        "several in one transaction",
        schema(
            ("add_column", "n", IntegerType()),
            ("rename_column", "c2", "c3"),
            ("delete_column", "d"),
        ),
        [
            "ALTER TABLE t RENAME COLUMN c2 TO c3",
            "ALTER TABLE t DROP COLUMN d",
            "ALTER TABLE t ADD COLUMN n INTEGER",
        ],
    ),
    (
        "RENAME TO",
        tables("rename_table", "main.t", "main.renamed"),
        ["ALTER TABLE t RENAME TO renamed"],
    ),
    (
        "CREATE with partitions, an order and a comment",
        tables(
            "create_table",
            "other.t2",
            COLUMNS,
            partition_spec=DAYS,
            sort_order=BY_S,
            properties={"comment": "b"},
        ),
        [
            f"CREATE TABLE other.t2 {DEFINITION}",
            "ALTER TABLE other.t2 SET PARTITIONED BY (year(ts), month(ts), day(ts))",
            "ALTER TABLE other.t2 SET SORTED BY (s ASC NULLS LAST)",
            "COMMENT ON TABLE other.t2 IS 'b'",
        ],
    ),
    ("DROP TABLE", tables("drop_table", "main.renamed"), ["DROP TABLE renamed"]),
    ("DROP another TABLE", tables("drop_table", "other.t2"), ["DROP TABLE other.t2"]),
    ("DROP SCHEMA", tables("drop_namespace", "other"), ["DROP SCHEMA other"]),
]


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
QUOTED = re.compile(r'^"(\w+)"$')

Row = dict[str, str | None]
Rows = dict[str, list[Row]]


def nested(row: Row) -> Row:
    """Every nested column may be NULL."""
    return row if row["parent_column"] is None else {**row, **dict.fromkeys(IGNORED_OF_NESTED)}


IGNORED_OF_NESTED = ("nulls_allowed", "default_value_type")

DIFFERENCES: list[tuple[str, str, Callable[[Row], Row | None]]] = [
    (
        "ducklake_column",
        "DuckLake writes NOT NULL, and no type of the default, for a nested column that it adds or "
        "renames; it does not check that, and another reader would take it at its word",
        nested,
    ),
    (
        "ducklake_tag",
        "names, ids and order of Iceberg's partition fields, which DuckLake has no place for",
        lambda row: None if (row["key"] or "").startswith("polynya.") else row,
    ),
    (
        "ducklake_sort_expression",
        "DuckLake keeps the text of the statement, which clients do not send; the quotes are "
        "right for every name",
        lambda row: {**row, "expression": QUOTED.sub(r"\1", row["expression"] or "")},
    ),
    (
        "ducklake_snapshot_changes",
        "what a client creates in one request takes several statements of DuckLake, of which the "
        "later ones alter the new table; nobody else can have changed it",
        lambda row: {**row, "changes_made": CREATED_AND_ALTERED.sub(r"\1", row["changes_made"])},
    ),
]
"""Each difference that stays: the table, the reason, and what is left of a row without it."""

CREATED_AND_ALTERED = re.compile(r"^(created_table:.*),altered_table:\d+$")


def without_differences(rows: Rows) -> Rows:
    for table, _, left_of in DIFFERENCES:
        rows[table] = [left for row in rows[table] if (left := left_of(row)) is not None]
    return {table: sorted(of_table, key=str) for table, of_table in rows.items()}


def changed_by(catalog: RestCatalog) -> None:
    for _, by_client, _ in STATEMENTS:
        by_client(catalog)


NATIVE = [
    statement
    for _, _, statements in STATEMENTS
    for statement in (["BEGIN", *statements, "COMMIT"] if len(statements) > 1 else statements)
]

POSTGRES_TABLES = """
SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = 'public' AND table_name LIKE 'ducklake\\_%' ORDER BY 1, ordinal_position"""


METADATA = "SELECT key, value, scope, scope_id FROM ducklake_metadata ORDER BY 1"


def rows_of_postgres(lake: Lake) -> Rows:
    columns = [dict(enumerate(row)) for row in lake.database.run(POSTGRES_TABLES)]
    return {**catalog_rows(lake), "columns of tables": columns}


@pytest.mark.slow(but=["[1.0]"])
@pytest.mark.parametrize("version", VERSIONS)
def test_in_postgres(lake, moto, monkeypatch, version):
    """While the client commits, its lake has this version; DuckDB 1.5.5 writes the other as 1.0.

    What 1.1 writes otherwise: only the end of a column's comment.
    """
    monkeypatch.setattr(SERVED, "version", version)
    with (
        twins(lake, moto, "") as both,
        bridge(both.lake, moto, writes=True) as served,
        closing(client_of(served)) as catalog,
    ):
        before = both.lake.database.run(METADATA)
        changed_by(catalog)
        assert both.lake.database.run(METADATA) == before
        both.native(*NATIVE)
        here, there = (without_differences(rows_of_postgres(one)) for one in (both.lake, both.twin))
    if version == "1.1":
        for row in there["ducklake_column_tag"]:
            row["end_snapshot"] = end_of_column(there, row["table_id"], row["column_id"])
    assert here == there


def end_of_column(rows: Rows, table_id: str | None, column_id: str | None) -> str:
    ids = {"table_id": table_id, "column_id": column_id}
    ended = [row for row in rows["ducklake_column"] if ids.items() <= row.items()]
    return max((row["end_snapshot"] or "" for row in ended), key=int)


COLUMNS_OF_FILE = {
    "sqlite": "SELECT m.name, c.name, c.type FROM sqlite_master AS m, "
    "pragma_table_info(m.name) AS c WHERE m.type = 'table' ORDER BY 1, c.cid",
    "duckdb": "SELECT table_name, column_name, data_type FROM duckdb_columns() "
    "WHERE NOT internal ORDER BY 1, column_index",
}


def rows_of_file(lake: FileLake) -> Rows:
    """All rows, each value with the type that it is stored in."""
    columns = [row for row in query(lake, COLUMNS_OF_FILE[lake.kind]) if row[0] != COMMITS]
    found: Rows = {"columns of tables": [dict(enumerate(row)) for row in columns]}
    for table in {row[0] for row in columns} - {"ducklake_metadata"}:
        names = [name for of, name, _ in columns if of == table and name not in IGNORED]
        values = ", ".join(f'typeof("{name}"), CAST("{name}" AS VARCHAR)' for name in names)
        found[table] = [
            dict(zip(names, map(_text, row[1::2]), strict=True))
            | dict(zip((f"type of {name}" for name in names), row[::2], strict=True))
            for row in query(lake, f'SELECT {values} FROM "{table}"')
        ]
    return found


def _text(value: str | None) -> str | None:
    return value and UUID.sub("UUID", value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_file(tmp_path, kind):
    lake, twin = (empty(kind, tmp_path / name) for name in ("lake", "twin"))
    with (
        serving(lake.address, None, delivery="object-lambda", writes=True) as served,
        closing(RestCatalog("c", uri=served.catalog_uri, warehouse=served.warehouse)) as catalog,
    ):
        before = query(lake, METADATA)
        changed_by(catalog)
        assert query(lake, METADATA) == before
    with writing(twin) as con:
        for statement in NATIVE:
            con.execute(statement)
    here, there = (without_differences(rows_of_file(one)) for one in (lake, twin))
    assert here == there
