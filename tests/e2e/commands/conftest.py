"""What all tests of commands share."""

import pytest
from polynya_pipeline.common import progress


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    """Commands in this process print no line of progress, however busy the machine is."""
    monkeypatch.setattr(progress, "LONG", 3600)
