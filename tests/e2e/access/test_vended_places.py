"""A vended credential can read all files of its table, and no file of another table."""

import json
from types import SimpleNamespace

import pytest
import requests
import typer
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sts.models import sts_backends
from polynya_local.clients.native import Lake
from polynya_local.doctor import doctor

from tests.support.iam import allowed
from tests.support.servers.in_process import standing_in

ROLE = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Vended"
LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
INSERT INTO t VALUES (1);
CREATE TABLE t2(i INTEGER);
INSERT INTO t2 VALUES (1);

CREATE TABLE one(i INTEGER);
INSERT INTO one VALUES (1);
ALTER TABLE one RENAME TO first;
CREATE TABLE one(i INTEGER);
INSERT INTO one VALUES (2);

CREATE TABLE replaced(i INTEGER);
INSERT INTO replaced VALUES (1);
CREATE OR REPLACE TABLE replaced(i INTEGER);
INSERT INTO replaced VALUES (2);

CREATE TABLE crowd(i INTEGER);
INSERT INTO crowd VALUES (0);
ALTER TABLE crowd RENAME TO first_crowd;
CREATE TABLE crowd(i INTEGER);

CREATE TABLE ice(i INTEGER);
INSERT INTO ice VALUES (1);
ALTER TABLE ice RENAME TO first_ice;
CREATE TABLE ice(i INTEGER);
INSERT INTO ice VALUES (2);

CREATE TABLE rooted(i INTEGER);
COPY (SELECT 1 AS i) TO '{{DATA_PATH}}/at-the-root.parquet';
CALL ducklake_add_data_files('lake', 'rooted', '{{DATA_PATH}}/at-the-root.parquet');

CREATE TABLE host(i INTEGER);
INSERT INTO host VALUES (1);
CREATE TABLE guest(i INTEGER);
COPY (SELECT 1 AS i) TO '{{DATA_PATH}}/main/host/guest.parquet';
CALL ducklake_add_data_files('lake', 'guest', '{{DATA_PATH}}/main/host/guest.parquet');

CREATE TABLE dropped(i INTEGER);
COPY (SELECT 1 AS i) TO '{{DATA_PATH}}-lost/f.parquet';
CALL ducklake_add_data_files('lake', 'dropped', '{{DATA_PATH}}-lost/f.parquet');
DROP TABLE dropped;

CREATE TABLE siblings(i INTEGER);
CREATE TABLE hive(i BIGINT, d VARCHAR);
CREATE TABLE lost(i BIGINT, d VARCHAR);
CREATE TABLE stars(i INTEGER);
"""
# Many files, and paths that DuckDB does not write: in a directory of the table's uuid (clients of
# Iceberg do), wildcards, other spellings, a directory.
MORE = """
INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
  file_format, record_count, file_size_bytes)
SELECT 100000 + row_number() OVER (), t.table_id, t.begin_snapshot,
  replace(more.path, '<uuid>', t.table_uuid::text), is_relative, 'parquet', 1, 1000
FROM ducklake_table AS t JOIN (
  SELECT 'siblings', '{0}-ext/the-name-of-a-directory-' || i || '/f.parquet', false
  FROM generate_series(1, 60) AS i
  UNION ALL SELECT 'hive', '{0}-hive/d=the-name-of-a-directory-' || i || '/f.parquet', false
  FROM generate_series(1, 60) AS i
  UNION ALL SELECT 'lost', '{0}-lost/d=the-name-of-a-directory-' || i || '/f.parquet', false
  FROM generate_series(1, 60) AS i
  UNION ALL SELECT 'crowd', 'file-' || i || '.parquet', true FROM generate_series(1, 80) AS i
  UNION ALL SELECT 'ice', '<uuid>/day=' || i || '/f.parquet', true FROM generate_series(1, 80) AS i
  UNION ALL SELECT 'first_ice', '<uuid>/' || i || '.parquet', true FROM generate_series(1, 80) AS i
  UNION ALL VALUES ('stars', '{0}-ext/*/?.parquet', false),
    ('stars', '{0}-ext/${{aws:username}}', false), ('stars', '{0}-ext/*', false),
    ('stars', '{0}/', false), ('stars', 's3a://lakes/ü/ä.parquet', false),
    ('stars', 's3://lakes/*', false)) AS more(name, path, is_relative) ON name = table_name
WHERE t.end_snapshot IS NULL"""
# Each file with the newest name of its table.
FILES = """
SELECT f.table_id, n.schema_name, n.table_name, CASE WHEN NOT f.path_is_relative THEN f.path
  ELSE concat(m.value, s.path, t.path, f.path) END
FROM ducklake_data_file AS f
JOIN (SELECT DISTINCT table_id, schema_id, path FROM ducklake_table) AS t USING (table_id)
JOIN (SELECT DISTINCT schema_id, path FROM ducklake_schema) AS s USING (schema_id)
JOIN (SELECT DISTINCT ON (table_id) table_id, schema_name, table_name
  FROM ducklake_table AS t JOIN ducklake_schema AS s USING (schema_id)
  ORDER BY table_id, t.begin_snapshot DESC) AS n USING (table_id)
JOIN ducklake_metadata AS m ON m.key = 'data_path'"""
TABLES = """
SELECT t.table_id, s.schema_name, t.table_name
FROM ducklake_table AS t JOIN ducklake_schema AS s USING (schema_id)
WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL"""

NOTHING = {"crowd", "siblings", "lost"}
"""Tables whose files cannot be separated from those of others within the limit of a policy."""


@pytest.fixture(scope="module", params=["object-lambda", "materialize"])
def vended(request, lake, moto):
    served = lake.write("vended_places", LAKE)
    con = served.database.connect()
    con.run(MORE.format(served.data_path))
    con.close()
    return policies(served, moto, request.param)


def policies(lake: Lake, moto: str, delivery: str, **values: str) -> SimpleNamespace:
    """The session policy of each table with vended credentials, and the contents of the lake.

    Args:
        values: settings besides the usual ones.
    """
    found, roles = {}, {}
    con = lake.database.connect()
    files, tables = con.run(FILES), con.run(TABLES)
    con.close()
    sessions = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assumed_roles
    usual = {"VENDING_ROLE": ROLE, "AWS_ENDPOINT_URL_STS": moto}
    with standing_in(lake, moto, delivery=delivery, **usual, **values) as stand_in:
        for _, namespace, table in tables:
            sessions.clear()
            path = f"v1/lake/namespaces/{namespace}/tables/{table}/credentials"
            answer = requests.get(f"{stand_in.api_uri}/{path}", timeout=60)
            if answer.ok:
                [session] = sessions
                found[table], roles[table] = session.policy, session.role_arn
            else:
                assert "no credentials for this table" in answer.json()["error"]["message"]
                assert not sessions
    return SimpleNamespace(
        lake=lake, delivery=delivery, policies=found, roles=roles, files=files, tables=tables
    )


def check(vended: SimpleNamespace) -> None:
    for table_id, namespace, table in vended.tables:
        if table not in vended.policies:
            continue
        policy = vended.policies[table]
        own = {path for owner, *_, path in vended.files if owner == table_id}
        others = {path for _, *name, path in vended.files if name != [namespace, table]}
        assert len(policy) <= 2048
        assert {path for path in own if not allowed(policy, path)} == set(), table
        assert {path for path in others - own if allowed(policy, path)} == set(), table


@pytest.mark.slow("[object-lambda]")
def test_credentials_read_all_of_one_table_and_nothing_of_another(vended):
    assert {table for *_, table in vended.tables} - vended.policies.keys() == NOTHING
    check(vended)


def test_a_new_file_in_a_shared_directory_cannot_be_read(vended):
    def new(directory: str) -> str:
        return f"{vended.lake.data_path}/main/{directory}/new.parquet"

    tables = [("one", "one"), ("first", "one"), ("host", "host"), ("ice", "ice")]
    for table, directory in (*tables, ("first_ice", "ice")):
        assert not allowed(vended.policies[table], new(directory))
    for table in ("t", "t2", "replaced"):
        for directory in ("t", "t2", "replaced", "one", "host"):
            assert allowed(vended.policies[table], new(directory)) == (table == directory)


def test_only_the_tables_own_file_at_the_root_can_be_read(vended):
    for name in ("other.parquet", "at-the-root.parquet2", "main/x.parquet", ""):
        assert not allowed(vended.policies["rooted"], f"{vended.lake.data_path}/{name}")


def test_a_wildcard_in_a_name_is_escaped(vended):
    policy, at = vended.policies["stars"], vended.lake.data_path
    for other in ("-ext/x/y.parquet", "-ext/me", "-ext/x", "/x", "/main/t/x"):
        assert not allowed(policy, at + other)
    assert not allowed(policy, "s3://lakes/x") and allowed(policy, "s3://lakes/*")


def test_doctor_names_the_tables_without_credentials(vended, moto, capsys):
    if vended.delivery == "materialize":
        pytest.skip("doctor uses the settings of its own environment")
    with pytest.raises(typer.Exit):
        doctor(vended.lake.database.url, s3_endpoint=moto, past=0, as_json=True)
    findings = json.loads(capsys.readouterr().out)["findings"]
    named = {one["about"] for one in findings if one["message"].startswith("no credentials")}
    assert named == {f"main.{table}" for table in NOTHING}


@pytest.mark.parametrize("number", ["25", "27", "28"])
def test_credentials_in_the_lakes_of_the_other_tests(lake, moto, number):
    vended = policies(lake(number), moto, "materialize")
    assert vended.policies
    check(vended)
