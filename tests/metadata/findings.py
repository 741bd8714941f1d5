"""What is not as it should be in one lake, and which of it is a fault that is known."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.differential.test_rows import reason

Faults = dict[tuple[str, str], tuple[str, ...]]
"""(test, number of the lake) -> what every finding says; each must still be met."""


class Findings:
    def __init__(self, test: str, lake: str, faults: Faults) -> None:
        self._what = f"{test} in lake {lake}"
        self._known = faults.get((test, lake), ())
        self._lines: list[str] = []

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Whatever fails in here is a finding, and the next may tell more."""
        try:
            yield
        except Exception as error:
            self._lines.append(f"{where}: {type(error).__name__}: {reason(error)}")

    def add(self, lines: list[str]) -> None:
        self._lines += lines

    def judge(self) -> list[str]:
        """Fail for what is not known, and for what is known and no longer so; gives the rest."""
        unknown = [x for x in self._lines if not any(re.search(k, x) for k in self._known)]
        assert not unknown, "\n".join(unknown)
        mended = [k for k in self._known if not any(re.search(k, x) for x in self._lines)]
        assert not mended, f"mended, {self._what}: {mended}"
        return self._lines
