"""Metrics are written in CloudWatch's embedded format, and each is counted somewhere."""

import ast
import json
from contextlib import suppress
from pathlib import Path

import pytest
from polynya.runtime.metrics import (
    METRICS,
    count,
    count_refusal,
    invocation,
    metrics,
    observe,
    timed,
    use_lake,
)

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
    @invocation()
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
    @invocation()
    def handler(event, context):
        count("StoreFailures")
        raise KeyError

    with suppress(KeyError):
        handler({}, None)
    assert lines(capsys)[0]["StoreFailures"] == [1.0]


def test_several_lakes_have_a_line_each(capsys):
    """The other metrics and dimensions stay as they are: alarms depend on them."""

    @invocation()
    def handler(event, context):
        count("Hits")  # of no lake yet
        for name in ("sales", "research"):
            use_lake(name, is_one_of_several=True)
            observe("Database", 0.25)
            observe("Encoding", 1.0)
            with timed("LoadTable"):
                pass
        count_refusal("NoSuchTableException")

    handler({}, None)
    shown = lines(capsys)
    dimensions = [line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] for line in shown]
    of_lakes = {line["lake"]: line for line in shown if "lake" in line}
    assert of_lakes.keys() == {"sales", "research"} and len(shown) == 4
    assert dimensions.count([["lake", "service"]]) == 2 and [["service"]] in dimensions
    for name, line in of_lakes.items():
        assert line["Database"] == [250.0] and len(line["LoadTable"]) == 1
        [directive] = line["_aws"]["CloudWatchMetrics"]
        units = {each["Name"]: each["Unit"] for each in directive["Metrics"]}
        assert units.pop("Refusals", None) == ("Count" if name == "research" else None)
        assert units == {"Database": "Milliseconds", "LoadTable": "Milliseconds"}
    [others] = [line for line in shown if "Hits" in line]
    assert len(others["LoadTable"]) == 2


def test_one_lake_has_no_line_of_its_own(capsys):
    @invocation()
    def handler(event, context):
        use_lake("lake", is_one_of_several=False)
        observe("Database", 0.25)

    handler({}, None)
    assert capsys.readouterr().out == ""


def test_without_counts_no_line_is_written(capsys, monkeypatch):
    invocation()(lambda event, context: None)({}, None)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    invocation()(lambda event, context: count("Hits"))({}, None)
    count_refusal("x")
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED")
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME")
    invocation()(lambda event, context: count("Hits"))({}, None)
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
