"""Chromium for the tests of the page: where it is, and `python -m tests.pages.chromium` gets it."""

import shutil
import sys

from tests.support.debian import install

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """The path of a Chromium; None: there is none, and the tests in a browser are skipped."""
    return next(filter(None, map(shutil.which, NAMES)), None)


if __name__ == "__main__":
    if install("chromium", executable) is None:
        print("no Chromium: the tests of the page in a browser will be skipped", file=sys.stderr)
