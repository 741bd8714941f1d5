"""Plans, commits and the reports of clients each become one line of the log."""

import io
import json
import re
from pathlib import Path

import duckdb
import pytest
import requests
from polynya_local.clients import pyiceberg, spark
from polynya_local.clients.spark_jars import why_not

from functions.commits import app as commits
from functions.rest_catalog import app as rest_catalog
from tests.support.servers.in_process import bridge
from tests.support.writes.writable import set_up_writes

MONITORING = Path(__file__).parents[2] / "docs/monitoring.md"
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE orders(id BIGINT, name VARCHAR);
INSERT INTO orders SELECT i, 'n' || i FROM range(100) AS r(i);
INSERT INTO orders SELECT i, 'n' || i FROM range(100, 130) AS r(i);
CREATE SCHEMA "a.b";
CREATE TABLE "a.b".t(id BIGINT);
"""
READ = {"rules": [{"principals": ["*"], "tables": {"main": ["orders"]}}]}
WRITE = {"rules": [{"principals": ["*"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}}]}
FILTER = {
    "type": "and",
    "left": {"type": "gt-eq", "term": "id", "value": 7770},
    "right": {
        "type": "or",
        "left": {"type": "in", "term": "name", "values": ["secret-1", "secret-2"]},
        "right": {"type": "not", "child": {"type": "is-null", "term": "name"}},
    },
}
SHAPE = "id >= ? and (name in (?, ?) or not (name is null))"
TIMER = {"count": 1, "time-unit": "nanoseconds", "total-duration": 1_500_000}
# As Iceberg 1.11's ScanReportParser and CommitReportParser write them.
SCAN = {
    "report-type": "scan-report",
    "table-name": "another.table",
    "snapshot-id": 3,
    "filter": FILTER,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {
        "total-planning-duration": TIMER,
        "result-data-files": {"unit": "count", "value": 2},
        "skipped-data-files": {"unit": "count", "value": 5},
        "total-file-size-in-bytes": {"unit": "bytes", "value": 1234},
    },
    "metadata": {"engine-name": "spark", "engine-version": "4.1.1"},
}
COMMIT = {
    "report-type": "commit-report",
    "table-name": "another.table",
    "snapshot-id": 4,
    "sequence-number": 4,
    "operation": "append",
    "metrics": {
        "total-duration": TIMER,
        "attempts": {"unit": "count", "value": 2},
        "added-records": {"unit": "count", "value": 10},
    },
}


@pytest.fixture(scope="module")
def written(lake):
    return set_up_writes(lake.write("log_lines", SCRIPT))


@pytest.fixture
def lines():
    """The lines of both functions so far, at the level that they have on AWS."""
    stream = io.StringIO()
    loggers = (rest_catalog.logger, commits.logger)
    before = [(one, one.registered_handler.setStream(stream), one.log_level) for one in loggers]
    for one in loggers:
        one.setLevel("INFO")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for one, old, level in before:
        one.registered_handler.setStream(old)
        one.setLevel(level)


def post(uri: str, path: str, body: object, status: int) -> requests.Response:
    answer = requests.post(f"{uri}/v1/lake/namespaces/{path}", json=body, timeout=60)
    assert answer.status_code == status, answer.text
    return answer


def details(line: dict) -> dict:
    """What a line has, without what every line of powertools has."""
    common = ("level", "location", "timestamp", "service", "cold_start", "xray_trace_id")
    of_lambda = ("correlation_id", "milliseconds")
    return {
        key: value
        for key, value in line.items()
        if key not in (*common, *of_lambda) and not key.startswith("function_")
    }


def test_a_plan_is_a_line_with_what_it_reads(written, moto, lines):
    with bridge(written, moto) as served:
        answer = post(served.catalog_uri, "main/tables/orders/plan", {"filter": FILTER}, 200).json()
        post(served.catalog_uri, "main/tables/orders/plan", {"snapshot-id": 10**9}, 400)
    files = [task["data-file"] for task in answer["file-scan-tasks"]]
    planned, refused = [line for line in lines() if line["message"] == "plan"]
    assert details(planned) == {
        "message": "plan",
        "principal": "",
        "table": "main.orders",
        "outcome": "done",
        "filter": SHAPE,
        "data_files": len(files),
        "rows": sum(file["record-count"] for file in files),
        "bytes": sum(file["file-size-in-bytes"] for file in files),
        "plan_tasks": 0,
    }
    assert planned["milliseconds"] > 0
    assert refused["outcome"] == "BadRequestException"


HUGE = "9" * 4000
NOT = b'{"type":"not","child":'
TIMES = b'{"report-type":"scan-report","metrics":{"total-planning-duration":%s}}'
FILTERED = b'{"report-type":"scan-report","filter":%s}'
EQ = FILTERED % b'{"type":"eq","term":"id","value":%s}'
HOSTILE = {
    "a duration of 4,000 digits": TIMES
    % f'{{"time-unit":"days","total-duration":{HUGE}}}'.encode(),
    "a count of 4,000 digits": TIMES % f'{{"value":{HUGE}}}'.encode(),
    "a snapshot of 4,000 digits": f'{{"report-type":"scan-report","snapshot-id":{HUGE}}}'.encode(),
    "2,000 times not": FILTERED % (NOT * 2000 + b"true" + b"}" * 2000),
    "200 times not": FILTERED % (NOT * 200 + b"true" + b"}" * 200),
    "100,000 brackets": b"[" * 100_000,
    "an infinite number": EQ % b"1e999",
    "half a character": EQ % rb'"\ud800"',
}


OF_A_PLAN = [case for case, body in HOSTILE.items() if b'"metrics"' not in body]


@pytest.mark.parametrize(
    ("route", "case"),
    [*(("metrics", case) for case in HOSTILE), *(("plan", case) for case in OF_A_PLAN)],
)
def test_a_report_that_nobody_can_write_is_refused(written, moto, lines, route, case):
    with bridge(written, moto) as served:
        uri = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/orders/{route}"
        answer = requests.post(uri, data=HOSTILE[case], timeout=60)
    assert answer.status_code == 400, answer.text
    assert not any(line["message"] == "report" for line in lines())


def test_long_texts_of_a_report_are_cut(written, moto, lines):
    with bridge(written, moto) as served:
        report = {**COMMIT, "operation": "x" * 100_000, "metadata": {"engine-name": "y" * 100_000}}
        post(served.catalog_uri, "main/tables/orders/metrics", report, 204)
    [line] = [line for line in lines() if line["message"] == "report"]
    assert line["operation"] == "x" * 2000 + "…" and line["engine"] == "y" * 2000 + "…"


@pytest.mark.parametrize("has_values", [False, True])
def test_values_of_a_filter_are_written_only_if_a_setting_says_so(has_values, written, moto, lines):
    given = {"LOG_VALUES": "yes"} if has_values else {}
    with bridge(written, moto, settings=given) as served:
        post(served.catalog_uri, "main/tables/orders/plan", {"filter": FILTER}, 200)
        post(served.catalog_uri, "main/tables/orders/metrics", SCAN, 204)
    assert len(lines()) == 2
    for line in lines():
        assert ("secret-1" in line["filter"]) is has_values
        assert ("7770" in json.dumps(details(line))) is has_values


def test_a_report_is_a_line_under_the_name_of_its_route(written, moto, lines):
    with bridge(written, moto, settings={"AUTHORIZATION": json.dumps(READ)}) as served:
        post(served.catalog_uri, "main/tables/orders/metrics", SCAN, 204)
        post(served.catalog_uri, "main/tables/orders/metrics", COMMIT, 204)
        post(served.catalog_uri, "main/tables/hidden/metrics", SCAN, 204)
        of_tomorrow = {"report-type": "of-tomorrow", "metrics": ["another form"]}
        post(served.catalog_uri, "main/tables/orders/metrics", of_tomorrow, 204)
        broken = {**SCAN, "metrics": {"total-planning-duration": {**TIMER, "time-unit": "years"}}}
        post(served.catalog_uri, "main/tables/orders/metrics", broken, 400)
    scan, commit = [line for line in lines() if line["message"] == "report"]
    assert details(scan) == {
        "message": "report",
        "of": "scan",
        "principal": "",
        "table": "main.orders",
        "snapshot_id": 3,
        "engine": "spark 4.1.1",
        "filter": SHAPE,
        "columns": "id",
        "data_files": 2,
        "skipped_data_files": 5,
        "bytes": 1234,
    }
    assert scan["milliseconds"] == commit["milliseconds"] == 1.5
    assert details(commit) == {
        "message": "report",
        "of": "commit",
        "principal": "",
        "table": "main.orders",
        "snapshot_id": 4,
        "operation": "append",
        "attempts": 2,
        "added_rows": 10,
    }


def test_a_commit_is_a_line_also_if_it_is_refused(written, moto, lines):
    with bridge(written, moto, writes=True) as served:
        catalog = pyiceberg.open(served.catalog_uri, served.warehouse, served.s3_endpoint)._catalog
        table = catalog.load_table(("a.b", "t"))
        table.append(table.scan().to_arrow().schema.empty_table())
        stale = {"requirements": [{"type": "assert-table-uuid", "uuid": "0" * 32}], "updates": []}
        post(served.catalog_uri, "main/tables/orders", stale, 409)
        committed = table.refresh().current_snapshot().snapshot_id
    done, refused = [line for line in lines() if line["message"] == "commit"]
    assert (done["table"], done["outcome"], done["operation"]) == ('"a.b".t', "done", "append")
    assert done["snapshot_id"] == committed
    assert (refused["table"], refused["outcome"]) == ("main.orders", "CommitFailedException")


def in_sql(query: str) -> str:
    """A query of CloudWatch Logs Insights as DuckDB has it, as far as the document needs it."""
    clauses = dict(part.strip().split(maxsplit=1) for part in query.replace("\n", " ").split("|"))
    condition = re.sub(r'"([^"]*)"', r"'\1'", clauses["filter"])
    stats, keys = clauses["stats"].rsplit(" by ", 1)
    names = r"(?<!')\b(filter|table|of|message|principal|outcome)\b(?!')"
    condition, stats, keys = (re.sub(names, r'"\1"', text) for text in (condition, stats, keys))
    order = f" ORDER BY {clauses['sort']}" if "sort" in clauses else ""
    return f"SELECT {keys}, {stats} FROM lines WHERE {condition} GROUP BY {keys}{order}"


def test_the_queries_of_the_document_say_who_reads_what(written, moto, lines, tmp_path):
    blocks = re.findall(r"^```\n(.*?)^```", MONITORING.read_text(), re.MULTILINE | re.DOTALL)
    queries = [block for block in blocks if "| stats" in block]
    assert len(queries) == 3
    write = {"AUTHORIZATION": json.dumps(WRITE)}
    with bridge(written, moto, writes=True, settings=write) as served:
        post(served.catalog_uri, "main/tables/orders/plan", {"filter": FILTER}, 200)
        whole = post(served.catalog_uri, "main/tables/orders/plan", {}, 200).json()
        report = {**SCAN, "filter": True}
        post(served.catalog_uri, "main/tables/orders/metrics", report, 204)
        stale = {"requirements": [{"type": "assert-table-uuid", "uuid": "0" * 32}], "updates": []}
        post(served.catalog_uri, "main/tables/orders", stale, 409)
    log = tmp_path / "log.json"
    log.write_text("\n".join(map(json.dumps, lines())))
    con = duckdb.connect()
    con.execute("CREATE TABLE lines AS FROM read_json_auto(?, union_by_name => true)", [str(log)])
    by_caller, everything, refused = (
        con.execute(in_sql(query.replace("sales.orders", "main.orders"))).fetchall()
        for query in queries
    )
    sizes = [task["data-file"]["file-size-in-bytes"] for task in whole["file-scan-tasks"]]
    plans = [line for line in lines() if line["message"] == "plan"]
    total = sum(line["bytes"] for line in plans) + 1234
    [(principal, scans, files, gigabytes)] = by_caller
    assert (principal, scans, files) == ("", 3, sum(line["data_files"] for line in plans) + 2)
    assert gigabytes == pytest.approx(total / 1e9)
    [(table, _, scans, largest)] = everything
    assert (table, scans) == ("main.orders", 2)
    assert largest == pytest.approx(max(sum(sizes), 1234) / 1e9)
    assert refused == [("main.orders", "", "CommitFailedException", 1)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_spark_reports_its_scans(written, moto, lines):
    with bridge(written, moto) as served:
        client = spark.open(served.catalog_uri, served.warehouse, served.s3_endpoint)
        sql = f"SELECT count(name) FROM {client.catalog}.main.orders WHERE id >= 110"
        [[count]] = spark.session().sql(sql).collect()
    assert count == 20
    [line] = [line for line in lines() if line["message"] == "report"]
    assert (line["table"], line["filter"]) == ("main.orders", "id is not null and id >= ?")
    assert (line["data_files"], line["skipped_data_files"]) == (1, 1)
    assert line["bytes"] > 0 and line["milliseconds"] > 0 and line["engine"].startswith("spark 4")
