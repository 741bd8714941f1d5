"""Work in a thread: a result is kept, an error is not, what nobody wants any more is not done."""

import threading
from contextlib import closing
from types import SimpleNamespace

import pytest
from polynya.runtime import metrics
from polynya.runtime.isolation import isolated, isolating
from polynya_local.page.state import CAPACITY, Stopped, Work


@pytest.fixture
def closed():
    return []


@pytest.fixture
def work(closed):
    def generator():
        return SimpleNamespace(database=SimpleNamespace(close=lambda: closed.append(True)))

    with closing(Work("test", generator)) as found:
        yield found


def test_a_result_is_kept(work):
    times = []
    for _ in range(3):
        job = work.job("key", lambda generator, job: times.append(1) or 7, seconds=10)
    assert (job.result, len(times)) == (7, 1)
    assert job.finished is not None and work.existing_job("key") is job


def test_what_takes_longer_is_there_later(work):
    may_end = threading.Event()
    slow = work.job("slow", lambda generator, job: may_end.wait(10), seconds=0)
    assert not slow.is_done
    assert work.job("slow", None, seconds=0) is slow
    may_end.set()
    assert work.job("slow", None, seconds=10).result is True


def test_an_error_is_told_and_the_next_visit_tries_again(work):
    def fails(generator, job):
        raise ValueError("no")

    assert str(work.job("key", fails, seconds=10).error) == "no"
    assert work.job("key", lambda generator, job: 1, seconds=10).result == 1


def test_a_job_is_done_again_if_that_is_asked_for(work):
    numbers = iter(range(9))
    for wanted in (0, 1):
        job = work.job("key", lambda generator, job: next(numbers), seconds=10, again=True)
        assert job.result == wanted


def test_the_oldest_results_are_dropped(work):
    for key in range(CAPACITY + 1):
        work.job(key, lambda generator, job: 1, seconds=10)
    assert work.existing_job(0) is None and work.existing_job(1) is not None


def test_what_waits_does_not_begin_if_it_is_stopped_and_may_begin_again(work):
    may_end = threading.Event()
    work.job("first", lambda generator, job: may_end.wait(10), seconds=0)
    waiting = work.job("second", lambda generator, job: 1, seconds=0)
    work.stop("second")
    may_end.set()
    assert waiting.done.wait(10) and isinstance(waiting.error, Stopped)
    assert work.job("second", lambda generator, job: 1, seconds=10).result == 1


def test_what_the_thread_does_is_watched_by_the_application_that_asks(work):
    seen = []
    with metrics.watching(lambda *values: seen.append(values)):
        work.job("key", lambda generator, job: metrics.observe("Builds", 1), seconds=10)
    assert seen == [("Builds", 1, {"lake": ""})]


def test_closing_ends_the_thread_and_the_connection(work, closed):
    work.job("key", lambda generator, job: 1, seconds=10)
    work.close()
    assert closed == [True]


def test_what_is_isolated_for_a_visitor_is_isolated_in_the_thread(work):
    calls = []

    @isolated
    def parse(text):
        raise AssertionError("in this process")

    def run(function, *arguments):
        calls.append(arguments)
        return 7

    with isolating(run):
        job = work.job("key", lambda generator, job: parse("text"), seconds=10)
    assert (job.result, calls) == (7, [("text",)])
