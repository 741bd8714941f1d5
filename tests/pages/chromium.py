"""Chromium for the tests of the page: where it is, and `python -m tests.pages.chromium` gets it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAYS = (
    ["apt-get", "update", "--quiet"],
    ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", "chromium"],
)


def executable() -> str | None:
    """The path of a Chromium; None: there is none, and the tests in a browser are skipped."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def install() -> str | None:
    """Install Debian's Chromium if this is root on Debian; None: there is none afterwards."""
    if executable() is None and os.geteuid() == 0 and Path("/etc/debian_version").exists():
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in WAYS:
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                print(f"{' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return executable()


if __name__ == "__main__":
    if install() is None:
        print("no Chromium: the tests of the page in a browser will be skipped", file=sys.stderr)
