"""Loaders write while `kill -9` ends the server at each point of a commit.

`make killed-programs` runs this file. Its name keeps it out of CI, which has none of the programs.
"""

import os
from contextlib import nullcontext

import pytest

from tests.engines.programs.sinks import PROGRAMS, ClickHouse
from tests.support.writes.killed_often import Fixture, Polynya, kill_often

TIMES = int(os.environ.get("POLYNYA_KILLS", "12"))


@pytest.mark.parametrize("catalog", [Polynya, Fixture])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_no_row_is_lost_or_doubled(lake, moto, tmp_path, kind, catalog):
    """A person runs the load again that failed. The fixture shows what a program itself doubles.

    ClickHouse removes the manifests of a commit that is not answered. The fixture's table cannot
    be read afterwards.
    """
    is_removed = kind is ClickHouse and catalog is Fixture
    with (
        pytest.raises(AssertionError, match=r"404: while reading '.*/snap-.*\.avro'")
        if is_removed
        else nullcontext()
    ):
        kill_often(catalog(lake, moto, tmp_path, kind.delivery), kind, moto, TIMES)
