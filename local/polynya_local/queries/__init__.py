"""The SELECTs on DuckLake's catalog that only the page and the commands need."""
