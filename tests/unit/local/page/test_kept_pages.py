"""A process keeps the pages of a few callers; those that are being read stay."""

import time
from contextlib import ExitStack
from threading import Event
from types import SimpleNamespace

import pytest
from polynya.access.caller import Caller
from polynya.access.policy import EVERYTHING
from polynya_local.page import app
from polynya_local.page.app import MOST_CALLERS, LazyPage


@pytest.fixture
def page(monkeypatch):
    def new_state(*_):
        ended = Event()
        return SimpleNamespace(close=ended.set, ended=ended)

    monkeypatch.setattr(app.PageState, "create", new_state)
    callers = SimpleNamespace(rights=lambda _: EVERYTHING, reader_token=lambda _: "")
    return LazyPage(None, None, {}, None, callers=callers)


def caller(number: int) -> Caller:
    return Caller(claims={"sub": str(number)})


def test_pages_that_are_being_read_are_not_closed(page):
    with ExitStack() as stack:
        states = [
            stack.enter_context(page._used_by(caller(number))).state
            for number in range(MOST_CALLERS + 1)
        ]
        assert not any(state.ended.is_set() for state in states)
    with page._used_by(caller(0)) as pages:
        assert pages.state is states[0]
    assert states[1].ended.wait(10)
    assert not any(state.ended.is_set() for state in [states[0], *states[2:]])


def test_pages_that_nobody_reads_are_closed(page, monkeypatch):
    with page._used_by(caller(1)) as pages:
        first = pages.state
    now = time.monotonic() + app.IDLE_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with page._used_by(caller(2)) as pages:
        assert first.ended.wait(10) and not pages.state.ended.is_set()
