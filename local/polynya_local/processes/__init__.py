"""Processes that the demo and the tests start: PostgreSQL, and `polynya serve`."""
