"""A lake of many tables: the rows of one real table in the catalog, multiplied."""

from polynya_local.clients.native import Lake, write_lake
from polynya_local.processes.postgres import Server

from .lakes import BUCKET, SCRIPT

FIRST_ID = 1_000_000
# Each copy is the row with other values of these columns, whatever columns the catalog has.
COPIES = (
    """
    INSERT INTO ducklake_table
    SELECT (jsonb_populate_record(t, jsonb_build_object('table_id', {first} + i,
      'table_uuid', md5(i::text)::uuid, 'table_name', 'table_' || lpad(i::text, 6, '0'),
      'path', 'table_' || i || '/'))).*
    FROM ducklake_table AS t, generate_series(1, {tables}) AS i""",
    """
    INSERT INTO ducklake_column
    SELECT (jsonb_populate_record(c, jsonb_build_object('table_id', {first} + i))).*
    FROM ducklake_column AS c, generate_series(1, {tables}) AS i""",
    """
    INSERT INTO ducklake_data_file
    SELECT (jsonb_populate_record(f, jsonb_build_object('table_id', {first} + i,
      'data_file_id', {first} + i * 100 + f.data_file_id))).*
    FROM ducklake_data_file AS f, generate_series(1, {tables}) AS i""",
    "ANALYZE",
)


def lake_of_tables(server: Server, s3_endpoint: str, tables: int) -> Lake:
    """A lake of so many tables of eight data files."""
    name = f"tables{tables}"
    database = server.create_database(name)
    lake = write_lake(name, SCRIPT.read_text(), database, f"s3://{BUCKET}/{name}", s3_endpoint)
    con = database.connect()
    try:
        for sql in COPIES:
            con.run(sql.format(first=FIRST_ID, tables=tables))
    finally:
        con.close()
    return lake
