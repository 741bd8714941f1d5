"""DuckLake's statistics as Iceberg metrics: bounds and counts of data files."""
