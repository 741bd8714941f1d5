"""Items that a thread reads while the caller works on those before: waiting and work overlap."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Item = TypeVar("Item")

END: Any = object()


def read_ahead(items: Iterator[Item], most: int) -> Generator[Item, None, None]:
    """The items in order. They are read in one other thread, within the caller's time budget.

    What `items` reads from, a connection for instance, belongs to that thread until the last item
    was given or this generator is closed; so use `contextlib.closing`. Closing waits for the read
    that has begun.

    Args:
        most: how many items may be read before the caller takes them.

    Raises:
        Exception: what `items` raises, after the items before it. Closing raises it too: what
            `items` reads from may be unusable then.
    """
    context = copy_context()
    thread = ThreadPoolExecutor(1)
    reads: deque[Future[Item]] = deque()

    def start() -> None:
        # The thread does one after the other, so each is the next item.
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
