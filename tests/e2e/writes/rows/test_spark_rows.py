"""Spark's DELETE, UPDATE, MERGE and overwrites, merge-on-read and copy-on-write."""

import pytest

from tests.support.writes.spark_sql import REWRITE_DATA_FILES, REWRITE_DELETE_FILES, set_modes
from tests.support.writes.starts import DO_NOT_INLINE, NATIVE, STARTS

pytestmark = pytest.mark.spark

MERGE = """
MERGE INTO {t} AS t USING (SELECT * FROM VALUES (4, 'new'), (300, 'new') AS v(id, s)) AS n
ON t.id = n.id WHEN MATCHED THEN UPDATE SET s = n.s
WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (n.id, n.s, NULL)"""
MERGED = """
DELETE FROM {t} WHERE id = 300;
INSERT INTO {t} (id, s, p) VALUES (300, 'new', NULL);
UPDATE {t} SET s = 'new' WHERE id = 4"""
OPERATIONS = [
    # in Spark, and in the twin if it is another statement there
    ("DELETE FROM {t} WHERE id IN (1, 6)", None),
    ("UPDATE {t} SET s = 'new' WHERE id IN (3, 9)", None),
    (MERGE, MERGED),
    ("DELETE FROM {t} WHERE id IN (4, 9)", None),
    ("UPDATE {t} SET p = 5 WHERE id >= 3", None),
]

VALUES = "VALUES (4L, 'new', 1), (41L, NULL, 1)"
INSERTED = "INSERT INTO {t} (id, s, p) VALUES (4, 'new', 1), (41, NULL, 1)"
NOTHING = "SELECT 1"
REPLACING = f"CREATE OR REPLACE TABLE {{t}} USING iceberg AS SELECT * FROM {VALUES} AS v(id, s, p)"
MODE = "spark.sql.sources.partitionOverwriteMode"

OVERWRITING = f"INSERT OVERWRITE {{t}} {VALUES}"
ALL_NEW = f"DELETE FROM {{t}};{INSERTED}"
PARTITION_NEW = f"DELETE FROM {{t}} WHERE p = 1;{INSERTED}"

WHOLE = [
    # start, mode of overwrites, in Spark, in the twin, the operation that Iceberg lists
    ("partitions", "dynamic", OVERWRITING, PARTITION_NEW, "overwrite"),
    ("both deletes", "static", OVERWRITING, ALL_NEW, "overwrite"),
    ("inlined rows", "static", OVERWRITING, ALL_NEW, "overwrite"),
    ("both deletes", "static", REPLACING, ALL_NEW, "overwrite"),
    ("inlined rows", "static", REPLACING, ALL_NEW, "overwrite"),
    ("both deletes", "static", "TRUNCATE TABLE {t}", "DELETE FROM {t}", "delete"),
    ("partitions", "static", *["DELETE FROM {t} WHERE p = 1"] * 2, "delete"),
    ("both deletes", "static", REWRITE_DATA_FILES, NOTHING, "replace"),
    ("inlined rows", "static", REWRITE_DATA_FILES, NOTHING, "replace"),
    ("both deletes", "static", REWRITE_DELETE_FILES, NOTHING, "replace"),
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("start", ["both deletes", "inlined rows of two versions", "partitions"])
def test_single_rows(twin, spark, start, mode):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    set_modes(twin, mode)
    for sql, other in OPERATIONS:
        twin.changes(other or sql, lambda sql=sql: spark(twin, sql).collect())
    twin.check()
    twin.native(*NATIVE)
    twin.check()


@pytest.mark.slow
@pytest.mark.parametrize(("start", "mode", "sql", "other", "operation"), WHOLE)
def test_whole_files(twin, spark, start, mode, sql, other, operation):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    spark(twin, f"SET {MODE}={mode}")
    twin.changes(other, lambda: spark(twin, sql).collect())
    assert twin.table().current_snapshot().summary.operation.value == operation
    twin.check()
    twin.native(*NATIVE)
    twin.check()


@pytest.mark.slow
@pytest.mark.parametrize("start", ["files", "both deletes"])
def test_a_dynamic_overwrite_of_a_table_without_partitions_is_refused(twin, spark, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    spark(twin, f"SET {MODE}=dynamic")
    before = twin.newest()
    with pytest.raises(Exception, match="not partitioned for Iceberg"):
        spark(twin, f"INSERT OVERWRITE {{t}} {VALUES}").collect()
    assert twin.newest() == before
    twin.check()
