"""Rows of DuckLake's metadata tables."""

from .inlined_tables import *  # noqa: F403
