"""Writes plans into DuckLake's tables, within one transaction."""
