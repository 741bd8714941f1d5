"""Versions and their changes."""

import re
import tomllib
from pathlib import Path

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
