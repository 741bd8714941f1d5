"""What cannot be exact is refused or left out: added files, and columns without an equal type."""

import json
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from polynya.catalog import lakes as opened_lakes
from polynya.storage.aws import Clients
from polynya.storage.object_store import s3_store
from polynya.storage.objects import S3Objects
from polynya_local.clients import pyiceberg

from tests.support.servers.in_process import standing_in
from tests.support.servers.raw_http import send

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE alike(i INTEGER, s VARCHAR);
COPY (SELECT i::INTEGER AS i, 's' AS s, i % 20 AS n FROM range(100) r(i))
  TO '{{DATA_PATH}}_ext/alike' (FORMAT parquet, PARTITION_BY (n));
CALL ducklake_add_data_files('lake', 'alike', '{{DATA_PATH}}_ext/alike/**/*.parquet',
  ignore_extra_columns => true, hive_partitioning => false);
CREATE TABLE late(i INTEGER, j INTEGER);
COPY (SELECT 1::INTEGER AS i, 2::INTEGER AS j) TO '{{DATA_PATH}}_ext/first.parquet';
COPY (SELECT 3::INTEGER AS i, 4::INTEGER AS j) TO '{{DATA_PATH}}_ext/second.parquet'
  (FIELD_IDS {i: 2, j: 1});
CALL ducklake_add_data_files('lake', 'late', '{{DATA_PATH}}_ext/first.parquet');
CALL ducklake_add_data_files('lake', 'late', '{{DATA_PATH}}_ext/second.parquet');
CREATE TABLE mended(i INTEGER, j INTEGER);
INSERT INTO mended VALUES (0, 0);
CALL ducklake_add_data_files('lake', 'mended', '{{DATA_PATH}}_ext/second.parquet');
DELETE FROM mended WHERE i = 3;
CREATE TABLE had_one(i INTEGER, u UBIGINT);
INSERT INTO had_one VALUES (1, 2);
ALTER TABLE had_one DROP COLUMN u;
INSERT INTO had_one VALUES (3);
CREATE TABLE has_one(i INTEGER, u UBIGINT, t TIME);
CREATE TABLE has_none(i INTEGER, t TIME);
CREATE TABLE rewritten(i INTEGER);
INSERT INTO rewritten VALUES (1), (2);
ALTER TABLE rewritten ADD COLUMN d INTEGER DEFAULT 7;
INSERT INTO rewritten VALUES (3, 8);
UPDATE rewritten SET i = i + 10;
CREATE TABLE lacking(i INTEGER, s STRUCT(a INTEGER));
INSERT INTO lacking VALUES (1, {a: 1});
ALTER TABLE lacking ADD COLUMN d INTEGER DEFAULT 7;
INSERT INTO lacking VALUES (2, {a: 2}, 8);
CREATE TABLE merged(i INTEGER);
INSERT INTO merged VALUES (1), (2);
ALTER TABLE merged ADD COLUMN d INTEGER DEFAULT 7;
UPDATE merged SET i = i;
CREATE TABLE merged_by_half(i INTEGER);
INSERT INTO merged_by_half VALUES (1), (2);
INSERT INTO merged_by_half VALUES (5), (6);
ALTER TABLE merged_by_half ADD COLUMN d INTEGER DEFAULT 7;
UPDATE merged_by_half SET i = i WHERE i < 3;
CREATE TABLE empty(i INTEGER);
ALTER TABLE empty ADD COLUMN d INTEGER DEFAULT 7;
INSERT INTO empty VALUES (2, 8);
CREATE TABLE dropped(i INTEGER);
INSERT INTO dropped VALUES (1);
ALTER TABLE dropped ADD COLUMN d INTEGER DEFAULT 7;
ALTER TABLE dropped DROP COLUMN d;
CREATE TABLE at_once(i INTEGER);
BEGIN;
INSERT INTO at_once VALUES (1);
ALTER TABLE at_once ADD COLUMN d INTEGER DEFAULT 7;
COMMIT;
CREATE TABLE added(i INTEGER, d INTEGER DEFAULT 7);
COPY (SELECT 1::INTEGER AS i) TO '{{DATA_PATH}}_ext/lacking.parquet';
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_ext/lacking.parquet',
  allow_missing => true);
"""


# DuckLake 1.1 merges files from before and after a new column into one, which has the column. Here
# the file of the UPDATE takes the place of the file that it rewrote.
MERGED = """
UPDATE ducklake_data_file AS f SET begin_snapshot = o.begin_snapshot, row_id_start = 0
FROM ducklake_data_file AS o, ducklake_table AS t
WHERE t.table_name LIKE 'merged%' AND t.table_id = f.table_id AND o.table_id = f.table_id
  AND o.end_snapshot = f.begin_snapshot"""
OLD_ONES = """
DELETE FROM ducklake_data_file WHERE end_snapshot IS NOT NULL
  AND table_id IN (SELECT table_id FROM ducklake_table WHERE table_name LIKE 'merged%')"""


@pytest.fixture(scope="module")
def odd(lake):
    one = lake.write("refusals", LAKE)
    with closing(one.database.connect()) as con:
        con.run(MERGED)
        assert con.row_count == 2
        con.run(OLD_ONES)
        con.run(
            "DELETE FROM ducklake_delete_file WHERE data_file_id NOT IN"
            " (SELECT data_file_id FROM ducklake_data_file)"
        )
    return one


@pytest.fixture
def footers(monkeypatch):
    """The real files that the functions read from."""
    read: list[str] = []

    def read_range(location: str, first: int, end: int) -> bytes:
        read.append(location)
        return objects.read_range(location, first, end)

    objects = S3Objects(Clients())
    monkeypatch.setattr(
        opened_lakes, "s3_store", lambda clients: replace(s3_store(clients), read_range=read_range)
    )
    return read


def load(stand_in, table: str) -> SimpleNamespace:
    answer = send(stand_in.api_uri, "GET", f"/v1/lake/namespaces/main/tables/{table}")
    body = json.loads(answer.body)
    if answer.status != 200:
        return SimpleNamespace(status=answer.status, message=body["error"]["message"])
    metadata = body["metadata"]
    return SimpleNamespace(
        status=200,
        snapshots={s["snapshot-id"]: s["manifest-list"] for s in metadata.get("snapshots", [])},
        properties=metadata["properties"],
    )


def test_only_one_footer_of_files_added_together_is_read(odd, moto, footers):
    with standing_in(odd, moto) as stand_in:
        assert load(stand_in, "alike").status == 200
        assert len(set(footers)) == 1
        footers.clear()
        assert load(stand_in, "alike").status == 200
        assert footers == []  # the footer is cached


def test_a_contradiction_found_after_loading_refuses_the_manifest_list(odd, moto):
    with standing_in(odd, moto) as stand_in:
        loaded = load(stand_in, "late")
        assert loaded.status == 200
        before, after = list(loaded.snapshots.values())[-2:]
        assert send(stand_in.s3_uri, "GET", f"/{before.removeprefix('s3://')}").status == 200
        answer = send(stand_in.s3_uri, "GET", f"/{after.removeprefix('s3://')}")
        assert answer.status == 400 and b"field id 2 of 'i'" in answer.body
    with standing_in(odd, moto, delivery="materialize") as stand_in:
        refused = load(stand_in, "late")
        assert refused.status == 400 and "field id 2 of 'i'" in refused.message


def test_a_table_is_served_again_without_the_contradictory_file(odd, moto):
    """The snapshots with the file are left out: created, own row, file added, row deleted."""
    with standing_in(odd, moto) as stand_in:
        loaded = load(stand_in, "mended")
    assert loaded.status == 200 and len(loaded.snapshots) == 3


# (table, whether it is served, the number of its listed snapshots)
INEXACT = [("has_one", False, 0), ("had_one", True, 2), ("has_none", True, 1)]


@pytest.mark.parametrize(("table", "is_served", "listed"), INEXACT)
def test_a_table_is_refused_instead_of_a_hidden_column(odd, moto, table, is_served, listed):
    settings = {"INEXACT_COLUMNS": "refuse", "HIDDEN_TYPES": "time"}
    with standing_in(odd, moto, **settings) as stand_in:
        found = load(stand_in, table)
    if not is_served:
        assert found.status == 400
        assert "u: values from" in found.message and "HIDDEN_TYPES" not in found.message
        return
    assert len(found.snapshots) == listed
    with standing_in(odd, moto, HIDDEN_TYPES="time") as stand_in:
        assert load(stand_in, table).snapshots.keys() >= found.snapshots.keys()


# (table, the reason of a refusal, the number of snapshots that are left out)
DEFAULTS = [
    ("lacking", "files lack the column d", 2),
    ("merged", None, 0),
    ("merged_by_half", "files lack the column d", 2),
    ("rewritten", None, 2),  # from the ALTER TABLE until all rows are written again
    ("empty", None, 0),
    ("dropped", None, 1),
    ("at_once", "files lack the column d", 1),
    ("added", "files lack the column d", 1),
    ("has_none", None, 0),
]


@pytest.mark.parametrize(("table", "reason", "left_out"), DEFAULTS)
def test_a_table_is_refused_instead_of_a_default_read_as_null(odd, moto, table, reason, left_out):
    with standing_in(odd, moto) as stand_in:
        served = load(stand_in, table)
    with standing_in(odd, moto, COLUMN_DEFAULTS="refuse") as stand_in:
        found = load(stand_in, table)
    has_property = json.loads(served.properties.get("polynya.default-columns", "[]")) == ["d"]
    assert served.status == 200 and has_property == bool(left_out or table in {"empty", "merged"})
    if reason is not None:
        assert found.status == 400 and reason in found.message
        return
    assert found.status == 200
    assert len(served.snapshots.keys() - found.snapshots.keys()) == left_out


def test_with_refused_defaults_a_reader_that_ignores_defaults_is_right(odd, moto):
    """PyArrow reads the files directly: no file of a listed snapshot lacks a column."""
    with standing_in(odd, moto, COLUMN_DEFAULTS="refuse") as stand_in:
        client = pyiceberg.open(stand_in.api_uri, "lake", stand_in.s3_uri)
        for name in ("rewritten", "merged", "empty", "dropped"):
            table = client._catalog.load_table(("main", name))
            for snapshot in table.metadata.snapshots:
                wanted = {field.field_id for field in table.schemas()[snapshot.schema_id].fields}
                for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
                    with table.io.new_input(task.file.file_path).open() as file:
                        schema = pq.read_schema(file)
                    ids = {int(field.metadata[b"PARQUET:field_id"]) for field in schema}
                    assert wanted <= ids, (name, snapshot.snapshot_id)
        client.close()
