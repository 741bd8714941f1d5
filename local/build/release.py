"""`make release`: checks that the version can be released, and tags the commit.

python3 -m local.build.release                  check, and tag; nothing is pushed
python3 -m local.build.release --push origin    also push the tag, which starts the release
python3 -m local.build.release --check v0.2.0   only check that the tag fits, as CI does
python3 -m local.build.release --notes          print the version's section of the changelog
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

MAIN = "main"
HEADING = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
VERSION = re.compile(r"\d+\.\d+\.\d+")
UPGRADES = "## What an upgrade changes, by version"


def version_of(root: Path) -> str:
    """The version of the package."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def sections(changelog: str) -> dict[str, str]:
    """The text of each section of the changelog, by its title."""
    headings = list(HEADING.finditer(changelog))
    ends = [heading.start() for heading in headings[1:]] + [len(changelog)]
    return {
        heading["title"]: changelog[heading.end() : end].strip()
        for heading, end in zip(headings, ends, strict=True)
    }


def notes(version: str, changelog: str) -> str | None:
    """The changelog's section of a version; None if it has none."""
    dated = re.compile(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d")
    texts = (text for title, text in sections(changelog).items() if dated.fullmatch(title))
    return next(texts, None)


def problems(root: Path) -> Iterator[str]:
    """The reasons why the version of a checkout cannot be released."""
    version = version_of(root)
    changelog = (root / "CHANGELOG.md").read_text()
    if not VERSION.fullmatch(version):
        yield f"pyproject.toml: {version} is no version like 1.2.3"
    if not notes(version, changelog):
        yield f"CHANGELOG.md: there is no section '## {version} - <date>' with lines in it"
    if sections(changelog).get("Unreleased"):
        yield f"CHANGELOG.md: lines under 'Unreleased' belong to {version}, or to a later version"
    upgrades = (root / "docs/upgrading.md").read_text().partition(UPGRADES)[2]
    titles = re.findall(r"^### (\S+)$", upgrades, re.MULTILINE)
    if version not in titles:
        yield f"docs/upgrading.md: there is no section '### {version}'"
    if "Unreleased" in titles:
        yield f"docs/upgrading.md: 'Unreleased' is {version} now"


def git_problems(root: Path, tag: str) -> Iterator[str]:
    """The reasons why a commit cannot be tagged."""
    if _git(root, "status", "--porcelain"):
        yield "there are changes that are not committed"
    if (branch := _git(root, "branch", "--show-current")) != MAIN:
        yield f"releases are made of {MAIN}, and this is {branch or 'no branch'}"
    if _git(root, "tag", "--list", tag):
        yield f"the tag {tag} exists"


def release(root: Path, remote: str | None) -> str:
    """Tag the commit, and return a sentence with the next step.

    Args:
        remote: where the tag is pushed to; None: nowhere.

    Raises:
        SystemExit: the version or the commit cannot be released.
    """
    version = version_of(root)
    tag = f"v{version}"
    _stop([*problems(root), *git_problems(root, tag)])
    _git(root, "tag", "--annotate", tag, "--message", f"Polynya {version}")
    if remote is None:
        return f"{tag} is tagged here. `git push origin {tag}` releases it."
    _git(root, "push", remote, tag)
    return f"{tag} is tagged and pushed to {remote}."


def _stop(reasons: list[str]) -> None:
    if reasons:
        sys.exit("\n".join(["no release:", *(f"- {reason}" for reason in reasons)]))


def _git(root: Path, *arguments: str) -> str:
    process = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"git {arguments[0]}: {process.stderr.strip()}")
    return process.stdout.strip()


def main(arguments: list[str], root: Path = ROOT) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="make release")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--push", metavar="REMOTE", help="push the tag")
    choice.add_argument("--check", metavar="TAG", help="only check the version, and its tag")
    choice.add_argument("--notes", action="store_true", help="print the section of the changelog")
    options = parser.parse_args(arguments)
    version = version_of(root)
    if options.notes:
        print(notes(version, (root / "CHANGELOG.md").read_text()) or "")
    elif options.check:
        is_other = options.check != f"v{version}"
        _stop([*problems(root), *([f"the version is {version}, not {options.check}"] * is_other)])
    else:
        print(release(root, options.push))


if __name__ == "__main__":
    main(sys.argv[1:])
