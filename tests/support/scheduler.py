"""Distributes tests to the processes of pytest-xdist, and survives one that crashes.

This is a plugin of pytest, because tests/conftest.py is read where there is no pytest-xdist, too.
"""

import re

from xdist.scheduler import LoadScopeScheduling

LAKE = re.compile(r"[\[-](\d\d_\w+)[-\]]")


class LakeScheduling(LoadScopeScheduling):
    """One process runs all tests of a lake, or of a file: each lake is written once, and each
    fixture of a module is made once."""

    def __init__(self, config, log):
        super().__init__(config, log)
        self.crashed = set()

    def _split_scope(self, nodeid: str) -> str:
        if found := LAKE.search(nodeid):
            return found[1]
        return nodeid.partition("::")[0]

    def _reschedule(self, node) -> None:
        super()._reschedule(node)
        # A process runs a test when it knows the next one. What a crash left of a scope can be
        # a single test, or none: a new process would wait for ever.
        if not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._reschedule(node)


def pytest_xdist_make_scheduler(config, log):
    return LakeScheduling(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_handlecrashitem(crashitem, report, sched):
    """Count the first crash of a test as `rerun`: its scope is in the queue again.

    DuckDB, PyArrow, and other libraries of C++ can end the process of a test.
    """
    if isinstance(sched, LakeScheduling) and crashitem not in sched.crashed:
        sched.crashed.add(crashitem)
        report.outcome = "rerun"


def pytest_report_teststatus(report):
    return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.line(f"RERUN {report.longrepr}")
