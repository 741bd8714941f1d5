"""Lets any Apache Iceberg client read and write a DuckLake."""
