"""Warehouses for some clients, such as `lake+trino`: what they hide, and that all else is right.

Rows and counts of filtered rows are those of native DuckLake, without the hidden columns.
"""

import json
import re
from contextlib import closing
from functools import partial
from io import BytesIO

import duckdb
import pyarrow.parquet as pq
import pytest
from polynya.virtual_files.names import parse
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from pyiceberg.expressions import EqualTo

from tests.differential.test_named_lakes import CLIENTS, MATRIX, without_matrix
from tests.differential.test_rows import hidden_columns, listed
from tests.matrix import run
from tests.matrix.condition import DUCKDB, Condition
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
YOUNGER_TYPES = {
    "n": "INTEGER",
    "t": "VARCHAR",
    "d": "DATE",
    "s": "STRUCT(a INTEGER, l VARCHAR[])",
    "l": "INTEGER[]",
    "m": "MAP(VARCHAR, INTEGER)",
}
VALUES_OF_YOUNGER = (
    "i, 't' || i, DATE '2026-01-01' + i::INTEGER, {'a': i, 'l': ['x']}, [i], MAP {'k': i}"
)
SCRIPT += """
CREATE TABLE younger(i INTEGER, gone INTEGER);
INSERT INTO younger SELECT i, i FROM range(9) r(i);
ALTER TABLE younger DROP COLUMN gone;
"""
SCRIPT += "".join(
    f"ALTER TABLE younger ADD COLUMN {name} {type_};\n" for name, type_ in YOUNGER_TYPES.items()
)
SCRIPT += f"""
INSERT INTO younger SELECT i, {VALUES_OF_YOUNGER} FROM range(9, 15) r(i);
DELETE FROM younger WHERE i % 4 = 0;
ALTER TABLE younger ADD COLUMN s.b INTEGER;
CREATE TABLE added(i INTEGER, t VARCHAR, n INTEGER);
COPY (SELECT i::INTEGER AS i, 't' || i AS t FROM range(9) r(i))
  TO '{{{{DATA_PATH}}}}_ext/added.parquet';
CALL ducklake_add_data_files('lake', 'added', '{{{{DATA_PATH}}}}_ext/added.parquet',
  allow_missing => true);
ALTER TABLE added ADD COLUMN s STRUCT(a INTEGER, l VARCHAR[]);
INSERT INTO added SELECT i, 't' || i, i, {{'a': i, 'l': ['x']}} FROM range(9, 15) r(i);
DELETE FROM added WHERE i % 4 = 0;
CREATE TABLE long_ago(i INTEGER, d TIMESTAMP);
ALTER TABLE long_ago SET PARTITIONED BY (year(d), month(d));
INSERT INTO long_ago VALUES (1, '1969-12-31 12:00:01'), (2, '1968-02-03'), (3, NULL),
  (4, '1970-01-02'), (5, '2024-05-06');
CREATE TABLE parts(i INTEGER, k INTEGER);
ALTER TABLE parts SET PARTITIONED BY (k);
INSERT INTO parts SELECT i, i % 2 FROM range(10) r(i);
DELETE FROM parts WHERE i < 3;
CREATE TABLE swapped(a INTEGER, b INTEGER);
INSERT INTO swapped VALUES (1, 10), (2, 20);
ALTER TABLE swapped RENAME COLUMN a TO c;
ALTER TABLE swapped RENAME COLUMN b TO a;
ALTER TABLE swapped RENAME COLUMN c TO b;
INSERT INTO swapped VALUES (30, 3);
CREATE TABLE longer(i INTEGER);
INSERT INTO longer VALUES (1), (2);
ALTER TABLE longer ADD COLUMN n INTEGER;
INSERT INTO longer VALUES (3, 3);
CREATE TABLE doubles(i INTEGER, v FLOAT);
INSERT INTO doubles VALUES (1, 0.5), (2, 9);
ALTER TABLE doubles ALTER COLUMN v SET DATA TYPE DOUBLE;
INSERT INTO doubles VALUES (3, 0.1);
COPY (SELECT 4 AS i, 0.25::FLOAT AS v) TO '{{{{DATA_PATH}}}}_ext/doubles.parquet';
CALL ducklake_add_data_files('lake', 'doubles', '{{{{DATA_PATH}}}}_ext/doubles.parquet');
CREATE TABLE rescaled(i INTEGER, v DECIMAL(20, 3), l DECIMAL(20, 3)[], whole DECIMAL(9, 0));
COPY (SELECT 1 AS i, 1.25::DECIMAL(20, 3) AS v, NULL::DECIMAL(20, 3)[] AS l,
  7::DECIMAL(5, 0) AS whole) TO '{{{{DATA_PATH}}}}_ext/same.parquet';
COPY (SELECT 2 AS i, 1.25::DECIMAL(5, 2) AS v, [1.25::DECIMAL(5, 2)] AS l,
  8::DECIMAL(5, 0) AS whole) TO '{{{{DATA_PATH}}}}_ext/rescaled.parquet';
CALL ducklake_add_data_files('lake', 'rescaled', '{{{{DATA_PATH}}}}_ext/same.parquet');
CALL ducklake_add_data_files('lake', 'rescaled', '{{{{DATA_PATH}}}}_ext/rescaled.parquet');
DELETE FROM rescaled WHERE i = 2;
CALL ducklake_rewrite_data_files('lake', 'rescaled', delete_threshold => 0);
CREATE TABLE unsigned(i INTEGER, b BIGINT, l BIGINT[]);
INSERT INTO unsigned VALUES (1, 3000000000, [3000000000]), (2, NULL, NULL);
COPY (SELECT 3 AS i, -1::BIGINT AS b, [5000000000] AS l) TO '{{{{DATA_PATH}}}}_ext/signed.parquet';
COPY (SELECT 4::INTEGER AS i, 2147483647::UINTEGER AS b, [5::UINTEGER] AS l)
  TO '{{{{DATA_PATH}}}}_ext/small.parquet';
COPY (SELECT 5::INTEGER AS i, 3000000000::UINTEGER AS b, [4294967295::UINTEGER] AS l)
  TO '{{{{DATA_PATH}}}}_ext/unsigned.parquet';
CALL ducklake_add_data_files('lake', 'unsigned', '{{{{DATA_PATH}}}}_ext/signed.parquet');
CALL ducklake_add_data_files('lake', 'unsigned', '{{{{DATA_PATH}}}}_ext/small.parquet');
CALL ducklake_add_data_files('lake', 'unsigned', '{{{{DATA_PATH}}}}_ext/unsigned.parquet');
DELETE FROM unsigned WHERE i = 5;
CALL ducklake_rewrite_data_files('lake', 'unsigned', delete_threshold => 0);
"""
# warehouse -> table -> the columns that it hides, at some snapshots at least
HIDDEN = {
    "lake": {},
    "lake+none": {},
    "lake+all": {},
    "lake+trino": {"large": {"u"}, "rescaled": {"v", "l"}, "unsigned": {"b", "l"}},
    "lake+spark": {"large": {"u"}, "types": {"t"}, "unsigned": {"b", "l"}},
    "lake+flink+trino": {
        "large": {"u"},
        "types": {"t", "b"},
        "rescaled": {"v", "l"},
        "unsigned": {"b", "l"},
    },
    "lake+pyiceberg": {
        "large": {"u"},
        "types": {"l"},
        "rescaled": {"v", "l"},
        "unsigned": {"b", "l"},
    },
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


@pytest.mark.parametrize(
    ("warehouse", "hides"),
    [(f"lake+{name}", True) for name in ("datafusion", "flink", "polars", "pyiceberg")]
    + [("lake+trino", True), ("lake", False)],
)
def test_decimals_are_hidden_while_an_added_file_has_another_scale(warehouse, hides, bridge):
    """The files have the same name mapping: each says for itself how many digits it has."""
    document = documents(bridge, warehouse)["rescaled"]
    states = [
        sorted({"v", "l", "whole"} - names_at(document, id_)) for id_ in sorted(listed(document))
    ]
    before = {(): 0, ("l", "v"): 0} | {tuple(state): 1 for state in states}
    assert before == {(): 1, ("l", "v"): int(hides)}
    assert states[0] == states[-1] == []


@pytest.mark.parametrize(
    ("warehouse", "hides"),
    [(f"lake+{name}", True) for name in ("flink", "pyiceberg", "spark", "trino")]
    + [("lake+daft", False), ("lake", False)],
)
def test_bigints_are_hidden_while_an_added_file_has_a_large_uinteger(warehouse, hides, bridge):
    document = documents(bridge, warehouse)["unsigned"]
    states = [{"b", "l"} - names_at(document, id_) for id_ in sorted(listed(document))]
    assert ({"b", "l"} in states) == hides
    assert states == [{"b", "l"} if gone else set() for gone in states]
    assert [*states[:4], states[-1]] == [set()] * 5


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


@pytest.mark.parametrize(
    "client",
    ["DuckDB", pytest.param("ClickHouse", marks=[pytest.mark.slow, without_matrix])],
)
def test_times_before_1970_are_found_where_no_file_has_a_partition(client, bridge, truth):
    newest = documents(bridge, "lake")["long_ago"]["snapshots"][-1]
    where = {
        "catalog_uri": bridge.catalog_uri,
        "s3_endpoint": bridge.s3_endpoint,
        "bucket": newest["manifest-list"].split("/")[2],
    }
    found = {}
    for warehouse in ("lake", f"lake+{client.lower()}"):
        reader = run.opened(client, str(MATRIX), {**where, "warehouse": warehouse})
        with closing(reader):
            for value in ("1969-12-31 12:00:01", "1968-02-03 00:00:00", "1970-01-02 00:00:00"):
                for operator in ("=", ">=", "IN"):
                    asked = Condition(["d"], "timestamp", operator, [value], 0)
                    sql = f"SELECT count(*) FROM lake.main.long_ago WHERE {asked.sql(DUCKDB)}"
                    [[expected]] = truth.query(sql)
                    is_right = reader.count_where("main", "long_ago", asked) == expected
                    found.setdefault(warehouse, set()).add(is_right)
    assert found == {"lake": {True, False}, f"lake+{client.lower()}": {True}}


def test_a_warehouse_of_a_snapshot_finds_what_a_condition_on_it_misses(bridge, truth):
    """PyIceberg asks for the column that has the name now."""
    found = set()
    for snapshot in documents(bridge, "lake")["swapped"]["snapshots"]:
        then, at = snapshot["snapshot-id"], snapshot["sequence-number"]
        for column, value in (("a", 1), ("b", 10), ("a", 10)):
            columns = truth.columns("main", "swapped", at)
            sql = f"SELECT count(*) FROM lake.main.swapped AT (VERSION => {at}) WHERE "
            if column not in columns:
                continue
            [[expected]] = truth.query(f"{sql} {column} = {value}")
            for warehouse, asked in (("lake", {"snapshot_id": then}), (f"lake@{at}", {})):
                where = (bridge.catalog_uri, warehouse, bridge.s3_endpoint)
                with closing(pyiceberg.open(*where)) as reader:
                    table = reader._catalog.load_table("main.swapped")
                    rows = table.scan(EqualTo(column, value), **asked).to_arrow().num_rows
                    found.add((warehouse[:5], rows == expected))
    assert found == {("lake", True), ("lake", False), ("lake@", True)}


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


@pytest.fixture(scope="module", params=["lake", "lake+daft", "lake+none"])
def of_daft(request, bridge):
    where = {
        "catalog_uri": bridge.catalog_uri,
        "warehouse": request.param,
        "s3_endpoint": bridge.s3_endpoint,
        "bucket": "",
    }
    with closing(run.opened("Daft", str(MATRIX), where)) as reader:
        yield request.param, reader


OF_YOUNGER = {
    ("younger", "n"): ("integer", "13"),
    ("younger", "t"): ("text", "t13"),
    ("younger", "d"): ("date", "2026-01-14"),
    **{("younger", name): None for name in ("s", "l", "m")},
    ("added", "n"): ("integer", "13"),
    ("added", "s"): None,
}
"""Columns, and a value of each, if conditions ask for any."""


@pytest.mark.slow
@without_matrix
@pytest.mark.parametrize(("table", "column"), OF_YOUNGER)
def test_daft_filters_files_that_lack_all_that_it_reads(table, column, of_daft, bridge, truth):
    """Alone and among all columns, at each snapshot; also rows that are deleted."""
    warehouse, reader = of_daft
    (kind, *values), wrong = OF_YOUNGER[table, column] or ("integer",), []
    for snapshot_id in (None, *listed(documents(bridge, warehouse)[table])):
        if column not in truth.columns("main", table, snapshot_id):
            continue
        at = "" if snapshot_id is None else f" AT (VERSION => {snapshot_id})"
        for operator in ("IS NULL", "IN", ">=") if values else ("IS NULL",):
            asked = Condition([column], kind, operator, values, 0, snapshot_id)
            sql = f"SELECT count(*) FROM lake.main.{table}{at} WHERE {asked.sql(DUCKDB)}"
            [[expected]] = truth.query(sql)
            lines = run.miscount(partial(reader.count_where, "main", table, asked), expected)
            wrong += [(str(asked), line) for line in lines or ()]
    if warehouse == "lake+none":
        # It reads no list and no map as DuckDB 1.5 writes it, and no added file without ids.
        is_plain = table == "younger" and values
        fault = "of the column alone" if is_plain else "no parquet field IDs|single child"
        assert any(re.search(fault, line) for _, line in wrong), wrong
    else:
        assert not wrong


@pytest.mark.slow
@without_matrix
def test_daft_deletes_rows_of_partitions_if_files_have_their_columns(of_daft, truth):
    warehouse, reader = of_daft
    [[rows]] = truth.query("SELECT count(*) FROM lake.main.parts WHERE k = 1")
    asked = Condition(["k"], "integer", "=", ["1"], rows)
    wrong = run.miscount(partial(reader.count_where, "main", "parts", asked), rows)
    assert wrong == (
        []
        if warehouse == "lake+daft"
        else ["ValueError: the client finds 4 rows, and 5 of the column alone"]
    )


def test_only_files_from_before_get_the_columns_that_they_lack(bridge):
    with closing(pyiceberg.open(bridge.catalog_uri, "lake+daft", bridge.s3_endpoint)) as reader:
        table = reader._catalog.load_table("main.longer")
        files = {task.file.file_path: task.file.record_count for task in table.scan().plan_files()}
        names = {rows: "/data-file-" in path for path, rows in files.items()}
        assert names == {2: True, 1: False}
        assert sorted(table.scan().to_arrow()["i"].to_pylist()) == [1, 2, 3]
        for path, rows in files.items():
            with table.io.new_input(path).open() as stream:
                assert pq.read_table(BytesIO(stream.read())).column_names == ["i", "n"], rows
    properties = documents(bridge, "lake+daft")["longer"]["properties"]
    assert "with NULL" in properties["polynya.adapted-files"]
    assert "polynya.adapted-files" not in documents(bridge, "lake+trino")["longer"]["properties"]


@pytest.mark.parametrize(("warehouse", "types"), [("lake+trino", {"DOUBLE"}), ("lake+daft", None)])
def test_trino_finds_statistics_of_a_promoted_column_only_where_it_is_double(
    warehouse, types, bridge
):
    """It fails over those of FLOAT: `make trino` asks it for such columns."""
    types = types or {"DOUBLE", "FLOAT"}
    rows, seen = [], set()
    with closing(pyiceberg.open(bridge.catalog_uri, warehouse, bridge.s3_endpoint)) as reader:
        table = reader._catalog.load_table("main.doubles")
        for task in table.scan().plan_files():
            with table.io.new_input(task.file.file_path).open() as stream:
                body = BytesIO(stream.read())
            chunk = pq.read_metadata(body).row_group(0).column(1)
            seen |= {chunk.physical_type} if chunk.is_stats_set else set()
            rows += pq.read_table(body)["v"].to_pylist()
    assert (sorted(rows), seen) == ([0.1, 0.25, 0.5, 9], types)


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
