"""For each module that has a SCRIPT: a lake of it that Iceberg clients write, and a native twin.

SETTINGS and DELIVERY of a module are those of its catalog.
"""

from contextlib import closing

import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.twins import twins
from tests.support.writes.writable import client_of


@pytest.fixture(scope="module")
def pair(request, lake, moto):
    with twins(lake, moto, request.module.SCRIPT) as made:
        yield made


@pytest.fixture(scope="module")
def served(request, pair, moto):
    settings = getattr(request.module, "SETTINGS", None)
    delivery = getattr(request.module, "DELIVERY", "materialize")
    with bridge(pair.lake, moto, writes=True, delivery=delivery, settings=settings) as one:
        yield one


@pytest.fixture(scope="module")
def catalog(served):
    """PyIceberg's client."""
    with closing(client_of(served)) as one:
        yield one
