"""DuckLake catalogs of any size within seconds: one real lake, its rows multiplied in PostgreSQL.

DuckDB writes `lake.sql`. Its eight data files and their statistics, as DuckDB wrote them, are then
repeated under new ids and names. The Parquet files of the repetitions do not exist, except those of
the first day after `put_day_one` has written them. `id`, `moment` and `day` grow from file to file,
as in a table that is appended to; the other columns repeat.
"""

from contextlib import closing
from pathlib import Path

import boto3
from polynya_local.clients.native import Lake, write_lake
from polynya_local.processes.postgres import Server

SCRIPT = Path(__file__).with_name("lake.sql")
NAMESPACE, TABLE = "main", "events"
BUCKET = "bench"
DAY_ONE = "2026-01-01"

# The first two snapshots create and partition the table; each later one adds its share of the
# files. One of {every} snapshots of the lake touches the table.
FIRST = 2
DAY = "(timestamp '2026-01-01' + i * interval '1000 s')::date"
BEGIN = "{first} + (1 + i::bigint * ({snapshots} - {first}) / {files}) * {every}"
NAME = "'day=' || {day} || '/ducklake-' || md5({text})::uuid || '.parquet'"

GROW = (
    "CREATE TEMP TABLE f AS"
    " SELECT row_number() OVER (ORDER BY data_file_id) - 1 AS n, * FROM ducklake_data_file",
    "CREATE TEMP TABLE s AS SELECT f.n, s.*, c.column_name FROM ducklake_file_column_stats AS s"
    " JOIN f USING (data_file_id) JOIN ducklake_column AS c USING (column_id)",
    "DELETE FROM ducklake_data_file",
    "DELETE FROM ducklake_file_column_stats",
    "DELETE FROM ducklake_file_partition_value",
    "DELETE FROM ducklake_snapshot WHERE snapshot_id > {first}",
    "DELETE FROM ducklake_snapshot_changes WHERE snapshot_id > {first}",
    # Later snapshots must not be in the future.
    "UPDATE ducklake_snapshot SET snapshot_time = snapshot_time - interval '1 day'",
    """
    INSERT INTO ducklake_snapshot
      (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
    SELECT i, first.snapshot_time + i * interval '1 ms', first.schema_version,
      first.next_catalog_id, {files}
    FROM generate_series({first} + 1, {first} + ({snapshots} - {first}) * {every}) AS i,
      ducklake_snapshot AS first
    WHERE first.snapshot_id = {first}""",
    """
    INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made)
    SELECT i, 'inserted_into_table:' || table_id + CASE WHEN (i - {first}) % {every} = 0
      THEN 0 ELSE 1 END
    FROM generate_series({first} + 1, {first} + ({snapshots} - {first}) * {every}) AS i,
      ducklake_table""",
    f"""
    INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
      file_format, record_count, file_size_bytes, footer_size, row_id_start, partition_id)
    SELECT i, f.table_id, {BEGIN}, {NAME.format(day=DAY, text="i::text")}, true, f.file_format,
      f.record_count, f.file_size_bytes, f.footer_size, i * f.record_count, f.partition_id
    FROM generate_series(0, {{files}} - 1) AS i JOIN f ON f.n = i % (SELECT count(*) FROM f)""",
    f"""
    INSERT INTO ducklake_file_partition_value
      (data_file_id, table_id, partition_key_index, partition_value)
    SELECT i, (SELECT min(table_id) FROM ducklake_table), 0, {DAY}::text
    FROM generate_series(0, {{files}} - 1) AS i""",
    f"""
    INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes,
      value_count, null_count, min_value, max_value, contains_nan)
    SELECT i, s.table_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count,
      CASE s.column_name WHEN 'id' THEN (i::bigint * 1000)::text
        WHEN 'moment' THEN (timestamp '2026-01-01' + i * interval '1000 s')::text
        WHEN 'day' THEN {DAY}::text
        ELSE s.min_value END,
      CASE s.column_name WHEN 'id' THEN (i::bigint * 1000 + 999)::text
        WHEN 'moment' THEN (timestamp '2026-01-01' + i * interval '1000 s' + interval '999 s')::text
        WHEN 'day' THEN {DAY}::text
        ELSE s.max_value END,
      s.contains_nan
    FROM generate_series(0, {{files}} - 1) AS i
    JOIN s ON s.n = i % (SELECT count(*) FROM f)""",
    "ANALYZE",
)

# The rows that one more commit of a file adds to the catalog.
COMMIT = (
    """
    INSERT INTO ducklake_snapshot
      (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
    SELECT snapshot_id + 1, snapshot_time + interval '1 ms', schema_version, next_catalog_id,
      next_file_id + 1
    FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1""",
    """
    INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made)
    SELECT max(s.snapshot_id), 'inserted_into_table:' || (SELECT min(table_id) FROM ducklake_table)
    FROM ducklake_snapshot AS s""",
    """
    INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
      file_format, record_count, file_size_bytes, footer_size, row_id_start, partition_id)
    SELECT f.data_file_id + 1, f.table_id, (SELECT max(snapshot_id) FROM ducklake_snapshot),
      regexp_replace(f.path, '[^/]+$', '') || 'ducklake-' || md5((f.data_file_id + 1)::text)::uuid
        || '.parquet', true, f.file_format,
      f.record_count, f.file_size_bytes, f.footer_size, f.row_id_start + f.record_count,
      f.partition_id
    FROM ducklake_data_file AS f ORDER BY f.data_file_id DESC LIMIT 1""",
    """
    INSERT INTO ducklake_file_partition_value
      (data_file_id, table_id, partition_key_index, partition_value)
    SELECT v.data_file_id + 1, v.table_id, v.partition_key_index, v.partition_value
    FROM ducklake_file_partition_value AS v ORDER BY v.data_file_id DESC LIMIT 1""",
    """
    INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes,
      value_count, null_count, min_value, max_value, contains_nan)
    SELECT s.data_file_id + 1, s.table_id, s.column_id, s.column_size_bytes, s.value_count,
      s.null_count, s.min_value, s.max_value, s.contains_nan
    FROM ducklake_file_column_stats AS s
    WHERE s.data_file_id = (SELECT max(data_file_id) - 1 FROM ducklake_data_file)""",
)
# A merge of the table's newest files into one, as merge_adjacent_files does it.
MERGE = (
    *COMMIT[:1],
    """
    INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made)
    SELECT max(s.snapshot_id), 'merge_adjacent:' || (SELECT min(table_id) FROM ducklake_table)
    FROM ducklake_snapshot AS s""",
    """
    INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
      file_format, record_count, file_size_bytes, footer_size, row_id_start, partial_max,
      partition_id)
    SELECT max(f.data_file_id) + 1, f.table_id, min(f.begin_snapshot),
      max(regexp_replace(f.path, '[^/]+$', '')) || 'ducklake-'
        || md5('merged' || max(f.data_file_id))::uuid || '.parquet', true, f.file_format,
      sum(f.record_count), sum(f.file_size_bytes), 0, min(f.row_id_start), max(f.begin_snapshot),
      f.partition_id
    FROM (SELECT * FROM ducklake_data_file ORDER BY data_file_id DESC LIMIT 10) AS f
    GROUP BY f.table_id, f.file_format, f.partition_id""",
    COMMIT[3],
    """
    DELETE FROM ducklake_data_file WHERE data_file_id IN
      (SELECT data_file_id FROM ducklake_data_file ORDER BY data_file_id DESC OFFSET 1 LIMIT 10)""",
)

# The rows of the table, for other tables.
FIRST_COPY = 1_000_000
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


def change(lake: Lake, statements: tuple[str, ...]) -> None:
    """Change the catalog as one commit does."""
    with closing(lake.database.connect()) as con:
        con.run("BEGIN")
        for sql in statements:
            con.run(sql)
        con.run("COMMIT")


def put_day_one(lake: Lake, s3_endpoint: str) -> None:
    """Write the files of the first day to the paths of the catalog, unless they are there."""
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    table = f"{lake.data_path}/{NAMESPACE}/{TABLE}/".removeprefix(f"s3://{BUCKET}/")
    there = client.list_objects_v2(Bucket=BUCKET, Prefix=table)["Contents"]
    real = {found["Size"]: found["Key"] for found in there}
    with closing(lake.database.connect()) as con:
        named = con.run(
            "SELECT path, file_size_bytes FROM ducklake_data_file WHERE path LIKE :day",
            day=f"day={DAY_ONE}/%",
        )
    for path, size in named:
        source = {"Bucket": BUCKET, "Key": real[size]}
        if real[size] == table + path:  # another benchmark on this lake did; S3 refuses this copy
            continue
        client.copy_object(Bucket=BUCKET, Key=table + path, CopySource=source)


def grown_lake(server: Server, s3_endpoint: str, files: int, snapshots: int, every: int) -> Lake:
    """A lake whose table `main.events` has so many data files, added by so many snapshots.

    Args:
        every: one of this many snapshots of the lake touches the table.
    """
    lake = _small_lake(server, s3_endpoint, f"f{files}_s{snapshots}_e{every}")
    numbers = {"files": files, "snapshots": snapshots, "every": every, "first": FIRST}
    with closing(lake.database.connect()) as con:
        con.run("BEGIN")
        for sql in GROW[:-1]:
            con.run(sql.format(**numbers))
        con.run("COMMIT")
        con.run(GROW[-1])
    return lake


def lake_of_tables(server: Server, s3_endpoint: str, tables: int) -> Lake:
    """A lake of so many tables of eight data files."""
    lake = _small_lake(server, s3_endpoint, f"tables{tables}")
    with closing(lake.database.connect()) as con:
        for sql in COPIES:
            con.run(sql.format(first=FIRST_COPY, tables=tables))
    return lake


def _small_lake(server: Server, s3_endpoint: str, name: str) -> Lake:
    """The lake that DuckDB writes."""
    database = server.create_database(name)
    return write_lake(name, SCRIPT.read_text(), database, f"s3://{BUCKET}/{name}", s3_endpoint)
