"""The source: all SQL that reads DuckLake's catalog, and the rows it returns."""
