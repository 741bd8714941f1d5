"""OpenTelemetry: each answer is a span, with what it waits for, and nothing of what it is about."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import requests
from polynya_local.clients import pyiceberg
from polynya_local.processes.serving import REGION, serving

ROOT = Path(__file__).parents[2]
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE SCHEMA birds;
CREATE TABLE birds.species(id BIGINT, name VARCHAR);
INSERT INTO birds.species VALUES (1, 'king eider');
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
# The function `app` of the folder, and the SDK as a user or a layer sets it up.
INSTANCE = """
import json, logging, sys
from contextlib import suppress
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

memory, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
trace.set_tracer_provider(provider)
import app

class Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "f", 1769, "", "1"
    get_remaining_time_in_millis = staticmethod(lambda: 29000)

# Why a request was refused, which lines without a format leave out.
fields = {"error": "", "raised_at": ""}
shown = logging.StreamHandler()
shown.setFormatter(logging.Formatter("%(message)s %(error)s %(raised_at)s", defaults=fields))
logging.getLogger().addHandler(shown)

for event in map(json.loads, sys.stdin):
    with suppress(Exception):
        app.handler(event, Context())
    spans = memory.get_finished_spans()
    memory.clear()
    described = [json.loads(s.to_json()) | {"scope": s.instrumentation_scope.name} for s in spans]
    print(json.dumps(described), file=sys.stderr)
"""

# The command, with a provider as `opentelemetry-instrument` sets one up.
SERVER = """
import os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
lines = ConsoleSpanExporter(
    out=open(os.environ["SPANS"], "a"), formatter=lambda span: span.to_json(indent=None) + "\\n"
)
provider.add_span_processor(SimpleSpanProcessor(lines))
trace.set_tracer_provider(provider)
from polynya_local.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def variables(lake, moto):
    written = lake.write("spans", SCRIPT)
    return os.environ | {
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": moto,
        "PYTHONPATH": str(ROOT / "layers/bridge"),
        "DATABASE_URL": written.database.url,
        "METADATA_SCHEMA": written.metadata_schema,
        "VIRTUAL_BUCKET": "lakes",
        "DELIVERY": "materialize",
    }


def spans(variables: dict[str, str], *events: dict) -> list[list[dict]]:
    done = subprocess.run(
        [sys.executable, "-c", INSTANCE],
        cwd=ROOT / "functions/rest_catalog",
        env=variables,
        input="\n".join(map(json.dumps, events)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stderr)  # pytest shows it if the test fails
    # This program is no Lambda: its stdout is its own, neither log nor metrics are there.
    assert done.stdout == "" and '"level"' not in done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()[-len(events) :]]


def request(path: str, method: str = "GET", body: str = "", **headers: str) -> dict:
    event = json.loads((ROOT / "events/rest_load_table.json").read_text())
    http = event["requestContext"]["http"] | {"path": path, "method": method}
    event |= {
        "rawPath": path,
        "body": body,
        "requestContext": event["requestContext"] | {"http": http},
    }
    return event | {"headers": event["headers"] | headers}


def test_an_answer_is_a_span_with_what_it_waits_for(variables):
    table = "/v1/lake/namespaces/birds/tables/species"
    where = {"filter": {"type": "eq", "term": "name", "value": "king eider"}}
    loaded, planned, refused, broken = spans(
        variables,
        request(table, Traceparent=f"00-{TRACE}-{CALLER}-01"),
        request(f"{table}/plan", "POST", json.dumps(where)),
        request("/v1/lake/namespaces/birds/tables/geese"),
        request("/v1/lake/events") | {"requestContext": {"http": {"path": 7}}},
    )
    *parts, whole = loaded
    assert whole["name"] == "load_table" and whole["kind"] == "SpanKind.SERVER"
    assert whole["attributes"] == {"http.response.status_code": 200}
    # It is a part of what the caller has begun.
    assert (whole["context"]["trace_id"], whole["parent_id"]) == (f"0x{TRACE}", f"0x{CALLER}")
    assert {part["name"] for part in parts} == {"statement", "s3 request", "encoding"}
    for part in parts:
        assert part["parent_id"] == whole["context"]["span_id"]
        assert whole["start_time"] <= part["start_time"] <= part["end_time"] <= whole["end_time"]
    assert {part["kind"] for part in parts if part["name"] != "encoding"} == {"SpanKind.CLIENT"}
    assert planned[-1]["name"] == "plan_table_scan" and planned[-1]["parent_id"] is None
    assert refused[-1]["attributes"] == {
        "http.response.status_code": 404,
        "error.type": "NoSuchTableException",
    }
    assert refused[-1]["status"] == {"status_code": "UNSET"}
    assert broken[-1]["status"]["status_code"] == "ERROR"
    every = [span for trace in (loaded, planned, refused, broken) for span in trace]
    # FastAPI has spans of its own, with paths.
    assert {span["scope"] for span in every} == {"polynya"}
    text = json.dumps(every)
    for secret in ("birds", "species", "geese", "eider", "name =", "SELECT", "/v1", "lakes"):
        assert secret not in text
    assert all(not span["events"] for span in every)


def test_the_server_makes_a_span_of_each_answer_at_its_two_ports(lake, moto, tmp_path):
    written = lake.write("spans_of_server", SCRIPT)
    with serving(
        written.database.url,
        moto,
        delivery="object-lambda",
        metadata_schema=written.metadata_schema,
        settings={"SPANS": str(tmp_path / "spans")},
        command=[sys.executable, "-c", SERVER],
    ) as bridge:
        table = f"{bridge.catalog_uri}/v1/lake/namespaces/birds/tables/species"
        traced = {"Traceparent": f"00-{TRACE}-{CALLER}-01"}
        assert requests.get(table, headers=traced, timeout=60).status_code == 200
        client = pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        with closing(client):
            assert len(client.rows("birds", "species")) == 1
    made = [json.loads(line) for line in (tmp_path / "spans").read_text().splitlines()]
    roots = [span for span in made if span["kind"] == "SpanKind.SERVER"]
    assert {"load_table", "getObject"} <= {span["name"] for span in roots}
    of_caller = [span for span in made if span["context"]["trace_id"] == f"0x{TRACE}"]
    [whole] = [span for span in of_caller if span["parent_id"] == f"0x{CALLER}"]
    assert whole["name"] == "load_table"
    parts = [span for span in of_caller if span["parent_id"] == whole["context"]["span_id"]]
    assert "statement" in {part["name"] for part in parts}
    assert not any(secret in json.dumps(made) for secret in ("species", "eider", "/v1"))
