"""docs/refusals.md has the sentence of each refusal, as the client reads it."""

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
    """The sentences of the page, in its table and in its list."""
    found: list[str] = []
    for line in (ROOT / "docs/refusals.md").read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| refused |"):
            found += line.strip("| ").rpartition(" | ")[2].split(" · ")
        elif line.startswith("- "):
            found.append(line.removeprefix("- "))
    return found


def test_each_refusal_has_its_sentence():
    """A sentence that is new or has changed goes into the table, or into the list below it."""
    found = documented()
    assert len(found) == len(set(found))
    assert sentences(*MODULES) - set(found) == set()
    assert set(found) - sentences(*MODULES) == set()
