"""What documents and comments name is there: files, folders, targets of `make`, links."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
# Where a path in a document may begin.
BASES = [
    ROOT,
    ROOT / "layers/bridge",
    ROOT / "layers/bridge/polynya",
    ROOT / "tests",
    ROOT / "docs",
]

CODE = re.compile(r"`([^`]+)`", re.DOTALL)
FOLDERS = "|".join(
    re.escape(one.name) for one in ROOT.iterdir() if one.is_dir() and one.name[0] != "."
)
FILE = re.compile(rf"(?:{FOLDERS})/[\w./-]*|[\w./-]+/(?:[\w-]+\.(?:py|sql|md))?|[\w-]+\.py")
MADE = {"job.py", "metadata/polynya/"}
"""By `make package` and `polynya publish`."""
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TARGET = re.compile(r"\bmake\s+([a-z][a-z-]*)")
SOURCES = {".py", ".md", ".sql", ".yaml", ".yml", ".toml", ".txt", ".sh", ".json"}
PRIVATE = "facts" + "/"
"""Notes of the developers, which are not part of the project."""


def words(document: Path) -> list[str]:
    """What stands in backticks, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [" ".join(word.split()) for word in CODE.findall(text)]


def is_there(path: str) -> bool:
    if "/" not in path:
        return any(ROOT.glob(f"[!.]*/**/{path}"))
    return any((base / path).exists() for base in BASES)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_is_there(document):
    text = document.read_text()
    paths = {word for word in words(document) if FILE.fullmatch(word)} - MADE
    assert [path for path in sorted(paths) if not is_there(path)] == []
    links = {link for link in LINK.findall(text) if not link.startswith("http")}
    assert [link for link in sorted(links) if not (document.parent / link).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for word in words(document) for name in TARGET.findall(word)}
    assert named - targets == set()


def test_nothing_refers_to_what_is_not_part_of_the_project():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in (ROOT, *(one for one in ROOT.iterdir() if one.name[0] != "."))
        for path in (folder.glob("*") if folder == ROOT else folder.rglob("*"))
        if path.is_file() and path.suffix in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE in line
    ]
    assert found == []
