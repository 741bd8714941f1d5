"""A function takes few values and unpacks few: of more, those that belong together are a record."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from polynya_local.cli import SUBCOMMANDS

ROOT = Path(__file__).parents[2]
FOLDERS = ("layers", "functions", "local/polynya_local", "pipeline")
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
MOST_PARAMETERS = 9
MOST_NAMES = 6


def long_signatures(tree: ast.AST) -> Iterator[str]:
    """The functions with too many parameters.

    A command has one for each of its options, and so has the function of the same name that does
    the same for Python.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        name, decorators = getattr(node, "name", "lambda"), getattr(node, "decorator_list", [])
        is_command = any(".command(" in ast.unparse(decorator) for decorator in decorators)
        of_node = (one for one in ast.iter_child_nodes(node.args) if isinstance(one, ast.arg))
        parameters = [one.arg for one in of_node if one.arg not in {"self", "cls"}]
        if len(parameters) > MOST_PARAMETERS and not is_command and name not in SUBCOMMANDS:
            yield f"line {node.lineno}: {name} has {len(parameters)} parameters"


def long_unpackings(tree: ast.AST) -> Iterator[str]:
    """The places where too many names are given to values by position, except constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
            names = [ast.unparse(name) for name in node.elts]
            if len(names) > MOST_NAMES and not all(name.isupper() for name in names):
                yield f"line {node.lineno}: {', '.join(names)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_belongs_together_is_a_record(path):
    tree = ast.parse(path.read_text())
    assert [*long_signatures(tree), *long_unpackings(tree)] == []


PLANTED = """
def entries(self, a, b, c, /, d, *e, f, g, h, i, **j): ...
def metadata(self, a, b, c, /, d, *e, f, g, h, **i): ...
@aws.command("check")
def check(a, b, c, d, e, f, g, h, i, j): ...
def ingest(a, b, c, d, e, f, g, h, i, j): ...
A, B, C, D, E, F, G = range(7)
a, b, c, d, e, f = row
for a, (b, c, d, e, f, g, h) in rows: ...
"""


def test_a_long_list_is_found():
    tree = ast.parse(PLANTED)
    assert [*long_signatures(tree)] == ["line 2: entries has 10 parameters"]
    assert [*long_unpackings(tree)] == ["line 9: b, c, d, e, f, g, h"]
