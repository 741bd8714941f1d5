"""What cannot be exact is refused or left out: added files, and columns without a twin."""

import json
from types import SimpleNamespace

import pytest
from polynya import real_objects
from polynya.table_deletes import RealFiles

from functions.rest_catalog import app as rest_catalog
from local.lakes import write_lake
from tests.in_process import standing_in
from tests.raw_http import send

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
"""


@pytest.fixture(scope="module")
def odd(postgres_server, moto, tmp_path_factory):
    script = tmp_path_factory.mktemp("lakes") / "refusals.sql"
    script.write_text(LAKE)
    database = postgres_server.create_database("refusals")
    return write_lake(script, database, "s3://lakes/refusals", moto)


@pytest.fixture
def footers(monkeypatch):
    """The real files that are looked into."""
    read: list[str] = []

    def read_range(location: str, first: int, end: int) -> bytes:
        read.append(location)
        return real_objects.read_range(location, first, end)

    files = RealFiles(real_objects.read_object, read_range)
    monkeypatch.setattr(rest_catalog, "real_files", lambda: files)
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


def test_one_file_of_those_added_alike_is_looked_into(odd, moto, footers):
    with standing_in(odd, moto) as stand_in:
        assert load(stand_in, "alike").status == 200
        assert len(set(footers)) == 1
        footers.clear()
        assert load(stand_in, "alike").status == 200
        assert footers == []  # kept


def test_a_contradiction_that_loading_did_not_see_is_refused_with_the_manifest(odd, moto):
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


def test_a_table_is_served_again_without_the_file_that_contradicts(odd, moto):
    """Its snapshots with the file are left out: created, own row, file added, row deleted."""
    with standing_in(odd, moto) as stand_in:
        loaded = load(stand_in, "mended")
    assert loaded.status == 200 and len(loaded.snapshots) == 3


# (table, is it served, how many of its snapshots are listed)
INEXACT = [("has_one", False, 0), ("had_one", True, 2), ("has_none", True, 1)]


@pytest.mark.parametrize(("table", "is_served", "listed"), INEXACT)
def test_a_table_is_refused_rather_than_a_column_hidden(odd, moto, table, is_served, listed):
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
