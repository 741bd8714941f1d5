"""NOTICE names each package that a layer, a function or the pipeline's archive contains."""

import re
from collections import defaultdict
from importlib.metadata import metadata, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKED = {
    "bridge": "layers/bridge",
    "columnar": "layers/columnar",
    "tracing": "layers/tracing",
    "rest_catalog": "functions/rest_catalog",
    "commits": "functions/commits",
}
PIPELINE = [
    "layers/bridge/requirements.in",
    "layers/columnar/requirements.in",
    "pipeline/requirements.txt",
]


def shipped() -> dict[str, set[str]]:
    """The parts that contain each package, by canonical name."""
    parts = defaultdict(set)
    for part, folder in LOCKED.items():
        text = (ROOT / folder / "requirements.txt").read_text()
        for name in re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==", text, re.MULTILINE):
            parts[canonicalize_name(name)].add(part)
    for name in in_the_pipeline():
        parts[name].add("pipeline")
    return dict(parts)


def in_the_pipeline() -> set[str]:
    """The packages that `make package` installs on Linux: its requirements, recursively."""
    lines = [line for path in PIPELINE for line in (ROOT / path).read_text().splitlines()]
    waiting = [Requirement(line) for line in lines if line and not line.startswith("#")]
    found = set()
    while waiting:
        one = waiting.pop()
        if (key := (canonicalize_name(one.name), frozenset(one.extras))) in found:
            continue
        found.add(key)
        for needed in map(Requirement, requires(one.name) or []):
            extras = ("", *one.extras)
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    return {name for name, _ in found}


def test_notice_names_each_package_that_is_shipped():
    _, table = (ROOT / "NOTICE").read_text().rsplit("-----\n", 1)
    rows = re.findall(r"^(\S+)  +\S.*?  +([a-z_, ]+)$", table, re.MULTILINE)
    assert {name: set(parts.split(", ")) for name, parts in rows} == shipped()


def test_each_package_has_a_licence_in_its_metadata():
    for name in shipped():
        about = metadata(name)
        classifiers = [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
        assert about.get("License-Expression") or about.get("License") or classifiers, name
