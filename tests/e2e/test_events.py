"""`GET /v1/{prefix}/events`: each snapshot once, in order, as native DuckLake lists them."""

import json
from contextlib import closing

import pytest
import requests
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach

from tests.support.servers.in_process import bridge

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE orders(id BIGINT);
INSERT INTO orders FROM range(10);
CREATE TABLE "odd, ""name"" t"(id BIGINT);
BEGIN;
CALL lake.set_commit_message('Ada', 'both tables');
INSERT INTO orders FROM range(5);
INSERT INTO "odd, ""name"" t" FROM range(5);
COMMIT;
BEGIN;
CALL lake.set_commit_message('Bob', 'orders alone');
DELETE FROM orders WHERE id = 3;
COMMIT;
CREATE SCHEMA sales;
CREATE TABLE sales.t(id BIGINT);
CREATE VIEW sales.v AS SELECT 1 AS one;
ALTER TABLE orders RENAME TO purchases;
DROP TABLE sales.t;
INSERT INTO purchases VALUES (99);
"""
ODD = 'odd, "name" t'
# How DuckDB's `ducklake_snapshots` calls the kinds of changes of this script.
NATIVE = {
    "created_schema": "schemas_created",
    "created_table": "tables_created",
    "created_view": "views_created",
    "dropped_table": "tables_dropped",
    "inserted_into_table": "tables_inserted_into",
    "deleted_from_table": "tables_deleted_from",
}


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("events", SCRIPT)


@pytest.fixture(scope="module")
def uri(written, moto):
    with bridge(written, moto) as served:
        yield served.catalog_uri


def events(uri: str, status: int = 200, prefix: str = "lake", **query) -> dict:
    answer = requests.get(f"{uri}/v1/{prefix}/events", params=query, timeout=60)
    assert answer.status_code == status, answer.text
    return answer.json()


def native(lake, moto, sql: str, *, read_only: bool = True) -> list[tuple]:
    with closing(connect(LAKE, moto)) as con:
        attach(con, lake, read_only=read_only)
        return con.execute(sql).fetchall()


def test_events_are_the_snapshots_that_ducklake_lists(uri, written, moto):
    answer = events(uri, since=0)
    rows = native(
        written,
        moto,
        "SELECT snapshot_id, epoch_ms(snapshot_time), author, commit_message, changes "
        "FROM ducklake_snapshots('lake') WHERE snapshot_id > 0 ORDER BY 1",
    )
    assert [(e["snapshot-id"], e["timestamp-ms"]) for e in answer["events"]] == [
        (row[0], row[1]) for row in rows
    ]
    assert [(e.get("author"), e.get("message")) for e in answer["events"]] == [
        (row[2], row[3]) for row in rows
    ]
    assert answer["last-snapshot-id"] == rows[-1][0]
    for event, row in zip(answer["events"], rows, strict=True):
        kinds = {NATIVE[change["type"]] for change in event["changes"]}
        assert kinds == row[4].keys(), row
        for change in event["changes"]:
            if "id" in change:
                assert str(change["id"]) in row[4][NATIVE[change["type"]]]


def test_each_name_is_the_one_of_that_snapshot(uri):
    listed = [
        (change["type"], *change.get("namespace", ()), change.get("name"))
        for event in events(uri, since=0)["events"]
        for change in event["changes"]
    ]
    assert listed == [
        ("created_table", "main", "orders"),
        ("inserted_into_table", "main", "orders"),
        ("created_table", "main", ODD),
        ("inserted_into_table", "main", "orders"),
        ("inserted_into_table", "main", ODD),
        ("deleted_from_table", "main", "orders"),
        ("created_schema", "sales", None),
        ("created_table", "sales", "t"),
        ("created_view", "sales", "v"),
        ("created_table", "main", "purchases"),
        ("dropped_table", "sales", "t"),
        ("inserted_into_table", "main", "purchases"),
    ]
    [renamed] = [
        change
        for event in events(uri, since=0)["events"]
        for change in event["changes"]
        if "renamed-from" in change
    ]
    assert renamed["renamed-from"] == {"namespace": ["main"], "name": "orders"}


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_consumer_sees_each_snapshot_once(limit, uri):
    since, seen = 0, []
    while page := (answer := events(uri, since=since, limit=limit))["events"]:
        assert len(page) <= limit
        seen += page
        since = answer["last-snapshot-id"]
    assert seen == events(uri, since=0)["events"]
    assert events(uri)["last-snapshot-id"] == since and events(uri)["events"] == []


def test_a_pinned_warehouse_ends_at_its_snapshot(uri):
    answer = events(uri, prefix="lake--at-4", since=2)
    assert [event["snapshot-id"] for event in answer["events"]] == [3, 4]
    assert answer["last-snapshot-id"] == 4


@pytest.mark.parametrize("since", ["10000", "-1", "x", str(2**63)])
def test_a_snapshot_that_cannot_be_is_refused(since, uri):
    answer = events(uri, 400, since=since)
    assert answer["error"]["type"] == "BadRequestException"


def of_caller(written, moto, *tables: str) -> dict:
    policy = {"rules": [{"principals": ["*"], "tables": {"main": [*tables]}}]}
    with bridge(written, moto, settings={"AUTHORIZATION": json.dumps(policy)}) as served:
        return events(served.catalog_uri, since=0)


def test_a_caller_sees_changes_of_its_tables_alone(written, moto):
    """Under all names that a table had: rights depend on its newest one, also in time travel."""
    answer = of_caller(written, moto, "purchases")
    text = json.dumps(answer)
    assert not any(name in text for name in ("odd", "sales", "both tables", "Ada"))
    assert [len(event["changes"]) for event in answer["events"]] == [1, 1, 1, 1, 1, 1]
    assert [event.get("author") for event in answer["events"]] == [*[None] * 3, "Bob", None, None]
    # The others are behind it, so that they are not asked for again.
    assert answer["last-snapshot-id"] == 11


def test_a_name_that_a_table_had_gives_no_right_to_it(written, moto):
    answer = of_caller(written, moto, "orders")
    assert answer == {"events": [], "last-snapshot-id": 11}


def test_expired_snapshots_are_gone_and_the_answer_says_where_to_go_on(lake, moto):
    written = lake.write("expired_events", SCRIPT)
    expire = "CALL ducklake_expire_snapshots('lake', versions => [1, 2, 6])"
    native(written, moto, expire, read_only=False)
    with bridge(written, moto) as served:
        uri = served.catalog_uri
        for since in (0, 1):
            error = events(uri, 410, since=since)["error"]
            assert error["type"] == "SnapshotExpiredException"
            assert error["message"].endswith("continue with since=2")
        # It stops before the gap, and says so when it is asked to go on.
        answer = events(uri, since=2)
        assert [event["snapshot-id"] for event in answer["events"]] == [3, 4, 5]
        assert "since=6" in events(uri, 410, since=answer["last-snapshot-id"])["error"]["message"]
        after = [event["snapshot-id"] for event in events(uri, since=6)["events"]]
    assert after == [7, 8, 9, 10, 11]
