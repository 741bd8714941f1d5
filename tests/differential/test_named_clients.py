"""Warehouses for some clients, such as `lake+trino`: what they hide, and that all else is right.

Rows and counts of filtered rows are those of native DuckLake, without the hidden columns.
"""

import json
from contextlib import closing

import duckdb
import pytest
from polynya.virtual_files.names import parse
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from pyiceberg.expressions import EqualTo

from tests.differential.test_random_lakes import CLIENTS, MATRIX
from tests.differential.test_rows import hidden_columns, listed
from tests.matrix import run
from tests.support import rest
from tests.support.servers import in_process
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE plain(i INTEGER, s VARCHAR);
INSERT INTO plain VALUES (1, 'a'), (2, NULL);
CREATE TABLE large(i INTEGER, u UINTEGER);
INSERT INTO large VALUES (1, 7), (2, NULL);
INSERT INTO large VALUES (3, 4294967295), (4, 2147483648);
DELETE FROM large WHERE i >= 3;
CALL ducklake_rewrite_data_files('lake', 'large', delete_threshold => 0);
INSERT INTO large VALUES (5, 2147483647);
CREATE TABLE types(i INTEGER, t TIME, b BLOB, u UUID, l STRUCT(a INTEGER)[], small TINYINT[]);
INSERT INTO types SELECT i, '01:02:03'::TIME, 'x'::BLOB, uuid(),
  CASE WHEN i > 2 THEN [{'a': i}] END, CASE WHEN i > 2 THEN [i::TINYINT] END FROM range(5) r(i);
CREATE TABLE odd(i INTEGER, "per%cent" INTEGER);
INSERT INTO odd VALUES (1, 1), (2, 2);
ALTER TABLE odd SET PARTITIONED BY ("per%cent");
INSERT INTO odd VALUES (3, 1), (4, 2);
DELETE FROM odd WHERE i = 2;
CREATE TABLE hive(i INTEGER, k INTEGER);
INSERT INTO hive VALUES (1, 1), (2, 2);
ALTER TABLE hive SET PARTITIONED BY (k);
COPY (SELECT i::INTEGER AS i, (i % 2)::INTEGER AS k FROM range(10, 20) r(i))
  TO '{{DATA_PATH}}_ext/hive' (FORMAT parquet, PARTITION_BY (k));
CALL ducklake_add_data_files('lake', 'hive', '{{DATA_PATH}}_ext/hive/**/*.parquet',
  hive_partitioning => true);
INSERT INTO hive VALUES (3, 1), (4, 2);
DELETE FROM hive WHERE i IN (2, 12);
"""
# warehouse -> table -> the columns that it hides, at some snapshots at least
HIDDEN = {
    "lake": {},
    "lake+none": {},
    "lake+all": {},
    "lake+trino": {"large": {"u"}},
    "lake+spark": {"large": {"u"}, "types": {"t"}},
    "lake+flink+trino": {"large": {"u"}, "types": {"t", "b"}},
    "lake+pyiceberg": {"large": {"u"}, "types": {"l"}},
    "lake+daft": {"types": {"u"}},
    "lake+sail": {},
}
OF_VERSION_3 = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE nanoseconds(i INTEGER, v TIMESTAMP_NS);
INSERT INTO nanoseconds SELECT i, make_timestamp_ns(1700000000000000000 + i) FROM range(9) r(i);
DELETE FROM nanoseconds WHERE i % 3 = 0;
CREATE TABLE geometries(i INTEGER, v GEOMETRY, s STRUCT(a INTEGER, g GEOMETRY));
INSERT INTO geometries SELECT i, ('POINT(1 ' || i || ')')::GEOMETRY,
  {'a': i, 'g': ('POINT(2 ' || i || ')')::GEOMETRY} FROM range(9) r(i);
DELETE FROM geometries WHERE i % 3 = 0;
CREATE TABLE inlined(i INTEGER, l INTEGER[], m MAP(VARCHAR, STRUCT(a INTEGER)));
CALL lake.set_option('data_inlining_row_limit', 9, table_name => 'inlined');
INSERT INTO inlined VALUES (1, [1, NULL], MAP {'k': {'a': 1}}), (2, NULL, NULL), (3, [], MAP {});
"""
VALUES = {
    "INTERVAL": "INTERVAL (i) DAY",
    "TIME": "TIME '01:02:03' + INTERVAL (i) MINUTE",
    "TIMETZ": "TIMETZ '01:02:03+02'",
    "TIMESTAMP": "TIMESTAMP '2026-01-02 03:04:05.000006' + INTERVAL (i) DAY",
    "TIMESTAMP_S": "TIMESTAMP '2026-01-02 03:04:05' + INTERVAL (i) DAY",
    "TIMESTAMP_MS": "TIMESTAMP '2026-01-02 03:04:05.006' + INTERVAL (i) DAY",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2026-01-02 03:04:05.000006+00' + INTERVAL (i) DAY",
    "UUID": "uuid()",
    "BLOB": "i::VARCHAR::BLOB",
    "JSON": "i::VARCHAR",
    "UTINYINT": "i",
    "USMALLINT": "i",
    "UINTEGER": "i",
    "UBIGINT": "i",
    "TINYINT": "-i",
    "HUGEINT": "-i",
    "UHUGEINT": "i",
    "DECIMAL(30,2)": "i / 7",
    "FLOAT": "i / 7",
    "BOOLEAN": "i > 4",
}
"""A type of a field, and a value of it by the number of the row."""
OF_VERSION_3 += "".join(
    f"CREATE TABLE in_struct_{n}(i INTEGER, s STRUCT(a INTEGER, v {type_}, m {type_}[]));"
    f"INSERT INTO in_struct_{n} SELECT i, {{'a': i, 'v': {value}, 'm': [NULL, {value}]}}"
    " FROM range(9) r(i);\n"
    for n, (type_, value) in enumerate(VALUES.items())
)
OF_VERSION_3 += "".join(
    f"CREATE TABLE beside_struct_{n}(i INTEGER, v {type_}, s STRUCT(a INTEGER));"
    f"INSERT INTO beside_struct_{n} SELECT i, {VALUES[type_]}, {{'a': i}} FROM range(9) r(i);\n"
    for n, type_ in enumerate(("INTERVAL", "TIME", "TIMETZ", "UINTEGER", "UBIGINT", "UHUGEINT"))
)
NO_LITERAL = "Cannot convert StringLiteral into timestamp_ns"
"""PyIceberg, and so Daft, cannot be asked for nanoseconds."""
NO_NULL_LISTS = {("ClickHouse", "main.inlined")}
"""ClickHouse has no NULL for a list or a map, and reads an empty one."""
WITHOUT_PARTITIONS = {"lake+daft": {"hive", "odd"}, "lake+sail": {"odd"}}


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("named_clients", SCRIPT)


@pytest.fixture(scope="module")
def bridge(written, moto):
    with in_process.bridge(
        written, moto, delivery="object-lambda", settings={"CLIENTS": "all"}
    ) as bridge:
        yield bridge


@pytest.fixture(scope="module")
def truth(written, moto):
    with closing(native.open(written, moto)) as reader:
        yield reader


def documents(bridge, warehouse: str) -> dict[str, dict]:
    catalog = rest.Rest(bridge.catalog_uri, warehouse)
    return {table: catalog.load_table("main", table) for _, table in catalog.tables()}


@pytest.mark.parametrize("warehouse", HIDDEN)
def test_all_but_the_hidden_columns_is_right(warehouse, bridge, truth):
    wrong = []
    with closing(pyiceberg.open(bridge.catalog_uri, warehouse, bridge.s3_endpoint)) as reader:
        for table, document in documents(bridge, warehouse).items():
            hidden = hidden_columns(document)
            assert hidden == HIDDEN[warehouse].get(table, set()), table
            for snapshot_id in (None, *listed(document)):
                shown = truth.columns("main", table, snapshot_id)
                gone = frozenset(shown) - names_at(document, snapshot_id)
                rows = from_arrow(reader.rows("main", table, snapshot_id), shown, gone)
                lines = difference(truth.canonical("main", table, snapshot_id, gone), rows)
                # PyIceberg reads a NULL list of structs as empty: so `lake+pyiceberg` hides it.
                if lines and (table, "l" in gone) != ("types", False):
                    wrong.append((table, snapshot_id, lines))
    assert not wrong


def names_at(document: dict, snapshot_id: int | None) -> set[str]:
    schema_id = document["current-schema-id"]
    for snapshot in document["snapshots"]:
        if snapshot["snapshot-id"] == snapshot_id:
            schema_id = snapshot["schema-id"]
    [schema] = [s for s in document["schemas"] if s["schema-id"] == schema_id]
    return {field["name"] for field in schema["fields"]}


@pytest.mark.parametrize("warehouse", ["lake+trino", "lake+pyiceberg", "lake+spark"])
def test_large_values_are_hidden_only_while_a_file_has_them(warehouse, bridge):
    document = documents(bridge, warehouse)["large"]
    shown = {id_: "u" in names_at(document, id_) for id_ in listed(document)}
    everybody = documents(bridge, "lake")["large"]
    assert all("u" in names_at(everybody, id_) for id_ in listed(everybody))
    states = [shown[id_] for id_ in sorted(shown)]
    assert states == sorted(states, reverse=True)[:1] + states[1:] and not all(states)
    assert states[0] and states[-1] and False in states
    reasons = json.loads(document["properties"].get("polynya.hidden-columns-reason", "{}"))
    assert reasons == {} or "2147483648 or more" in reasons["u"]


@pytest.mark.parametrize(("table", "column"), [("odd", "per%cent"), ("hive", "k")])
@pytest.mark.parametrize("warehouse", ["lake", "lake+daft", "lake+sail"])
def test_partitions_are_left_out_for_those_who_misread_them(
    warehouse, table, column, bridge, truth
):
    document = documents(bridge, warehouse)[table]
    fields = [field for spec in document["partition-specs"] for field in spec["fields"]]
    assert (fields == []) == (table in WITHOUT_PARTITIONS.get(warehouse, ()))
    with closing(pyiceberg.open(bridge.catalog_uri, warehouse, bridge.s3_endpoint)) as reader:
        loaded = reader._catalog.load_table(f"main.{table}")
        for value in range(4):
            [[expected]] = truth.query(
                f'SELECT count(*) FROM lake.main.{table} WHERE "{column}" = {value}'
            )
            found = loaded.scan(row_filter=EqualTo(column, value)).to_arrow().num_rows
            assert found == expected, value


def test_tables_that_need_nothing_have_the_same_files_for_all(bridge):
    of_all = {warehouse: documents(bridge, warehouse)["plain"] for warehouse in HIDDEN}
    assert all(document == of_all["lake"] for document in of_all.values())


def test_files_are_built_from_their_names_alone(bridge):
    """The names say for whom they are, and only where others get other files."""
    for warehouse in ("lake+trino", "lake+spark", "lake+none"):
        for table, document in documents(bridge, warehouse).items():
            key = document["snapshots"][-1]["manifest-list"].partition("//")[2].partition("/")[2]
            clients = parse(key, "polynya").clients
            assert clients in (None, frozenset({warehouse[5:]} - {"none"})), table
            assert clients is None or table not in {"plain", "odd"}, table
            assert clients is not None or table != "types"


@pytest.fixture(scope="module")
def of_version_3(lake):
    return lake.write(run.VERSION_3, OF_VERSION_3)


@pytest.mark.parametrize(
    ("warehouse", "kind"),
    [
        ("lake+v3", "PUFFIN"),
        ("lake+v3+daft", "PARQUET"),
        ("lake+v3+clickhouse+trino", "PARQUET"),  # of version 2, because Trino hides the column
        ("lake+v3+daft+datafusion", "PUFFIN"),
    ],
)
def test_only_those_that_know_deletion_vectors_get_them(warehouse, kind, of_version_3, moto):
    with in_process.bridge(of_version_3, moto, delivery="object-lambda") as served:
        where = (served.catalog_uri, warehouse, served.s3_endpoint)
        with closing(pyiceberg.open(*where)) as reader:
            table = reader._catalog.load_table("main.nanoseconds")
            [task] = table.scan().plan_files()
            assert {file.file_format for file in task.delete_files} == {kind}
            assert table.scan().to_arrow()["i"].to_pylist() == [1, 2, 4, 5, 7, 8]


@pytest.mark.parametrize(
    ("warehouse", "types"), [("lake+daft", ["ListType()", "MapType()"]), ("lake+sail", [])]
)
def test_inlined_lists_have_logical_types_for_daft(warehouse, types, of_version_3, moto, tmp_path):
    with in_process.bridge(of_version_3, moto, delivery="object-lambda") as served:
        where = (served.catalog_uri, warehouse, served.s3_endpoint)
        with closing(pyiceberg.open(*where)) as reader:
            table = reader._catalog.load_table("main.inlined")
            [task] = table.scan().plan_files()
            file = tmp_path / "rows.parquet"
            with table.io.new_input(task.file.file_path).open() as stream:
                file.write_bytes(stream.read())
    of_groups = "SELECT logical_type FROM parquet_schema(?) WHERE converted_type IN ('LIST', 'MAP')"
    with duckdb.connect() as con:
        found = con.execute(of_groups, [str(file)]).fetchall()
    assert [name for (name,) in found if name] == types and len(found) == 2


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_what_its_warehouse_shows_of_version_3(client, of_version_3, moto):
    seen = {client: run.Seen()}
    run.read_one_by_one(of_version_3, moto, seen, str(MATRIX))
    wrong = [
        f"{what}: {fault}"
        for what, fault in seen[client].faults
        if NO_LITERAL not in fault and (client, what) not in NO_NULL_LISTS
    ]
    assert not wrong, "\n".join(wrong)
    assert seen[client].same > 9


def test_a_lake_for_clients_can_be_pinned(bridge):
    newest = documents(bridge, "lake+spark")["types"]
    first = newest["snapshots"][0]
    pinned = documents(bridge, f"lake+spark@{first['snapshot-id']}")["types"]
    assert pinned["snapshots"][-1]["manifest-list"] == first["manifest-list"]


def test_an_unknown_client_is_refused_with_those_that_are_known(bridge):
    for name in ("lake+sprak", "lake+spark+spark", "lake+all+spark"):
        with pytest.raises(rest.Refused, match="some of clickhouse, daft, datafusion") as refused:
            rest.Rest(bridge.catalog_uri, name)
        assert refused.value.status == 404


def test_what_a_client_deletes_from_added_files_is_deleted_in_ducklake(lake, moto):
    """The client names the adapted files, and the catalog those behind them."""
    written = set_up_writes(lake.write("named_clients_writing", SCRIPT))
    settings = {"CLIENTS": "all"}
    how = {"delivery": "object-lambda", "writes": True, "settings": settings}
    sql = "SELECT i, k FROM lake.main.hive"
    with closing(native.open(written, moto)) as truth:
        before = sorted(truth.query(sql))
    with in_process.bridge(written, moto, **how) as bridge:
        where = (bridge.catalog_uri, "lake", bridge.s3_endpoint)
        with closing(pyiceberg.open(*where)) as reader:
            table = reader._catalog.load_table("main.hive")
            table.delete(EqualTo("i", 13))
            table.delete(EqualTo("k", 0))
            rows = reader.rows("main", "hive").to_pylist()
    with closing(native.open(written, moto)) as truth:
        after = sorted(truth.query(sql))
    assert after == [(i, k) for i, k in before if i != 13 and k != 0] != before
    assert sorted((row["i"], row["k"]) for row in rows) == after
