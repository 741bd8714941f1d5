"""Chromium for the tests of the page: where it is, and `python -m tests.pages.chromium` gets it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Without a network it gives up soon.
APT = ["apt-get", "--quiet", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
WAYS = ([*APT, "update"], [*APT, "install", "--yes", "--no-install-recommends", "chromium"])
SECONDS = 300


def executable() -> str | None:
    """The path of a Chromium; None: there is none, and the tests in a browser are skipped."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def install() -> str | None:
    """Install Debian's Chromium if this is root on Debian; None: there is none afterwards."""
    if executable() is None and os.geteuid() == 0 and Path("/etc/debian_version").exists():
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in WAYS:
            _run(command, environment)
    return executable()


def _run(command: list[str], environment: dict[str, str]) -> None:
    try:
        subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=SECONDS
        )
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()[-300:]
        print(f"{' '.join(command)}: {said}", file=sys.stderr)


if __name__ == "__main__":
    if install() is None:
        print("no Chromium: the tests of the page in a browser will be skipped", file=sys.stderr)
