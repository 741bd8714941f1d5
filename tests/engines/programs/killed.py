"""Loaders write while `kill -9` ends the server at each point of a commit.

`make killed-programs` runs this file. Its name keeps it out of CI, which has none of the programs.
"""

import os

import pytest

from tests.engines.programs.sinks import PROGRAMS
from tests.support.writes.killed_often import Fixture, Polynya, kill_often

TIMES = int(os.environ.get("POLYNYA_KILLS", "12"))


@pytest.mark.parametrize("catalog", [Polynya, Fixture])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_no_row_is_lost_or_doubled(lake, moto, tmp_path, kind, catalog):
    """A person runs the load again that failed. The fixture shows what a program itself doubles."""
    kill_often(catalog(lake, moto, tmp_path, kind.delivery), kind, moto, TIMES)
