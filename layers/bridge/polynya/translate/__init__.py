"""The meeting place: pure functions from DuckLake's rows to Iceberg's records."""
