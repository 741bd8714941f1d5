"""Native DuckLake on the lake that a module's `served` begins with."""

import pytest

from tests.support.writes.writable import judging


@pytest.fixture
def judge(served, moto):
    with judging(served[0], moto) as found:
        yield found
