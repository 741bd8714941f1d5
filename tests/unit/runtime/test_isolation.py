"""What others wrote reaches a parser in C only in a function that a host can call elsewhere."""

import ast
from pathlib import Path

import pytest
from polynya.runtime.errors import BadRequest
from polynya.runtime.isolation import isolated, isolating

PACKAGE = Path(__file__).parents[3] / "layers/bridge/polynya"

PARSERS = ("sandbox(reads_file=True)", "BitMap64.deserialize(")
"""Calls of DuckDB with a file of the lake or of a client, and of Roaring bitmaps."""


@isolated
def joined(*words):
    return " ".join(words)


def test_a_host_may_call_it_elsewhere():
    def refuse(function, *arguments):
        raise BadRequest("no")

    assert joined("a", "b") == "a b"
    with isolating(lambda function, *arguments: (function, arguments)):
        assert joined("a", "b") == (joined, ("a", "b"))
        with isolating(refuse), pytest.raises(BadRequest):
            joined("a")
        assert joined("c") == (joined, ("c",))
    assert joined("a", "b") == "a b"


def exposed(module: ast.Module) -> set[str]:
    """Functions that call a parser, themselves or through others of the module, and are not
    isolated."""
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    calls = {
        one.name: {
            node.func.id
            for node in ast.walk(one)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        for one in functions
    }
    direct = {one.name for one in functions if any(p in ast.unparse(one) for p in PARSERS)}
    is_isolated = {
        one.name for one in functions if "isolated" in map(ast.unparse, one.decorator_list)
    }
    reaching: set[str] = set()
    while more := {
        name
        for name, called in calls.items()
        if name not in reaching | is_isolated and (name in direct or called & reaching)
    }:
        reaching |= more
    return reaching


def test_every_parser_of_what_others_wrote_is_isolated():
    found = {path.stem: exposed(ast.parse(path.read_text())) for path in PACKAGE.rglob("*.py")}
    public = {f"{stem}.{name}" for stem, names in found.items() for name in names if name[0] != "_"}
    assert public == set()
    assert "_bitmap" in found["deletion_vector"]
    assert "_sparse_file" in found["generated_files"]
