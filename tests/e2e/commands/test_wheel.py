"""The wheel installs into an empty environment, and its commands work without a checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest
from polynya_local.clients.pyiceberg import PyIceberg
from polynya_local.processes.serving import environment
from setuptools import find_packages

ROOT = Path(__file__).parents[3]


SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FIND = SETUPTOOLS["packages"]["find"]
PACKAGES = {
    package: ROOT / where / package.replace(".", "/")
    for where in FIND["where"]
    for package in find_packages(str(ROOT / where), include=FIND["include"])
}
TOPS = {name for name in PACKAGES if "." not in name}
UNTRACKED = shutil.ignore_patterns("__pycache__")
# Downloads 170 MB, or takes them from pip's cache.
installs = pytest.mark.slow

EXTRA_PACKAGES = ["pyarrow", "pandas", "pyspark", "moto", "pytest"]


def test_every_folder_with_modules_is_a_package_of_the_wheel():
    assert {"polynya", "polynya_local", "polynya_pipeline"} == TOPS
    folders = {module.parent for top in TOPS for module in PACKAGES[top].rglob("*.py")}
    assert folders == set(PACKAGES.values())


def test_every_file_beside_the_modules_is_data_of_the_wheel():
    data = {
        path
        for package, patterns in SETUPTOOLS["package-data"].items()
        for pattern in patterns
        for path in PACKAGES[package].glob(pattern)
    }
    beside = {
        path for folder in PACKAGES.values() for path in files_of(folder) if path.suffix != ".py"
    }
    assert beside == data


def test_no_extra_is_needed_to_serve_and_to_look_inside():
    """The modules of these commands, where packages of the extras cannot be imported."""
    modules = ["cli", "served_lake", "lakes.opened", "inspect", "reports.metadata_files"]
    modules += ["reports.diagnosis", "page.app", "reports.preview_worker"]
    blocked = "import sys; sys.modules.update(dict.fromkeys({}))"
    imports = "; ".join(f"import polynya_local.{module}" for module in modules)
    code = f"{blocked.format(EXTRA_PACKAGES)}; {imports}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_default_requires_none_of_the_extras_packages():
    files = SETUPTOOLS["dynamic"]["dependencies"]["file"]
    lines = [line for file in files for line in (ROOT / file).read_text().splitlines()]
    names = {re.split(r"[^\w.-]", line)[0] for line in lines}
    assert "duckdb" in names and not names & set(EXTRA_PACKAGES)


def files_of(package: Path) -> Iterator[Path]:
    """The files of a package's folder, and of folders in it that are no packages."""
    for path in package.iterdir():
        if path.is_file():
            yield path
        elif path.name != "__pycache__" and not (path / "__init__.py").exists():
            yield from files_of(path)


@dataclass
class Installed:
    """An environment with the wheel, and an empty folder."""

    wheel: Path
    folder: Path
    here: Path

    def run(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        command = [self.folder / "bin/polynya", *words]
        given = self.environment(settings)
        return subprocess.run(command, cwd=self.here, env=given, capture_output=True, text=True)

    def environment(self, settings: dict[str, str]) -> dict[str, str]:
        return without_checkout(environment(settings)) | {"HOME": str(self.here)}


def without_checkout(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in variables.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    """Builds the wheel from a copy, to exclude older builds, and installs it without an extra."""
    folder = tmp_path_factory.mktemp("wheel")
    clean = without_checkout(os.environ)
    source = folder / "source"
    source.mkdir()
    for top in TOPS:
        path = PACKAGES[top].relative_to(ROOT)
        shutil.copytree(ROOT / path, source / path, ignore=UNTRACKED)
    for pattern in ("*.toml", "*.md", "LICENSE", "NOTICE", "*/requirements*", "*/*/requirements*"):
        for path in ROOT.glob(pattern):
            target = source / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "-w", folder / "dist", source], check=True, env=clean
    )
    [wheel] = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv")
    pip += ["--python", str(folder / "venv/bin/python"), "install"]
    locked = ["--require-hashes", "--requirement", str(ROOT / "requirements/serve.txt")]
    for what in ([*locked, "--only-binary", ":all:"], ["--no-deps", str(wheel)]):  # as a container
        subprocess.run([*pip, *what], check=True, env=clean)
    here = folder / "here"
    here.mkdir()
    return Installed(wheel, folder / "venv", here)


@installs
def test_the_wheel_installs_no_generic_package_name(installed):
    with ZipFile(installed.wheel) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == TOPS


@installs
def test_the_wheel_prints_its_version(installed):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    done = installed.run("--version")
    assert (done.returncode, done.stdout) == (0, f"polynya {project['version']}\n")


@installs
def test_serve_works(installed, lake, moto):
    made = lake("01")
    command = [installed.folder / "bin/polynya", "serve", "--database", made.database.url]
    command += ["--s3-endpoint", moto, "--port", "0"]
    process = subprocess.Popen(
        command,
        cwd=installed.here,
        env=installed.environment({}),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        ready = json.loads(process.stdout.readline())
        client = PyIceberg(ready["catalog_uri"], ready["warehouse"], ready["s3_endpoint"])
        [(namespace, table), *_] = client._catalog.list_tables("main")
        assert client.rows(namespace, table).num_rows > 0
        client.close()
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


@installs
def test_doctor_and_inspect_work(installed, lake, moto):
    made = lake("01")
    where = ("--database", made.database.url, "--s3-endpoint", moto)
    done = installed.run("doctor", *where, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["well"]) == (0, True), done.stderr
    assert all(count["same"] for table in report["tables"] for count in table["counts"])
    done = installed.run("inspect", report["tables"][0]["name"], *where)
    assert done.returncode == 0 and "manifest list" in done.stdout, done.stderr


@installs
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["demo"], "demo"),
        (["ingest", "t", "f", "--database", "{}"], "pipeline"),
        (["publish", "--database", "{}"], "pipeline"),
        (["verify", "--database", "{}"], "pipeline"),
    ],
)
def test_a_missing_extra_is_named(installed, lake, words, extra):
    url = lake("01").database.url
    done = installed.run(*(word.format(url) for word in words))
    assert done.returncode == 1
    [_] = done.stderr.splitlines()
    assert done.stderr.endswith(f"pip install 'polynya[{extra}]'\n")
