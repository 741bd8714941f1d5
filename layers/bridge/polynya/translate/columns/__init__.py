"""DuckLake's columns as Iceberg schemas: types, defaults, name mappings."""
