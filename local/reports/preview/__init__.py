"""A preview of rows through the Iceberg endpoints, and the same filter in native DuckLake."""
