"""Several requests to AWS at the same time, for one request to us."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

AT_A_TIME = 16
"""How many files are asked for at the same time."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def in_parallel(question: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """The answer for each item, in order; each within the budget of the caller's request."""
    if len(items) < 2:  # nearly always: no thread for one
        return [question(item) for item in items]
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(AT_A_TIME, len(items))) as pool:
        return list(pool.map(lambda context, item: context.run(question, item), contexts, items))
