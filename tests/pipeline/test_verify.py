"""`verify` finds planted faults, and no fault in a healthy lake."""

import io
import json
from contextlib import closing, contextmanager
from pathlib import Path

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.storage.cache_store import CacheStore
from polynya_local.cli import app
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_pipeline.verify.job import verify
from typer.testing import CliRunner

from tests.aws.dynamodb import TABLE
from tests.support import rest
from tests.support.catalog_versions import WRITTEN, restored, to_1_0, to_1_1
from tests.support.servers.in_process import ALIAS, cache_settings, reset_functions, standing_in
from tests.support.servers.in_process import bridge as bridge_in_process

# Floats; inlined rows, deletes and a flush; partitions; evolution; added files.
HEALTHY_IN_CI = ("03", "14", "17", "22", "27")
HEALTHY = (
    "01",
    "03",
    "04",
    "07",
    "13",
    "14",
    "17",
    "19",
    "22",
    "23",
    "27",
    "28",
    "36",
    "40",
    "65",
    "70",
)

# DuckDB 1.5.5 itself loses rows in these lakes: after ALTER … SET TYPE and a flush of inlined rows
# the table's statistics have the old type, and `WHERE i = 7` finds none of the rows with 7.
UNHEALTHY = {"55": {"table-min", "table-max"}, "58": {"table-min", "table-max"}}


@pytest.fixture(autouse=True)
def s3(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)


def checked(lake, **options):
    return verify(
        database=lake.database.url, metadata_schema=lake.metadata_schema, footers=True, **options
    )


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in HEALTHY_IN_CI)) for n in HEALTHY],
)
def test_a_healthy_lake_has_no_finding(number, lake):
    report = checked(lake(number))
    assert report.findings == [] and report.tables > 0
    assert report.checked["invariants"] > 20


# DuckLake rewrites the rows without the later column; a file without it has no statistics of it.
LATE_COLUMN = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t (i INTEGER);
INSERT INTO t FROM range(9);
INSERT INTO t FROM range(9);
DELETE FROM t WHERE i > 3;
ALTER TABLE t ADD COLUMN j INTEGER;
CALL ducklake_rewrite_data_files('lake', delete_threshold => 0);
"""


def test_files_without_a_column_need_no_statistics_of_it(lake):
    report = checked(lake.write("late column", LATE_COLUMN))
    assert report.findings == []
    assert "no-stats" in {note.check for note in report.notes}


DROPPED_COLUMNS = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t (i INTEGER, l INTEGER[], m MAP(VARCHAR, INTEGER), s STRUCT(a INTEGER, b INTEGER[]));
INSERT INTO t VALUES (1, [1, 2, 3], MAP {'a': 1, 'b': 2}, {'a': 1, 'b': [1, 2]});
ALTER TABLE t DROP COLUMN l;
ALTER TABLE t DROP COLUMN m;
ALTER TABLE t DROP COLUMN s.b;
"""


def test_columns_that_were_dropped_have_statistics_still(lake):
    assert checked(lake.write("dropped columns", DROPPED_COLUMNS)).findings == []


LONG_PARTITIONS = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t (s VARCHAR);
ALTER TABLE t SET PARTITIONED BY (s);
INSERT INTO t VALUES (repeat('z', 300)), ('z');
"""


def test_the_bounds_of_a_partition_of_a_long_text_are_truncated(lake):
    assert checked(lake.write("long partitions", LONG_PARTITIONS)).findings == []


def test_a_long_text_outside_its_partition_is_found(lake):
    written = lake.write("wrong long partition", LONG_PARTITIONS)
    other = "SET min_value = repeat('y', 256), max_value = repeat('y', 256)"
    written.database.run(f"UPDATE ducklake_file_column_stats {other} WHERE length(min_value) > 1")
    assert "partition" in {one.check for one in checked(written).findings}


@pytest.fixture
def old_lake(lake, postgres_server, moto):
    def make(name: str):
        if name in WRITTEN:
            return restored(name, "-verified", postgres_server, moto)
        made = lake.copied(name.split()[-1])
        to_1_1(made)
        return made

    return make


IN_CI = {"0.2", "1.1 of 14"}
OTHER_VERSIONS = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in IN_CI))
    for name in (*WRITTEN, "1.1 of 13", "1.1 of 14")
]


@pytest.mark.parametrize("name", OTHER_VERSIONS)
def test_a_lake_of_another_version_is_checked_too(name, old_lake, moto):
    lake = old_lake(name)
    settings = {"CHUNK_FILES": "3"}
    with bridge_in_process(lake, moto, delivery="object-lambda", settings=settings) as bridge:
        served = {
            "levels": ("catalog", "storage", "metadata"),
            "catalog_uri": bridge.catalog_uri,
            "bridge_s3_endpoint": bridge.s3_endpoint,
        }
        report = checked(lake, **served)
        assert report.findings == []
        noted = "file-of-dropped-table" in {note.check for note in report.notes}
        assert noted == (name == "0.2")  # DuckDB 1.3 leaves such files
        with closing(lake.database.connect()) as con:
            [[file_id]] = con.run(
                "UPDATE ducklake_data_file SET record_count = record_count + 1 WHERE data_file_id ="
                " (SELECT max(data_file_id) FROM ducklake_data_file WHERE end_snapshot IS NULL)"
                " RETURNING data_file_id"
            )
        found = checked(lake).findings
    assert {"counts", "row-count"} <= {finding.check for finding in found}
    assert any(str(file_id) in finding.message for finding in found)


def test_files_that_have_more_columns_for_clients_are_those_of_the_catalog(lake, moto):
    one, settings = lake("22"), {"CHUNK_FILES": "3", "CLIENTS": "all"}
    with bridge_in_process(one, moto, delivery="object-lambda", settings=settings) as bridge:
        report = checked(
            one,
            levels=("metadata",),
            catalog_uri=bridge.catalog_uri,
            bridge_s3_endpoint=bridge.s3_endpoint,
        )
    assert report.findings == [] and report.checked["tables with metadata"]


@pytest.mark.parametrize("number", UNHEALTHY)
def test_statistics_that_make_duckdb_lose_rows_are_found(number, lake):
    assert {finding.check for finding in checked(lake(number)).findings} == UNHEALTHY[number]


# A statement that plants a fault, and the check that finds it. In the lake: the table main.t with
# data files 0 (id 0-99, s), 1 (id 100-199), 2 (id 200-299, 10 rows deleted by delete file 3), and
# main.p, partitioned by k, with files 4 and 5.
F1, S11 = "WHERE data_file_id = 1", "WHERE data_file_id = 1 AND column_id = 1"
FILE, STATS = "UPDATE ducklake_data_file SET", "UPDATE ducklake_file_column_stats SET"
OF_TABLE = "UPDATE ducklake_table_column_stats SET"
FAULTS = [
    (f"{FILE} file_size_bytes = file_size_bytes + 1 {F1}", "file-size"),
    (f"{FILE} path = 'gone.parquet' {F1}", "missing-file"),
    ("UPDATE ducklake_delete_file SET path = 'gone.parquet'", "missing-file"),
    (
        f"{FILE} path = (SELECT path FROM ducklake_data_file WHERE data_file_id = 0) {F1}",
        "duplicate-path",
    ),
    (f"{FILE} record_count = 90 {F1}", "row-count"),
    (f"{FILE} record_count = 90 {F1}", "counts"),
    (f"{FILE} footer_size = footer_size - 1 {F1}", "footer"),
    ("UPDATE ducklake_column SET column_id = 77 WHERE column_name = 's'", "field-ids"),
    (f"{OF_TABLE} min_value = '50' WHERE column_id = 1", "table-min"),
    # As text 99 is greater than 299, as a number it is not.
    (f"{OF_TABLE} max_value = '99' WHERE column_id = 1", "table-max"),
    (f"{OF_TABLE} contains_null = false WHERE column_id = 2", "table-contains-null"),
    (f"{OF_TABLE} contains_nan = false WHERE column_id = 3", "table-contains-nan"),
    (f"{STATS} min_value = '120' {S11}", "file-min"),
    (f"{STATS} max_value = '150' {S11}", "file-max"),
    (f"{STATS} max_value = '19' {S11}", "min-max"),
    (f"{STATS} min_value = 'x' {S11}", "stats-text"),
    (f"{STATS} null_count = 7 {S11}", "counts"),
    (f"DELETE FROM ducklake_file_column_stats {S11}", "missing-stats"),
    (
        "INSERT INTO ducklake_file_column_stats SELECT * FROM ducklake_file_column_stats "
        "WHERE data_file_id = 1",
        "duplicate-stats",
    ),
    (f"{STATS} data_file_id = 999 {F1}", "stats-of-nothing"),
    ("UPDATE ducklake_snapshot SET next_file_id = 2", "next-file-id"),
    ("UPDATE ducklake_snapshot SET next_catalog_id = 2", "next-catalog-id"),
    ("DELETE FROM ducklake_snapshot_changes WHERE snapshot_id = 2", "snapshot-changes"),
    ("UPDATE ducklake_snapshot SET schema_version = 0 WHERE snapshot_id = 4", "schema-version"),
    (f"{FILE} begin_snapshot = 99 {F1}", "future"),
    ("UPDATE ducklake_table SET table_name = 'T' WHERE table_name = 'p'", "table-name"),
    ("UPDATE ducklake_table SET schema_id = 50 WHERE table_name = 'p'", "table-schema"),
    ("UPDATE ducklake_column SET column_name = 'ID' WHERE column_name = 's'", "column-name"),
    ("UPDATE ducklake_column SET parent_column = 50 WHERE column_name = 's'", "column-parent"),
    (f"{FILE} table_id = 50 {F1}", "file-of-nothing"),
    ("UPDATE ducklake_delete_file SET delete_file_id = 1", "duplicate-id"),
    (f"{FILE} record_count = -1 {F1}", "sizes"),
    (f"{FILE} row_id_start = 50 {F1}", "row-ids"),
    ("UPDATE ducklake_table_stats SET next_row_id = 5", "table-row-ids"),
    ("DELETE FROM ducklake_file_partition_value WHERE data_file_id = 4", "partition-values"),
    (
        "UPDATE ducklake_file_partition_value SET partition_value = 'z' WHERE data_file_id = 4",
        "partition",
    ),
    ("UPDATE ducklake_delete_file SET delete_count = 500", "delete-count"),
    ("UPDATE ducklake_delete_file SET data_file_id = 500", "delete-of-nothing"),
    (
        "INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id, "
        "path, path_is_relative, format, delete_count, file_size_bytes) SELECT 1000, table_id, "
        "begin_snapshot, data_file_id, path, path_is_relative, format, delete_count, "
        "file_size_bytes FROM ducklake_delete_file",
        "delete-files",
    ),
]

STORY = """
CREATE TABLE t(id BIGINT, s VARCHAR, f FLOAT);
INSERT INTO t SELECT i, 'v' || i, i FROM range(100) r(i);
INSERT INTO t SELECT i, NULL, if(i = 150, 'nan'::FLOAT, i) FROM range(100, 200) r(i);
INSERT INTO t SELECT i, 'v' || i, i FROM range(200, 300) r(i);
DELETE FROM t WHERE id BETWEEN 210 AND 219;
CREATE TABLE p(k VARCHAR, i INTEGER);
ALTER TABLE p SET PARTITIONED BY (k);
INSERT INTO p VALUES ('a', 1), ('a', 2), ('b', 3);
"""


@pytest.fixture(scope="module")
def faulty(postgres_server, moto):
    from polynya_local.clients.native import Lake

    database = postgres_server.create_database("planted faults")
    lake = Lake("planted faults", database, "s3://lakes/planted faults")
    with connect(LAKE, moto) as con:
        source = f"ducklake:postgres:{database.libpq}".replace("'", "''")
        con.execute(
            f"ATTACH '{source}' AS lake (DATA_PATH '{lake.data_path}', DATA_INLINING_ROW_LIMIT 0)"
        )
        con.execute("USE lake")
        con.execute(STORY)
    return lake


TABLES = ("ducklake_data_file", "ducklake_delete_file", "ducklake_file_column_stats",
          "ducklake_table_column_stats", "ducklake_table_stats", "ducklake_snapshot",
          "ducklake_snapshot_changes", "ducklake_table", "ducklake_column",
          "ducklake_file_partition_value")  # fmt: skip


@contextmanager
def planted(lake, statement: str):
    """Plant a fault for the block, and repair it afterwards."""
    with closing(lake.database.connect()) as con:
        for name in TABLES:
            con.run(f"CREATE TABLE backup_{name} AS TABLE {name}")
        try:
            con.run(statement)
            assert con.row_count > 0, "the statement has planted nothing"
            yield
        finally:
            for name in TABLES:
                con.run(f"TRUNCATE {name}")
                con.run(f"INSERT INTO {name} TABLE backup_{name}")
                con.run(f"DROP TABLE backup_{name}")


FAULTS_OF_1_1 = [
    (f"{FILE} row_group_count = 0 {F1}", "row-groups"),
    ("UPDATE ducklake_file_column_stats SET min_is_exact = true, min_value = NULL", "exact-bounds"),
]


def test_faults_of_the_columns_of_1_1_are_found(faulty):
    to_1_1(faulty)
    for statement, check in FAULTS_OF_1_1:
        with planted(faulty, statement):
            assert check in {finding.check for finding in checked(faulty).findings}, statement
    assert checked(faulty).findings == []
    to_1_0(faulty)


def test_every_planted_fault_is_found(faulty):
    assert len(FAULTS) >= 20
    assert checked(faulty).findings == []
    for statement, check in FAULTS:
        with planted(faulty, statement):
            found = {finding.check for finding in checked(faulty).findings}
        assert check in found, statement
    assert checked(faulty).findings == []


@pytest.fixture
def bridge(faulty, moto):
    with standing_in(faulty, moto) as stand_in:
        yield {
            "catalog_uri": stand_in.api_uri,
            "bridge_s3_endpoint": stand_in.s3_uri,
            "levels": ("metadata",),
        }


def test_served_documents_are_compared_with_the_catalog(faulty, bridge):
    assert checked(faulty, **bridge).findings == []


def test_a_stale_chunk_is_found(faulty, moto):
    """The stored bytes of a manifest are replaced by those of an older one."""
    with standing_in(faulty, moto, **cache_settings(moto)) as stand_in:
        where = {"catalog_uri": stand_in.api_uri, "bridge_s3_endpoint": stand_in.s3_uri}
        where |= {"levels": ("metadata",), "table": "main.t"}
        assert checked(faulty, **where).findings == []
        s3 = boto3.client("s3", endpoint_url=stand_in.s3_uri)

        def read(location: str) -> bytes:
            bucket, _, key = location.removeprefix("s3://").partition("/")
            return s3.get_object(Bucket=bucket, Key=key)["Body"].read()

        def chunk(snapshot: dict) -> str:
            manifests = list(fastavro.reader(io.BytesIO(read(snapshot["manifest-list"]))))
            return next(one["manifest_path"] for one in manifests if one["content"] == 0)

        snapshots = rest.Rest(stand_in.api_uri, "lake").load_table("main", "t")["snapshots"]
        older, newer = read(chunk(snapshots[2])), chunk(snapshots[-1])
        assert read(newer) != older
        dynamodb = boto3.client("dynamodb", endpoint_url=moto)
        store = CacheStore(
            table=TABLE, bucket="lakes", ttl_seconds=9999, dynamodb=lambda: dynamodb, s3=lambda: s3
        )
        key = newer.removeprefix(f"s3://{ALIAS}/")
        dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": key}})
        store.put(key, older)
        reset_functions()
        found = {finding.check for finding in checked(faulty, **where).findings}
    assert {"metadata-missing", "manifest-length", "metadata-rows"} <= found


NAN_ABOVE = "SELECT count(*) FROM t WHERE f > 100"


def rewritten_by_pyarrow(lake, path: str) -> None:
    """Replace a data file of DuckDB by one that PyArrow writes, with PyArrow's bounds."""
    pq.write_table(pq.read_table(path), path, store_schema=False)
    size = Path(path).stat().st_size
    footer = int.from_bytes(Path(path).read_bytes()[-8:-4], "little")
    with closing(lake.database.connect()) as con:
        con.run(
            "UPDATE ducklake_data_file SET file_size_bytes = :size, footer_size = :footer",
            size=size,
            footer=footer,
        )


# (type, values, whether DuckDB loses a row in PyArrow's file of them)
WITH_BOUNDS = [
    ("DOUBLE", "(1), ('nan'), (3)", True),
    ("FLOAT", "(1), ('nan'), (3)", True),
    ("DOUBLE", "(1), (3)", False),
    ("DOUBLE", "('nan'), ('nan'), (NULL)", False),
]


@pytest.mark.parametrize(("type", "values", "is_faulty"), WITH_BOUNDS)
def test_bounds_without_nan_are_found(folder_lake, type, values, is_faulty):
    lake = folder_lake
    lake.sql(f"CREATE TABLE t(f {type})")
    lake.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake.sql(f"INSERT INTO t VALUES {values}")
    right = lake.sql(NAN_ABOVE)
    assert lake.verify().findings == []
    [[path]] = lake.catalog("SELECT path FROM ducklake_data_file")
    rewritten_by_pyarrow(lake, f"{lake.data_path}main/t/{path}")
    report = lake.verify()
    assert [finding.check for finding in report.findings] == ["nan-bounds"] * is_faulty
    assert report.notes == []
    with connect(LAKE) as con:  # a new one, because DuckDB caches footers
        attach(con, lake.as_lake, read_only=False)
        con.execute("USE lake")
        assert (con.sql(NAN_ABOVE).fetchall() != right) == is_faulty
        if is_faulty:
            con.execute("UPDATE t SET f = f")  # the remedy that the finding names
            assert con.sql(NAN_ABOVE).fetchall() == right
            assert lake.verify().findings == []


def test_added_files_that_may_hold_nan_are_noted(folder_lake, tmp_path):
    lake = folder_lake
    lake.sql("CREATE TABLE t(f DOUBLE, s STRUCT(g FLOAT), i INTEGER)")
    types = pa.schema(
        [("f", pa.float64()), ("s", pa.struct([("g", pa.float32())])), ("i", pa.int32())]
    )
    rows = [{"f": 1.0, "s": {"g": 1.0}, "i": 1}]
    for number in range(2):
        added = tmp_path / f"added{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, types), added)
        lake.sql(f"CALL ducklake_add_data_files('lake', 't', '{added}')")
    own = tmp_path / "own.parquet"
    lake.sql(f"COPY (FROM t) TO '{own}'")
    lake.sql(f"CALL ducklake_add_data_files('lake', 't', '{own}')")
    report = lake.verify()
    assert report.findings == []
    noted = [note.message.split()[2] for note in report.notes if note.check == "nan-unknown"]
    assert noted == ["f", "s.g"]


@pytest.mark.spark
def test_rows_read_by_spark_are_counted(faulty, bridge, spark):
    options = bridge | {"levels": ("client",), "spark": spark}
    report = checked(faulty, **options)
    assert report.findings == [] and report.checked["tables read by Spark"] == 2
    wrong = "UPDATE ducklake_data_file SET record_count = 95 WHERE data_file_id = 4"
    with planted(faulty, wrong):
        found = {finding.check for finding in checked(faulty, **options).findings}
    assert "client-rows" in found


@pytest.mark.slow
@pytest.mark.spark
def test_executors_find_what_one_process_finds(faulty, spark):
    wrong = "UPDATE ducklake_table_column_stats SET min_value = '50' WHERE column_id = 1"
    with planted(faulty, wrong):
        assert checked(faulty, spark=spark).findings == checked(faulty).findings != []


def test_the_command_writes_a_report_and_a_page(faulty, tmp_path, moto):
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    command = ["verify", "--database", faulty.database.url, "--s3-endpoint", moto]
    command += ["--report", str(report), "--page", str(page)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and "All is well: 2 tables" in done.stdout
    with planted(faulty, "UPDATE ducklake_table SET table_name = '<T>' WHERE table_name = 'p'"):
        done = CliRunner().invoke(app, [*command, "--table", "main.<T>"])
        assert done.exit_code == 0
    with planted(faulty, FAULTS[0][0]):
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and "file-size" in done.stdout
    document = json.loads(report.read_text())
    assert not document["well"] and document["findings"][0]["check"] == "file-size"
    assert "file-size" in Path(page).read_text()
