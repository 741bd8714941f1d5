"""Tables of format version 3: row ids, and the deletes of each data file in one deletion vector.

DuckLake tells the id of a row (`rowid`) and the snapshot that wrote it (`snapshot_id`). PyIceberg
reads the Puffin files, and Iceberg's clients read the rows.
"""

from collections import Counter
from contextlib import closing
from io import BytesIO

import fastavro
import pytest
from polynya_local.clients import duckdb, native, spark
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.clients.spark_jars import why_not
from pyiceberg.catalog import load_catalog
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from tests.support.servers import in_process

ATTACH = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
"""
INLINE = "CALL lake.set_option('data_inlining_row_limit', 10, table_name => '{t}');"
VECTORS = "CALL lake.set_option('write_deletion_vectors', {value}, table_name => '{t}');"
# Each table has a column with a default that its first files lack.
TABLES = {
    "stored": """
CREATE TABLE {t}(k BIGINT, v VARCHAR);
INSERT INTO {t} SELECT i, 'a' FROM range(20) AS r(i);
INSERT INTO {t} SELECT i, 'b' FROM range(20, 30) AS r(i);
DELETE FROM {t} WHERE k IN (3, 4, 25);
ALTER TABLE {t} ADD COLUMN q VARCHAR DEFAULT 'old';
DELETE FROM {t} WHERE k IN (7, 26);
UPDATE {t} SET v = 'u' WHERE k IN (1, 21);
{inline}
DELETE FROM {t} WHERE k = 9;
INSERT INTO {t} VALUES (40, 'i', 'new'), (41, 'i', NULL);
UPDATE {t} SET v = 'w' WHERE k IN (10, 40);
DELETE FROM {t} WHERE k = 41;
""",
    "vectors": """
CREATE TABLE {t}(k BIGINT, v VARCHAR);
{on}
INSERT INTO {t} SELECT i, 'a' FROM range(20) AS r(i);
ALTER TABLE {t} ADD COLUMN q VARCHAR DEFAULT 'old';
DELETE FROM {t} WHERE k IN (3, 4);
{inline}
DELETE FROM {t} WHERE k = 9;
DELETE FROM {t} WHERE k = 10;
INSERT INTO {t} SELECT i, 'b', 'new' FROM range(20, 60) AS r(i);
DELETE FROM {t} WHERE k = 0;
""",
    "merged": """
CREATE TABLE {t}(k BIGINT, v VARCHAR);
INSERT INTO {t} SELECT i, 'a' FROM range(5) AS r(i);
ALTER TABLE {t} ADD COLUMN q VARCHAR DEFAULT 'old';
INSERT INTO {t} SELECT i, 'b', 'b' FROM range(5, 10) AS r(i);
INSERT INTO {t} SELECT i, 'c', 'c' FROM range(10, 15) AS r(i);
CALL ducklake_merge_adjacent_files('lake', '{t}');
DELETE FROM {t} WHERE k IN (2, 6, 12);
{inline}
DELETE FROM {t} WHERE k = 13;
INSERT INTO {t} VALUES (40, 'i', 'new');
UPDATE {t} SET v = 'w' WHERE k = 8;
DELETE FROM {t} WHERE k = 40;
INSERT INTO {t} VALUES (41, 'i', 'new');
CALL ducklake_flush_inlined_data('lake', table_name => '{t}');
DELETE FROM {t} WHERE k = 41;
CALL ducklake_rewrite_data_files('lake', '{t}', delete_threshold => 0);
INSERT INTO {t} VALUES (42, 'i', 'new');
""",
    "inlined": """
CREATE TABLE {t}(k BIGINT, v VARCHAR);
INSERT INTO {t} SELECT i, 'a' FROM range(5) AS r(i);
ALTER TABLE {t} ADD COLUMN q VARCHAR DEFAULT 'old';
{inline}
INSERT INTO {t} VALUES (40, 'i', 'new'), (41, 'i', NULL);
INSERT INTO {t} VALUES (42, 'i', 'new');
UPDATE {t} SET v = 'w' WHERE k = 41;
DELETE FROM {t} WHERE k = 40;
INSERT INTO {t} SELECT i, 'b', 'new' FROM range(50, 80) AS r(i);
""",
}
SCRIPT = ATTACH + "".join(
    text.format(t=name, inline=INLINE.format(t=name), on=VECTORS.format(t=name, value="true"))
    for name, text in TABLES.items()
)
DELETES, ROW_ID, LAST_UPDATED = 1, "_row_id", "_last_updated_sequence_number"


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("row_lineage", SCRIPT)


@pytest.fixture(scope="module")
def truth(written, moto):
    with closing(native.open(written, moto)) as found:
        yield found


@pytest.fixture(
    scope="module", params=["object-lambda", pytest.param("materialize", marks=pytest.mark.slow)]
)
def served(written, moto, request):
    settings = {"SNAPSHOT_LIMIT": "2000", "CHUNK_FILES": "2"}
    with in_process.bridge(written, moto, delivery=request.param, settings=settings) as bridge:
        yield bridge


@pytest.fixture(scope="module")
def catalog(served):
    return catalog_of(served)


def catalog_of(served, planning="client"):
    properties = s3_properties(served.s3_endpoint) | {"scan-planning-mode": planning}
    where = {"uri": served.catalog_uri, "warehouse": served.warehouse}
    return load_catalog("polynya", type="rest", **where, **properties)


def native_rows(truth, name, snapshot_id):
    """Each row with its id, the snapshot that wrote it, and its key."""
    at = f"AT (VERSION => {snapshot_id})"
    return sorted(truth.query(f"SELECT rowid, snapshot_id, k FROM lake.main.{name} {at}"))


def snapshots(catalog, name):
    table = catalog.load_table(("main", name))
    assert table.format_version == 3
    return sorted(table.metadata.snapshots, key=lambda one: one.sequence_number)


LINEAGE = f"SELECT {ROW_ID}, {LAST_UPDATED}, k FROM"


@pytest.mark.slow("-merged]")
@pytest.mark.parametrize("name", TABLES)
def test_duckdb_reads_the_ids_of_ducklake(truth, catalog, served, name):
    where = served.catalog_uri, served.warehouse, served.s3_endpoint
    with closing(duckdb.open(*where)) as client:
        for one in snapshots(catalog, name):
            at = f"AT (VERSION => {one.snapshot_id})"
            rows = client.query(f"{LINEAGE} ice.main.{name} {at}").to_pylist()
            found = sorted(tuple(row.values()) for row in rows)
            assert found == native_rows(truth, name, one.sequence_number), one.sequence_number


SPARK_MARKS = [
    pytest.mark.spark,
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
]
IN_SPARK = [
    pytest.param(name, marks=SPARK_MARKS if name == "stored" else [*SPARK_MARKS, pytest.mark.slow])
    for name in TABLES
]


@pytest.fixture
def iceberg_sql(served):
    """A function that runs SQL in Spark, where `{ice}` is the catalog."""
    client = spark.open(served.catalog_uri, served.warehouse, served.s3_endpoint)
    return lambda sql: spark.session().sql(sql.format(ice=client.catalog)).collect()


@pytest.mark.parametrize("name", IN_SPARK)
def test_spark_reads_the_ids_of_ducklake(truth, catalog, iceberg_sql, name):
    for one in snapshots(catalog, name):
        rows = iceberg_sql(f"{LINEAGE} {{ice}}.main.{name} VERSION AS OF {one.snapshot_id}")
        assert sorted(map(tuple, rows)) == native_rows(truth, name, one.sequence_number)
    assert iceberg_sql(f"SELECT * FROM {{ice}}.main.{name}.all_entries")


FEED = """
SELECT snapshot_id, change_type, k, v, q
FROM ducklake_table_changes('lake', 'main', '{t}', {first}, {last})"""
CHANGES = {
    "insert": "INSERT",
    "delete": "DELETE",
    "update_preimage": "DELETE",
    "update_postimage": "INSERT",
}


@pytest.mark.parametrize("name", [pytest.param("inlined", marks=SPARK_MARKS)])
def test_the_changelog_of_spark_is_the_change_feed(truth, catalog, iceberg_sql, name):
    """Of tables with delete files Spark has none: "Delete files are currently not supported"."""
    iceberg_sql(f"CALL {{ice}}.system.create_changelog_view(table => 'main.{name}')")
    columns = "_commit_snapshot_id, _change_type, k, v, q"
    found = Counter(map(tuple, iceberg_sql(f"SELECT {columns} FROM {name}_changes")))
    first, *_, last = (one.sequence_number for one in snapshots(catalog, name))
    feed = truth.query(FEED.format(t=name, first=first, last=last))
    assert found == Counter((id_, CHANGES[change], *row) for id_, change, *row in feed)


@pytest.mark.parametrize("planning", ["client", "server"])
@pytest.mark.parametrize("name", TABLES)
def test_pyiceberg_reads_the_rows(truth, served, planning, name):
    """A plan names position deletes with `object-lambda`, and vectors with `materialize`."""
    table = catalog_of(served, planning).load_table(("main", name))
    newest = table.current_snapshot().sequence_number
    found = table.scan(selected_fields=("k",)).to_arrow()["k"].to_pylist()
    assert sorted(found) == sorted(k for *_, k in native_rows(truth, name, newest))


@pytest.mark.parametrize("name", TABLES)
def test_each_snapshot_says_which_ids_it_gave(truth, catalog, name):
    """After a merge or a flush, which rewrite the past, the numbers may be too high there."""
    next_row_id, seen = 0, set()
    for one in snapshots(catalog, name):
        ids = {row_id for row_id, *_ in native_rows(truth, name, one.sequence_number)}
        assert one.first_row_id >= next_row_id
        if name != "merged":
            assert all(row_id >= one.first_row_id for row_id in ids - seen), one
        next_row_id = one.first_row_id + one.added_rows
        assert all(row_id < next_row_id for row_id in ids), one
        seen |= ids
    assert catalog.load_table(("main", name)).metadata.next_row_id >= next_row_id


def deletes_of(io, one):
    """The live delete files of a snapshot, as its manifests say."""

    def records(path):
        return fastavro.reader(BytesIO(io.new_input(path).open().read()))

    return [
        entry["data_file"]
        for manifest in records(one.manifest_list)
        if manifest["content"] == DELETES
        for entry in records(manifest["manifest_path"])
        if entry["status"] != 2
    ]


@pytest.mark.parametrize("name", TABLES)
def test_each_data_file_has_one_vector(truth, catalog, name):
    io = catalog.load_table(("main", name)).io
    files = set()
    for one in snapshots(catalog, name):
        deletes = deletes_of(io, one)
        paths = Counter(file["referenced_data_file"] for file in deletes)
        assert all(number == 1 for number in paths.values())
        for file in deletes:
            body = io.new_input(file["file_path"]).open().read()
            puffin = PuffinFile(body)
            [blob], [vector] = puffin.footer.blobs, deletion_vectors_from_puffin_file(puffin)
            assert file["file_format"] == "PUFFIN" and len(body) == file["file_size_in_bytes"]
            span = file["content_offset"], file["content_size_in_bytes"]
            assert (blob.offset, blob.length) == span
            assert vector.referenced_data_file == file["referenced_data_file"]
            assert len(vector.to_vector()) == file["record_count"]
            files.add(file["file_path"])
    assert len(files) > 2 or name == "inlined"
