"""Scan planning: filters in, conditions on DuckLake's statistics out; files as scan tasks."""
