"""Tests, also those that CI leaves out, use only names that the product's modules have."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.unit.test_names import bound_names

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "polynya": ROOT / "layers/bridge/polynya",
    "polynya_local": ROOT / "local/polynya_local",
    "polynya_pipeline": ROOT / "pipeline/polynya_pipeline",
}


def location(module: str) -> Path | None:
    """The file or folder of a module of the product."""
    package, *inner = module.split(".")
    if package not in PACKAGES:
        return None
    path = PACKAGES[package].joinpath(*inner)
    return path if path.is_dir() else path.with_suffix(".py")


@cache
def names(module: Path) -> frozenset[str]:
    """The names at the top of a module; of a package, also its modules."""
    inside = {path.stem for path in module.iterdir()} if module.is_dir() else set()
    file = module / "__init__.py" if module.is_dir() else module
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            inside |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside.add(node.name)
    return frozenset(inside | {name for name, _ in bound_names(tree)} | {"__name__", "__file__"})


def lacking(text: str) -> Iterator[tuple[int, str]]:
    """The lines that use a name of a product's module that it does not have, with the name."""
    tree = ast.parse(text)
    rebound = {name for name, _ in bound_names(tree)}
    modules: dict[str, Path] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and (path := location(node.module)):
            for alias in node.names:
                if alias.name not in names(path):
                    yield node.lineno, f"{node.module}.{alias.name}"
                inner = location(f"{node.module}.{alias.name}")
                if inner and inner.exists():
                    modules[alias.asname or alias.name] = inner
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name not in rebound:
                if name in modules and attribute not in names(modules[name]):
                    yield node.lineno, f"{name}.{attribute}"


@pytest.mark.parametrize("folder", ["tests", "bench"])
def test_names_that_are_used_are_there(folder):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in lacking(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_a_name_that_is_gone_is_found():
    text = "from polynya_local.processes import gone, postgres\npostgres.gone\npostgres.Server\n"
    assert [*lacking(text)] == [(1, "polynya_local.processes.gone"), (2, "postgres.gone")]
