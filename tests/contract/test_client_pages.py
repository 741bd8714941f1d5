"""docs/clients/ is what `make docs` makes of the table of clients' faults."""

import inspect
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from polynya.mapping import adaptations, misread_columns
from polynya.runtime import settings
from polynya_local.reports import conditions
from polynya_local.reports.client_faults import (
    FAILS,
    SOURCE,
    WRONG,
    measured_clients,
    others,
    own_clients,
)
from polynya_local.reports.snippets import CLIENTS

from docs.generator.clients import PAGES, pages

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\*\*wrong rows\*\*|fails|in rare cases) \| (.+)", re.MULTILINE)
MEASURED = ("matrix", "engines/trino", "engines/flink")
TITLE = re.compile(r"^(?:### |[\d-]+, .+, )([A-Z]\w+)(?: \(planned\))?(?:$|: \d)", re.MULTILINE)
"""The name of a client whose answers a file of results has."""


def test_the_pages_are_what_the_generator_writes():
    written = {file.name: file.read_text() for file in PAGES.iterdir()}
    made = pages()
    assert written.keys() == made.keys()
    for name, text in made.items():
        assert written[name] == text, f"{name}: make docs"


@pytest.mark.parametrize("name", measured_clients())
def test_a_page_has_a_row_for_each_fault(name):
    client = measured_clients()[name]
    rows = ROW.findall((PAGES / f"{name.lower()}.md").read_text())
    assert sorted(kind.strip("*") for kind, _ in rows) == sorted(f.kind for f in client.faults)
    for fault in client.faults:
        beginning = fault.sentence.partition("{")[0]
        assert any(f"{fault.about} | {beginning}" in row for _, row in rows), fault.sentence


def test_the_settings_know_the_clients():
    assert {name.lower() for name in measured_clients()} == settings.CLIENTS


MADE_UP_FOR = {
    "added columns": adaptations.DEFAULTS,
    "columns with NULL": adaptations.WITHOUT_COLUMNS,
    "left out columns": adaptations.HIDDEN_COLUMNS - {"spark"},  # which reads such files by rows
    "signed integers": adaptations.UNSIGNED,
    "strings": adaptations.ANNOTATED_JSON,
    "logical types": adaptations.CONVERTED_TYPES,
    "no statistics": adaptations.MILLISECONDS | adaptations.PROMOTED_FLOATS,
    "no bounds": adaptations.UNORDERED,
    "field ids": adaptations.MISREAD_ADDED_FILES,
}


def test_files_are_adapted_for_the_clients_that_have_the_fault():
    having = defaultdict(set)
    for name, client in measured_clients().items():
        for fault in client.faults:
            if fault.adaptation:
                assert "CLIENTS=all" in fault.remedy and fault.condition, fault
                having[fault.adaptation].add(name.lower())
    assert having == MADE_UP_FOR
    assert set(having) == set(tomllib.loads(SOURCE.read_text())["adaptations"])


def test_types_are_hidden_from_the_clients_that_have_the_fault_and_are_named():
    having = defaultdict(set)
    for client in tomllib.loads(SOURCE.read_text())["clients"]:
        for fault in client["faults"]:
            condition = fault.get("condition")
            if condition == "large_unsigned":
                condition = {"shown": ["uint32"]}
            if fault.get("named") == "hidden column" and isinstance(condition, dict):
                for name in condition.get("shown") or condition["stored"]:
                    having[name].add(client["name"].lower())
    # Spark fails over all of them, by another condition.
    assert having.pop("uint32") == misread_columns.UNSIGNED_32 - {"spark"}
    assert having == misread_columns.TYPES


def test_each_client_that_is_measured_or_has_a_snippet_has_a_page():
    texts = [(ROOT / "tests" / folder / "results.md").read_text() for folder in MEASURED]
    names = {name for text in texts for name in TITLE.findall(text)}
    assert {"DuckDB", "Sail", "Trino", "Flink"} <= names <= measured_clients().keys()
    assert {one.name for one in CLIENTS} <= measured_clients().keys()


@pytest.mark.parametrize("name", measured_clients())
def test_what_a_fault_says_of_its_tables_is_whole(name):
    """Columns are told of any table, only where a condition finds them in one."""
    client = measured_clients()[name]
    for fault in client.faults:
        assert bool(fault.columns) == ("{columns}" in fault.sentence), fault.sentence
        assert fault.condition or "{" not in fault.sentence, fault.sentence
        assert fault.issue.startswith(("", "https://github.com/")), fault.issue
        assert not fault.sentence.endswith("."), fault.sentence


def test_each_condition_and_each_remedy_is_used():
    text = SOURCE.read_text()
    names = {*re.findall(r'^condition = "(\w+)"', text, re.MULTILINE)}
    names |= {*re.findall(r"^condition = \{ (\w+) =", text, re.MULTILINE)}
    functions = inspect.getmembers(conditions, inspect.isfunction)
    own = {name for name, function in functions if function.__module__ == conditions.__name__}
    assert names == {name for name in own if not name.startswith("_")}
    remedies = text.partition("[remedies]")[2].partition("\n\n")[0]
    used = {*re.findall(r'^remedy = "([\w-]+)"', text, re.MULTILINE)}
    assert {*re.findall(r"^([\w-]+) = ", remedies, re.MULTILINE)} == used


@pytest.mark.parametrize(
    ("named", "own"),
    [
        (set(), ("DuckDB", "PyIceberg", "Spark")),
        (settings.CLIENTS, ("DuckDB", "PyIceberg", "Spark")),
        ({"trino", "iceberg-go"}, ("Trino", "iceberg-go")),
    ],
)
def test_the_clients_of_the_owner_are_those_of_the_setting(named, own):
    assert own_clients(named) == own
    clients = {WRONG: ["Spark", "Trino"], FAILS: ["Trino"]}
    wrong, fails = ([name for name in clients[kind] if name not in own] for kind in (WRONG, FAILS))
    sentences = {"1 client of 11 would read wrong rows": wrong}
    if fails:
        sentences["1 client of 11 could not read all of it"] = fails
    assert others(clients, own) == sentences
