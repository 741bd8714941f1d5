"""The rules of clients' faults find the tables that have them, and no others.

The expected faults are written by hand, from what was measured; the slow test takes them from the
table that `make matrix` wrote.
"""

import re
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from polynya.ducklake import queries
from polynya.runtime.errors import Refused
from polynya.storage.aws import AwsSettings
from polynya_local.clients.duckdb import connect, literal
from polynya_local.reports import conditions
from polynya_local.reports.client_faults import (
    FAILS,
    RARE,
    WRONG,
    known_faults,
    measured_clients,
)
from polynya_local.reports.generator import Generator, tables_of
from polynya_local.reports.table_facts import table_facts
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, LessThan, NotEqualTo, NotNull
from pyiceberg.types import LongType

from tests.support.servers.in_process import settings

DEFAULT = ("Spark", "Daft", "ClickHouse", "Trino", "Flink")
TABLES = {
    # What makes the table, and its faults: client, kind, columns, files.
    "plain": ("CREATE TABLE {t}(i INTEGER, s VARCHAR); INSERT INTO {t} VALUES (1, 'x')", []),
    "unsigned": (
        "CREATE TABLE {t}(v UINTEGER); INSERT INTO {t} VALUES (1); INSERT INTO {t} VALUES (2)",
        [("Spark", FAILS, "v", 2)],
    ),
    "large_unsigned": (
        "CREATE TABLE {t}(v UINTEGER); INSERT INTO {t} VALUES (1); "
        "INSERT INTO {t} VALUES (2147483648)",
        [
            *((client, WRONG, "v", 2) for client in ("PyIceberg", "Trino", "Flink")),
            ("Spark", FAILS, "v", 2),
        ],
    ),
    "lists": (
        "CREATE TABLE {t}(v STRUCT(a INTEGER)[]); INSERT INTO {t} VALUES ([{{'a': 1}}])",
        [
            ("PyIceberg", WRONG, "v", 1),
            ("Daft", FAILS, "v", 1),
            ("ClickHouse", WRONG, "v v.element", 1),
        ],
    ),
    "uuid_in_struct": (
        "CREATE TABLE {t}(s STRUCT(u UUID)); INSERT INTO {t} VALUES ({{'u': uuid()}})",
        [
            ("PyIceberg", RARE, "s.u", 1),
            ("Daft", FAILS, "s.u", 1),
            ("Spark", WRONG, "s.u", 1),
            ("ClickHouse", WRONG, "s", 1),
        ],
    ),
    "beside_struct": (
        "CREATE TABLE {t}(v TIMETZ, s STRUCT(a INTEGER)); "
        "INSERT INTO {t} VALUES (TIMETZ '12:00:00+01', {{'a': 1}})",
        [("Spark", FAILS, "v", 1), ("ClickHouse", WRONG, "s", 1)],
    ),
    "variants": (
        "CREATE TABLE {t}(i INTEGER, v VARIANT); INSERT INTO {t} VALUES (1, 1)",
        [(client, FAILS, "v", 1) for client in ("PyIceberg", "Polars", "Trino")],
    ),
    "was_variant": (
        "CREATE TABLE {t}(i INTEGER, v VARIANT); INSERT INTO {t} VALUES (1, 1); "
        "ALTER TABLE {t} DROP COLUMN v; INSERT INTO {t} VALUES (2)",
        [(client, FAILS, "v", 1) for client in ("PyIceberg", "Polars", "Trino")],
    ),
    "nanoseconds": (
        "CREATE TABLE {t}(v TIMESTAMP_NS); INSERT INTO {t} VALUES ('2024-01-01')",
        [
            *((client, FAILS, "v", 1) for client in ("Spark", "Trino", "Daft", "Sail")),
            ("Flink", WRONG, "v", 1),
        ],
    ),
    "geometries": (
        "CREATE TABLE {t}(v GEOMETRY); INSERT INTO {t} VALUES ('POINT(1 2)')",
        [
            ("DuckDB", RARE, "v", 1),
            *((client, FAILS, "v", 1) for client in ("PyIceberg", "Spark", "Polars", "Trino")),
            *((client, FAILS, "v", 1) for client in ("Flink", "DataFusion", "ClickHouse")),
        ],
    ),
    "no_variants_yet": (
        "CREATE TABLE {t}(v VARIANT)",
        [
            *((client, FAILS, "v", 0) for client in ("PyIceberg", "Polars", "Daft", "DataFusion")),
            *((client, FAILS, "v", 0) for client in ("ClickHouse", "Trino", "Flink")),
            ("Sail", WRONG, "v", 0),
        ],
    ),
    "defaults": (
        "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1); INSERT INTO {t} VALUES (2); "
        "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 42; INSERT INTO {t} VALUES (3, 3)",
        [(client, WRONG, "n", 2) for client in DEFAULT],
    ),
    "deleted": (
        "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1), (2); "
        "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 42; DELETE FROM {t} WHERE i = 1",
        [
            *((client, WRONG, "n", 1) for client in DEFAULT),
            *((client, FAILS, "", 1) for client in ("Daft", "ClickHouse", "Trino")),
        ],
    ),
    "default_everywhere": (
        "CREATE TABLE {t}(i INTEGER); ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 42; "
        "INSERT INTO {t} VALUES (3, 3)",
        [],
    ),
    "default_uuid": (
        "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD COLUMN "
        "u UUID DEFAULT '00000000-0000-0000-0000-000000000001'",
        [
            *((client, WRONG, "u", 1) for client in DEFAULT),
            ("DataFusion", FAILS, "u", 1),
            ("Daft", FAILS, "u", 0),
            ("Spark", WRONG, "u", 0),
        ],
    ),
    "times": (
        "CREATE TABLE {t}(v TIME); INSERT INTO {t} VALUES ('12:00')",
        [(c, k, "v", 1) for c, k in [("Spark", FAILS), ("ClickHouse", WRONG), ("Flink", WRONG)]],
    ),
    "promoted": (
        "CREATE TABLE {t}(i INTEGER, v UTINYINT); INSERT INTO {t} VALUES (1, 1); "
        "ALTER TABLE {t} ALTER i SET TYPE BIGINT; INSERT INTO {t} VALUES (2, 2)",
        [("Spark", FAILS, "v", 2)],
    ),
    "promoted_floats": (
        "CREATE TABLE {t}(v FLOAT, s STRUCT(w FLOAT)); INSERT INTO {t} VALUES (1, {{'w': 1}}); "
        "ALTER TABLE {t} ALTER v SET TYPE DOUBLE; "
        "ALTER TABLE {t} ALTER s SET TYPE STRUCT(w DOUBLE); INSERT INTO {t} VALUES (2, NULL)",
        [("Trino", FAILS, "v s.w", 1), ("ClickHouse", WRONG, "s", 2)],
    ),
    "floats": (
        "CREATE TABLE {t}(v FLOAT, w DOUBLE); INSERT INTO {t} VALUES (1, 1)",
        [(client, RARE, "v", 1) for client in ("PyIceberg", "Spark", "Flink")],
    ),
    "blobs": (
        "CREATE TABLE {t}(v BLOB); INSERT INTO {t} VALUES ('a'::BLOB)",
        [("DuckDB", RARE, "v", 1), ("Flink", WRONG, "v", 1)],
    ),
    "small_unsigned": ("CREATE TABLE {t}(v UTINYINT); INSERT INTO {t} VALUES (1)", []),
    "json": (
        "CREATE TABLE {t}(v JSON); INSERT INTO {t} VALUES ('1')",
        [("Polars", FAILS, "v", 1)],
    ),
    "intervals": (
        "CREATE TABLE {t}(i INTEGER, v INTERVAL); INSERT INTO {t} VALUES (1, '1 day')",
        [("Polars", FAILS, "v", 1)],
    ),
    "added": (
        "CREATE TABLE {t}(s STRUCT(a INTEGER)); COPY (SELECT {{'a': 1}} AS s) TO '{place}'; "
        "CALL ducklake_add_data_files('lake', '{t}', '{place}')",
        [
            ("PyIceberg", RARE, "s", 1),
            ("Daft", FAILS, "", 1),
            ("DataFusion", WRONG, "s", 1),
            ("ClickHouse", WRONG, "s", 1),
            *((client, RARE, "", 1) for client in ("ClickHouse", "Polars", "Trino")),
        ],
    ),
    "added_integers": (
        "CREATE TABLE {t}(v BIGINT); COPY (SELECT 1::UINTEGER AS v) TO '{place}'; "
        "CALL ducklake_add_data_files('lake', '{t}', '{place}')",
        [
            ("Daft", FAILS, "", 1),
            *((client, RARE, "", 1) for client in ("ClickHouse", "Polars", "Trino")),
            ("Spark", RARE, "v", 1),
        ],
    ),
    "added_paths": (
        "CREATE TABLE {t}(i INTEGER); ALTER TABLE {t} ADD COLUMN v INTEGER DEFAULT 5; "
        "COPY (SELECT 1 AS i, NULL::INTEGER AS v) TO '{place}' (FORMAT parquet, PARTITION_BY (v)); "
        "CALL ducklake_add_data_files('lake', '{t}', '{place}/**/*.parquet', "
        "hive_partitioning => true)",
        [
            ("DuckDB", RARE, "v", 1),
            ("Spark", RARE, "i v", 1),
            ("Daft", FAILS, "", 1),
            ("Daft", WRONG, "v", 1),
            *((client, RARE, "", 1) for client in ("ClickHouse", "Polars", "Trino")),
        ],
    ),
    "added_times": (
        "CREATE TABLE {t}(v TIMESTAMP); COPY (SELECT TIMESTAMP_MS '2024-01-01' AS v) TO "
        "'{place}'; CALL ducklake_add_data_files('lake', '{t}', '{place}')",
        [
            ("Daft", FAILS, "", 1),
            *((client, RARE, "", 1) for client in ("ClickHouse", "Polars", "Trino")),
            *((client, RARE, "v", 1) for client in ("Spark", "Flink")),
        ],
    ),
    "partitioned": (
        "CREATE TABLE {t}(k VARCHAR, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (k); "
        "INSERT INTO {t} VALUES ('a', 1)",
        [("Spark", RARE, "k", 1)],
    ),
    "partitioned_deleted": (
        "CREATE TABLE {t}(k INTEGER, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (k); "
        "INSERT INTO {t} VALUES (1, 1), (1, 2), (2, 1); DELETE FROM {t} WHERE k = 1 AND i = 1",
        [("Daft", WRONG, "k", 1)],
    ),
    "partitioned_by_year": (
        "CREATE TABLE {t}(k TIMESTAMP, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (year(k)); "
        "INSERT INTO {t} VALUES ('1969-12-31 23:59:59', 1)",
        [("DuckDB", RARE, "k", 1), ("ClickHouse", RARE, "k", 1)],
    ),
    # No bound allows a time before 1970; of the last one, one does.
    # Iceberg has no partitions by a month of any year.
    "partitioned_by_month": (
        "CREATE TABLE {t}(k TIMESTAMP, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (month(k)); "
        "INSERT INTO {t} VALUES ('1969-12-31 23:59:59', 1)",
        [],
    ),
    "partitioned_recently": (
        "CREATE TABLE {t}(k TIMESTAMP, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (year(k)); "
        "INSERT INTO {t} VALUES ('2026-01-01', 1), (NULL, 2); "
        "CALL lake.set_option('data_inlining_row_limit', 10, table_name => '{t}'); "
        "INSERT INTO {t} VALUES ('1970-01-01', 1)",
        [("Daft", WRONG, "k", 2)],
    ),
    "partitioned_long_ago": (
        "CREATE TABLE {t}(k TIMESTAMP, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (year(k)); "
        "INSERT INTO {t} VALUES ('2026-01-01', 1), ('0044-03-15 (BC)', 2)",
        [("DuckDB", RARE, "k", 2), ("ClickHouse", RARE, "k", 2)],
    ),
    "partitioned_inlined_long_ago": (
        "CREATE TABLE {t}(k TIMESTAMP, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (year(k)); "
        "INSERT INTO {t} VALUES ('2026-01-01', 1); "
        "CALL lake.set_option('data_inlining_row_limit', 10, table_name => '{t}'); "
        "INSERT INTO {t} VALUES ('1960-01-01', 2)",
        [(client, RARE, "k", 1) for client in ("DuckDB", "ClickHouse")] + [("Daft", WRONG, "k", 1)],
    ),
    "partitioned_later": (
        "CREATE TABLE {t}(k VARCHAR, i INTEGER); INSERT INTO {t} VALUES ('a', 1); "
        "ALTER TABLE {t} SET PARTITIONED BY (k); INSERT INTO {t} VALUES ('b', 2)",
        [("Daft", WRONG, "k", 1), ("Spark", RARE, "k", 2)],
    ),
    "partitioned_inlined": (
        "CREATE TABLE {t}(k VARCHAR, i INTEGER); ALTER TABLE {t} SET PARTITIONED BY (k); "
        "CALL lake.set_option('data_inlining_row_limit', 10, table_name => '{t}'); "
        "INSERT INTO {t} VALUES ('a', 1)",
        [("Daft", WRONG, "k", 0), ("Spark", RARE, "k", 0)],
    ),
    "structs_changed": (
        "CREATE TABLE {t}(s STRUCT(a INTEGER)); INSERT INTO {t} VALUES ({{'a': 1}}); "
        "ALTER TABLE {t} ADD COLUMN s.b INTEGER; INSERT INTO {t} VALUES ({{'a': 1, 'b': 2}})",
        [("Daft", FAILS, "s", 1), ("DataFusion", FAILS, "s", 1), ("ClickHouse", WRONG, "s", 2)],
    ),
    "struct_added": (
        "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1); INSERT INTO {t} VALUES (2); "
        "ALTER TABLE {t} ADD COLUMN s STRUCT(a INTEGER); INSERT INTO {t} VALUES (3, {{'a': 1}})",
        [("Daft", WRONG, "s", 2), ("Daft", FAILS, "s", 2), ("ClickHouse", WRONG, "s", 1)],
    ),
    "struct_renamed": (
        "CREATE TABLE {t}(s STRUCT(a INTEGER)); INSERT INTO {t} VALUES ({{'a': 1}}); "
        "ALTER TABLE {t} RENAME COLUMN s.a TO b",
        [("ClickHouse", WRONG, "s", 1)],
    ),
    "milliseconds": (
        "CREATE TABLE {t}(v TIMESTAMP_MS); INSERT INTO {t} VALUES ('2024-01-01')",
        [
            ("DataFusion", FAILS, "v", 1),
            *((client, WRONG, "v", 1) for client in ("Spark", "Flink")),
        ],
    ),
    "dates": (
        "CREATE TABLE {t}(v DATE); INSERT INTO {t} VALUES ('2024-01-01')",
        [("ClickHouse", RARE, "v", 1), ("Flink", RARE, "v", 1)],
    ),
    "instants": (
        "CREATE TABLE {t}(v TIMESTAMPTZ); INSERT INTO {t} VALUES ('2024-01-01')",
        [("Trino", RARE, "v", 1)],
    ),
    "reused": (
        "CREATE TABLE {t}(i INTEGER, v INTEGER); INSERT INTO {t} VALUES (1, 1); "
        "ALTER TABLE {t} DROP COLUMN v; ALTER TABLE {t} ADD COLUMN v VARCHAR; "
        "INSERT INTO {t} VALUES (2, 'x')",
        [("Daft", WRONG, "v", 1), ("ClickHouse", FAILS, "v", 1)],
    ),
    "younger": (
        "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1); INSERT INTO {t} VALUES (2); "
        "ALTER TABLE {t} ADD COLUMN m VARCHAR; INSERT INTO {t} VALUES (3, 'x'); "
        "ALTER TABLE {t} ADD COLUMN n INTEGER; INSERT INTO {t} VALUES (4, NULL, 4)",
        [("Daft", WRONG, "m n", 3)],
    ),
    "younger_lists_of_structs": (
        "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1); "
        "ALTER TABLE {t} ADD COLUMN v STRUCT(a INTEGER)[]",
        [
            ("PyIceberg", WRONG, "v", 0),
            ("Daft", WRONG, "v", 1),
            ("ClickHouse", WRONG, "v v.element", 0),
        ],
    ),
    "with a space": (
        'CREATE TABLE "{t}"(i INTEGER); INSERT INTO "{t}" VALUES (1)',
        [("ClickHouse", FAILS, "", 1)],
    ),
    "with$dollar": (
        'CREATE TABLE "{t}"(i INTEGER); INSERT INTO "{t}" VALUES (1)',
        [("Trino", FAILS, "", 1), ("Flink", FAILS, "", 1)],
    ),
    "with%percent": (
        'CREATE TABLE "{t}"(i INTEGER); INSERT INTO "{t}" VALUES (1)',
        [("ClickHouse", FAILS, "", 1), ("Flink", FAILS, "", 1)],
    ),
}
WITH_CLIENTS = {
    # The faults that are left with CLIENTS=all, in the tables where some are gone.
    "unsigned": [],
    "lists": [("PyIceberg", WRONG, "v", 1), ("ClickHouse", WRONG, "v v.element", 1)],
    "uuid_in_struct": [
        ("PyIceberg", RARE, "s.u", 1),
        ("Daft", FAILS, "s.u", 1),
        ("ClickHouse", WRONG, "s", 1),
    ],
    "beside_struct": [("ClickHouse", WRONG, "s", 1)],
    "variants": [],
    "was_variant": [],
    "defaults": [],
    "deleted": [(client, FAILS, "", 1) for client in ("Daft", "ClickHouse", "Trino")],
    "default_uuid": [("Daft", FAILS, "u", 0)],
    "promoted": [],
    "promoted_floats": [("ClickHouse", WRONG, "s", 2)],
    "json": [],
    "intervals": [],
    "milliseconds": [("DataFusion", FAILS, "v", 1)],
    "added": [("ClickHouse", WRONG, "s", 1)],
    "added_integers": [],
    "added_paths": [],
    "added_times": [],
    "struct_added": [("ClickHouse", WRONG, "s", 1)],
    "reused": [("ClickHouse", FAILS, "v", 1)],
    "younger": [],
}
HIDING = {"uint32": "UINTEGER", "time": "TIME", "json": "JSON"}
"""The types for which `--hide-type` is a remedy."""

MATRIX = Path(__file__).parents[2] / "matrix" / "results.md"
FAULT = re.compile(r"^- `(.*)`: (.+)$", re.MULTILINE)
BY_DESIGN = "are planned by the client"
PLACE = re.compile(r"(\d\d_\w+) (?:.+ of )?(.+?)(?: and \d+ more)?")
"""A lake and a table, at the newest snapshot."""
NOT_A_RULE = {
    ("ClickHouse", "53_inlined_evolution", "main.nothing_left"),  # after an answer that failed
    ("ClickHouse", "61_checkpoint", "main.other"),  # the columns of the query before it
    ("PyIceberg", "76_added_files_ids", "main.a_dec2"),
    ("Polars", "76_added_files_ids", "main.a_dec2"),  # the file's own type is in the file only
    ("Polars", "16_inlining_all_types", "main.it"),
}


@pytest.fixture(scope="module")
def faulty(lake, moto):
    script = (
        "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', "
        "DATA_INLINING_ROW_LIMIT 0); USE lake;\n"
    )
    for name, (sql, _) in TABLES.items():
        script += sql.format(t=name, place=f"{{{{DATA_PATH}}}}_ext/{name}.parquet") + ";\n"
    for name, type_ in HIDING.items():  # a table needs a column that is shown
        script += f"CREATE TABLE with_{name}(i INTEGER, v {type_});\n"
    script += 'CREATE SCHEMA "a.b"; CREATE TABLE "a.b".dotted(i INTEGER);\n'
    script += 'CREATE SCHEMA "a%b"; CREATE TABLE "a%b".percent(i INTEGER);\n'
    return lake.write("faults", script)


@pytest.fixture(scope="module")
def found(faulty, moto):
    return faults_of(faulty, moto)


def faults_of(lake, s3_endpoint: str, **values: str) -> dict[str, list]:
    """The faults by the full name of each table that is served."""
    answers = {}
    with settings(AWS_ENDPOINT_URL_S3=s3_endpoint, **values):
        generator = Generator(
            lake.database.url, lake.metadata_schema, AwsSettings.from_s3_endpoint(s3_endpoint)
        )
        with closing(generator.database), generator.database.transaction() as con:
            found = queries.lake().run(con)
            for schema, row in tables_of(con, found):
                with suppress(Refused):
                    table = generator.open_table(con, found, schema, row)
                    answers[table.name] = known_faults(table_facts(table))
    return answers


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_faults_of_its_columns_and_files(found, name):
    seen = {(f.client, f.kind, " ".join(f.columns), f.files) for f in found[f"main.{name}"]}
    assert seen == set(TABLES[name][1])


def test_the_setting_clients_makes_up_for_some(faulty, moto):
    after = faults_of(faulty, moto, CLIENTS="all")
    for name, (_, before) in TABLES.items():
        seen = {(f.client, f.kind, " ".join(f.columns), f.files) for f in after[f"main.{name}"]}
        assert seen == set(WITH_CLIENTS.get(name, before)), name


@pytest.mark.parametrize("clients", ["clickhouse,duckdb", "daft"])
def test_tables_without_partitions_for_the_chosen_clients_have_no_faults_of_them(
    clients, faulty, moto, found
):
    after = faults_of(faulty, moto, CLIENTS=clients)
    partitioned = {name: sql for name, (sql, _) in TABLES.items() if "PARTITIONED BY" in sql}
    by_times = {name for name, sql in partitioned.items() if re.search(r"(year|month)\(", sql)}
    without = by_times if clients != "daft" else partitioned
    left = {name for name in partitioned if after[f"main.{name}"]}
    assert left == partitioned.keys() - without != partitioned.keys()
    assert all(found[f"main.{name}"] for name in partitioned.keys() - {"partitioned_by_month"})


def test_a_table_has_the_faults_of_its_namespace(found):
    seen = {(fault.client, fault.kind) for fault in found['"a.b".dotted']}
    assert seen == {("Trino", FAILS), ("Flink", FAILS)}
    [fault] = [fault for fault in found["a%b.percent"] if fault.client == "Flink"]
    assert "has a %" in fault.sentence


# tests/differential/test_version_3.py has the lake.
OF_1_1 = ("cannot read the table, because {columns} has nanoseconds and a time zone",)


def test_each_fault_with_a_condition_has_a_table(found):
    met = {fault.sentence for faults in found.values() for fault in faults}
    # tests/e2e/test_nested_reports.py has the one of lakes of 1.1.
    without = (None, conditions.dotted_level)
    sentences = [
        fault.sentence
        for client in measured_clients().values()
        for fault in client.faults
        if fault.condition not in without and fault.sentence not in OF_1_1
    ]
    patterns = [re.escape(sentence) for sentence in sentences]
    for pattern in patterns:
        words = pattern.replace(r"\{columns\}", ".+").replace(r"\{files\}", ".+")
        assert any(re.fullmatch(words, sentence) for sentence in met), pattern


def test_a_sentence_names_the_columns_and_counts_the_files(found):
    [sentence] = [f.sentence for f in found["main.defaults"] if f.client == "Trino"]
    assert (
        sentence
        == "reads NULL for the default of “n” in 2 files, and conditions on it count wrongly"
    )


def test_hiding_a_type_removes_its_faults(faulty, moto, found):
    after = faults_of(faulty, moto, HIDDEN_TYPES=",".join(HIDING))
    for name in HIDING:
        remedies = [fault.remedy for fault in found[f"main.with_{name}"]]
        assert any(remedy.endswith(f"polynya serve --hide-type {name}") for remedy in remedies)
        assert after[f"main.with_{name}"] == []


def test_duckdb_misses_bytes_that_are_not_printable(tmp_path):
    """It hashes another text than the bytes to look into the Bloom filter, which is right."""
    file = literal(str(tmp_path / "bytes.parquet"))
    with closing(connect()) as con:
        con.execute(
            "CREATE TABLE t AS SELECT CASE WHEN i % 2 = 0 THEN '\\x00\\xFF'::BLOB ELSE 'a'::BLOB "
            "END AS v FROM range(12) AS r(i)"
        )
        con.execute(f"COPY t TO {file}")
        count = "SELECT count(*) FROM {} WHERE v = {}::BLOB"
        for value, in_file in (("'a'", 6), ("'\\x00\\xFF'", 0)):
            assert con.execute(count.format("t", value)).fetchone() == (6,)
            assert con.execute(count.format(file, value)).fetchone() == (in_file,)


LARGE = 2**40
TAKEN_FOR_ANOTHER = [NotEqualTo("i", LARGE), LessThan("i", LARGE), NotEqualTo("added", LARGE)]


@pytest.mark.parametrize("predicate", TAKEN_FOR_ANOTHER, ids=str)
def test_pyiceberg_takes_null_for_another_value(predicate, tmp_path):
    """In files that lack the column, or hold it in a type for which the literal is too large."""
    where = {"uri": "sqlite:///:memory:", "warehouse": f"file://{tmp_path}"}
    with closing(SqlCatalog("own", **where)) as catalog:
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", pa.schema([("i", pa.int32())]))
        table.append(pa.table({"i": pa.array([1, None], pa.int32())}))
        with table.update_schema() as update:
            update.update_column("i", LongType())
            update.add_column("added", LongType())
        table.append(pa.table({"i": [LARGE], "added": [LARGE]}))
        assert table.scan(predicate).to_arrow()["i"].to_pylist() == [1, None]
        name = predicate.term.name
        with_remedy = table.scan(And(predicate, NotNull(name))).to_arrow()
        assert with_remedy["i"].to_pylist() == [1] * (name == "i")


@pytest.mark.slow
def test_each_table_that_the_matrix_names_has_a_fault(lake, moto):
    """`make matrix` found them; `NOT_A_RULE` are those that the catalog's rows do not show."""
    text = MATRIX.read_text().partition("\n### PyIceberg\n")[2]
    seen: dict[str, dict] = {}
    missing = set()
    for section in re.split(r"\n### ", "PyIceberg\n" + text):
        client = section.partition("\n")[0].strip().removesuffix(" (planned)")
        for words, places in FAULT.findall(section):
            if BY_DESIGN in words:
                continue
            for place in filter(None, map(PLACE.fullmatch, places.split(", "))):
                name, table = place.groups()
                if name not in seen:
                    seen[name] = faults_of(lake(name), moto)
                faults = [f for f in seen[name].get(table, ()) if f.client == client]
                if client != "Sail" and not faults and table in seen[name]:
                    missing.add((client, name, table))
    assert seen
    assert missing <= NOT_A_RULE
