"""`publish` and `verify` of tables of format version 3, with each of its types and with vectors."""

from collections import Counter
from contextlib import closing

import pytest
from polynya_local.clients import native
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.pyiceberg import s3_properties
from polynya_pipeline.common.storage import clients
from polynya_pipeline.publish.job import publish
from polynya_pipeline.verify.job import verify
from pyiceberg.table import StaticTable

from tests.pipeline.test_export import duckdb_rows
from tests.pipeline.test_publish import bucket, functions, objects, published  # noqa: F401
from tests.support.servers.in_process import bridge as bridge_in_process
from tests.support.variants import written_by_duckdb_2
from tests.support.zoned import make_zoned, without_zones

# Each table has rows in files and deleted ones, and inlined rows where DuckLake inlines them.
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 3);
USE lake;
CREATE TABLE ns(n TIMESTAMP_NS);
INSERT INTO ns SELECT make_timestamp_ns(1700000000000000000 + i) FROM range(9) r(i);
INSERT INTO ns VALUES (NULL), ('1969-12-31 23:59:59.999999999');
DELETE FROM ns WHERE n > '2023-11-14 22:13:20.000000005';
CREATE TABLE utc(id INTEGER, z TIMESTAMP_NS);
INSERT INTO utc SELECT i, make_timestamp_ns(1700000000000000000 + i) FROM range(9) r(i);
INSERT INTO utc VALUES (10, NULL), (11, '1969-12-31 23:59:59.999999999');
DELETE FROM utc WHERE id IN (3, 11);
CREATE TABLE geo(id INTEGER, g GEOMETRY);
INSERT INTO geo SELECT i, ('POINT(' || i || ' 1)')::GEOMETRY FROM range(9) r(i);
INSERT INTO geo VALUES (10, NULL);
DELETE FROM geo WHERE id IN (3, 10);
CREATE TABLE var(id INTEGER, v VARIANT);
INSERT INTO var SELECT i, {'k': i}::VARIANT FROM range(9) r(i);
INSERT INTO var VALUES (10, NULL), (11, 'text'::VARIANT);
DELETE FROM var WHERE id IN (3, 11);
CREATE TABLE whole(id INTEGER, v VARIANT);
INSERT INTO whole VALUES (1, NULL), (2, NULL), (3, 'text'::VARIANT), (4, 4::VARIANT);
CREATE TABLE vec(id INTEGER, s VARCHAR);
INSERT INTO vec SELECT i, 's' || i FROM range(9) r(i);
ALTER TABLE vec ADD COLUMN d INTEGER DEFAULT 42;
DELETE FROM vec WHERE id = 3;
INSERT INTO vec VALUES (10, NULL, NULL);
DELETE FROM vec WHERE id = 4;
CREATE TABLE none(i INTERVAL);
-- Spark lacks this type of format version 2
CREATE TABLE clock AS SELECT TIME '01:02:03' AS t FROM range(9);
"""
# By the warehouse: the tables that have a type which Spark lacks, and the type.
CANNOT_IN_SPARK = {"lake": {"ns": "timestamp_ns", "clock": "time"}}
CANNOT_IN_SPARK["lake+v3"] = CANNOT_IN_SPARK["lake"] | {"utc": "timestamptz_ns", "geo": "geometry"}
ROWS = {"ns": 8, "utc": 9, "geo": 8, "var": 9, "whole": 4, "vec": 8, "clock": 9}


@pytest.fixture(autouse=True)
def aws(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    clients.cache_clear()
    yield
    clients.cache_clear()


@pytest.fixture(scope="module")
def written(lake, moto):
    """The lake, and its rows as DuckLake gives them; zones and variants are of DuckDB 2.0."""
    made = lake.write("pipeline_version_3", SCRIPT)
    with closing(native.open(made, moto)) as truth:
        rows = {
            table: (truth.columns("main", table), truth.canonical("main", table)) for table in ROWS
        }
    written_by_duckdb_2(made, moto, ["var", "whole"])
    make_zoned(made, moto, ["utc"])
    return made, rows


@pytest.mark.parametrize(
    "is_shown",
    [
        pytest.param(False, id="lake", marks=pytest.mark.slow),
        pytest.param(True, id="lake+v3"),
    ],
)
def test_every_key_has_the_same_bytes_as_from_the_functions(written, bucket, is_shown):  # noqa: F811
    """Each warehouse has names of its own for tables that show more in it."""
    expected = functions(written[0], bucket, shows_version_3=is_shown)
    environ = bucket | ({"FORMAT_VERSION_3": "always-shown"} if is_shown else {})
    done = published(written[0], environ)
    found = objects(environ)
    assert {key: body for key, body in found.items() if not key.endswith(".page")} == expected
    vectors = [key for key, body in expected.items() if body.startswith(b"PFA1")]
    assert len(vectors) > (5 if is_shown else 2)
    refused = {table.name: table.refused for table in done.tables if table.refused}
    assert refused.keys() == {"main.none"} and "interval" in refused["main.none"]


READERS = {"PyIceberg": ROWS.keys() - {"geo", "var", "whole"}, "DuckDB": ROWS.keys() - {"utc"}}
"""What each of them reads; docs/exactness.md has the table."""


@pytest.fixture
def exports(written, tmp_path):
    """The location of each exported table."""
    folder = tmp_path / "out"
    environ = {"FORMAT_VERSION_3": "always-shown"}
    done = publish(database=written[0].database.url, environ=environ, export=str(folder))
    return {table.name.removeprefix("main."): table.metadata_location for table in done.tables}


@pytest.mark.slow
def test_pyiceberg_and_duckdb_read_an_export(written, exports, moto, tmp_path):
    properties = s3_properties(moto)
    for table, (columns, truth) in written[1].items():
        assert truth.rows.total() == ROWS[table]
        if table in READERS["PyIceberg"]:
            rows = StaticTable.from_metadata(exports[table], properties).scan().to_arrow()
            assert difference(truth, from_arrow(without_zones(rows), columns)) == [], table
        if table in READERS["DuckDB"]:
            texts = "* REPLACE (v::VARCHAR AS v)" if "v" in columns else "*"
            rows = duckdb_rows(moto, exports[table], tmp_path, texts)
            assert difference(truth, from_arrow(rows, columns)) == [], table


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_exported_vectors(folder_lake, spark, tmp_path):
    """Spark reads no `s3://` without a catalog, so the lake is in a folder."""
    _, _, story = SCRIPT.partition("CREATE TABLE vec")
    for statement in f"CREATE TABLE vec{story}".split(";")[:-2]:
        folder_lake.sql(statement)
    publish(database=folder_lake.database.url, environ={}, export=str(tmp_path / "out"))
    rows = spark.read.format("iceberg").load(str(tmp_path / "out" / "main" / "vec")).collect()
    assert Counter(map(tuple, rows)) == Counter(folder_lake.sql("FROM vec"))
    assert len(rows) == ROWS["vec"]


def verified(lake, moto, warehouse: str, levels, **options):
    settings = {"CHUNK_FILES": "3"}
    with bridge_in_process(lake, moto, delivery="object-lambda", settings=settings) as bridge:
        return verify(
            database=lake.database.url,
            levels=levels,
            footers=True,
            catalog_uri=bridge.catalog_uri,
            bridge_s3_endpoint=bridge.s3_endpoint,
            warehouse=warehouse,
            **options,
        )


@pytest.mark.parametrize("warehouse", [pytest.param("lake", marks=pytest.mark.slow), "lake+v3"])
def test_verify_finds_nothing_and_notes_what_is_not_served(written, moto, warehouse):
    report = verified(written[0], moto, warehouse, ("catalog", "storage", "metadata"))
    assert report.findings == [] and report.checked["tables with metadata"] == len(ROWS)
    # `make_zoned` leaves a file of table utc that no snapshot names.
    note, orphan = sorted(report.notes, key=lambda note: note.check)
    assert (orphan.check, orphan.about) == ("orphan", "main.utc")
    assert (note.check, note.about) == ("not-served", "main.none")
    assert "interval" in note.message


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("warehouse", CANNOT_IN_SPARK)
def test_verify_reads_what_spark_can_read(written, moto, spark, warehouse):
    report = verified(written[0], moto, warehouse, ("metadata", "client"), spark=spark)
    assert report.findings == []
    notes = {note.about: note.message for note in report.notes if note.check == "client-type"}
    types = CANNOT_IN_SPARK[warehouse]
    assert notes.keys() == {f"main.{table}" for table in types}
    assert all(f"no type {type_}, so" in notes[f"main.{table}"] for table, type_ in types.items())
    assert report.checked["tables read by Spark"] == len(ROWS) - len(types)
