"""What all tests of the whole share."""

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    """A command that a test runs in this process leaves no variable behind: `serve` sets some."""
    with patch.dict(os.environ):
        yield
