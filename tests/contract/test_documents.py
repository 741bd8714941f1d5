"""All that documents and comments name exists: files, folders, targets of `make`, links."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
# The folders to which a path in a document may be relative.
BASES = [
    ROOT,
    ROOT / "layers/bridge",
    ROOT / "layers/bridge/polynya",
    ROOT / "local",
    ROOT / "pipeline",
    ROOT / "tests",
    ROOT / "docs",
]

CODE = re.compile(r"`([^`]+)`", re.DOTALL)
FOLDERS = "|".join(
    re.escape(one.name) for one in ROOT.iterdir() if one.is_dir() and one.name[0] != "."
)
FILE = re.compile(rf"(?:{FOLDERS})/[\w./-]*|[\w./-]+/(?:[\w-]+\.(?:py|sql|md))?|[\w-]+\.py")
MADE = {"job.py", "metadata/polynya/"}
"""Made by `make package` and `polynya publish`."""
CALL = re.compile(r"(?P<file>[\w./-]+\.py):(?P<name>\w+(?:\.\w+)?)")
"""A function or a method in a chain of calls: `catalog/reader.py:Catalog.load_table`."""
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
"""A link within a document or between documents: path and anchor, either may be empty."""
BLOCK = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+?)(?: +#+)?$", re.MULTILINE)
TARGET = re.compile(r"\bmake\s+([a-z][a-z-]*)")
SOURCES = {".py", ".md", ".sql", ".yaml", ".yml", ".toml", ".txt", ".sh", ".json"}
PRIVATE = "facts" + "/"
"""A folder with notes of the developers that is not part of the project."""


def words(document: Path) -> list[str]:
    """The texts in backticks, outside blocks of code."""
    return [" ".join(word.split()) for word in CODE.findall(prose(document))]


def prose(document: Path) -> str:
    """A document without its blocks of code."""
    return BLOCK.sub("", document.read_text())


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub makes of headings: lower case, no punctuation, hyphens for spaces."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(document)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        same = (f"{slug}-{number}" for number in range(1, len(found) + 1))
        found.add(slug if slug not in found else next(one for one in same if one not in found))
    return found


def broken_links(document: Path) -> list[str]:
    broken = []
    for path, anchor in LINK.findall(prose(document)):
        if path.startswith(("http:", "https:", "mailto:")):
            continue
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}" if anchor else path)
    return broken


def exists(path: str) -> bool:
    if "/" not in path:
        return (ROOT / path).exists() or any(ROOT.glob(f"[!.]*/**/{path}"))
    return any((base / path).exists() for base in BASES)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_exists(document):
    paths = {word for word in words(document) if FILE.fullmatch(word)} - MADE
    assert [path for path in sorted(paths) if not exists(path)] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for word in words(document) for name in TARGET.findall(word)}
    assert named - targets == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_link_leads_to_an_existing_document_and_heading(document):
    assert broken_links(document) == []


def definitions(path: Path) -> set[str]:
    """The functions, classes and methods of a module; methods with the name of their class."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if hasattr(part, "name")]
            names.update(f"{node.name}.{method.name}" for method in methods)
    return names


def missing_calls(document: Path) -> list[str]:
    missing = []
    for call in filter(None, map(CALL.fullmatch, words(document))):
        files = [base / call["file"] for base in BASES if (base / call["file"]).is_file()]
        if not any(call["name"] in definitions(path) for path in files):
            missing.append(call[0])
    return missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_chain_of_calls_names_is_defined_there(document):
    assert missing_calls(document) == []


STEP = re.compile(r"^\d+\. .*(?:\n(?: .*)?)*", re.MULTILINE)
"""A step of a numbered list, with the lines that belong to it."""
MOST_WORDS = 1800
"""Of the architecture, which is read in ten minutes."""


@pytest.mark.parametrize("story", ["A read", "A commit", "The server", "AWS"])
def test_each_step_of_a_story_of_the_architecture_names_what_is_called(story):
    architecture = (ROOT / "docs/developers/architecture.md").read_text()
    steps = STEP.findall(architecture.split(f"\n## {story}\n")[1].split("\n## ")[0])
    assert len(steps) >= 6
    assert [step for step in steps if not CALL.search(step)] == []


def test_the_architecture_stays_short():
    assert len((ROOT / "docs/developers/architecture.md").read_text().split()) < MOST_WORDS


def test_a_call_that_is_defined_nowhere_is_found(tmp_path):
    document = tmp_path / "a.md"
    names = ["load_table", "Catalog.load_table", "Catalog", "load"]
    document.write_text(" ".join(f"`catalog/reader.py:{name}`" for name in names))
    assert missing_calls(document) == ["catalog/reader.py:load_table", "catalog/reader.py:load"]


def test_a_broken_link_is_found(tmp_path):
    """This proves that the test above finds broken links."""
    text = "# One `two`, [three](b.md)\n```\n# no heading\n```\n"
    text += "[1](a.md#one-two-three) [2](#one-two-three) [3](#no-heading) [4](c.md) [5](a.md#x)"
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "b.md").write_text("")
    assert broken_links(tmp_path / "a.md") == ["#no-heading", "c.md", "a.md#x"]


def test_each_page_is_linked_from_the_readme():
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        if document.suffix == ".md" and document not in seen:
            seen.add(document)
            links = [path for path, _ in LINK.findall(prose(document)) if ":" not in path and path]
            waiting += [(document.parent / path).resolve() for path in links]
    decisions = {path for path in DOCUMENTS if path.parent.name == "decisions"}
    assert {path.resolve() for path in DOCUMENTS} - decisions <= seen


def test_nothing_refers_to_private_notes():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in (ROOT, *(one for one in ROOT.iterdir() if one.name[0] != "."))
        for path in (folder.glob("*") if folder == ROOT else folder.rglob("*"))
        if path.is_file() and path.suffix in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE in line
    ]
    assert found == []
