"""What DuckLake's metadata tables hold, one record per table, columns under their own names.

The order of the fields is the order of the SELECT in `queries`, so that `Row(*row)` is the whole
mapping. DuckLake specification, "Tables": https://ducklake.select/docs/stable/specification/tables
"""
