"""`kill -9` of the server after the upload, within the commit and before its answer, many times."""

import os

import pytest

from tests.support.writes.killed_often import Polynya, kill_often
from tests.support.writes.sinks import IN_JAVA, SINKS

pytestmark = [pytest.mark.versions("1.0"), pytest.mark.slow]

TIMES = int(os.environ.get("POLYNYA_KILLS", "50"))


@pytest.mark.parametrize(
    "kind", [*SINKS, *(pytest.param(kind, marks=pytest.mark.spark) for kind in IN_JAVA)]
)
def test_no_row_is_lost_or_doubled(lake, moto, tmp_path, kind):
    """Each sink goes on by its own rule; what it commits twice counts as Iceberg's rules say."""
    kill_often(Polynya(lake, moto, tmp_path, kind.delivery), kind, moto, TIMES)
