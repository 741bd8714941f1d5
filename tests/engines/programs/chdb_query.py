"""Runs one statement in ClickHouse, in whose Python this file runs: CATALOG S3 SQL.

An INSERT writes a data file for each row.
"""

import sys

import chdb

catalog, s3, sql = sys.argv[1:]
session = chdb.session.Session()
for statement in (
    "SET allow_database_iceberg = 1, allow_insert_into_iceberg = 1",
    "SET max_block_size = 1, min_insert_block_size_rows = 1, min_insert_block_size_bytes = 0",
    "SET iceberg_insert_max_rows_in_data_file = 1, max_insert_threads = 1, max_threads = 1",
    f"CREATE DATABASE ice ENGINE = DataLakeCatalog('{catalog}/v1', 'test', 'test') SETTINGS "
    f"catalog_type = 'rest', warehouse = 'lake', vended_credentials = false, "
    f"storage_endpoint = '{s3}'",
):
    session.query(statement)
print(session.query(sql))
