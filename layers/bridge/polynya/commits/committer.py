"""Repeats an attempt to commit until it lands, is refused, or the time is up."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from .. import budget
from ..errors import CommitFailed, CommitStateUnknown, OutOfTime, PolynyaError

TRIES = 60
LONGEST_PAUSE = 0.5
"""Between two tries, in seconds."""
RESERVE_SECONDS = 2.0
"""No new attempt begins with less time left: the answer must arrive before the gateway gives up."""

LEAST_SECONDS = 1.0
"""For COMMIT itself, after which nothing may fail."""

Result = TypeVar("Result")


def commit(
    attempt: Callable[[], Result], settle: Callable[[], None], *, recognises: bool = True
) -> Result:
    """The result of the first attempt that ends.

    An attempt looks for what an earlier attempt has committed, reads the table, claims a snapshot,
    and writes.

    Args:
        settle: waits for the end of a transaction whose COMMIT was not answered.
        recognises: the attempt finds what an earlier one has committed. Otherwise its refusal says
            nothing once the connection was lost at COMMIT: a table that was dropped is not found.

    Raises:
        CommitStateUnknown: the connection was lost at COMMIT, and it cannot be found out whether
            the commit took place.
        CommitFailed: other writers were faster each time, or the time is up; nothing is written.
        PolynyaError: what the attempt raises.
    """
    unknown: CommitStateUnknown | None = None
    is_settled = True
    for tries in range(TRIES):
        try:
            if not is_settled:
                settle()
                is_settled = True
                unknown = None if recognises else unknown
            return attempt()
        except CommitStateUnknown as error:
            if not error.is_transient:
                raise
            unknown, is_settled = error, False
        except OutOfTime:
            break
        except PolynyaError as error:
            if not error.is_transient:
                raise unknown or error from None
        if budget.seconds_left() < RESERVE_SECONDS:
            break
        time.sleep(random.uniform(0.5, 1) * min(LONGEST_PAUSE, 0.02 * 1.5**tries))
    raise unknown or CommitFailed(
        "the commit did not take place: other writers of the lake were faster, or the catalog "
        "database or S3 did not answer in time; try again"
    )


@contextmanager
def after_landing(what: str) -> Iterator[None]:
    """For the answer to a request that has taken place before: a refusal in the block is none.

    Args:
        what: what is loaded for the answer, for the error's message.

    Raises:
        CommitStateUnknown: what it has changed cannot be loaded any more.
    """
    try:
        yield
    except PolynyaError as error:
        if error.status >= 500:
            raise
        # Not a 4xx: the files of the commit belong to DuckLake's history.
        raise CommitStateUnknown(f"{what} cannot be loaded any more: {error}") from None


def check_time() -> None:
    """Check that there is time to commit and to answer, before COMMIT.

    Raises:
        CommitFailed: there is none; nothing is written.
    """
    if budget.seconds_left() < LEAST_SECONDS:
        raise CommitFailed("the commit takes longer than one request may; commit fewer files")
