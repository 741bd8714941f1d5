"""Calls that take too much, or end their process, cost the caller nothing."""

import os
import sys
import time

import pytest
from polynya.iceberg.view_text import parsed_view
from polynya.runtime import budget, limited_process
from polynya.runtime.errors import BadRequest, OutOfTime, PolynyaError
from polynya.runtime.limited_process import Exceeded, call

LIMITS = {"seconds": 2, "megabytes": 700}


def test_it_answers():
    assert call(sorted, [3, 1, 2], **LIMITS) == [1, 2, 3]


def test_it_raises_what_the_function_raises():
    with pytest.raises(BadRequest, match="one query"):
        call(parsed_view, "SELECT 1; SELECT 2", **LIMITS)


EXCEEDING = {
    "memory": (bytearray, 2**30),
    "time": (sum, range(10**12)),
    "its life": (os.abort,),
    "an error": (int, "x"),
}


@pytest.mark.parametrize("case", EXCEEDING)
def test_what_takes_too_much(case, monkeypatch):
    monkeypatch.setattr(limited_process, "PATIENCE", 100)  # the tests' machine may be busy
    function, *arguments = EXCEEDING[case]
    started = time.process_time(), os.times().children_user
    with pytest.raises(Exceeded):
        call(function, *arguments, seconds=1, megabytes=700)
    assert time.process_time() - started[0] + os.times().children_user - started[1] < 5


def test_a_busy_machine_is_no_fault_of_the_input():
    with pytest.raises(OutOfTime, match="busy"):
        call(time.sleep, 60, seconds=1, megabytes=700)


def test_the_budget_ends_it():
    with budget.limited(0.5), pytest.raises(OutOfTime):
        call(time.sleep, 60, **LIMITS)


def test_it_has_no_secret_and_no_module_of_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    (tmp_path / "resource.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert call(os.getenv, "AWS_SECRET_ACCESS_KEY", **LIMITS) is None


def test_a_process_that_does_not_start_is_no_fault_of_the_input(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PolynyaError, match="cannot be started"):
        call(sorted, [], **LIMITS)
