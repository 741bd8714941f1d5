"""Versions and their changes."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from local.build import release

ROOT = Path(__file__).parents[2]
RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_newest_version_of_the_changelog_is_that_of_the_package():
    releases = RELEASE.findall((ROOT / "CHANGELOG.md").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert releases[0][0] == project["version"]
    assert [date for _, date in releases] == sorted((d for _, d in releases), reverse=True)


def test_the_upgrading_page_has_a_section_for_each_version():
    releases = [version for version, _ in RELEASE.findall((ROOT / "CHANGELOG.md").read_text())]
    page = (ROOT / "docs/upgrading.md").read_text()
    sections = re.findall(r"^### (\S+)$", page, re.MULTILINE)
    assert [section for section in sections if section != "Unreleased"] == releases


READY = {
    "pyproject.toml": '[project]\nname = "polynya"\nversion = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n\n- More.\n\n"
    "## 1.1.0 - 2026-11-01\n\n- Less.\n",
    "docs/upgrading.md": f"# Upgrading\n\n{release.UPGRADES}\n\n### 1.2.0\n\n- Nothing.\n",
}
"""The files of a version that can be released."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository on main, whose version can be released, and its remote `origin`."""
    root, remote = tmp_path / "checkout", tmp_path / "remote"
    (root / "docs").mkdir(parents=True)
    for name, text in READY.items():
        (root / name).write_text(text)
    git(tmp_path, "init", "--quiet", "--bare", str(remote))
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@example.invalid")
    git(root, "remote", "add", "origin", str(remote))
    commit(root)
    return root


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "x")


def test_a_release_is_a_tag_and_pushes_nothing(checkout):
    release.main([], checkout)
    assert git(checkout, "describe", "--exact-match") == "v1.2.0"
    assert git(checkout, "ls-remote", "origin") == ""
    release.main(["--check", "v1.2.0"], checkout)


def test_a_release_that_is_to_push_pushes_the_tag_alone(checkout):
    release.main(["--push", "origin"], checkout)
    names = [line.split("\t")[1] for line in git(checkout, "ls-remote", "origin").splitlines()]
    assert names == ["refs/tags/v1.2.0", "refs/tags/v1.2.0^{}"]


@pytest.mark.parametrize(
    "name, old, new, reason",
    [
        ("pyproject.toml", "1.2.0", "1.3.0", "no section '## 1.3.0 - <date>'"),
        ("pyproject.toml", "1.2.0", "1.2.0rc1", "no version like 1.2.3"),
        ("CHANGELOG.md", "- More.", "", "no section '## 1.2.0 - <date>' with lines"),
        ("CHANGELOG.md", "Unreleased\n", "Unreleased\n\n- Later.\n", "under 'Unreleased'"),
        ("docs/upgrading.md", "### 1.2.0", "### 1.1.0", "no section '### 1.2.0'"),
        ("docs/upgrading.md", "### 1.2.0", "### Unreleased\n### 1.2.0", "'Unreleased' is 1.2.0"),
    ],
)
def test_what_does_not_agree_is_not_released(checkout, name, old, new, reason):
    (checkout / name).write_text(READY[name].replace(old, new))
    commit(checkout)
    for arguments in ([], ["--check", "v1.2.0"]):
        with pytest.raises(SystemExit, match=re.escape(reason)):
            release.main(arguments, checkout)
    assert git(checkout, "tag") == ""


def test_only_a_clean_and_new_commit_of_main_is_tagged(checkout):
    (checkout / "new").write_text("")
    with pytest.raises(SystemExit, match="not committed"):
        release.main([], checkout)
    commit(checkout)
    git(checkout, "switch", "--quiet", "--create", "other")
    with pytest.raises(SystemExit, match="made of main, and this is other"):
        release.main([], checkout)
    git(checkout, "switch", "--quiet", "main")
    git(checkout, "tag", "v1.2.0")
    with pytest.raises(SystemExit, match=re.escape("the tag v1.2.0 exists")):
        release.main([], checkout)


def test_the_tag_of_another_version_does_not_fit(checkout):
    with pytest.raises(SystemExit, match=re.escape("the version is 1.2.0, not v1.1.0")):
        release.main(["--check", "v1.1.0"], checkout)


def test_the_notes_of_a_release_are_its_section(checkout, capsys):
    release.main(["--notes"], checkout)
    assert capsys.readouterr().out == "- More.\n"
