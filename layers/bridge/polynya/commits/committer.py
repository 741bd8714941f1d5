"""Repeats an attempt to commit until it lands, is refused, or the time is up."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from .. import budget
from ..errors import CommitFailed, CommitStateUnknown, PolynyaError

TRIES = 60
LONGEST_PAUSE = 0.5
"""Between two tries, in seconds."""
RESERVE_SECONDS = 2.0
"""No new attempt begins with less time left: the answer must arrive before the gateway gives up."""

Result = TypeVar("Result")


def commit(attempt: Callable[[], Result], *, recognises: bool = True) -> Result:
    """The result of the first attempt that ends.

    An attempt reads the table, claims a snapshot, looks for what an earlier attempt has committed,
    and writes. So it can be repeated, also if the connection was lost at COMMIT: the claim waits
    for the end of the earlier transaction.

    Args:
        recognises: the attempt finds what an earlier one has committed. Otherwise its refusal says
            nothing once the connection was lost at COMMIT: a table that was dropped is not found.

    Raises:
        CommitStateUnknown: the connection was lost at COMMIT, and it cannot be found out whether
            the commit took place.
        CommitFailed: other writers were faster each time, or the time is up; nothing is written.
        PolynyaError: what the attempt raises.
    """
    unknown: CommitStateUnknown | None = None
    for tries in range(TRIES):
        try:
            return attempt()
        except CommitStateUnknown as error:
            unknown = error
        except PolynyaError as error:
            if not error.is_transient:
                # With an error of the server nothing is found out about the earlier attempt.
                is_known = recognises and error.status < 500
                raise (error if is_known else unknown or error) from None
        if budget.seconds_left() < RESERVE_SECONDS:
            break
        time.sleep(random.uniform(0.5, 1) * min(LONGEST_PAUSE, 0.02 * 1.5**tries))
    raise unknown or CommitFailed(
        "the commit did not take place: other writers of the lake were faster, or the catalog "
        "database did not answer in time; try again"
    )
