"""What the tests of engines share."""

import pytest

from tests.support.writes.twin import opened


@pytest.fixture
def twin(served):
    """A table that is not created yet, of the lake that a module serves."""
    with opened(*served) as twin_table:
        yield twin_table
