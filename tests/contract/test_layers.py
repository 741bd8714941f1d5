"""Contents of the layers: their size with the packages installed here, and the lock.

`make build` measures the real layers with the same limits (tests/checks/built.py).
"""

from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.checks.built import LIMITS, locked, megabytes, normal

ROOT = Path(__file__).parents[2]
SOURCES = {
    "BridgeLayer": "layers/bridge",
    "ColumnarLayer": "layers/columnar",
    "TracingLayer": "layers/tracing",
    "RestCatalogFunction": "functions/rest_catalog",
    "CommitsFunction": "functions/commits",
}


def packages(requirements: list[str]) -> set[str]:
    """The packages of a list of requirements, recursively, without optional ones."""
    found: set[str] = set()
    waiting = [line for line in requirements if line and not line.startswith("#")]
    while waiting:
        requirement = Requirement(waiting.pop())
        name = normal(requirement.name)
        if name not in found and (not requirement.marker or requirement.marker.evaluate()):
            found.add(name)
            waiting += distribution(name).requires or []
    return found


def installed(folder: str) -> set[str]:
    return packages((ROOT / SOURCES[folder] / "requirements.in").read_text().splitlines())


def size(package: str) -> float:
    files = distribution(package).files or []
    paths = [Path(file.locate()) for file in files if ".." not in file.parts]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


@pytest.mark.parametrize("folders", LIMITS, ids=" + ".join)
def test_layers_are_small_enough(folders):
    total = sum(megabytes(ROOT / SOURCES[folder]) for folder in folders)
    total += sum(size(package) for folder in folders for package in installed(folder))
    assert 1 < total < LIMITS[folders], f"{total:.0f} MB"


@pytest.mark.parametrize("folder", SOURCES)
def test_layers_contain_locked_versions(folder):
    for package in installed(folder):
        assert distribution(package).version == locked()[package]


@pytest.mark.parametrize("folder", SOURCES)
def test_what_sam_installs_is_pinned_with_hashes(folder):
    """`make lock` makes requirements.txt; pip requires all hashes as soon as one is present."""
    text = (ROOT / SOURCES[folder] / "requirements.txt").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    pinned = {}
    for requirement, *hashes in lines:
        name, _, version = requirement.partition("==")
        pinned[normal(name)] = version
        assert hashes and all(one.startswith("--hash=sha256:") for one in hashes)
        assert locked()[normal(name)] == version
    # The Python here is another one, which may need fewer packages than Lambda's.
    assert pinned.keys() >= installed(folder)


def test_no_layer_contains_packages_of_the_runtime():
    """Except the layer of X-Ray, which is added only if tracing is on."""
    folders = SOURCES.keys() - {"TracingLayer"}
    everything = {package for folder in folders for package in installed(folder)}
    assert not everything & {"boto3", "botocore", "pyarrow", "s3transfer"}
