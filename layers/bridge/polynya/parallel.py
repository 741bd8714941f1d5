"""Several requests to AWS at the same time, within one request to a function."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

AT_A_TIME = 16
"""How many requests run at the same time, at most."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def in_parallel(
    function: Callable[[Item], Answer], items: Sequence[Item], at_a_time: int = AT_A_TIME
) -> list[Answer]:
    """The result of `function` for each item, in order; each within the caller's time budget.

    Args:
        at_a_time: how many run at the same time, at most.

    Raises:
        Exception: the first that `function` raises, in the order of the items.
    """
    if len(items) < 2:  # the usual case: no thread for one
        return [function(item) for item in items]
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(at_a_time, len(items))) as pool:
        return list(pool.map(lambda context, item: context.run(function, item), contexts, items))


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do in another thread, during the block, what only saves time: its errors are ignored.

    The block ends when both have ended.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(copy_context().run, work)
        yield
