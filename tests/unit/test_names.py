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
PREPOSITIONS = {
    "above", "after", "among", "at", "before", "behind", "below", "beside", "between", "by", "for",
    "in", "into", "of", "on", "since", "through", "until", "within",
}  # fmt: skip
"""A function's name begins with what it does or gives; `from_`, `to_`, `with_` are idioms."""
NOT_OURS = {"on_message_begin", "on_headers_complete", "on_body", "until_ms"}
"""Callbacks of httptools, and a time."""


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The functions and methods of a module, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


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
    beginnings = [(name, line, name.strip("_").split("_")[0]) for name, line in functions(tree)]
    prepositions = [
        f"line {line}: {name}" for name, line, word in beginnings if word in PREPOSITIONS
    ]
    assert [text for text in prepositions if text.split()[-1] not in NOT_OURS] == []
