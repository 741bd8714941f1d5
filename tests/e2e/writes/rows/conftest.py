"""A lake that Iceberg clients write, and for each test a table in it with a twin in memory."""

import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.spark_sql import SparkSQL
from tests.support.writes.starts import DO_NOT_INLINE, LAKE
from tests.support.writes.twin import opened
from tests.support.writes.writable import judging, set_up_writes


@pytest.fixture(scope="module")
def served(lake, moto):
    """The lake, what serves it, and the endpoint of its S3."""
    one = set_up_writes(lake.write("rows", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found, moto


@pytest.fixture
def twin(served):
    """A table that is not created yet."""
    with opened(*served) as found:
        yield found


@pytest.fixture
def started(request, twin, start):
    """A table in the state `start`, one of the module's STARTS."""
    twin.native(DO_NOT_INLINE, *request.module.STARTS[start])
    return twin


@pytest.fixture(scope="module")
def spark(served):
    """Spark with the lake's catalog."""
    return SparkSQL(served[1])


@pytest.fixture
def judge(served, moto):
    with judging(served[0], moto) as found:
        yield found
