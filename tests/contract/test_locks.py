"""Packages, jars and archives that are installed and started have the bytes that were chosen."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from polynya.iceberg import sandbox
from polynya_local.clients import spark_jars

from tests.checks.built import locked, normal
from tests.engines.trino import archives

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "requirements"
DYNAMIC = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["dynamic"]
FILES = {
    "serve": DYNAMIC["dependencies"]["file"],
    "setup": [
        *DYNAMIC["dependencies"]["file"],
        *(path for extra in DYNAMIC["optional-dependencies"].values() for path in extra["file"]),
    ],
    "build": ["requirements/build.in"],
}
"""The ranges that each lock is made of."""
ELSEWHERE = {"colorama", "pywin32"}
"""Packages for Windows only, which the tests do not have."""


def versions(name: str) -> dict[str, str]:
    """The locked versions, by normal name; each has its hashes."""
    lines = (LOCKS / f"{name}.txt").read_text().replace("\\\n", " ").splitlines()
    found = {}
    for line in filter(lambda line: line and not line.startswith("#"), lines):
        requirement, *hashes = re.split(r"\s+--hash=", line)
        parsed = Requirement(requirement)
        [pin] = parsed.specifier
        assert pin.operator == "==", line
        assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}\\s*", one) for one in hashes), line
        found[normal(parsed.name)] = pin.version
    return found


def ranges(name: str) -> list[Requirement]:
    """What a lock is made of."""
    lines = [line for path in FILES[name] for line in (ROOT / path).read_text().splitlines()]
    return [Requirement(line) for line in lines if line and line[0] != "#"]


@pytest.mark.parametrize("name", FILES)
def test_each_range_has_a_locked_version(name):
    """Otherwise somebody has changed the range without `make lock`."""
    lock = versions(name)
    for requirement in ranges(name):
        assert requirement.specifier.contains(lock[normal(requirement.name)]), requirement


@pytest.mark.parametrize("name", ["pg8000", "uvicorn"])
def test_the_next_minor_version_of_a_package_whose_inside_we_use_is_not_installed(name):
    """It may be another one inside, which nobody promises to keep."""
    major, minor, *_ = map(int, versions("setup")[name].split("."))
    found = [one for one in ranges("setup") if normal(one.name) == name]
    assert found
    for requirement in found:
        assert not requirement.specifier.contains(f"{major}.{minor + 1}"), requirement


def test_the_layer_has_the_duckdb_that_functions_without_it_name_files_by():
    lock = (ROOT / "layers/columnar/requirements.txt").read_text()
    assert re.search(rf"^duckdb=={re.escape(sandbox.LAYER)} ", lock, re.MULTILINE)


@pytest.mark.parametrize("name", ["serve", "setup"])
def test_locked_versions_are_those_that_the_tests_run_with(name):
    chosen = locked()
    assert {p: v for p, v in versions(name).items() if p not in ELSEWHERE} == {
        package: chosen[package] for package in versions(name) if package not in ELSEWHERE
    }


def test_the_lock_of_sam_is_the_makefiles_version():
    [version] = re.findall(r"^SAM_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert versions("sam") == {"aws-sam-cli": version}


def commands(path: str) -> list[list[str]]:
    """The commands of a file that install packages, as words."""
    text = (ROOT / path).read_text().replace("\\\n", " ")
    text = text.replace("$(INSTALL)", "pip install")
    pieces = re.split(r"\n|&&", text)
    return [shlex.split(piece[piece.index("pip ") :]) for piece in pieces if "pip install" in piece]


INSTALLS = [
    *commands("docs/docker/Dockerfile"),
    *commands("Makefile")[1:4],  # the first is INSTALL itself; those of `make setup`
]


@pytest.mark.parametrize("words", INSTALLS, ids=" ".join)
def test_what_is_installed_has_a_hash_or_is_our_own(words):
    if "--require-hashes" in words:
        assert Path(words[words.index("--requirement") + 1]).name in {
            path.name for path in LOCKS.glob("*.txt")
        }
    else:
        assert "--no-deps" in words
        assert words[-1] in {".", "/tmp/polynya/*.whl"}


def test_the_installs_are_those_of_the_two_files():
    assert len(INSTALLS) == 5


def test_a_jar_with_other_bytes_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(spark_jars, "CACHE", tmp_path)
    jars = [tmp_path / spark_jars.file_name(artifact) for artifact in spark_jars.ARTIFACTS]
    for jar in jars:
        jar.write_bytes(jar.name.encode())
    genuine = {
        artifact: spark_jars.sha256(jar)
        for artifact, jar in zip(spark_jars.ARTIFACTS, jars, strict=True)
    }
    monkeypatch.setattr(spark_jars, "SHA256", genuine)
    assert spark_jars.jars() == jars
    jars[1].write_bytes(b"other")
    assert spark_jars.jars() is None
    monkeypatch.setattr(spark_jars, "fetch_with_maven", lambda artifact, digest: False)
    monkeypatch.setattr(spark_jars, "_fetch_with_spark", lambda artifacts: None)
    with pytest.raises(SystemExit, match="have another SHA-256"):
        spark_jars.fetch()
    other = tmp_path / "part" / jars[1].name
    other.parent.mkdir()
    other.write_bytes(b"more")
    assert not spark_jars._move_into_cache(other, genuine[spark_jars.ARTIFACTS[1]])


def test_an_archive_of_trino_with_other_bytes_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(archives.subprocess, "run", lambda *_, **__: None)
    (tmp_path / "trino-iceberg-476.zip").write_bytes(b"other")
    with pytest.raises(ValueError, match="another SHA-256"):
        archives._downloaded(archives.PLUGIN, tmp_path)
