"""docs/reference/ is what `make docs` makes of the parsers and of the page's reports."""

import json

import pytest

from docs.generator.reference import EXAMPLES, PAGES, REPORTS, commands, faults, pages, views

ANSWERS = json.loads(EXAMPLES.read_text())


def test_the_pages_are_what_the_generator_writes():
    assert {file.name: file.read_text() for file in PAGES.iterdir()} == pages(), "make docs"


def test_each_option_is_explained():
    names = [command.name for command in commands()]
    assert {"serve", "doctor", "ingest"} <= {*names}
    for command in commands():
        assert all(text for _, text in command.arguments + command.options), command.name


def test_each_view_of_the_page_has_a_report_and_an_example():
    paths = [view.path for view in views()]
    assert {*paths} == REPORTS.keys() == ANSWERS.keys(), "REPORTS, then make docs-examples"


@pytest.mark.parametrize("path", REPORTS)
def test_an_example_has_the_fields_of_its_report(path):
    assert list(faults(ANSWERS[path], REPORTS[path])) == [], "make docs-examples"


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("/", {"tables": "1"}),
        ("/", {"lines": [{"kind": "table"}]}),
        ("/changes", {"newest": None}),
        ("/changes", {"more": 1}),
        ("/doctor", {"finished": "yesterday"}),
        ("/doctor", {"is_well": 1}),
        ("/tables/{namespace}/{name}", {"tags": {"a": 1}}),
    ],
)
def test_a_field_that_is_not_as_it_should_be_is_a_fault(path, changed):
    assert list(faults({**ANSWERS[path], **changed}, REPORTS[path]))
