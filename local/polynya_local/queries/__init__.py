"""The SELECTs on DuckLake's catalog that only the page, the commands and the server need."""
