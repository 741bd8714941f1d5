"""What a job can tell its user went wrong: one sentence, and an exit code."""

import re

CAUSE = re.compile(r"^Caused by: (.*)$", re.M)


def spark_message(error: Exception) -> str:
    """In one line: Java's innermost cause, or else how the message begins.

    What an executor has failed with comes as py4j's own error, and not as PySpark's.
    """
    words = CAUSE.findall(str(error)) or str(error).strip().splitlines()[:1]
    return str([type(error).__name__, *words][-1])


class JobError(Exception):
    """Base of every error that a job raises on purpose."""

    exit_code = 1


class BadInput(JobError):
    """The job cannot be done as it was asked for; the message says what to change."""

    exit_code = 2


class Conflict(JobError):
    """Somebody else has changed what the job relied on; it has written nothing."""

    exit_code = 3


class Overtaken(Conflict):
    """A table of inlined rows is gone, which no transaction protects: the whole is done anew."""


class Unavailable(JobError):
    """PostgreSQL or the storage does not answer, or refuses this role."""

    exit_code = 4
