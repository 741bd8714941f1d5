"""docs/developers/mistakes.md names existing tests for each mistake."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/developers/mistakes.md").read_text()
MISTAKES = dict(re.findall(r"^\| (M\d+) .*? \| (.*) \|$", PAGE, re.MULTILINE))


def test_the_page_lists_every_mistake():
    assert list(MISTAKES) == [f"M{number}" for number in range(1, 37)]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_existing_tests(mistake):
    for module, test in (found := re.findall(r"`(\S+)::(\w+)`", MISTAKES[mistake])):
        assert f"\ndef {test}(" in (TESTS / module).read_text(), f"{module}::{test}"
    lakes = re.findall(r"lake (\d+)", MISTAKES[mistake])
    assert all(len(list((TESTS / "lakes").glob(f"{number}_*.sql"))) == 1 for number in lakes)
    assert found or lakes
