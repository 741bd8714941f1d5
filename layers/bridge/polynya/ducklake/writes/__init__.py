"""All SQL that changes DuckLake's catalog. Only commits of `ingest` and of Iceberg clients use it.

Columns are always named, because later catalog versions add some. Identifiers go through
`identifier`, values are parameters or COPY rows. The tables are those of catalog version 1.0:
https://ducklake.select/docs/stable/specification/tables/overview
"""
