"""A thread reads items while the caller works: in order, a few ahead, and never after the end."""

import threading
from contextlib import closing

import pytest
from polynya.runtime import budget
from polynya.runtime.prefetch import prefetch

SECONDS = 10
"""How long a test waits for a thread."""


class Reads:
    """Gives 0, 1, 2, …, and records what was read, and by which thread."""

    def __init__(self, count: int, fails_at: int | None = None) -> None:
        self.count, self.fails_at = count, fails_at
        self.begun: list[int] = []
        self.threads: set[int] = set()

    def __iter__(self):
        for number in range(self.count):
            self.begun.append(number)
            self.threads.add(threading.get_ident())
            if number == self.fails_at:
                raise LookupError(number)
            yield number


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_items_come_in_order(count, most):
    assert list(prefetch(iter(Reads(count)), most)) == list(range(count))


def test_one_other_thread_reads():
    reads = Reads(50)
    list(prefetch(iter(reads), 4))
    assert len(reads.threads) == 1
    assert threading.get_ident() not in reads.threads


def test_items_are_read_while_the_caller_works():
    last = threading.Event()

    def items():
        yield from "ab"
        last.set()
        yield "c"

    with closing(prefetch(items(), 2)) as found:
        assert next(found) == "a"
        assert last.wait(SECONDS)
        assert list(found) == ["b", "c"]


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_items_are_read_than_wanted(most):
    reads = Reads(50)
    with closing(prefetch(iter(reads), most)) as found:
        for taken in range(1, 20):
            next(found)
            assert len(reads.begun) <= taken + most


def test_an_error_is_raised_after_the_items_before_it():
    taken = []
    with pytest.raises(LookupError, match="3"):
        for item in prefetch(iter(Reads(9, fails_at=3)), 5):
            taken.append(item)
    assert taken == [0, 1, 2]


class Held:
    """Gives 0; the next read begins and waits until it is let go, and fails if it shall."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.has_begun, self.let_go = threading.Event(), threading.Event()
        self.later = 0

    def __iter__(self):
        yield 0
        self.has_begun.set()
        assert self.let_go.wait(SECONDS)
        if self.error:
            raise self.error
        while True:
            yield 1
            self.later += 1


def test_closing_waits_for_the_read_that_has_begun_and_begins_no_other():
    held = Held()
    found = prefetch(iter(held), 5)
    assert next(found) == 0 and held.has_begun.wait(SECONDS)
    before = threading.active_count()
    threading.Timer(0.2, held.let_go.set).start()
    found.close()
    assert held.let_go.is_set() and held.later == 0
    assert threading.active_count() <= before


def test_closing_raises_the_error_of_a_read():
    held = Held(LookupError())
    with pytest.raises(LookupError), closing(prefetch(iter(held), 2)) as found:
        assert next(found) == 0 and held.has_begun.wait(SECONDS)
        held.let_go.set()
        raise TimeoutError("of the caller")


def test_the_error_of_the_caller_is_raised_if_the_reads_succeed():
    with pytest.raises(TimeoutError), closing(prefetch(iter(Reads(50)), 3)) as found:
        next(found)
        raise TimeoutError("of the caller")


def test_reads_have_the_budget_of_their_caller():
    def left():
        while True:
            yield budget.seconds_left()

    with budget.limited(5), closing(prefetch(left(), 3)) as found:
        assert 0 < next(found) <= 5
        assert 0 < next(found) <= 5
