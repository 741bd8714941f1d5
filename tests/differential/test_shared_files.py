"""The same file added twice, and files with `/./` in their path: clients read the rows of native
DuckLake, or the table is refused.

Position deletes of Iceberg name a data file by its location, those of DuckLake by its id.
"""

import re
from contextlib import closing

import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.native import Native
from polynya_local.processes.serving import serving
from pyiceberg.exceptions import BadRequestError
from pyiceberg.expressions import EqualTo

from tests.support import file_lakes, rest
from tests.support.file_lakes import KINDS, NativeFile
from tests.support.native_lakes import count, snapshots
from tests.support.servers import in_process
from tests.support.writes.writable import client_of, set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE before(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/before.parquet';
CALL ducklake_add_data_files('lake', 'before', '{{DATA_PATH}}/before.parquet');
DELETE FROM before WHERE i = 1;
CALL ducklake_add_data_files('lake', 'before', '{{DATA_PATH}}/before.parquet');
CREATE TABLE after(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/after.parquet';
CALL ducklake_add_data_files('lake', 'after', '{{DATA_PATH}}/after.parquet');
CALL ducklake_add_data_files('lake', 'after', '{{DATA_PATH}}/after.parquet');
DELETE FROM after WHERE i = 1;
CREATE TABLE many(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(50) AS r(i)) TO '{{DATA_PATH}}/many.parquet';
CALL ducklake_add_data_files('lake', 'many', '{{DATA_PATH}}/many.parquet');
CALL ducklake_add_data_files('lake', 'many', '{{DATA_PATH}}/many.parquet');
DELETE FROM many WHERE i < 20;
CREATE TABLE dots(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/dots.parquet';
CALL ducklake_add_data_files('lake', 'dots', '{{DATA_PATH}}/dots.parquet');
CALL ducklake_add_data_files('lake', 'dots', '{{DATA_PATH}}/././dots.parquet');
DELETE FROM dots WHERE i = 1;
CREATE TABLE whole(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/whole.parquet';
CALL ducklake_add_data_files('lake', 'whole', '{{DATA_PATH}}/whole.parquet');
CALL ducklake_add_data_files('lake', 'whole', '{{DATA_PATH}}/whole.parquet');
INSERT INTO whole SELECT i FROM range(100, 150) AS r(i);
DELETE FROM whole WHERE i = 120;
CREATE TABLE ended(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/ended.parquet';
CALL ducklake_add_data_files('lake', 'ended', '{{DATA_PATH}}/ended.parquet');
CALL ducklake_add_data_files('lake', 'ended', '{{DATA_PATH}}/ended.parquet');
DELETE FROM ended WHERE i = 1;
CALL ducklake_flush_inlined_data('lake', table_name => 'ended');
CALL ducklake_rewrite_data_files('lake', 'ended', delete_threshold => 0);
INSERT INTO ended SELECT i FROM range(200, 250) AS r(i);
CREATE TABLE plain(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/plain.parquet';
CALL ducklake_add_data_files('lake', 'plain', '{{DATA_PATH}}/./plain.parquet');
DELETE FROM plain WHERE i = 1;
CREATE TABLE upwards(i INTEGER);
CALL ducklake_add_data_files('lake', 'upwards', '{{DATA_PATH}}/x/../plain.parquet');
CREATE TABLE repaired(i INTEGER);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/repaired.parquet';
CALL ducklake_add_data_files('lake', 'repaired', '{{DATA_PATH}}/repaired.parquet');
CALL ducklake_add_data_files('lake', 'repaired', '{{DATA_PATH}}/repaired.parquet');
DELETE FROM repaired WHERE i = 1;
CREATE TABLE copied AS FROM repaired;
DROP TABLE repaired;
ALTER TABLE copied RENAME TO repaired;
CREATE TABLE again AS SELECT i FROM range(50) AS r(i);
DELETE FROM again WHERE i = 1;
CREATE TABLE again_whole AS SELECT i FROM range(50) AS r(i);
"""
# A program registers the path of a file that DuckLake has named once more.
AGAIN = """
INSERT INTO ducklake_data_file
SELECT again.* FROM ducklake_table JOIN ducklake_data_file AS f USING (table_id),
  jsonb_populate_record(f, jsonb_build_object('data_file_id', f.data_file_id + 1000)) AS again
WHERE table_name LIKE 'again%'"""
REFUSED = {
    "before": "registered twice",
    "after": "registered twice",
    "many": "registered twice",
    "dots": "registered twice",
    "upwards": "has /../ in its path",
    "again": "registered twice",
}
READ = ("whole", "ended", "plain", "repaired", "again_whole")
"""The first has a file twice, and deletes in another one; the second has had both; the fourth is
what the reason says to do; the last has a file twice, and no deletes."""


@pytest.fixture(scope="module")
def written(lake):
    written = lake.write("shared_files", SCRIPT)
    written.database.run(AGAIN)
    return written


@pytest.fixture(scope="module")
def bridge(written, moto):
    settings = {"SCAN_PLANNING": "server"}
    with in_process.bridge(written, moto, delivery="object-lambda", settings=settings) as bridge:
        yield bridge


def where(bridge) -> tuple[str, str, str]:
    return bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint


@pytest.fixture(scope="module")
def native(written, moto):
    with closing(Native(written, moto)) as native:
        yield native


@pytest.mark.parametrize("planner", ["client", "server"])
def test_clients_read_what_ducklake_reads_or_are_refused(planner, bridge, native):
    with closing(pyiceberg.open(*where(bridge))) as reader:
        reader._catalog.properties["scan-planning-mode"] = planner
        check(reader, native)
        for table in READ:
            rows = reader._catalog.load_table(("main", table)).scan(EqualTo("i", 1)).to_arrow()
            assert [(len(rows),)] == native.query(f"SELECT count(*) FROM lake.{table} WHERE i = 1")


@pytest.mark.slow
def test_duckdb_reads_what_ducklake_reads_or_is_refused(bridge, native):
    with closing(duckdb.open(*where(bridge))) as reader:
        check(reader, native)


def check(reader, native) -> None:
    for table in READ:
        columns = native.columns("main", table)
        theirs = from_arrow(reader.rows("main", table, None), columns)
        assert difference(native.canonical("main", table), theirs) == [], table
    for table, reason in REFUSED.items():
        with pytest.raises(Exception, match=re.escape(reason)):
            reader.rows("main", table, None)


def test_other_snapshots_of_such_a_table_are_served(bridge, native):
    catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
    ids = [snapshot["snapshot-id"] for snapshot in catalog.load_table("main", "ended")["snapshots"]]
    [table] = [table for table in native.tables() if table.name == "ended"]
    deleted = min(
        id_ for id_, text in snapshots(native).items() if f"delete:{table.table_id}" in text
    )
    # Created, added, added again, rewritten, inserted.
    assert len(ids) == 5 and deleted not in ids and min(ids) < deleted < max(ids)
    with closing(pyiceberg.open(*where(bridge))) as reader:
        for id_ in ids:
            assert len(reader.rows("main", "ended", id_)) == count(native, table, id_)


def test_clients_change_files_by_their_location(bridge, written, moto):
    """If the location is that of two files, the commit does not say which one it means."""
    set_up_writes(written)
    with in_process.bridge(written, moto, writes=True) as writable:
        catalog = client_of(writable)
        catalog.load_table(("main", "plain")).delete(EqualTo("i", 2))
        for value in (1, 130):  # of the file that is there twice, and of another one
            with pytest.raises(BadRequestError, match="registered twice"):
                catalog.load_table(("main", "whole")).delete(EqualTo("i", value))
    with closing(Native(written, moto)) as native:
        assert native.query("SELECT i FROM lake.plain ORDER BY i") == [(0,), (3,), (4,)]
        counts = "SELECT count(*) FILTER (WHERE i < 100), count(*) FROM lake.whole"
        assert native.query(counts) == [(10, 59)]


LOCAL = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE slashes(i INTEGER);
INSERT INTO slashes SELECT i FROM range(100, 150) AS r(i);
COPY (SELECT i::INTEGER AS i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/main/one.parquet';
CALL ducklake_add_data_files('lake', 'slashes', '{{DATA_PATH}}//main/.//one.parquet');
CREATE TABLE twice(i INTEGER);
CALL ducklake_add_data_files('lake', 'twice', '{{DATA_PATH}}/main/one.parquet');
CALL ducklake_add_data_files('lake', 'twice', '{{DATA_PATH}}//main/one.parquet');
DELETE FROM twice WHERE i = 1;
CREATE TABLE upwards(i INTEGER);
CALL ducklake_add_data_files('lake', 'upwards', '{{DATA_PATH}}/main/../main/one.parquet');
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_paths_of_a_folder_are_spelled_as_one_likes(kind, tmp_path):
    lake = file_lakes.FileLake("slashes", kind, tmp_path)
    text = LOCAL.replace("{{CATALOG}}", lake.address).replace("{{DATA_PATH}}", str(lake.data))
    file_lakes.execute(text)
    with serving(lake.address, None, delivery="object-lambda") as bridge:
        for client in (pyiceberg, duckdb):
            with (
                closing(client.open(*where(bridge))) as reader,
                closing(NativeFile(lake)) as native,
            ):
                assert len(reader.rows("main", "slashes", None)) == 55
                assert native.query("SELECT count(*) FROM lake.slashes") == [(55,)]
                with pytest.raises(Exception, match="registered twice"):
                    reader.rows("main", "twice", None)
                with pytest.raises(Exception, match=r"has /\.\./ in its path"):
                    reader.rows("main", "upwards", None)
