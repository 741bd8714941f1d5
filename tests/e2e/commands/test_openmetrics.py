"""`/metrics` of `polynya serve`, read by the parser of prometheus_client."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
import requests
from polynya.runtime import metrics
from polynya_local.clients import pyiceberg
from polynya_local.clients.duckdb import LAKE as WITH_LAKE
from polynya_local.clients.duckdb import connect, literal
from polynya_local.openmetrics import LAKE, METRICS, OpenMetrics
from polynya_local.processes.serving import serving
from prometheus_client.openmetrics.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[3]
LAKE_NAME = "lake"
FOLDERS = ("layers/bridge/polynya", "functions")


def families(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """The value of each sample, by its name and the values of its labels, which are sorted."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(bridge) -> dict[tuple[str, tuple[str, ...]], float]:
    answer = requests.get(f"{bridge.catalog_uri}/metrics", timeout=60)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    return families(answer.text)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    with closing(connect(WITH_LAKE)) as con:
        catalog, data = literal(f"ducklake:{folder}/m.ducklake"), literal(f"{folder}/data")
        con.execute(f"ATTACH {catalog} AS lake (DATA_PATH {data}, DATA_INLINING_ROW_LIMIT 0)")
        con.execute("CREATE TABLE lake.t AS SELECT i FROM range(100) AS r(i)")
    with serving(f"{folder}/m.ducklake", None, delivery="object-lambda", page=False) as bridge:
        yield bridge


def test_a_read_is_counted(served):
    before = scraped(served)
    with closing(
        pyiceberg.open(served.catalog_uri, served.warehouse, served.s3_endpoint)
    ) as client:
        assert client.rows("main", "t").num_rows == 100
    after = scraped(served)
    loads = ("polynya_request_seconds_count", (LAKE_NAME, "load_table", "200"))
    assert after[loads] - before.get(loads, 0) == 1
    files = (
        "polynya_request_seconds_count",
        (LAKE_NAME, "getObject", "206"),
    )  # PyArrow asks for a range
    assert after[files] - before.get(files, 0) >= 2  # the list and the manifest
    assert after["polynya_builds_total", (LAKE_NAME,)] >= 2
    for name in ("polynya_generated_bytes_total", "polynya_served_bytes_total"):
        assert after[name, (LAKE_NAME,)] > 1000
    for name in ("polynya_database_seconds", "polynya_encoding_seconds"):
        for suffix in ("count", "sum"):
            assert after[f"{name}_{suffix}", (LAKE_NAME,)] > 0
    assert 0 <= after["polynya_mirror_age_seconds", (LAKE_NAME,)] < 60


def test_a_refusal_is_counted_with_its_reason(served):
    where = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/none"
    assert requests.get(where, timeout=60).status_code == 404
    after = scraped(served)
    assert after["polynya_refusals_total", (LAKE_NAME, "NoSuchTableException")] == 1
    assert after["polynya_request_seconds_count", (LAKE_NAME, "load_table", "404")] == 1


def test_lakes_without_rights_for_everybody_are_not_named(tmp_path):
    """Nobody identifies the caller, who may be anybody that reaches the port."""
    file = tmp_path / "lakes.toml"
    for name in ("shown", "hidden"):
        with closing(connect(WITH_LAKE)) as con:
            catalog, data = f"ducklake:{tmp_path}/{name}.ducklake", f"{tmp_path}/{name}"
            con.execute(f"ATTACH {literal(catalog)} AS lake (DATA_PATH {literal(data)})")
            con.execute("CREATE TABLE lake.t AS SELECT 1 AS i")
        with file.open("a") as toml:
            toml.write(f'[{name}]\ndatabase_url = "{tmp_path}/{name}.ducklake"\n')
    rules = [
        {"principals": ["*"], "lakes": ["shown"], "tables": {"*": ["*"]}},
        {"principals": ["arn:x"], "lakes": ["hidden"], "tables": {"*": ["*"]}},
    ]
    settings = {"AUTHORIZATION": json.dumps({"rules": rules})}
    options = {"delivery": "object-lambda", "page": False, "options": ("--lakes", str(file))}
    with serving(None, None, settings=settings, **options) as bridge:
        for name, status in (("shown", 200), ("hidden", 404)):
            uri = f"{bridge.catalog_uri}/v1/{name}/namespaces/main/tables/t"
            assert requests.get(uri, timeout=60).status_code == status
        text = requests.get(f"{bridge.catalog_uri}/metrics", timeout=60).text
    assert 'polynya_mirror_age_seconds{lake="shown"}' in text
    assert "hidden" not in text


def test_each_metric_of_cloudwatch_is_shown():
    assert metrics.METRICS.keys() <= METRICS.keys()
    shown = OpenMetrics()
    for name, metric in METRICS.items():
        shown(name, 1, dict.fromkeys((*metric.labels, LAKE), "x"))
    values = families(shown.text(lambda lake: True).decode())
    for metric in METRICS.values():
        suffix, value = ("sum", metric.scale) if metric.kind == "histogram" else ("total", 1)
        assert values[f"{metric.name}_{suffix}", ("x",) * (len(metric.labels) + 1)] == value


def test_each_name_that_is_watched_is_shown():
    """A name without a row in the table would make a request fail."""
    given = re.compile(r'\b(?:observe|observe_seconds|count|timed)\("(\w+)"')
    sources = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    names = {name for path in sources for name in given.findall(path.read_text())}
    assert {"Requests", "Database", "Hits", "Commit"} <= names <= METRICS.keys()


def test_the_dashboard_of_grafana_shows_each_name_and_no_other():
    """So does the table in the document."""
    shown = OpenMetrics({"x": lambda: 1.0})
    for name, metric in METRICS.items():
        shown(name, 1, dict.fromkeys((*metric.labels, LAKE), "x"))
    samples = {name for name, _ in families(shown.text(lambda lake: True).decode())}
    queried = set(re.findall(r"polynya_\w+", (ROOT / "docs/grafana.json").read_text()))
    assert queried <= samples
    document = set(re.findall(r"polynya_\w+", (ROOT / "docs/monitoring.md").read_text()))
    for metric in (*(one.name for one in METRICS.values()), "polynya_mirror_age_seconds"):
        assert any(name.startswith(metric) for name in queried), metric
        assert any(name.startswith(metric) for name in document), metric
