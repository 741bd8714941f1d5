"""Names in the product say what a thing is; docstrings begin with a verb or with the thing."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("layers/bridge/polynya", "functions", "local", "pipeline")
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
EMPTY_NAMES = {
    "asked", "at", "found", "given", "here", "kept", "known", "made", "meant", "one", "others",
    "rest", "said", "seen", "taken", "then", "there", "told", "wanted",
}  # fmt: skip
"""They say that there is something, and not what."""


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a module gives to values, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store(), lineno=line):
                yield name, line
            case ast.arg(arg=name, lineno=line):
                yield name, line
            case ast.Attribute(attr=name, ctx=ast.Store(), lineno=line):
                yield name, line
            case ast.ExceptHandler(name=str(name), lineno=line):
                yield name, line


def docstrings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The texts that explain modules, classes, functions and constants, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                yield text, line


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_name_the_thing(path):
    tree = ast.parse(path.read_text())
    assert [f"line {line}: {name}" for name, line in bound_names(tree) if name in EMPTY_NAMES] == []
    assert [f"line {line}" for text, line in docstrings(tree) if text.startswith("Of ")] == []
