"""Ctrl-C ends what may be cut short, and waits for what may not."""

import signal

import pytest
from polynya_local.demo.interruption import SIGNALS, Interruption, Running


@pytest.fixture
def interruption():
    # A shell lets what it runs in the background ignore SIGINT, which `install` respects.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    interruption = Interruption()
    interruption.install()
    yield interruption
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_program(interruption, number, code):
    with pytest.raises(SystemExit) as end:
        signal.raise_signal(number)
    assert end.value.code == interruption.code == code


def test_a_signal_waits_for_the_end_of_what_is_held(interruption):
    done = []
    with pytest.raises(SystemExit), interruption.held():
        with interruption.held():
            signal.raise_signal(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_what_was_started_ends_whole(interruption):
    ended = []

    class Started:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            signal.raise_signal(signal.SIGTERM)  # a second one, while everything ends
            ended.append(self)

    with pytest.raises(SystemExit), Running(interruption) as running:
        running.enter_context(Started())
        running.enter_context(Started())
        signal.raise_signal(signal.SIGTERM)
    assert len(ended) == 2


def test_a_failure_that_a_signal_caused_is_no_failure(interruption):
    with pytest.raises(SystemExit), interruption.held():
        signal.raise_signal(signal.SIGTERM)
        raise RuntimeError("initdb was interrupted")


def test_where_it_is_waited_for_a_signal_is_no_end(interruption):
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with Running(interruption):
        interruption.wait()
    assert interruption.number == signal.SIGINT
