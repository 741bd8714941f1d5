"""The differences found in one lake, and which of them are known faults."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.differential.test_rows import reason

Faults = dict[tuple[str, str], tuple[str, ...]]
"""(test, number of the lake) -> a pattern for every finding; each pattern must still occur."""


class Findings:
    def __init__(self, test: str, lake: str, faults: Faults) -> None:
        self._what = f"{test} in lake {lake}"
        self._known = faults.get((test, lake), ())
        self._lines: list[str] = []

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Record any exception in the block as a finding, so that the next check runs too."""
        try:
            yield
        except Exception as error:
            self._lines.append(f"{where}: {type(error).__name__}: {reason(error)}")

    def add(self, lines: list[str]) -> None:
        self._lines += lines

    def judge(self) -> list[str]:
        """Fail for an unknown finding or a known fault that no longer occurs; return the rest."""
        unknown = [x for x in self._lines if not any(re.search(k, x) for k in self._known)]
        assert not unknown, "\n".join(unknown)
        fixed = [k for k in self._known if not any(re.search(k, x) for x in self._lines)]
        assert not fixed, f"no longer occurs, {self._what}: {fixed}"
        return self._lines
