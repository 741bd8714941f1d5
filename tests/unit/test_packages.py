"""The wheel has every package: a folder that pyproject.toml lacks is missing in it."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pyproject_names_every_package():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        ".".join((name, *module.relative_to(ROOT / folder).parts[:-1]))
        for name, folder in tools["package-dir"].items()
        for module in (ROOT / folder).rglob("*.py")
    }
    assert folders - {"polynya_functions"} == set(tools["packages"])
