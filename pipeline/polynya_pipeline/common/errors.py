"""Errors of the jobs, each with an exit code and one sentence for the user; printing on stderr."""

import sys
from typing import Any


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `2 files`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class JobError(Exception):
    """Base of all errors that a job raises on purpose."""

    exit_code = 1


class BadInput(JobError):
    """The job cannot be done as requested; the message says what to change."""

    exit_code = 2


class Conflict(JobError):
    """Another writer changed what the job relies on; the job has written nothing."""

    exit_code = 3


class ChangedMeanwhile(Conflict):
    """A table or column of the catalog was dropped while the job read it.

    A flush drops tables of inlined rows, and no transaction prevents it. The job has to be
    repeated.
    """


class Unavailable(JobError):
    """PostgreSQL or the storage does not answer, or denies access."""

    exit_code = 4


def report_error(error: JobError, as_json: bool) -> int:
    """Print an error on stderr, with `as_json` also as JSON on stdout; returns the exit code."""
    if as_json:
        document = {"error": type(error).__name__, "message": str(error)}
        print(json_text(document, indent=None))
    say(str(error))
    return error.exit_code


def say(words: str) -> None:
    """Print a line of `polynya` on stderr."""
    # Imported here, so that `--help` does not load `polynya`.
    from polynya.runtime.printable import printable

    print(f"polynya: {printable(words)}", file=sys.stderr)


def json_text(document: Any, indent: int | None = 2) -> str:
    """A document as JSON, with control characters escaped."""
    from polynya.runtime.printable import printable_json

    return printable_json(document, indent=indent)
