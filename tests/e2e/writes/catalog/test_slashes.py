"""Commits to tables with odd names, and reports about them, whose paths API Gateway decodes."""

from urllib.parse import quote

import pytest
import requests

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, set_up_writes

REPORT = {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "metrics": {}}
COMMIT = {
    "requirements": [],
    "updates": [{"action": "set-properties", "updates": {"team": "ducks"}}],
}
SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
# With the status of a commit: the path of the last but one is that of a report about `x`.
NAMES = {
    "plain": 200,
    "a/b": 200,
    "a/b/metrics": 200,
    "of metrics": 200,
    "ünï ❄": 200,
    "a%2Fb": 200,
    "metrics": 200,
    "x/metrics": 400,
    "views/v": 200,
}


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("slashes", EMPTY))
    with bridge(one, moto, writes=True) as found:
        yield f"{found.catalog_uri}/v1/lake/namespaces/main/tables"


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_no_commit(served, name):
    created = requests.post(served, json={"name": name, "schema": SCHEMA}, timeout=60)
    assert created.status_code == 200
    at = f"{served}/{quote(name, safe='')}"
    report = requests.post(f"{at}/metrics", json=REPORT, timeout=60)
    assert (report.status_code, report.content) == (204, b"")
    committed = requests.post(at, json=COMMIT, timeout=60)
    assert committed.status_code == NAMES[name], committed.text
    properties = requests.get(at, timeout=60).json()["metadata"]["properties"]
    assert (properties.get("polynya.tag.team") == "ducks") is (NAMES[name] == 200)
