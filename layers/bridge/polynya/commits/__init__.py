"""Iceberg commits: each becomes one DuckLake snapshot, in one PostgreSQL transaction."""
