"""Ctrl-C interrupts what can be interrupted, and waits for what cannot."""

import signal

import pytest
from polynya_local.demo.processes import SIGNALS, Interruption, Running


@pytest.fixture
def interruption():
    # A shell starts background processes with SIGINT ignored, which `install` respects.
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


def test_a_signal_waits_for_the_end_of_a_protected_block(interruption):
    done = []
    with pytest.raises(SystemExit), interruption.held():
        with interruption.held():
            signal.raise_signal(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_every_started_part_ends_completely(interruption):
    ended = []

    class Started:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            signal.raise_signal(signal.SIGTERM)  # a second signal during the shutdown
            ended.append(self)

    with pytest.raises(SystemExit), Running(interruption) as running:
        running.enter_context(Started())
        running.enter_context(Started())
        signal.raise_signal(signal.SIGTERM)
    assert len(ended) == 2


def test_an_error_that_a_signal_caused_is_no_failure(interruption):
    with pytest.raises(SystemExit), interruption.held():
        signal.raise_signal(signal.SIGTERM)
        raise RuntimeError("initdb was interrupted")


def test_a_signal_ends_the_wait_and_not_the_program(interruption):
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with Running(interruption):
        interruption.wait()
    assert interruption.number == signal.SIGINT
