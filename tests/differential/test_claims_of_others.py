"""Catalog rows that claim what is not so, as real programs write them: no filter loses a row.

The lakes in tests/lakes/others were made by other programs than DuckDB; `native` has what DuckDB's
own `ducklake_add_data_files` takes from the names of directories. Scans without a filter read the
files alone. With each filter, PyIceberg with manifests, PyIceberg with plans of the server and
DuckDB must find the rows of the unfiltered scan.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from polynya.ducklake import queries
from polynya.storage.aws import AwsSettings
from polynya.virtual_files.manifests import doubts
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.clients.native import Lake, attach
from polynya_local.lakes.opened import readable
from polynya_local.processes.serving import Bridge, serving
from polynya_local.reports import table_checks
from polynya_local.reports.diagnosis import diagnose
from polynya_local.reports.generator import Generator
from pyiceberg.exceptions import BadRequestError, ServiceUnavailableError
from pyiceberg.expressions import AlwaysTrue, EqualTo, IsNull, Not, NotNull, Or
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from tests.differential.test_filters import counted, predicates, sql_predicates, texts
from tests.lakes.others.record import restore
from tests.support.lakes import SCRIPTS, number_of
from tests.support.servers import in_process

OTHERS = Path(__file__).parents[1] / "lakes" / "others"
MODE = "scan-planning-mode"
SETTINGS = {"CHUNK_FILES": "2", "SCAN_PLANNING": "server"}

NATIVE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
-- all three values at one index
CREATE TABLE by_day(id INTEGER, ts TIMESTAMP);
ALTER TABLE by_day SET PARTITIONED BY (year(ts), month(ts), day(ts));
INSERT INTO by_day VALUES (1, '2024-05-06 07:08:09.123456'), (2, NULL);
COPY (SELECT 3 AS id, TIMESTAMP '2024-06-07 01:02:03' AS ts, 2024 AS year, 6 AS month, 7 AS day) TO '{{DATA_PATH}}_ext/day' (FORMAT parquet, PARTITION_BY (year, month, day));
CALL ducklake_add_data_files('lake', 'by_day', '{{DATA_PATH}}_ext/day/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- a directory `bucket=…` of another program
CREATE TABLE by_bucket(id INTEGER, user_id VARCHAR);
ALTER TABLE by_bucket SET PARTITIONED BY (bucket(4, user_id));
INSERT INTO by_bucket VALUES (2, 'bob'), (3, 'carol'), (4, NULL);
COPY (SELECT 1 AS id, 'alice' AS user_id, 999 AS bucket UNION ALL SELECT 5, 'dave', 3) TO '{{DATA_PATH}}_ext/bucket' (FORMAT parquet, PARTITION_BY (bucket));
CALL ducklake_add_data_files('lake', 'by_bucket', '{{DATA_PATH}}_ext/bucket/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- a directory for a column that the file does not have
CREATE TABLE absent(id INTEGER, dt DATE);
ALTER TABLE absent SET PARTITIONED BY (year(dt));
INSERT INTO absent VALUES (1, '2023-01-01'), (2, '2024-05-05');
COPY (SELECT 3 AS id, 2024 AS year) TO '{{DATA_PATH}}_ext/absent' (FORMAT parquet, PARTITION_BY (year));
CALL ducklake_add_data_files('lake', 'absent', '{{DATA_PATH}}_ext/absent/**/*.parquet', hive_partitioning => true, allow_missing => true, ignore_extra_columns => true);
CREATE TABLE absent_bucket(id INTEGER, u VARCHAR);
ALTER TABLE absent_bucket SET PARTITIONED BY (bucket(4, u));
INSERT INTO absent_bucket VALUES (1, 'a'), (2, 'b');
COPY (SELECT 3 AS id, 3 AS bucket) TO '{{DATA_PATH}}_ext/absent_bucket' (FORMAT parquet, PARTITION_BY (bucket));
CALL ducklake_add_data_files('lake', 'absent_bucket', '{{DATA_PATH}}_ext/absent_bucket/**/*.parquet', hive_partitioning => true, allow_missing => true, ignore_extra_columns => true);
-- a directory for another year than that of the rows
CREATE TABLE other_year(id INTEGER, dt DATE);
ALTER TABLE other_year SET PARTITIONED BY (year(dt));
INSERT INTO other_year VALUES (1, '2023-01-01'), (4, NULL);
COPY (SELECT 2 AS id, DATE '2020-01-01' AS dt, 2024 AS year UNION ALL SELECT 3, NULL, 2024) TO '{{DATA_PATH}}_ext/other' (FORMAT parquet, PARTITION_BY (year));
CALL ducklake_add_data_files('lake', 'other_year', '{{DATA_PATH}}_ext/other/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- a column in the path, beside a year
CREATE TABLE in_path(id INTEGER, r VARCHAR, ts TIMESTAMP);
ALTER TABLE in_path SET PARTITIONED BY (r, year(ts));
INSERT INTO in_path VALUES (1, 'x', '2020-02-02 00:00:00'), (2, 'y', NULL);
COPY (SELECT 3 AS id, TIMESTAMP '2019-02-02 00:00:00' AS ts, 'x' AS r, 2020 AS year UNION ALL SELECT 4, NULL, NULL, 2020) TO '{{DATA_PATH}}_ext/path' (FORMAT parquet, PARTITION_BY (r, year));
CALL ducklake_add_data_files('lake', 'in_path', '{{DATA_PATH}}_ext/path/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- the path of NULL, for which others claim the text
CREATE TABLE null_in_path(id INTEGER, p VARCHAR);
COPY (SELECT 1 AS id, 'NULL' AS p UNION ALL SELECT 2, 'null' UNION ALL SELECT 3, 'nul') TO '{{DATA_PATH}}_ext/null' (FORMAT parquet, PARTITION_BY (p));
CALL ducklake_add_data_files('lake', 'null_in_path', '{{DATA_PATH}}_ext/null/**/*.parquet', hive_partitioning => true);
CREATE TABLE null_partition(id INTEGER, p VARCHAR);
ALTER TABLE null_partition SET PARTITIONED BY (p);
CALL ducklake_add_data_files('lake', 'null_partition', '{{DATA_PATH}}_ext/null/**/*.parquet', hive_partitioning => true);
-- what DuckDB writes and adds itself, with all that may be published
CREATE TABLE good(id INTEGER, f DOUBLE, s VARCHAR, ts TIMESTAMP, d DATE, p VARCHAR);
ALTER TABLE good SET PARTITIONED BY (p, year(ts));
INSERT INTO good SELECT i, i / 4, 's' || i, TIMESTAMP '2020-01-01 00:00:00' + to_days(i * 100), DATE '2020-01-01', 'p' || i % 2 FROM range(8) AS r(i);
-- what is changed by hand, below
CREATE TABLE swapped(id INTEGER, n INTEGER, s VARCHAR, d DECIMAL(9, 2), f DOUBLE);
INSERT INTO swapped VALUES (1, 1, 'a', 1, 1), (2, 9, 'z', 9, 9);
INSERT INTO swapped VALUES (3, 5, 'k', 5, 5), (4, 6, 'l', 6, 6), (5, NULL, NULL, NULL, NULL);
CREATE TABLE other_values(id INTEGER, p VARCHAR, n INTEGER);
ALTER TABLE other_values SET PARTITIONED BY (p, n);
INSERT INTO other_values VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, NULL, 4), (5, 'e', NULL), (6, 'a', 1), (7, 'b', 2);
DELETE FROM other_values WHERE id IN (6, 7);
"""  # noqa: E501

EDITS = """
UPDATE ducklake_file_column_stats SET min_value = max_value, max_value = min_value
WHERE table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'swapped') AND column_id > 1;
UPDATE ducklake_file_column_stats SET min_value = 'zzz', max_value = 'z'
WHERE table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'swapped') AND column_id = 3;
UPDATE ducklake_file_column_stats SET null_count = 9223372036854775807, value_count = 9
WHERE table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'swapped') AND column_id = 2;
UPDATE ducklake_file_partition_value SET partition_value = 'zzz' WHERE partition_value = 'a';
UPDATE ducklake_file_partition_value SET partition_value = NULL WHERE partition_value = 'b';
INSERT INTO ducklake_file_partition_value SELECT data_file_id, table_id, partition_key_index, 'ccc'
FROM ducklake_file_partition_value WHERE partition_value = 'c';
UPDATE ducklake_file_partition_value SET partition_value = 'None' WHERE partition_value IS NULL
  AND table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'other_values')
  AND data_file_id NOT IN (SELECT data_file_id FROM ducklake_file_partition_value WHERE partition_value = '2');
UPDATE ducklake_file_column_stats SET min_value = 'NULL', max_value = 'NULL', value_count = 1, null_count = 0
WHERE value_count = 0 AND column_id = 2
  AND table_id IN (SELECT table_id FROM ducklake_table WHERE table_name LIKE 'null_%');
UPDATE ducklake_file_partition_value SET partition_value = 'NULL' WHERE partition_value IS NULL
  AND table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'null_partition');
"""  # noqa: E501


class Served(NamedTuple):
    name: str
    lake: Lake | None
    bridge: Bridge
    by_client: pyiceberg.PyIceberg
    by_server: pyiceberg.PyIceberg

    def tables(self) -> list[tuple[str, Table, Table]]:
        """Each table by its name, as it is planned with manifests and by the server."""
        catalogs = (self.by_client._catalog, self.by_server._catalog)
        names = sorted(name for _, name in catalogs[0].list_tables("main"))
        return [
            (name, *(catalog.load_table(("main", name)) for catalog in catalogs)) for name in names
        ]


@pytest.fixture(scope="module", autouse=True)
def one_file_at_once():
    """Partition values are compared with statistics by one statement for each file."""
    with pytest.MonkeyPatch.context() as patch:
        # The package has a function of the module's name.
        patch.setattr(sys.modules["polynya.ducklake.queries.planned_files"], "FILES_AT_ONCE", 1)
        yield


@pytest.fixture(
    scope="module",
    params=[
        "native",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("dataframe", "sdk", "delta")),
    ],
)
def served(request, tmp_path_factory, lake, moto) -> Iterator[Served]:
    name = request.param
    with ExitStack() as stack:
        one = None
        if name == "native":
            one = lake.write("claims", NATIVE)
            with closing(one.database.connect()) as con:
                for statement in EDITS.split(";"):
                    con.run(statement)
            how = {"delivery": "object-lambda", "settings": SETTINGS}
            bridge = stack.enter_context(in_process.bridge(one, moto, **how))
        else:
            folder = tmp_path_factory.mktemp("others") / name
            restore(OTHERS / name, folder)
            where = f"sqlite:{folder}/lake.sqlite"
            bridge = stack.enter_context(
                serving(where, None, delivery="object-lambda", settings=SETTINGS)
            )
        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        clients = [stack.enter_context(closing(pyiceberg.open(*where))) for _ in range(2)]
        clients[0]._catalog.properties[MODE] = "client"
        yield Served(name, one, bridge, *clients)


TABLES = {"native": 11, "dataframe": 4, "sdk": 6, "delta": 3}
MOST = 5
"""Values of each column."""


# Each was lost before: the table, the filter, and the ids of the rows that pass.
LOST = {
    "by_bucket": (EqualTo("user_id", "alice"), {1}),
    "absent": (IsNull("dt"), {3}),
    "absent_bucket": (IsNull("u"), {3}),
    "other_values": (EqualTo("p", "a"), {1}),
    "swapped": (Or(EqualTo("n", 5), EqualTo("s", "a")), {1, 3}),
    "other_year": (EqualTo("dt", "2020-01-01"), {2}),
    "in_path": (EqualTo("ts", "2019-02-02T00:00:00"), {3}),
    "null_in_path": (IsNull("p"), {1, 2}),
    "null_partition": (IsNull("p"), {1, 2}),
}


def test_rows_that_were_lost_are_found(served):
    tables = {name: tables for name, *tables in served.tables()}
    for name, (predicate, ids) in LOST.items() if served.name == "native" else ():
        for table in tables[name]:
            if planned(table, predicate) is not None:
                assert set(table.scan(predicate).to_arrow()["id"].to_pylist()) == ids, name


def test_null_in_a_path_is_what_ducklake_reads(served, moto):
    tables = {name: by_client for name, by_client, _ in served.tables()}
    with connect(LAKE, moto) as con:
        if served.lake:
            attach(con, served.lake)
        for name in ("null_in_path", "null_partition") if served.lake else ():
            expected = con.execute(f"FROM lake.{name} ORDER BY id").fetchall()
            rows = tables[name].scan().to_arrow().sort_by("id").to_pylist()
            assert [(row["id"], row["p"]) for row in rows] == expected, name


def test_deletes_apply_to_files_whose_partition_is_not_published(served):
    if served.name == "native":
        [table] = [one for name, one, _ in served.tables() if name == "other_values"]
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_pyiceberg_skips_no_file_with_a_row(served):
    """Files, and not rows: PyIceberg cannot filter the texts in files of Polars."""
    wrong, asked = [], 0
    tables = served.tables()
    assert len(tables) == TABLES[served.name]
    for name, by_client, by_server in tables:
        tasks = by_client.scan().plan_files()
        files = {task.file.file_path: rows_of(by_client, task) for task in tasks}
        every = pa.concat_tables(files.values())
        for _, predicate in predicates(by_client, every, MOST):
            for one in (predicate, Not(predicate)):
                for table in (by_client, by_server):
                    asked += 1
                    found = planned(table, one)
                    wrong += [
                        f"{name} by {MODES[table is by_server]}: {one}: {lost.to_pylist()}"
                        for path in (files.keys() - found if found is not None else ())
                        if (lost := matching(files[path], table, one)).num_rows
                    ]
    assert not wrong, "\n".join(wrong)
    assert asked > 100


MODES = ("manifests", "plans")


def planned(table: Table, predicate) -> set[str] | None:
    """The files of a scan; None: the server does not plan the table's scans."""
    try:
        return {task.file.file_path for task in table.scan(predicate).plan_files()}
    except BadRequestError as error:
        assert "have a column in their path" in str(error)
        return None


def rows_of(table: Table, task: FileScanTask) -> pa.Table:
    """The rows of one file."""
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue(), True)
    return scan.to_table([task]).cast(table.schema().as_arrow())


@pytest.mark.slow
@pytest.mark.parametrize("of", [IsNull, NotNull])
def test_pyiceberg_takes_no_partition_value_for_the_rows(of, served):
    """It does not look for what a partition value says of all rows."""
    for name, by_client, _ in served.tables():
        if served.name == "sdk" and name != "floats":
            continue  # string_view
        rows = by_client.scan().to_arrow()
        for field in by_client.schema().fields:
            one = of(field.name)
            found, expected = by_client.scan(one).to_arrow(), matching(rows, by_client, one)
            assert texts(found) == texts(expected), (name, one)


def matching(rows: pa.Table, table: Table, predicate) -> pa.Table:
    # As Iceberg does: NaN is not in `not (x > 1)`, which is `x <= 1`.
    bound = bind(table.schema(), rewrite_not(predicate), case_sensitive=True)
    return rows.filter(expression_to_pyarrow(bound))


@pytest.mark.slow
def test_duckdb_finds_every_row(served):
    where = (served.bridge.catalog_uri, served.bridge.warehouse, served.bridge.s3_endpoint)
    wrong = []
    with closing(duckdb.open(*where)) as client:
        for name, by_client, _ in served.tables():
            client.query(f"CREATE OR REPLACE TEMP TABLE whole AS FROM ice.main.{name}")
            types = client.query(
                "SELECT column_name, column_type FROM (DESCRIBE whole)"
            ).to_pylist()
            asked = [
                (row["column_name"], condition)
                for row in types
                for condition in sql_predicates(
                    client, row["column_name"], row["column_type"], MOST
                )
            ]
            files = [task.file.file_path for task in by_client.scan().plan_files()]
            paths = ", ".join(map(literal, files))
            # DuckDB loses NaN in files of others by what their own row groups say.
            alone = f"(FROM read_parquet([{paths}], hive_partitioning => false))"
            found, expected = (
                client.query(counted(source, asked)).to_pylist()
                for source in (f"ice.main.{name}", "whole")
            )
            for (column, condition), one, other in zip(asked, found, expected, strict=True):
                if one == other:
                    continue
                is_float = column == "f" or name == "floats"
                if is_float:
                    [of_files] = client.query(counted(alone, [(column, condition)])).to_pylist()
                    if of_files["c"] == one["c"]:
                        continue
                wrong.append(f"{name}: {condition}: {one}, not {other}")
    assert not wrong, "\n".join(wrong)


def test_what_duckdb_measured_is_published(served):
    """Without this, a bridge that publishes nothing would pass the other tests."""
    for name, count in {"good": 4, "by_year": 2, "zoned": 2, "by_number": 2}.items():
        for table in [one for named, one, _ in served.tables() if named == name]:
            files = [task.file for task in table.scan().plan_files()]
            partitioned = [file for file in files if len(file.partition)]
            assert len([file for file in files if file.lower_bounds]) == len(files)
            assert len([file for file in files if file.upper_bounds]) == len(files)
            assert len(partitioned) == (count if name != "zoned" else 0), name


# Files that were added: some lack a column, or are where another program has put them.
ADDED = {"27", "28", "76", "77", "80"}
NATIVE_LAKES = sorted({number_of(path.stem) for path in SCRIPTS.glob("*.sql")} - ADDED)
IN_CI = {"17", "18", "19"}


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in IN_CI)) for n in NATIVE_LAKES],
)
def test_nothing_that_duckdb_writes_is_left_out(number, lake, moto):
    one = lake(number)
    generator = Generator(one.database.url, one.metadata_schema, AwsSettings.from_s3_endpoint(moto))
    found = []

    def look(con):
        catalog = queries.lake().run(con)
        for schema in queries.schemas_at(catalog.snapshot_id).run(con):
            for table in queries.tables_at(catalog.snapshot_id, schema.schema_id).run(con):
                opened = generator.open_table(con, catalog, schema, table)
                found.extend(
                    (table.table_name, doubt)
                    for doubt in doubts(opened.files.table, catalog.snapshot_id)
                )

    with closing(generator.database):
        generator.read(look)
    assert not found


MANY = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(id INTEGER);
""" + "".join(f"INSERT INTO t VALUES ({n});\n" for n in range(20))
SWAPPED = "UPDATE ducklake_file_column_stats SET min_value = '9', max_value = '1'"


@pytest.mark.parametrize(("every_file", "fewest", "most"), [(True, 20, 20), (False, 5, 12)])
def test_doctor_looks_at_a_sample_of_very_many_files(
    every_file, fewest, most, lake, moto, monkeypatch
):
    monkeypatch.setattr(table_checks, "MOST_CHUNKS", 5)
    monkeypatch.setenv("CHUNK_FILES", "1")
    one = lake.write("many_claims", MANY)
    with closing(one.database.connect()) as con:
        con.run(SWAPPED)
    generator = Generator(one.database.url, one.metadata_schema, AwsSettings.from_s3_endpoint(moto))
    with closing(generator.database), readable(one.database.url, "public", None, moto) as opened:
        *_, report = diagnose(generator, opened, 0, every_file=every_file)
    messages = [one.message for one in report.findings]
    [claims] = [one for one in messages if one.startswith("the catalog claims ")]
    notes = [one for one in messages if "--every-file" in one]
    [result] = report.tables
    counts = [(count.ducklake, count.iceberg) for count in result.counts]
    assert counts == ([(20, 20)] if every_file else [])
    named, more = claims.count("ducklake-"), re.search(r" and (\d+) more", claims)
    assert fewest <= named + int(more[1] if more else 0) <= most
    assert notes == (
        []
        if every_file
        else [
            "rows are not counted at snapshots with more than 5 data files (21); polynya doctor "
            "--every-file counts them",
            "the claims of the catalog were checked for about 5 of 20 data files; polynya doctor "
            "--every-file checks them for all",
        ]
    )


IN_PARTS = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(p VARCHAR, id INTEGER);
ALTER TABLE t SET PARTITIONED BY (p);
INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4);
"""
MISTAKEN = (
    "UPDATE ducklake_file_partition_value SET partition_value = '{}' WHERE partition_value = '{}'"
)


def test_a_comparison_goes_on_where_the_request_before_has_stopped(lake, moto, monkeypatch):
    """As in a table of millions of files on a slow server, where others commit meanwhile."""
    monkeypatch.setattr(
        sys.modules["polynya.ducklake.queries.planned_files"], "LEAST_SECONDS", float("inf")
    )
    one = lake.write("compared_in_parts", IN_PARTS)
    with (
        closing(one.database.connect()) as con,
        in_process.bridge(one, moto, delivery="object-lambda", settings=SETTINGS) as bridge,
        closing(pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)) as client,
    ):
        con.run(MISTAKEN.format("z", "d"))
        table = client._catalog.load_table(("main", "t"))
        outcomes: list[list[int] | str] = []
        while not outcomes or isinstance(outcomes[-1], str):
            try:
                ids = table.scan("p = 'd' OR p = 'e'").to_arrow()["id"].to_pylist()
                outcomes.append(sorted(ids))
            except ServiceUnavailableError as error:
                outcomes.append(str(error))
            if len(outcomes) == 2:
                with connect(LAKE, moto) as writer:
                    attach(writer, one, read_only=False)
                    writer.execute("INSERT INTO lake.t VALUES ('e', 5), ('f', 6)")
                con.run(MISTAKEN.format("y", "e"))
        assert outcomes[-1] == [4, 5]
        # A statement for each file, and no part twice; the last one ends with the last part.
        assert 3 <= len(outcomes[:-1]) <= 6
        assert all("repeat the request to continue" in outcome for outcome in outcomes[:-1])
