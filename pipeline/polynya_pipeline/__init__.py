"""Spark jobs for a DuckLake: `ingest` writes, `publish` generates Iceberg files, `verify` checks.

No JAR is needed.
"""
