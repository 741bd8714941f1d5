"""Commits to several tables (`transactions/commit`): one snapshot of DuckLake, or nothing."""

import json

import pyarrow as pa
import pytest
import requests
from polynya_local.clients.duckdb import DuckDB

from tests.support.writes.twins import catalog_rows, query

pytestmark = pytest.mark.versions("1.1", "1.0")

SCRIPT = """
CREATE SCHEMA other;
CREATE TABLE one (id BIGINT); CREATE TABLE two (id BIGINT); CREATE TABLE other.three (id BIGINT);
CREATE TABLE readable (id BIGINT); CREATE TABLE "by a" (id BIGINT);
"""
POLICY = {
    "rules": [
        {
            "principals": ["*"],
            "tables": {"*": ["*"]},
            "write": {"main": ["one", "two", "created*", "by_*", "by a"], "other": ["*"]},
        }
    ]
}
SETTINGS = {"AUTHORIZATION": json.dumps(POLICY)}


def appending(catalog, name: str, ids: list[int]):
    """The change of an append whose files are uploaded, and which is not committed."""
    loaded = catalog.load_table(name)
    transaction = loaded.transaction()
    transaction.append(pa.table({"id": pa.array(ids, pa.int64())}))
    namespace, table = name.split(".")
    parts = {"requirements": transaction._requirements, "updates": transaction._updates}
    change = {
        key: [json.loads(part.model_dump_json(by_alias=True, exclude_none=True)) for part in value]
        for key, value in parts.items()
    }
    change["requirements"].append(
        {"type": "assert-table-uuid", "uuid": str(loaded.metadata.table_uuid)}
    )
    return {"identifier": {"namespace": [namespace], "name": table}, **change}


def setting(name: str, **properties: str):
    namespace, table = name.split(".")
    update = {"action": "set-properties", "updates": properties}
    identifier = {"namespace": [namespace], "name": table}
    return {"identifier": identifier, "requirements": [], "updates": [update]}


@pytest.fixture
def commit(served):
    def commit(*changes, status: int = 204) -> str:
        uri = f"{served.catalog_uri}/v1/lake/transactions/commit"
        answer = requests.post(uri, json={"table-changes": changes}, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.json()["error"]["type"] if status != 204 else answer.text

    return commit


@pytest.fixture
def newest(pair, moto):
    def newest():
        sql = "SELECT snapshot_id, changes FROM ducklake_snapshots('lake') ORDER BY 1 DESC LIMIT 1"
        [found] = query(pair.lake, moto, sql)
        return found

    return newest


def test_two_tables_are_one_snapshot(pair, catalog, commit, newest, moto):
    before, _ = newest()
    changes = [appending(catalog, "main.one", [1, 2]), appending(catalog, "other.three", [3])]
    assert commit(*changes) == ""
    after, made = newest()
    assert after == before + 1
    assert {key: len(ids) for key, ids in made.items()} == {"tables_inserted_into": 2}
    for name, ids in (("main.one", [1, 2]), ("other.three", [3])):
        assert query(pair.lake, moto, f"SELECT id FROM {name} ORDER BY 1") == [(i,) for i in ids]
        past = f"SELECT count(*) FROM {name} AT (VERSION => {before})"
        assert query(pair.lake, moto, past) == [(0,)]
        table = catalog.load_table(name)
        assert table.current_snapshot().sequence_number == after
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
    # The answer was lost: the client sends the same again.
    assert commit(*changes) == ""
    assert newest()[0] == after


def test_a_transaction_whose_answer_was_lost_is_known_by_one_table(catalog, commit, newest):
    changes = [appending(catalog, "main.two", [1]), setting("main.one", color="red")]
    commit(*changes)
    after, _ = newest()
    assert catalog.load_table("main.one").properties["polynya.tag.color"] == "red"
    commit(setting("main.one", color="blue"))
    commit(*changes)
    assert newest()[0] == after + 1
    assert catalog.load_table("main.one").properties["polynya.tag.color"] == "blue"


def test_a_table_whose_rows_do_not_change_is_loaded_anew(catalog, served, commit):
    """Beside rows of another table: an answer that was kept before does not show the commit."""
    uri = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/one?snapshots=refs"

    def loaded():
        return requests.get(uri, timeout=60).json()["metadata"]

    catalog.load_table("main.one").append(pa.table({"id": pa.array([9], pa.int64())}))
    snapshot_id = loaded()["current-snapshot-id"]
    loaded()
    tag = {"action": "set-snapshot-ref", "ref-name": "kept", "type": "tag"}
    identifier = {"namespace": ["main"], "name": "one"}
    update = {**tag, "snapshot-id": snapshot_id}
    tagging = {"identifier": identifier, "requirements": [], "updates": [update]}
    commit(appending(catalog, "main.two", [2]), tagging)
    assert set(loaded()["refs"]) == {"main", "kept"}
    loaded()
    commit(appending(catalog, "main.two", [3]), appending(catalog, "main.one", []))
    assert loaded()["current-snapshot-id"] != snapshot_id


def test_a_stale_table_stops_the_others(pair, catalog, commit):
    stale = appending(catalog, "main.one", [7])
    fresh = appending(catalog, "main.two", [7])
    catalog.load_table("main.one").append(pa.table({"id": pa.array([8], pa.int64())}))
    before = catalog_rows(pair.lake)
    assert commit(fresh, stale, status=409) == "CommitFailedException"
    assert catalog_rows(pair.lake) == before


REFUSED = {
    "nothing": ([], 400, "BadRequestException"),
    "a table twice": (
        [setting("main.one", a="1"), setting("main.one", b="1")],
        *(400, "BadRequestException"),
    ),
    "a table twice in other letters": (
        [setting("main.one", a="1"), setting("MAIN.One", b="1")],
        *(400, "BadRequestException"),
    ),
    "a table twice, once as in a path": (
        [setting("main.by a", a="1"), setting("main.by+a", b="1")],
        *(400, "BadRequestException"),
    ),
    "no name": ([{"requirements": [], "updates": []}], 400, "BadRequestException"),
    "an absent table": (
        [setting("main.one", a="1"), setting("main.absent", b="1")],
        *(404, "NoSuchTableException"),
    ),
    "a table that may not be written": (
        [setting("main.one", a="1"), setting("main.readable", b="1")],
        *(403, "ForbiddenException"),
    ),
    "a property that cannot be kept": (
        [setting("main.one", a="1"), setting("main.two", **{"s3.endpoint": "http://x"})],
        *(400, "BadRequestException"),
    ),
}


@pytest.mark.parametrize(("changes", "status", "type_"), REFUSED.values(), ids=REFUSED)
def test_refusals_change_nothing(pair, commit, changes, status, type_):
    before = catalog_rows(pair.lake)
    assert commit(*changes, status=status) == type_
    assert catalog_rows(pair.lake) == before


def test_a_rename_needs_the_right_on_both_names(pair, served):
    uri = f"{served.catalog_uri}/v1/lake/tables/rename"
    before = catalog_rows(pair.lake)
    for source, destination in (("one", "elsewhere"), ("readable", "created_x")):
        body = {
            "source": {"namespace": ["main"], "name": source},
            "destination": {"namespace": ["main"], "name": destination},
        }
        assert requests.post(uri, json=body, timeout=60).status_code == 403
    answer = requests.delete(f"{served.catalog_uri}/v1/lake/namespaces/main", timeout=60)
    assert answer.status_code == 403
    assert catalog_rows(pair.lake) == before


def test_duckdb_inserts_into_two_tables(pair, served, newest, moto):
    query(pair.lake, moto, "CREATE TABLE by_a (id BIGINT)", "CREATE TABLE by_b (id BIGINT)")
    before, _ = newest()
    client = DuckDB(served.catalog_uri, "lake", served.s3_endpoint)
    try:
        for sql in (
            *("BEGIN", "INSERT INTO ice.main.by_a VALUES (1), (2)"),
            *("INSERT INTO ice.main.by_b SELECT 10 + id FROM ice.main.by_a", "COMMIT"),
        ):
            client.query(sql)
    finally:
        client.close()
    after, made = newest()
    assert after == before + 1
    assert len(made["tables_inserted_into"]) == 2
    for name, ids in (("by_a", [1, 2]), ("by_b", [11, 12])):
        rows = query(pair.lake, moto, f"SELECT id FROM main.{name} ORDER BY 1")
        assert rows == [(i,) for i in ids]
