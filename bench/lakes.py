"""DuckLake catalogs of any size within seconds: one real lake, its rows multiplied in PostgreSQL.

DuckDB writes `lake.sql`; then its eight data files and their statistics, in DuckDB's own words, are
repeated under new ids and names. The Parquet files of the repetitions do not exist: nothing that is
measured here reads one. `id`, `moment` and `day` grow from file to file, as in a table that is
appended to; the other columns repeat.
"""

from pathlib import Path

from local.lakes import Lake, write_lake
from local.postgres import Server

SCRIPT = Path(__file__).with_name("lake.sql")
NAMESPACE, TABLE = "main", "events"
BUCKET = "bench"

# Snapshot 1 makes the table; each of the others adds its share of the files.
GROW = (
    "CREATE TEMP TABLE f AS"
    " SELECT row_number() OVER (ORDER BY data_file_id) - 1 AS n, * FROM ducklake_data_file",
    "CREATE TEMP TABLE s AS SELECT f.n, s.*, c.column_name FROM ducklake_file_column_stats AS s"
    " JOIN f USING (data_file_id) JOIN ducklake_column AS c USING (column_id)",
    "DELETE FROM ducklake_data_file",
    "DELETE FROM ducklake_file_column_stats",
    "DELETE FROM ducklake_snapshot WHERE snapshot_id > 1",
    "DELETE FROM ducklake_snapshot_changes WHERE snapshot_id > 1",
    """
    INSERT INTO ducklake_snapshot
      (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
    SELECT i, first.snapshot_time + i * interval '1 ms', first.schema_version,
      first.next_catalog_id, {files}
    FROM generate_series(2, {snapshots}) AS i, ducklake_snapshot AS first
    WHERE first.snapshot_id = 1""",
    """
    INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made)
    SELECT i, 'inserted_into_table:' || (SELECT min(table_id) FROM ducklake_table)
    FROM generate_series(2, {snapshots}) AS i""",
    """
    INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
      file_format, record_count, file_size_bytes, footer_size, row_id_start)
    SELECT i, f.table_id, 2 + i * ({snapshots} - 1) / {files},
      'ducklake-' || md5(i::text)::uuid || '.parquet', true, f.file_format, f.record_count,
      f.file_size_bytes + i % 1000, f.footer_size, i * f.record_count
    FROM generate_series(0, {files} - 1) AS i JOIN f ON f.n = i % (SELECT count(*) FROM f)""",
    """
    INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes,
      value_count, null_count, min_value, max_value, contains_nan)
    SELECT i, s.table_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count,
      CASE s.column_name WHEN 'id' THEN (i * 1000)::text
        WHEN 'moment' THEN (timestamp '2026-01-01' + i * interval '1000 s')::text
        WHEN 'day' THEN (timestamp '2026-01-01' + i * interval '1000 s')::date::text
        ELSE s.min_value END,
      CASE s.column_name WHEN 'id' THEN (i * 1000 + 999)::text
        WHEN 'moment' THEN (timestamp '2026-01-01' + i * interval '1000 s' + interval '999 s')::text
        WHEN 'day' THEN (timestamp '2026-01-01' + i * interval '1000 s' + interval '999 s')
          ::date::text
        ELSE s.max_value END,
      s.contains_nan
    FROM generate_series(0, {files} - 1) AS i
    JOIN s ON s.n = i % (SELECT count(*) FROM f)""",
    "ANALYZE",
)

# What one more commit of a file leaves in the catalog.
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
      file_format, record_count, file_size_bytes, footer_size, row_id_start)
    SELECT f.data_file_id + 1, f.table_id, (SELECT max(snapshot_id) FROM ducklake_snapshot),
      'ducklake-' || md5((f.data_file_id + 1)::text)::uuid || '.parquet', true, f.file_format,
      f.record_count, f.file_size_bytes, f.footer_size, f.row_id_start + f.record_count
    FROM ducklake_data_file AS f ORDER BY f.data_file_id DESC LIMIT 1""",
    """
    INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes,
      value_count, null_count, min_value, max_value, contains_nan)
    SELECT s.data_file_id + 1, s.table_id, s.column_id, s.column_size_bytes, s.value_count,
      s.null_count, s.min_value, s.max_value, s.contains_nan
    FROM ducklake_file_column_stats AS s
    WHERE s.data_file_id = (SELECT max(data_file_id) - 1 FROM ducklake_data_file)""",
)
# And of a merge of the table's newest files into one, as merge_adjacent_files does it.
MERGE = (
    *COMMIT[:1],
    """
    INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made)
    SELECT max(s.snapshot_id), 'merge_adjacent:' || (SELECT min(table_id) FROM ducklake_table)
    FROM ducklake_snapshot AS s""",
    """
    INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative,
      file_format, record_count, file_size_bytes, footer_size, row_id_start, partial_max)
    SELECT max(f.data_file_id) + 1, f.table_id, min(f.begin_snapshot),
      'ducklake-' || md5('merged' || max(f.data_file_id))::uuid || '.parquet', true, f.file_format,
      sum(f.record_count), sum(f.file_size_bytes), 0, min(f.row_id_start), max(f.begin_snapshot)
    FROM (SELECT * FROM ducklake_data_file ORDER BY data_file_id DESC LIMIT 10) AS f
    GROUP BY f.table_id, f.file_format""",
    """
    DELETE FROM ducklake_data_file WHERE data_file_id IN
      (SELECT data_file_id FROM ducklake_data_file ORDER BY data_file_id DESC OFFSET 1 LIMIT 10)""",
)


def change(lake: Lake, statements: tuple[str, ...]) -> None:
    """Change the catalog as one commit does."""
    con = lake.database.connect()
    try:
        con.run("BEGIN")
        for sql in statements:
            con.run(sql)
        con.run("COMMIT")
    finally:
        con.close()


def grown_lake(server: Server, s3_endpoint: str, files: int, snapshots: int) -> Lake:
    """A lake whose table `main.events` has so many data files, added by so many snapshots."""
    name = f"f{files}_s{snapshots}"
    database = server.create_database(name)
    lake = write_lake(SCRIPT, database, f"s3://{BUCKET}/{name}", s3_endpoint)
    con = database.connect()
    try:
        con.run("BEGIN")
        for sql in GROW[:-1]:
            con.run(sql.format(files=files, snapshots=snapshots))
        con.run("COMMIT")
        con.run(GROW[-1])
    finally:
        con.close()
    return lake
