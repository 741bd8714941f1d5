"""Statistics, partition values and directories equal those that DuckDB writes for the rows."""

import pytest
from pyspark.sql.types import StructField, StructType

pytestmark = [pytest.mark.spark, pytest.mark.versions("1.0", "1.1")]


@pytest.fixture
def lake(folder_lake):
    return folder_lake


FILE_STATS = """
SELECT c.column_name, c.column_id, s.value_count, s.null_count, s.min_value, s.max_value,
  s.contains_nan
FROM ducklake_file_column_stats AS s JOIN ducklake_column AS c USING (table_id, column_id)
JOIN ducklake_table AS t USING (table_id) WHERE t.table_name = :name ORDER BY c.column_id"""

TABLE_STATS = """
SELECT s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value
FROM ducklake_table_column_stats AS s JOIN ducklake_table AS t USING (table_id)
WHERE t.table_name = :name ORDER BY s.column_id"""

# SQL of Spark and of DuckDB for the same rows, i from 0 to 9.
ROWS = {
    "i": ("CAST(i AS int)", "i::INT"),
    "n": (
        "CASE WHEN i % 3 > 0 THEN CAST(9 - i AS bigint) END",
        "CASE WHEN i % 3 > 0 THEN 9 - i END",
    ),
    "f": (
        "CAST(CASE WHEN i = 4 THEN 'nan' ELSE i / 3 END AS float)",
        "(CASE WHEN i = 4 THEN 'nan' ELSE (i / 3)::VARCHAR END)::FLOAT",
    ),
    "d": ("CAST(i * 1e300 - 5 AS double)", "(i * 1e300 - 5)::DOUBLE"),
    "dc": ("CAST(i - 4.25 AS decimal(9,2))", "(i - 4.25)::DECIMAL(9,2)"),
    "s": ("concat('v', i)", "concat('v', i)"),
    "l": ("concat(repeat('x', 300), i)", "concat(repeat('x', 300), i)"),
    "z": ("CAST(NULL AS string)", "NULL::VARCHAR"),
    "b": ("CAST(concat('v', i) AS binary)", "concat('v', i)::BLOB"),
    "bo": ("i > 3", "i > 3"),
    "da": ("date_add(DATE '1969-12-28', CAST(i AS int))", "DATE '1969-12-28' + i::INT"),
    "ts": (
        "TIMESTAMP_NTZ '2023-12-31 23:59:59.5' + make_dt_interval(0, CAST(i AS int))",
        "TIMESTAMP '2023-12-31 23:59:59.5' + to_hours(i)",
    ),
    "tz": (
        "TIMESTAMP '2024-02-29 23:00:00 UTC' + make_dt_interval(0, CAST(i AS int))",
        "TIMESTAMPTZ '2024-02-29 23:00:00 UTC' + to_hours(i)",
    ),
    "st": (
        "named_struct('a', CAST(i AS int), 'b', array('x', NULL))",
        "{'a': i::INT, 'b': ['x', NULL]}",
    ),
    "fs": (
        "named_struct('n', CASE WHEN i = 5 THEN CAST('nan' AS float) WHEN i < 8 THEN CAST(i AS "
        "float) END, 'z', CASE WHEN i % 3 != 1 THEN i * 0.0D * IF(i % 2 = 0, 1, -1) END)",
        "{'n': CASE WHEN i = 5 THEN 'nan'::FLOAT WHEN i < 8 THEN i::FLOAT END, "
        "'z': CASE WHEN i % 3 != 1 THEN IF(i % 2 = 0, '0.0', '-0.0')::DOUBLE END}",
    ),
    "fl": (
        "CASE WHEN i % 4 > 0 THEN array(CAST(i AS double), NULL, CAST('nan' AS double)) END",
        "CASE WHEN i % 4 > 0 THEN [i::DOUBLE, NULL, 'nan'::DOUBLE] END",
    ),
    "fm": (
        "CASE WHEN i > 0 THEN map(CAST(i AS int), CAST(IF(i > 5, '-inf', 'inf') AS double)) END",
        "CASE WHEN i > 0 THEN MAP {i::INT: IF(i > 5, '-inf', 'inf')::DOUBLE} END",
    ),
    "m": (
        "CASE WHEN i > 1 THEN map(concat('k', i), CAST(i AS int)) END",
        "CASE WHEN i > 1 THEN MAP {'k' || i: i::INT} END",
    ),
}


def nullable(spark, frame):
    """The same rows with nullable columns, as in DuckDB."""
    schema = StructType([StructField(field.name, field.dataType) for field in frame.schema])
    return spark.createDataFrame(frame.toArrow(), schema)


def both(lake, spark, name: str, twin: str, low: int, high: int, **options) -> None:
    """Write the same rows with ingest and with DuckDB, each into one file."""
    words = [f"{sql} AS {column}" for column, (sql, _) in ROWS.items()]
    frame = spark.range(low, high, 1, 1).toDF("i").selectExpr(*words)
    frame = nullable(spark, frame)
    lake.ingest(
        frame.coalesce(1), name, files=None if options.get("partition_by") else 1, **options
    )
    duck = [f"{sql} AS {column}" for column, (_, sql) in ROWS.items()]
    source = f"SELECT {', '.join(duck)} FROM range({low}, {high}) AS r(i)"
    exists = lake.catalog("SELECT 1 FROM ducklake_table WHERE table_name = :name", name=twin)
    lake.sql(f"INSERT INTO {twin} {source}" if exists else f"CREATE TABLE {twin} AS {source}")


def test_statistics_are_those_of_duckdb(open_lake, spark, tmp_path):
    lake = open_lake(f"{tmp_path}/", DATA_INLINING_ROW_LIMIT=0)
    both(lake, spark, "t", "twin", 3, 7, create=True)
    for step in ((0, 5), (5, 10)):
        theirs = lake.catalog(FILE_STATS, name="twin")
        assert lake.catalog(FILE_STATS, name="t") == theirs and theirs
        of_table = lake.catalog(TABLE_STATS, name="twin")
        assert lake.catalog(TABLE_STATS, name="t") == of_table and of_table
        both(lake, spark, "t", "twin", *step)
    stats = "SELECT record_count, next_row_id FROM ducklake_table_stats ORDER BY table_id"
    assert lake.catalog(stats) == [[14, 14], [14, 14]]
    # The counts are equal, so no row of twin is missing in t either.
    assert lake.sql("FROM t EXCEPT ALL FROM twin") == []


@pytest.mark.slow
def test_no_filter_loses_a_row(lake, spark):
    """DuckDB prunes by the table's statistics, so a writer must widen them."""
    for low, high in ((1000, 1010), (0, 20), (5000, 5005)):
        frame = spark.range(low, high).selectExpr("id", "CAST(id AS string) AS s", "id / 7 AS d")
        lake.ingest(frame, create=True)
    everything = lake.sql("SELECT id, s, d FROM t")
    assert len(everything) == 35
    for id, s, d in everything:
        for condition in (f"id = {id}", f"s = '{s}'", f"d >= {d!r} AND d <= {d!r}"):
            assert lake.sql(f"SELECT id, s, d FROM t WHERE {condition}") == [(id, s, d)]
        assert lake.sql(f"SELECT count(*) FROM t WHERE id < {id}") == [
            (sum(other < id for other, _, _ in everything),)
        ]


PARTITIONINGS = [
    ("i", "s"),
    ("bo", "dc", "f"),
    ("year(da)", "month(da)", "day(da)"),
    ("year(ts)", "month(ts)", "day(ts)", "hour(ts)"),
    ("day(tz)", "z"),
    ("bucket(4, i)", "n"),
    ("bucket(3, s)", "bucket(5, da)"),
    ("bucket(7, ts)", "bucket(6, tz)"),
    ("bucket(7, b)", "tz"),
    ("ts", "da"),
]
FILES = """
SELECT f.record_count, regexp_replace(f.path, '[^/]+$', ''),
  (SELECT array_agg(v.partition_value ORDER BY v.partition_key_index)
   FROM ducklake_file_partition_value AS v WHERE v.data_file_id = f.data_file_id) AS "values"
FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id)
WHERE t.table_name = :name ORDER BY 2, 3, 1"""

TRANSFORMS = """
SELECT c.partition_key_index, c.column_id, c.transform FROM ducklake_partition_column AS c
JOIN ducklake_table AS t USING (table_id) WHERE t.table_name = :name ORDER BY 1"""


def test_partitions_are_those_of_duckdb(open_lake, spark, tmp_path):
    lake = open_lake(f"{tmp_path}/", DATA_INLINING_ROW_LIMIT=0)
    words = [f"{sql} AS {column}" for column, (sql, _) in ROWS.items()]
    frame = nullable(spark, spark.range(0, 10, 1, 1).toDF("i").selectExpr(*words)).coalesce(1)
    duck = [f"{sql} AS {column}" for column, (_, sql) in ROWS.items()]
    for number, keys in enumerate(PARTITIONINGS):
        source = f"SELECT {', '.join(duck)} FROM range(10) AS r(i)"
        lake.sql(f"CREATE TABLE twin{number} AS {source} WHERE false")
        lake.sql(f"ALTER TABLE twin{number} SET PARTITIONED BY ({', '.join(keys)})")
        lake.sql(f"INSERT INTO twin{number} {source}")
        lake.ingest(frame, f"t{number}", create=True, partition_by=keys, files=1)
        theirs = lake.catalog(FILES, name=f"twin{number}")
        assert lake.catalog(FILES, name=f"t{number}") == theirs and theirs, keys
    assert lake.verify().findings == []
    assert lake.catalog(TRANSFORMS, name="t5") == lake.catalog(TRANSFORMS, name="twin5") != []
