"""docs/refusals.md and docs/developers/refusals.md have the sentence of each refusal."""

from tests.contract.test_documents import ROOT
from tests.support.sentences import sentences

MODULES = (
    "commits/**/*.py",
    *(f"catalog/{name}.py" for name in ("names", "namespaces", "registrations", "tables")),
    *(f"catalog/{name}.py" for name in ("views", "writer")),
    "iceberg/view_text.py",
    "rest/schemas.py",
)
"""What answers requests that write."""


def documented() -> list[str]:
    """The sentences of users' page, in its tables, and of the list for developers."""
    tables, listed = (
        (ROOT / "docs" / page).read_text().splitlines()
        for page in ("refusals.md", "developers/refusals.md")
    )
    rows = [line for line in tables if line.startswith("| ") and line[:11] != "| refused |"]
    texts = [text for row in rows for text in row.strip("| ").rpartition(" | ")[2].split(" · ")]
    return texts + [line.removeprefix("- ") for line in listed if line.startswith("- ")]


def test_each_refusal_has_its_sentence():
    """A sentence that is new or has changed goes into a table of users, or into the list."""
    found = documented()
    assert len(found) == len(set(found))
    assert sentences(*MODULES) - set(found) == set()
    assert set(found) - sentences(*MODULES) == set()
