"""planTableScan and fetchScanTasks over HTTP: pages, plan tasks, and requests that are wrong."""

import base64
import json
import zlib
from contextlib import closing
from dataclasses import replace

import boto3
import pytest
import requests
from polynya.catalog import scans
from polynya.catalog.scans import PlanTask, ScanPlanner, plan_task_of
from polynya.ducklake.queries.planned_files import INDEXED_VALUES
from polynya.mapping.manifests import fingerprint_of_bytes
from polynya.rest.planning import FetchScanTasksRequest, PlanTableScanRequest, parse
from polynya.runtime.errors import NoSuchPlanTask
from polynya.storage.file_cache import FileCache
from polynya.virtual_files.scan_files import ScanFiles
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach

from tests.support.openapi import ENVELOPE, validator
from tests.support.servers.in_process import bridge, functions, standing_in

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR, d DATE, st STRUCT(x INTEGER), l INTEGER[]);
-- @repeat 7
INSERT INTO t SELECT {{i}}00 + j, 's{{i}}', '2024-01-0{{i}}', {x: {{i}}}, [j] FROM range(20) r(j);
DELETE FROM t WHERE i % 100 = 3;
INSERT INTO t VALUES (5000, 'inlined', '2025-01-01', {x: 9}, [1]);
CREATE TABLE other(i INTEGER);
INSERT INTO other FROM range(100);
CREATE TABLE empty(i INTEGER);
"""


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("planned_scans", SCRIPT)


@pytest.fixture(scope="module")
def uri(written, moto):
    with standing_in(written, moto) as stand_in:
        yield stand_in.api_uri


@pytest.fixture
def two_files_a_page(monkeypatch):
    monkeypatch.setattr(scans, "MOST_FILES", 2)
    monkeypatch.setattr(scans, "MOST_PLAN_TASKS", 2)


def ask(
    uri: str, what: str, body: object, status: int = 200, table: str = "t", *, is_deep: bool = False
) -> dict:
    """The answer; `is_deep`: too deep for the validator of its schema."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"{uri}/v1/lake/namespaces/main/tables/{table}/{what}"
    answer = requests.post(url, data=data, timeout=60)
    assert answer.status_code == status, answer.text[:500]
    if is_deep:
        return answer.json()
    if status == 200:
        kind = {"plan": "PlanTableScanResult", "tasks": "FetchScanTasksResult"}[what]
        validator(f"#/components/schemas/{kind}").validate(answer.json())
    else:
        validator(ENVELOPE).validate(answer.json())
    return answer.json()


def plan(uri: str, filter_: object = None, status: int = 200, **more) -> dict:
    body = more if filter_ is None else {"filter": filter_, **more}
    return ask(uri, "plan", body, status)


def paths(answer: dict) -> list[str]:
    return [task["data-file"]["file-path"] for task in answer["file-scan-tasks"]]


def compare(operation: str, term: str, value: object) -> dict:
    return {"type": operation, "term": term, "value": value}


def test_every_file_has_the_residual_and_no_partition(uri):
    answer = plan(uri)
    assert answer["status"] == "completed"
    assert len(answer["file-scan-tasks"]) == 8 and len(answer["delete-files"]) == 7
    for task in answer["file-scan-tasks"]:
        assert task["residual-filter"] is True
        assert (task["data-file"]["spec-id"], task["data-file"]["partition"]) == (0, [])
        assert None not in task["data-file"].values()
        for number in task.get("delete-file-references", []):
            delete = answer["delete-files"][number]
            assert delete["referenced-data-file"] == task["data-file"]["file-path"]
    wanted = compare("eq", "i", 301)
    assert {json.dumps(t["residual-filter"]) for t in plan(uri, wanted)["file-scan-tasks"]} == {
        json.dumps(wanted)
    }


def generated_sizes(answer: dict) -> dict[str, int]:
    files = [task["data-file"] for task in answer["file-scan-tasks"]]
    files += answer.get("delete-files", [])
    return {
        one["file-path"]: one["file-size-in-bytes"]
        for one in files
        if "/polynya/" in one["file-path"]
    }


def test_planning_generates_no_file(uri, monkeypatch):
    def put(cache, key, body):
        raise AssertionError(f"{key} was generated")

    with monkeypatch.context() as patch:
        patch.setattr(FileCache, "put", put)
        assert len(generated_sizes(plan(uri))) == 8


@pytest.mark.parametrize("delivery", ["object-lambda", "materialize"])
def test_generated_files_have_the_planned_sizes(lake, moto, delivery):
    written = lake.write(f"planned_{delivery.replace('-', '_')}", SCRIPT)
    with bridge(written, moto, delivery=delivery) as one:
        s3 = boto3.client("s3", endpoint_url=one.s3_endpoint)
        sizes = generated_sizes(plan(one.catalog_uri))
        assert len(sizes) == 8
        for path, size in sizes.items():
            bucket, _, key = path.removeprefix("s3://").partition("/")
            body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            assert len(body) == size and body[-4:] == b"PAR1"
            if "padded" in key:
                larger = key.replace(f"-{size}-", f"-{size + 1}-")
                with pytest.raises(s3.exceptions.NoSuchKey):
                    s3.get_object(Bucket=bucket, Key=larger)


ONE_FILE = [
    compare("eq", "i", 301),
    compare("eq", "d", "2024-01-03"),
    compare("eq", "d", 19725),
    compare("eq", "st.x", 3),
    compare("starts-with", "s", "s3"),
    {"type": "in", "term": "i", "values": [301, 305, 99]},
    {"type": "in", "term": "i", "values": [*range(301, 319)] * 20},
    {"type": "and", "left": compare("gt", "i", 300), "right": compare("lt", "i", 400)},
    {"type": "and", "left": {"type": "not-null", "term": "i"}, "right": compare("eq", "i", 301)},
    {"type": "not", "child": {"type": "not", "child": compare("eq", "i", 301)}},
    {"type": "eq", "left": {"type": "reference", "name": "i"}, "right": 301},
    {"type": "eq", "left": {"type": "reference", "id": 1},
     "right": {"type": "literal", "value": 301}},
    {"type": "in", "child": {"type": "reference", "name": "i"},
     "values": {"type": "literals", "values": [301], "data-type": "int"}},
]  # fmt: skip
"""Filters that select rows of the third file alone."""


@pytest.mark.parametrize("filter_", ONE_FILE, ids=str)
def test_statistics_skip_files(uri, filter_):
    # The inlined rows have no statistics.
    found = paths(plan(uri, filter_))
    assert len(found) == 2 and len([path for path in found if "/polynya/" in path]) == 1


BY_DAY = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE t(i INTEGER, d DATE);
ALTER TABLE t SET PARTITIONED BY (d);
-- @repeat 4
INSERT INTO t SELECT {{i}}00 + j, '2024-01-0{{i}}' FROM range(20) r(j);
INSERT INTO t SELECT 500 + j, NULL FROM range(30) r(j);
INSERT INTO t VALUES (1, '2024-01-01'), (2, '2024-01-02'), (3, '2024-01-02'), (4, NULL);
"""
DAYS = [f"2024-01-{day:02}" for day in range(1, 29)]
MANY_DAYS = [*DAYS[1:2], *(f"{year}-01-01" for year in range(2025, 2325))]
PARTITIONS = [  # a filter, and the numbers of rows in the files that are left
    (True, [1, 1, 2, 20, 20, 20, 20, 30]),
    (compare("eq", "d", DAYS[1]), [2, 20]),
    (compare("gt-eq", "d", DAYS[1]), [2, 20, 20, 20]),
    (compare("not-eq", "d", DAYS[1]), [1, 1, 20, 20, 20, 30]),
    ({"type": "is-null", "term": "d"}, [1, 30]),
    ({"type": "is-nan", "term": "d"}, [1, 2, 20, 20, 20, 20]),
    ({"type": "not-null", "term": "d"}, [1, 2, 20, 20, 20, 20]),
    ({"type": "in", "term": "d", "values": [DAYS[0], DAYS[3]]}, [1, 20, 20]),
    ({"type": "in", "term": "d", "values": MANY_DAYS}, [2, 20]),
    ({"type": "not-in", "term": "d", "values": MANY_DAYS}, [1, 1, 20, 20, 20, 30]),
]  # fmt: skip


@pytest.mark.parametrize("delivery", ["object-lambda", "materialize"])
def test_files_of_other_partitions_are_never_named(lake, moto, delivery):
    """Daft drops a condition on a partition column, whatever the files' spec (Daft issue 7428)."""
    written = lake.write(f"planned_by_day_{delivery[0]}", BY_DAY)
    with bridge(written, moto, delivery=delivery) as one:
        for filter_, expected in PARTITIONS:
            tasks = plan(one.catalog_uri, filter_)["file-scan-tasks"]
            assert sorted(task["data-file"]["record-count"] for task in tasks) == expected, filter_


@pytest.mark.parametrize(
    ("delivery", "table", "status"),
    [("object-lambda", "t", 400), ("object-lambda", "other", 200), ("materialize", "t", 200)],
)
def test_who_writes_inlined_rows_has_to_plan_as_manifests_do(lake, moto, delivery, table, status):
    """Copy-on-write removes the files of its scan from the manifests, where they must have the same
    names."""
    written = lake.write("planned_by_writers", SCRIPT)
    with bridge(written, moto, delivery=delivery, writes=True) as one:
        answer = ask(one.catalog_uri, "plan", {}, status, table)
        url = f"{one.catalog_uri}/v1/lake/namespaces/main/tables/{table}"
        config = requests.get(url, timeout=60).json()["config"]
    assert config.get("scan-planning-mode") == ("client" if status == 400 else None)
    assert status == 200 or "planned by the client" in answer["error"]["message"]


def changed(lake, *statements: str):
    con = lake.database.connect()
    for statement in statements:
        con.run(statement)
    con.close()
    return lake


INDEX = f"CREATE INDEX ON ducklake_file_partition_value {INDEXED_VALUES}"


@pytest.mark.parametrize("index", [[], [INDEX]], ids=["", "indexed"])
def test_partition_values_are_enough_without_statistics(lake, moto, index):
    written = lake.write("planned_without_stats", BY_DAY)
    changed(written, "DELETE FROM ducklake_file_column_stats", *index)
    with bridge(written, moto, delivery="object-lambda") as one:
        for filter_, expected in PARTITIONS:
            tasks = plan(one.catalog_uri, filter_)["file-scan-tasks"]
            assert sorted(task["data-file"]["record-count"] for task in tasks) == expected, filter_


def ids_by_name(lake) -> dict[str, int]:
    con = lake.database.connect()
    rows = con.run("SELECT path, data_file_id FROM ducklake_data_file")
    con.close()
    return {path.rpartition("/")[2]: data_file_id for path, data_file_id in rows}


OF_FIRST = "data_file_id = (SELECT min(data_file_id) FROM ducklake_data_file)"
OF_LAST = "data_file_id = (SELECT max(data_file_id) FROM ducklake_data_file)"
BROKEN_VALUES = [
    f"DELETE FROM ducklake_file_partition_value WHERE {OF_FIRST}",
    f"UPDATE ducklake_file_partition_value SET partition_value = 'soon' WHERE {OF_FIRST}",
    f"UPDATE ducklake_file_partition_value SET table_id = 99 WHERE {OF_LAST}",
    f"UPDATE ducklake_file_partition_value SET partition_key_index = 7 WHERE {OF_LAST}",
    f"UPDATE ducklake_data_file SET partition_id = NULL WHERE {OF_FIRST}",
    f"UPDATE ducklake_data_file SET partition_id = 99 WHERE {OF_LAST}",
    "INSERT INTO ducklake_file_partition_value SELECT data_file_id, table_id, partition_key_index,"
    " DATE '2031-01-01' FROM ducklake_file_partition_value",
    # As many values as files, and not of the same files.
    "UPDATE ducklake_file_partition_value SET data_file_id ="
    f" (SELECT max(data_file_id) FROM ducklake_data_file) WHERE {OF_FIRST}",
]


@pytest.mark.slow("[statement0]", "[statement2]", "[statement3]", "[statement4]", "[statement7]")
@pytest.mark.parametrize("statement", BROKEN_VALUES)
def test_an_index_finds_the_files_that_a_scan_of_all_values_finds(
    lake, moto, monkeypatch, statement
):
    """Of two lakes that are broken alike, with snapshots of the past."""
    lakes = [lake.write(f"planned_broken_{n}", BY_DAY) for n in range(2)]
    changed(lakes[0], statement)
    changed(lakes[1], statement, INDEX)
    answers, uses = [], []
    find = ScanFiles._candidates

    def candidates(*arguments):
        uses.append(find(*arguments))
        return uses[-1]

    monkeypatch.setattr(ScanFiles, "_candidates", candidates)
    for one in lakes:
        with bridge(one, moto, delivery="object-lambda") as served:
            url = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/t"
            listed = requests.get(url, timeout=60).json()["metadata"]["snapshots"]
            ids = ids_by_name(one)
            answers.append(
                [
                    [ids.get(path.rpartition("/")[2]) for path in paths(answer)]
                    for filter_, _ in PARTITIONS
                    for more in ({}, {"snapshot-id": listed[2]["snapshot-id"]})
                    for answer in [plan(served.catalog_uri, filter_, **more)]
                ]
            )
    assert answers[0] == answers[1]
    assert "ducklake_data_file SET" in statement or any(ids is not None for ids in uses)


EVERY_FILE = [
    True,
    {"type": "true"},
    {"type": "not", "child": False},
    compare("eq", {"type": "transform", "transform": "bucket[4]", "term": "i"}, 1),
    {"type": "eq", "left": {"type": "apply", "function": "f", "arguments": []}, "right": 1},
    {"type": "eq", "left": {"type": "reference", "name": "i"},
     "right": {"type": "reference", "name": "st.x"}},
    compare("eq", "i", "301"),
    compare("eq", "i", True),
    compare("eq", "i", 10**300),
    compare("eq", "d", "soon"),
    compare("eq", "s", "a\0b"),
    compare("eq", "l.element", 99),
    compare("not-eq", "i", 301),
    {"type": "is-null", "term": "l"},
    {"type": "not-nan", "term": "i"},
]  # fmt: skip
"""Filters by which no file can be skipped with certainty."""


@pytest.mark.parametrize("filter_", EVERY_FILE, ids=lambda one: str(one)[:60])
def test_what_is_not_certain_keeps_every_file(uri, filter_):
    assert len(paths(plan(uri, filter_))) == 8


def nested(levels: int, *operators: str) -> object:
    found: object = compare("eq", "i", 301)
    for level in range(levels):
        operator = operators[level % len(operators)]
        found = {"type": operator, "left": found, "right": compare("eq", "i", 302)}
    return found


def test_a_chain_of_500_alternatives_is_one_level(uri):
    answer = ask(uri, "plan", {"filter": nested(500, "or")}, is_deep=True)
    assert len(paths(answer)) == 2


def test_names_in_either_case_only_if_asked(uri):
    wanted = {"filter": compare("eq", "ST.X", 3), "case-sensitive": False}
    assert len(paths(ask(uri, "plan", wanted))) == 2
    ask(uri, "plan", wanted | {"case-sensitive": True}, 400)


MALFORMED = [
    b"",
    b"{",
    b"[]",
    b"\xff\x00",
    b'{"filter": NaN}',
    b'{"filter": {"type": "eq", "term": "i", "value": 1e999}}',
    b'{"filter": {"type": "eq", "term": "s", "value": "\\ud800"}}',
    b'{"filter": ' + b'{"type":"not","child":' * 5000 + b"true" + b"}" * 5000 + b"}",
    b'{"filter": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    {"filter": "i = 1"},
    {"filter": 5},
    {"filter": {}},
    {"filter": {"type": "xor", "left": True, "right": True}},
    {"filter": {"type": "and", "left": True}},
    {"filter": {"type": "not"}},
    {"filter": {"type": ["eq"]}},
    {"filter": compare("eq", "no_such", 1)},
    {"filter": {"type": "eq", "left": {"type": "reference", "id": 99}, "right": 1}},
    {"filter": {"type": "eq", "left": {"type": "reference"}, "right": 1}},
    {"filter": compare("eq", "i", None)},
    {"filter": compare("eq", "i", [1])},
    {"filter": compare("eq", "i", {"type": "literal"})},
    {"filter": {"type": "is-null"}},
    {"filter": {"type": "in", "term": "i"}},
    {"filter": {"type": "in", "term": "i", "values": [*range(100_000)]}},
    {"filter": nested(500, "and", "or")},
    {"snapshot-id": "1"},
    {"snapshot-id": 999},
    {"snapshot-id": -(2**70)},
    {"select": "i"},
    {"case-sensitive": 1},
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: str(body)[:60])
def test_a_malformed_request_is_400(uri, body):
    ask(uri, "plan", body, 400)


def test_changes_between_snapshots_are_not_planned(uri):
    body = {"start-snapshot-id": 2, "end-snapshot-id": 4}
    error = ask(uri, "plan", body, 406)["error"]
    assert error["type"] == "UnsupportedOperationException"


@pytest.mark.parametrize("what", ["plan", "tasks"])
def test_a_missing_table_is_404(uri, what):
    task = PlanTask("u", 1, 1, "", "", "true", True, True, 0, 9).encoded()
    error = ask(uri, what, {"plan-task": task}, 404, table="no_such")["error"]
    assert error["type"] == "NoSuchTableException"


def test_a_table_without_rows_has_no_tasks(uri):
    answer = ask(uri, "plan", {}, table="empty")
    assert answer["file-scan-tasks"] == [] and "plan-tasks" not in answer


def test_pages_together_are_the_whole(uri, two_files_a_page):
    whole = {}
    answer = plan(uri)
    left = []
    while True:
        data_files = [one for one in paths(answer) if "/polynya/" not in one]
        assert len(data_files) <= 2 and len(answer.get("plan-tasks", [])) <= 2
        for task in answer["file-scan-tasks"]:
            deletes = [answer["delete-files"][n] for n in task.get("delete-file-references", [])]
            assert task["data-file"]["file-path"] not in whole
            whole[task["data-file"]["file-path"]] = len(deletes)
        left += answer.get("plan-tasks", [])
        if not left:
            break
        answer = ask(uri, "tasks", {"plan-task": left.pop()})
    assert len(whole) == 8 and sum(whole.values()) == 7


def test_a_page_is_cut_by_its_bytes(uri, monkeypatch):
    monkeypatch.setattr(scans, "MOST_PAGE_BYTES", 3000)
    answer, found = plan(uri), []
    left = answer["plan-tasks"]
    found += paths(answer)
    while left:
        answer = ask(uri, "tasks", {"plan-task": left.pop()})
        left += answer.get("plan-tasks", [])
        found += paths(answer)
    assert len(found) == len({*found}) == 8


def task_of(uri: str) -> str:
    return plan(uri)["plan-tasks"][0]


def recoded(claims: object) -> str:
    body = zlib.compress(json.dumps(claims).encode())
    return f"{base64.urlsafe_b64encode(body).decode()}.{fingerprint_of_bytes(body)}"


def test_garbage_is_400(uri, two_files_a_page):
    task, other = plan(uri)["plan-tasks"]
    bomb = zlib.compress(b" " * 50_000_000)
    texts = [
        *("", ".", "x", "ü", task[:-1], task[1:], task[: len(task) // 2]),
        task.partition(".")[0] + "." + other.partition(".")[2],
        f"{base64.urlsafe_b64encode(bomb).decode()}.{fingerprint_of_bytes(bomb)}",
        *map(
            recoded, ([], {}, None, [1], [2, *"abc"], [1, "u", 1, 1, "", "", 5, True, True, 0, 9])
        ),
        "[" * 10_000,
    ]
    for text in texts:
        ask(uri, "tasks", {"plan-task": text}, 400)
    for body in ({}, {"plan-task": 5}, {"plan-task": None}, b"{"):
        ask(uri, "tasks", body, 400)


def test_a_plan_task_of_another_table_or_caller_does_not_exist(uri, two_files_a_page):
    task = task_of(uri)
    error = ask(uri, "tasks", {"plan-task": task}, 404, table="other")["error"]
    assert error["type"] == "NoSuchPlanTaskException"
    request = parse(FetchScanTasksRequest, json.dumps({"plan-task": task}).encode())
    with functions() as started:
        catalog = started.lakes("rest_catalog").named("lake").open_prefix("lake")
        assert ScanPlanner(catalog, "").fetch_scan_tasks(("main",), "t", request)["file-scan-tasks"]
        with pytest.raises(NoSuchPlanTask):
            ScanPlanner(catalog, "arn:aws:iam::1:role/r").fetch_scan_tasks(("main",), "t", request)


@pytest.mark.parametrize(
    "change",
    [{"snapshot_id": 999}, {"snapshot_id": 0}, {"data": "0" * 20}, {"caller": "me"},
     {"table_uuid": "00000000-0000-0000-0000-000000000000"}],
    ids=str,
)  # fmt: skip
def test_a_plan_task_that_somebody_made_up_does_not_exist(uri, two_files_a_page, change):
    made_up = replace(plan_task_of(task_of(uri)), **change).encoded()
    error = ask(uri, "tasks", {"plan-task": made_up}, 404)["error"]
    assert error["type"] == "NoSuchPlanTaskException"


WRONG = [
    *({"filter": text} for text in ("", "{", "[", "NaN", '"\\ud800"', "5", '{"type":"eq"}')),
    *({"filter": text} for text in ("[" * 3000, '{"type": "true"}', '{"type":"is-null"}')),
    {"filter": json.dumps(compare("eq", "no_such", 1), separators=(",", ":"))},
    {"filter": json.dumps(compare("eq", "s", "x" * 70_000), separators=(",", ":"))},
    {"first_id": -1},
    {"first_id": 10**30, "last_id": 10**31},
    {"last_id": 2**63},
    {"first_id": 9, "last_id": 8},
]


@pytest.mark.parametrize("change", WRONG, ids=lambda change: str(change)[:50])
def test_what_no_scan_gives_is_400(uri, two_files_a_page, change):
    made_up = replace(plan_task_of(task_of(uri)), **change).encoded()
    ask(uri, "tasks", {"plan-task": made_up}, 400)


@pytest.mark.parametrize("named_at", [-(10**30), -1, 0, 10**30])
def test_a_plan_task_may_name_any_schema(uri, two_files_a_page, named_at):
    """The columns of a table's past schemas are in its metadata."""
    made_up = replace(plan_task_of(task_of(uri)), named_at=named_at).encoded()
    assert ask(uri, "tasks", {"plan-task": made_up})["file-scan-tasks"]


def test_a_plan_task_ends_when_its_files_are_rewritten(lake, moto, two_files_a_page):
    written = lake.write("rewritten_scans", SCRIPT.replace("ROW_LIMIT 10", "ROW_LIMIT 0"))
    with standing_in(written, moto) as stand_in:
        task = task_of(stand_in.api_uri)
        with connect(LAKE, moto) as con:
            attach(con, written, read_only=False)
            con.execute("INSERT INTO lake.t(i) VALUES (1)")
            ask(stand_in.api_uri, "tasks", {"plan-task": task})  # of the same snapshot as before
            con.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.0)")
            con.execute("CALL ducklake_merge_adjacent_files('lake')")
            con.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
        error = ask(stand_in.api_uri, "tasks", {"plan-task": task}, 404)["error"]
    assert error["type"] == "NoSuchPlanTaskException"


def test_the_schema_of_the_snapshot_or_the_current_one(lake, moto):
    script = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 10);
INSERT INTO t VALUES (2, 20);
ALTER TABLE t RENAME COLUMN a TO c;
ALTER TABLE t RENAME COLUMN b TO a;
"""
    with standing_in(lake.write("renamed_scans", script), moto) as stand_in:
        uri = stand_in.api_uri
        old = {"snapshot-id": 3, "filter": compare("eq", "a", 1)}
        assert len(paths(ask(uri, "plan", old | {"use-snapshot-schema": True}))) == 1
        assert len(paths(ask(uri, "plan", old))) == 2  # `a` may be one or the other
        assert len(paths(ask(uri, "plan", old | {"filter": compare("eq", "c", 1)}))) == 1
        ask(uri, "plan", old | {"filter": compare("eq", "c", 1), "use-snapshot-schema": True}, 400)
        assert len(paths(ask(uri, "plan", {"filter": compare("eq", "a", 20)}))) == 1


def test_the_request_may_be_a_record(uri):
    """The form of the specification, word for word."""
    body = parse(PlanTableScanRequest, b'{"use-snapshot-schema": true, "min-rows-requested": 5}')
    assert body.use_snapshot_schema and body.case_sensitive


def test_a_partition_value_of_a_file_with_a_huge_id(lake, moto):
    """The time that a plan takes depends on the rows of the catalog, not on what ids they have."""
    one = lake.write("huge_id", PARTITIONED)
    statement = (
        "INSERT INTO ducklake_file_partition_value"
        " (data_file_id, table_id, partition_key_index, partition_value)"
        " SELECT 999999999999999998, table_id, 0, '2024-01-01' FROM ducklake_table"
    )
    with closing(one.database.connect()) as con:
        con.run(statement)
    with standing_in(one, moto) as stand_in:
        answer = plan(stand_in.api_uri, {"type": "eq", "term": "d", "value": "2024-01-02"})
    assert len(answer["file-scan-tasks"]) == 1


PARTITIONED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER, d DATE);
ALTER TABLE t SET PARTITIONED BY (d);
INSERT INTO t SELECT i, DATE '2024-01-01' + i::INTEGER FROM range(3) r(i);
"""
