"""Inserts one batch with ClickHouse, in whose Python this file runs: CATALOG S3 VALUES."""

import sys

import chdb

catalog, s3, values = sys.argv[1:]
session = chdb.session.Session()
for statement in (
    "SET allow_database_iceberg = 1, allow_insert_into_iceberg = 1",
    f"CREATE DATABASE ice ENGINE = DataLakeCatalog('{catalog}/v1', 'test', 'test') SETTINGS "
    f"catalog_type = 'rest', warehouse = 'lake', vended_credentials = false, "
    f"storage_endpoint = '{s3}'",
    f"INSERT INTO ice.`main.t` VALUES {values}",
):
    session.query(statement)
