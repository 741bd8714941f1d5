"""The job `ingest`: writes a DataFrame into a table of a DuckLake."""
