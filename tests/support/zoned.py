"""Tables with `timestamptz_ns`, which DuckDB 1.5.5 lacks: made of those with `timestamp_ns`."""

import pyarrow as pa
from polynya_local.clients.native import Lake

from tests.support.catalog_versions import to_1_1
from tests.support.variants import written_by_duckdb_2

COLUMNS = """
UPDATE ducklake_column SET column_type = 'timestamptz_ns'
WHERE column_type = 'timestamp_ns' AND column_name <> 'n'
  AND table_id IN (SELECT table_id FROM ducklake_table WHERE table_name = ANY(:tables))"""
ZONE = r"regexp_replace({0}, '([0-9]:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]+)?)', '\1+00', 'g')"
BOUNDS = f"""
UPDATE ducklake_file_column_stats AS s
SET min_value = {ZONE.format("min_value")}, max_value = {ZONE.format("max_value")}
FROM ducklake_column AS c
WHERE c.table_id = s.table_id AND c.column_id = s.column_id AND c.column_type = 'timestamptz_ns'"""
# The columns of inlined rows that have such texts, also nested ones.
INLINED_TEXTS = """
SELECT DISTINCT quote_ident(i.table_name), quote_ident(a.attname)
FROM ducklake_inlined_data_tables AS i JOIN pg_attribute AS a
  ON a.attrelid = to_regclass(quote_ident(i.table_name))
JOIN ducklake_column AS c ON c.table_id = i.table_id AND c.column_name = a.attname
WHERE c.column_type = 'timestamptz_ns' OR EXISTS (SELECT 1 FROM ducklake_column AS f
  WHERE f.table_id = c.table_id AND f.parent_column = c.column_id
    AND f.column_type = 'timestamptz_ns')"""
TABLES_WITH_FILES = """
SELECT t.table_name, c.column_name
FROM ducklake_column AS c JOIN ducklake_table AS t USING (table_id)
WHERE c.column_type = 'timestamptz_ns' AND c.parent_column IS NULL
  AND EXISTS (SELECT 1 FROM ducklake_data_file AS f WHERE f.table_id = c.table_id)"""


def make_zoned(lake: Lake, s3_endpoint: str, tables: list[str]) -> None:
    """Let all columns of nanoseconds of these tables be in UTC, unless their name is n.

    The lake gets version 1.1. DuckDB 2.0 writes the data files again, and the old ones stay.
    """
    to_1_1(lake)
    run = lake.database.run
    run(COLUMNS, tables=tables)
    run(BOUNDS)
    for name, column in run(INLINED_TEXTS):
        run(f"UPDATE {name} SET {column} = {ZONE.format(column)}")
    for table, column in run(TABLES_WITH_FILES):
        what = f"* REPLACE (({column}::VARCHAR || '+00')::TIMESTAMPTZ_NS AS {column})"
        written_by_duckdb_2(lake, s3_endpoint, [table], what=what, suffix="-utc")


def without_zones(rows: pa.Table) -> pa.Table:
    """The same rows; what is in UTC has no zone."""
    return rows.cast(
        pa.schema([field.with_type(_without_zone(field.type)) for field in rows.schema])
    )


def _without_zone(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp(type_.unit)
    if pa.types.is_map(type_):
        return pa.map_(_without_zone(type_.key_type), _without_zone(type_.item_type))
    return pa.list_(_without_zone(type_.value_type)) if pa.types.is_list(type_) else type_
