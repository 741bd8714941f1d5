"""Lets any Apache Iceberg client read a DuckLake."""
