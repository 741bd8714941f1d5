"""The job `ingest`: a DataFrame into a table of a DuckLake."""
