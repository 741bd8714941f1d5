"""Spark jobs around a DuckLake: `ingest` writes into it, `verify` checks it. No JAR is needed."""
