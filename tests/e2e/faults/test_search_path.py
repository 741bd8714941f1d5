"""Readers call no function that another user creates beside DuckLake's tables.

PostgreSQL chooses among all functions and operators of the search path the one whose arguments fit
best, at any position of its schema in the path. DuckLake's texts are varchar and PostgreSQL's
functions take text, so a function for varchar fits better.
"""

import io
import json
from contextlib import redirect_stdout

import pytest
import typer
from pg8000.native import identifier, literal
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.doctor import doctor
from polynya_pipeline.common.database import connect
from polynya_pipeline.ingest import catalog as ingest_catalog
from polynya_pipeline.verify import catalog as verify_catalog
from polynya_pipeline.verify.invariants import INVARIANTS, violations

from tests.support import rest
from tests.support.native_lakes import snapshots
from tests.support.servers.in_process import standing_in
from tests.support.writes.transactions import read

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake
  (DATA_PATH '{{DATA_PATH}}', METADATA_SCHEMA 'SCHEMA', DATA_INLINING_ROW_LIMIT 5);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR, "x FROM ducklake_table" DATE);
INSERT INTO t SELECT i, 'text ' || i, DATE '2024-01-01' FROM range(100) AS r(i);
DELETE FROM t WHERE i % 10 = 0;
DELETE FROM t WHERE i = 5;
INSERT INTO t VALUES (1000, 'a', '2024-01-02'), (1001, NULL, NULL);
COMMENT ON TABLE t IS 'a table';
CREATE TABLE p(day DATE, n BIGINT);
ALTER TABLE p SET PARTITIONED BY (day);
INSERT INTO p SELECT DATE '2024-01-01' + (i // 10)::INTEGER, i FROM range(30) AS r(i);
CREATE VIEW v AS SELECT i FROM t;
"""
SCHEMAS = ["public", "ducklake FROM ducklake_table"]

# Every function and operator of PostgreSQL for text, again for varchar; and a few for numbers.
FUNCTIONS = """
SELECT DISTINCT proname::text, array_to_string(ARRAY(
    SELECT CASE format_type(t, NULL) WHEN 'text' THEN 'varchar' ELSE format_type(t, NULL) END
    FROM unnest(proargtypes) WITH ORDINALITY AS a(t, n) ORDER BY n), ', '),
  format_type(prorettype, NULL)
FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset
  AND 'text'::regtype = ANY(proargtypes) AND provariadic = 0
  AND NOT EXISTS (SELECT FROM pg_type
    WHERE typtype = 'p' AND (pg_type.oid = prorettype OR pg_type.oid = ANY(proargtypes)))"""
OPERATORS = """
SELECT oprname::text, l::text, r::text FROM pg_operator
CROSS JOIN (VALUES ('varchar'), ('text')) AS one(l)
CROSS JOIN (VALUES ('varchar'), ('text')) AS other(r)
WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprleft = 'text'::regtype
  AND oprright = 'text'::regtype AND oprresult = 'boolean'::regtype
  AND (l, r) <> ('text', 'text')"""
OTHERS = [("unnest", "bigint[]", "bigint"), ("pg_get_userbyid", "oid", "name")]


def shadow(con, schema: str) -> int:
    """Make functions and operators that raise an error when called, and return their number."""
    made = 0
    con.run(f"SET search_path = {identifier(schema)}")
    for name, arguments, result in [*con.run(FUNCTIONS), *OTHERS]:
        body = f"BEGIN RAISE EXCEPTION {literal('shadowed: ' + name)}; END"
        con.run(
            f"CREATE FUNCTION {identifier(schema)}.{identifier(name)}({arguments}) "
            f"RETURNS {result} LANGUAGE plpgsql IMMUTABLE AS {literal(body)}"
        )
        made += 1
    for number, (name, left, right) in enumerate(con.run(OPERATORS)):
        function = f"{identifier(schema)}.shadow_{number}"
        body = f"BEGIN RAISE EXCEPTION {literal('shadowed: ' + name)}; END"
        con.run(
            f"CREATE FUNCTION {function}({left}, {right}) RETURNS boolean "
            f"LANGUAGE plpgsql IMMUTABLE AS {literal(body)}"
        )
        con.run(
            f"CREATE OPERATOR {identifier(schema)}.{name} "
            f"(LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = {function})"
        )
        made += 1
    return made


@pytest.fixture(scope="module", params=SCHEMAS, ids=["public", "a schema of its own"])
def shadowed_lake(request, lake, moto):
    """A lake, and the rows that DuckDB read from it before the shadowing."""
    text = LAKE.replace("SCHEMA 'SCHEMA'", f"SCHEMA {literal(request.param)}")
    lake = lake.write("search_path", text)
    truth = native.open(lake, moto)
    rows = {
        (table.name, at): (
            truth.columns("main", table.name, at),
            truth.canonical("main", table.name, at),
        )
        for at in snapshots(truth)
        for table in truth.tables(at)
    }
    truth.close()
    con = lake.database.connect()
    assert shadow(con, request.param) > 100
    with pytest.raises(Exception, match="shadowed: length"):
        con.run("SELECT length(table_name) FROM ducklake_table")
    with pytest.raises(Exception, match="shadowed: ="):
        con.run("SELECT FROM ducklake_table WHERE table_name = :name", name="t")
    con.close()
    return lake, rows


def test_clients_get_the_rows_from_before(shadowed_lake, moto):
    lake, rows = shadowed_lake
    with standing_in(lake, moto, METADATA_SCHEMA=lake.metadata_schema) as stand_in:
        client = pyiceberg.open(stand_in.api_uri, "lake", stand_in.s3_uri)
        catalog = rest.Rest(stand_in.api_uri, "lake")
        assert catalog.tables() == [("main", "p"), ("main", "t")]
        compared = 0
        for _, table in catalog.tables():
            for snapshot in catalog.load_table("main", table)["snapshots"]:
                columns, expected = rows[table, snapshot["snapshot-id"]]
                found = from_arrow(client.rows("main", table, snapshot["snapshot-id"]), columns)
                assert not difference(expected, found)
                compared += 1
        assert compared >= 5
        client.close()


def test_the_policy_is_applied_to_the_real_names(shadowed_lake, moto):
    """A caller with some rights causes additional queries."""
    lake, _ = shadowed_lake
    policy = json.dumps({"rules": [{"principals": ["*"], "tables": {"main": ["t", "v"]}}]})
    values = {"AUTHORIZATION": policy, "METADATA_SCHEMA": lake.metadata_schema}
    with standing_in(lake, moto, **values) as stand_in:
        assert rest.Rest(stand_in.api_uri, "lake").tables() == [("main", "t")]
        for at in ("lake", "lake@5"):
            assert rest.Rest(stand_in.api_uri, at).load_table("main", "t")


def test_the_jobs_read_the_real_rows(shadowed_lake):
    lake, _ = shadowed_lake
    con = connect(lake.database.url, lake.metadata_schema)
    found, fragments = verify_catalog.lake(con)
    assert [table.table_name for table in verify_catalog.tables(con, found)] == ["p", "t"]
    for invariant in INVARIANTS:
        assert violations(con, invariant, fragments) == []
    written = ingest_catalog.lake(con)
    schema = ingest_catalog.schema(con, written, ("main",))
    table = ingest_catalog.table(con, written, schema, "t")
    assert [column.column_name for column in table.columns][:2] == ["i", "s"]
    inlined = queries.inlined(written, table.table_id, 0).run(con)
    assert ingest_catalog.live_inlined_rows(con, inlined).count
    assert ingest_catalog.newest_inlined_delete(con, inlined, table.table_id, list(range(10)))
    assert ingest_catalog.live_files(con, table.table_id)
    con.close()


def test_doctor_finds_nothing_wrong(shadowed_lake, moto):
    lake, _ = shadowed_lake
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(typer.Exit):
        doctor(
            lake.database.url,
            metadata_schema=lake.metadata_schema,
            s3_endpoint=moto,
            past=1,
            as_json=True,
        )
    report = json.loads(out.getvalue())
    assert [table["status"] for table in report["tables"]] == ["served", "served"], report


def test_the_search_path_contains_only_postgresql(shadowed_lake):
    lake, _ = shadowed_lake
    opened = Database(lake.database.url, lake.metadata_schema)
    con = connect(lake.database.url, lake.metadata_schema)
    for path in (
        read(opened, lambda con: con.run("SHOW search_path")),
        con.run("SHOW search_path"),
    ):
        assert path == [["pg_catalog, pg_temp"]]
    con.close()
    opened.close()
