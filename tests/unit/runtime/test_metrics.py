"""Metrics are written in CloudWatch's embedded format, and each is counted somewhere."""

import ast
import json
from contextlib import suppress
from pathlib import Path

import pytest
from polynya.runtime.metrics import METRICS, count, count_refusal, metrics, published

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def nothing_counted_yet(monkeypatch):
    """Other tests of this process count too, or run a command that counts nothing."""
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
    metrics.clear_metrics()


def lines(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_invocation_writes_one_line_and_one_for_each_refusal(capsys):
    @published
    def handler(event, context):
        count("Hits")
        count("Hits")
        count("BytesServed", 10)
        count_refusal("NoSuchTableException")
        return "answer"

    assert handler({}, None) == "answer"
    refusal, counted = lines(capsys)
    assert (refusal["Refusals"], refusal["reason"]) == ([1.0], "NoSuchTableException")
    assert (counted["Hits"], counted["BytesServed"]) == ([1.0, 1.0], [10.0])
    [directive] = counted["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Polynya" and directive["Dimensions"] == [["service"]]
    [directive] = refusal["_aws"]["CloudWatchMetrics"]
    assert set(directive["Dimensions"][0]) == {"service", "reason"}


def test_what_was_counted_before_a_failure_is_written_too(capsys):
    @published
    def handler(event, context):
        count("StoreFailures")
        raise KeyError

    with suppress(KeyError):
        handler({}, None)
    assert lines(capsys)[0]["StoreFailures"] == [1.0]


def test_without_counts_no_line_is_written(capsys, monkeypatch):
    published(lambda event, context: None)({}, None)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    published(lambda event, context: count("Hits"))({}, None)
    count_refusal("x")
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED")
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME")
    published(lambda event, context: count("Hits"))({}, None)
    count_refusal("x")
    assert capsys.readouterr().out == ""


def test_every_metric_is_counted_somewhere():
    sources = [*(ROOT / "layers/bridge/polynya").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    calls = [
        (node.func.id, node.args)
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    counted = [args[0] for name, args in calls if name in {"count", "timed"} and args]
    names = {argument.value for argument in counted if isinstance(argument, ast.Constant)}
    assert names | {"Refusals"} == METRICS.keys()
