"""Catalog rows that claim what is not so, as real programs write them: no filter loses a row.

The lakes in tests/lakes/others were made by other programs than DuckDB; `native` has what DuckDB's
own `ducklake_add_data_files` takes from the names of directories. Scans without a filter read the
files alone. With each filter, PyIceberg with manifests, PyIceberg with plans of the server and
DuckDB must find the rows of the unfiltered scan.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from polynya.ducklake import queries
from polynya.virtual_files.manifests import doubts
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.duckdb import literal
from polynya_local.clients.native import filled_in
from polynya_local.processes.serving import Bridge, serving
from polynya_local.reports.generator import Generator
from pyiceberg.exceptions import BadRequestError
from pyiceberg.expressions import AlwaysTrue, IsNull, Not, NotNull
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from tests.differential.test_filters import counted, predicates, sql_predicates, texts
from tests.lakes.others.record import restore
from tests.support import file_lakes
from tests.support.file_lakes import FileLake
from tests.support.lakes import SCRIPTS, number_of

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
COPY (SELECT 3 AS id, TIMESTAMP '2024-06-07 01:02:03' AS ts, 2024 AS year, 6 AS month, 7 AS day) TO '{{DATA_PATH}}/ext/day' (FORMAT parquet, PARTITION_BY (year, month, day));
CALL ducklake_add_data_files('lake', 'by_day', '{{DATA_PATH}}/ext/day/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- a directory `bucket=…` of another program
CREATE TABLE by_bucket(id INTEGER, user_id VARCHAR);
ALTER TABLE by_bucket SET PARTITIONED BY (bucket(4, user_id));
INSERT INTO by_bucket VALUES (2, 'bob'), (3, 'carol'), (4, NULL);
COPY (SELECT 1 AS id, 'alice' AS user_id, 999 AS bucket UNION ALL SELECT 5, 'dave', 3) TO '{{DATA_PATH}}/ext/bucket' (FORMAT parquet, PARTITION_BY (bucket));
CALL ducklake_add_data_files('lake', 'by_bucket', '{{DATA_PATH}}/ext/bucket/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- a directory for a column that the file does not have
CREATE TABLE absent(id INTEGER, dt DATE);
ALTER TABLE absent SET PARTITIONED BY (year(dt));
INSERT INTO absent VALUES (1, '2023-01-01'), (2, '2024-05-05');
COPY (SELECT 3 AS id, 2024 AS year) TO '{{DATA_PATH}}/ext/absent' (FORMAT parquet, PARTITION_BY (year));
CALL ducklake_add_data_files('lake', 'absent', '{{DATA_PATH}}/ext/absent/**/*.parquet', hive_partitioning => true, allow_missing => true, ignore_extra_columns => true);
CREATE TABLE absent_bucket(id INTEGER, u VARCHAR);
ALTER TABLE absent_bucket SET PARTITIONED BY (bucket(4, u));
INSERT INTO absent_bucket VALUES (1, 'a'), (2, 'b');
COPY (SELECT 3 AS id, 3 AS bucket) TO '{{DATA_PATH}}/ext/absent_bucket' (FORMAT parquet, PARTITION_BY (bucket));
CALL ducklake_add_data_files('lake', 'absent_bucket', '{{DATA_PATH}}/ext/absent_bucket/**/*.parquet', hive_partitioning => true, allow_missing => true, ignore_extra_columns => true);
-- a directory for another year than that of the rows
CREATE TABLE other_year(id INTEGER, dt DATE);
ALTER TABLE other_year SET PARTITIONED BY (year(dt));
INSERT INTO other_year VALUES (1, '2023-01-01'), (4, NULL);
COPY (SELECT 2 AS id, DATE '2020-01-01' AS dt, 2024 AS year UNION ALL SELECT 3, NULL, 2024) TO '{{DATA_PATH}}/ext/other' (FORMAT parquet, PARTITION_BY (year));
CALL ducklake_add_data_files('lake', 'other_year', '{{DATA_PATH}}/ext/other/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- a column in the path, beside a year
CREATE TABLE in_path(id INTEGER, r VARCHAR, ts TIMESTAMP);
ALTER TABLE in_path SET PARTITIONED BY (r, year(ts));
INSERT INTO in_path VALUES (1, 'x', '2020-02-02 00:00:00'), (2, 'y', NULL);
COPY (SELECT 3 AS id, TIMESTAMP '2019-02-02 00:00:00' AS ts, 'x' AS r, 2020 AS year UNION ALL SELECT 4, NULL, NULL, 2020) TO '{{DATA_PATH}}/ext/path' (FORMAT parquet, PARTITION_BY (r, year));
CALL ducklake_add_data_files('lake', 'in_path', '{{DATA_PATH}}/ext/path/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
-- what DuckDB writes and adds itself, with all that may be published
CREATE TABLE good(id INTEGER, f DOUBLE, s VARCHAR, ts TIMESTAMP, d DATE, p VARCHAR);
ALTER TABLE good SET PARTITIONED BY (p, year(ts));
INSERT INTO good SELECT i, i / 4, 's' || i, TIMESTAMP '2020-01-01 00:00:00' + to_days(i * 100), DATE '2020-01-01', 'p' || i % 2 FROM range(8) AS r(i);
"""  # noqa: E501


def written(name: str, folder: Path) -> FileLake:
    lake = FileLake(name, "sqlite", folder)
    if name == "native":
        (lake.data / "ext").mkdir(parents=True)
        file_lakes.execute(filled_in(NATIVE, lake.address, str(lake.data)))
    else:
        restore(OTHERS / name, folder)
    return lake


class Served(NamedTuple):
    lake: FileLake
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


@pytest.fixture(
    scope="module",
    params=[
        "native",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("dataframe", "sdk", "delta")),
    ],
)
def served(request, tmp_path_factory) -> Iterator[Served]:
    lake = written(request.param, tmp_path_factory.mktemp("others") / request.param)
    with ExitStack() as stack:
        bridge = stack.enter_context(
            serving(lake.address, None, delivery="object-lambda", settings=SETTINGS)
        )
        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        clients = [stack.enter_context(closing(pyiceberg.open(*where))) for _ in range(2)]
        clients[0]._catalog.properties[MODE] = "client"
        yield Served(lake, bridge, *clients)


TABLES = {"native": 7, "dataframe": 4, "sdk": 6, "delta": 3}
MOST = 6
"""Values of each column."""


def test_pyiceberg_skips_no_file_with_a_row(served):
    """Files, and not rows: PyIceberg cannot filter the texts in files of Polars."""
    wrong, asked = [], 0
    tables = served.tables()
    assert len(tables) == TABLES[served.lake.name]
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


@pytest.mark.parametrize("of", [IsNull, NotNull])
def test_pyiceberg_takes_no_partition_value_for_the_rows(of, served):
    """It does not look for what a partition value says of all rows."""
    for name, by_client, _ in served.tables():
        if served.lake.name == "sdk" and name != "floats":
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
    generator = Generator(one.database.url, one.metadata_schema, moto)
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
