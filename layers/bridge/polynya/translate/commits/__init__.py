"""Iceberg commits as changes of a DuckLake: pure functions."""
