"""Schemas, partition specs and sort orders that clients ask for, in DuckLake's terms."""
