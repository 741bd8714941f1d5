"""DuckLake's inlined rows as Iceberg data files."""
