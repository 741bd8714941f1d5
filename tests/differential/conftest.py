"""Which combinations of parameters `make test-slow` runs, and CI does not."""

import pytest


def pytest_collection_modifyitems(items):
    """A module may say it of its own tests: `is_left_to_test_slow`."""
    for item in items:
        asked = getattr(item.module, "is_left_to_test_slow", None)
        if asked and (parameters := getattr(item, "callspec", None)) and asked(**parameters.params):
            item.add_marker(pytest.mark.slow)
