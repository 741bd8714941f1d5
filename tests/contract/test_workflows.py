"""The files of .github: workflows run what exists, with the least rights; forms are complete."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/[0-9]*.yml"))
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")
HOSTS = re.compile(r"\b[\w-]+\.(?:io|org|com|net|dev)\b")
MAY_WRITE = {
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "release"): {"contents"},
}
"""The jobs that have more than the right to read the repository."""
FIELDS = {"markdown", "dropdown", "textarea", "input", "checkboxes"}


def parsed(path: Path) -> dict[str, Any]:
    document = yaml.safe_load(path.read_text())
    # YAML 1.1 reads the key `on` as a boolean.
    return {"on" if key is True else key: value for key, value in document.items()}


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    return parsed(path)["jobs"]


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job.get("steps", [])]


def commands(path: Path) -> list[str]:
    return [step["run"] for step in steps(path) if "run" in step]


by_name = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def test_the_workflows_are_these():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]


def test_every_push_and_pull_request_runs_what_ci_runs():
    path = GITHUB / "workflows/ci.yml"
    events = parsed(path)["on"]
    assert events["push"] == {"branches": ["main"]}
    assert "pull_request" in events and "pull_request_target" not in events
    assert commands(path) == ["bash .ci/run"]
    assert (ROOT / ".ci/run").is_file()


MAKEFILE = (ROOT / "Makefile").read_text()
RUNTIME = re.findall(r"^RUNTIME \?= (\S+)$", MAKEFILE, re.MULTILINE)


def test_ci_has_the_python_of_lambda_beside_the_one_of_the_tests():
    """The last one that setup-python gets is `python3`."""
    setups = [
        step
        for step in steps(GITHUB / "workflows/ci.yml")
        if "setup-python@" in step.get("uses", "")
    ]
    [given] = [step["with"]["python-version"].split() for step in setups]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert given == [*RUNTIME, project["requires-python"].removeprefix(">=")]


@pytest.mark.parametrize(("environment", "status"), [({}, 0), ({"GITHUB_ACTIONS": "true"}, 2)])
def test_ci_fails_where_the_python_of_lambda_is_missing(environment, status):
    """Elsewhere a line says so. The tests that come before are taken as done."""
    command = ["make", "--old-file=duckdb2-tests", "lambda-tests", "RUNTIME=0.0"]
    others = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"}
    made = subprocess.run(
        command, cwd=ROOT, env=others | environment, capture_output=True, text=True, timeout=60
    )
    assert "python0.0, which Lambda has, is not installed" in made.stdout
    assert made.returncode == status


@by_name
def test_a_workflow_may_read_the_repository_and_no_more(path: Path):
    assert parsed(path)["permissions"] == {"contents": "read"}
    for name, job in jobs(path).items():
        granted = job.get("permissions", {})
        written = {right for right, level in granted.items() if level != "read"}
        assert written == MAY_WRITE.get((path.name, name), set()), name


@by_name
def test_actions_are_pinned_to_a_commit(path: Path):
    local = [job["uses"] for job in jobs(path).values() if "uses" in job]
    assert all((ROOT / name).is_file() for name in local)
    actions = [step["uses"] for step in steps(path) if "uses" in step]
    assert actions and [action for action in actions if not PINNED.fullmatch(action)] == []


@by_name
def test_no_step_has_the_token_longer_than_it_needs_it(path: Path):
    checkouts = [step for step in steps(path) if "actions/checkout@" in step.get("uses", "")]
    assert checkouts and all(step["with"] == {"persist-credentials": False} for step in checkouts)


@by_name
def test_commands_are_targets_and_modules_that_exist(path: Path):
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for command in commands(path):
        assert set(re.findall(r"\bmake ([a-z-]+)", command)) <= targets, command
        for module in re.findall(r"python3 -m ([\w.]+)", command):
            assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file(), command
        # A name that somebody else chooses (of a branch, of a pull request) would be a command.
        assert not re.search(r"\$\{\{\s*github\.(?!token)", command), command


@by_name
def test_files_that_a_workflow_names_exist(path: Path):
    given = [step.get("with", {}) for step in steps(path)]
    named = [value["file"] for value in given if "file" in value]
    named += [value["cache-dependency-path"] for value in given if "cache-dependency-path" in value]
    named += re.findall(r"hashFiles\('([^']+)'\)", path.read_text())
    assert named and all(list(ROOT.glob(name)) for name in named), named


@by_name
def test_every_job_has_a_limit_and_no_registry_is_named(path: Path):
    assert all("timeout-minutes" in job for job in jobs(path).values() if "uses" not in job)
    code = re.sub(r"#.*", "", path.read_text())
    assert HOSTS.findall(code) == []


def test_a_release_begins_with_a_tag_and_publishes_after_the_tests():
    path = GITHUB / "workflows/release.yml"
    assert parsed(path)["on"] == {"push": {"tags": ["v*"]}}
    tested = jobs(path)["test"]
    assert tested["uses"] == "./.github/workflows/ci.yml"
    for job in ("pypi", "image"):
        assert set(jobs(path)[job]["needs"]) == {"test", "wheel", "template"}
        assert "environment" in jobs(path)[job]
    assert set(jobs(path)["release"]["needs"]) == {"pypi", "image"}
    image = jobs(path)["image"]["steps"][-1]["with"]
    assert (image["platforms"], image["push"]) == ("linux/amd64,linux/arm64", True)
    architectures = jobs(path)["template"]["strategy"]["matrix"]["architecture"]
    template = (ROOT / "template.yaml").read_text()
    assert re.search(rf"AllowedValues: \[{', '.join(architectures)}\]", template)


def test_updates_are_looked_for_where_packages_are_named():
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]
    by_ecosystem = {update["package-ecosystem"]: update for update in updates}
    assert by_ecosystem.keys() == {"pip", "github-actions", "docker"}
    patterns = [folder[1:] for folder in by_ecosystem["pip"]["directories"]]
    looked_at = {folder for pattern in patterns for folder in ROOT.glob(pattern or "*/..")}
    lists = [*ROOT.glob("pyproject.toml"), *ROOT.glob("[!.]*/**/requirements*.txt")]
    lists += ROOT.glob("requirements/*.txt")
    folders = {path.parent for path in lists if not path.is_relative_to(ROOT / "dist")}
    # Clients in fixed versions, which the documents name.
    fixed = {ROOT / "tests/matrix", ROOT / "tests/engines/trino"}
    assert {folder.resolve() for folder in looked_at if folder.is_dir()} == folders - fixed
    assert (ROOT / by_ecosystem["docker"]["directory"][1:] / "Dockerfile").is_file()
    assert not list(ROOT.glob("[!.]*/**/package.json"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_is_one(path: Path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= form.keys()
    assert {field["type"] for field in form["body"]} <= FIELDS
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(set(ids)) == len(ids) and any(field.get("validations") for field in form["body"])
    for field in form["body"]:
        assert field["attributes"]["value" if field["type"] == "markdown" else "label"]


def test_the_first_form_asks_about_wrong_rows_first():
    form = yaml.safe_load(FORMS[0].read_text())
    kind = next(field for field in form["body"] if field["type"] == "dropdown")
    assert kind["attributes"]["options"][0].startswith("Wrong rows")
    assert [path.name for path in FORMS] == ["1-bug.yml", "2-feature.yml"]
