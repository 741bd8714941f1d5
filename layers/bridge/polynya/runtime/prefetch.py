"""Threads within one request: items are read ahead, and several requests run at the same time."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

Item = TypeVar("Item")

END: Any = object()


def prefetch(items: Iterator[Item], most: int) -> Generator[Item, None, None]:
    """The items in order. They are read in one other thread, within the caller's time budget.

    The source of `items`, for instance a connection, belongs to that thread until the last item was
    given or this generator is closed; so use `contextlib.closing`. Closing waits for the read that
    has begun.

    Args:
        most: how many items may be read before the caller takes them.

    Raises:
        Exception: what `items` raises, after the items before it. Closing raises it too: the source
            of `items` may then be unusable.
    """
    # The time budget of the request is in the context.
    context = copy_context()
    thread = ThreadPoolExecutor(1)
    reads: deque[Future[Item]] = deque()

    def start() -> None:
        # There is one thread, so the reads are in the order of the items.
        reads.append(thread.submit(context.run, lambda: next(items, END)))

    try:
        for _ in range(most):
            start()
        while (item := reads.popleft().result()) is not END:
            start()
            yield item
    finally:
        thread.shutdown(wait=True, cancel_futures=True)
        _raise_first_error(reads)


def _raise_first_error(reads: Iterable[Future[Any]]) -> None:
    for read in reads:
        error = None if read.cancelled() else read.exception()
        if error is not None:
            raise error


AT_A_TIME = 16
"""How many requests run at the same time, at most."""

Answer = TypeVar("Answer")


def map_in_parallel(
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
    # The time budget is in the context, and a context can be entered by one thread at a time.
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(at_a_time, len(items))) as pool:
        return list(pool.map(lambda context, item: context.run(function, item), contexts, items))


@contextmanager
def run_in_thread(work: Callable[[], object]) -> Iterator[None]:
    """Run `work` in another thread during the block. It only saves time: its errors are ignored.

    The block ends when both have ended.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(copy_context().run, work)
        yield
