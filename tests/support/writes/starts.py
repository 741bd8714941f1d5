"""Tables in all states that DuckLake knows, to be changed by clients: SQL by name.

Each begins with inlining switched off. Rows have the ids 1 to 9, or fewer; `p` is the partition
column where there is one.
"""

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
USE lake;
"""

CREATE = "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER)"
FILES = (
    CREATE,
    "INSERT INTO {t} SELECT i, 's' || i, i % 3 FROM range(1, 6) AS r(i)",
    "INSERT INTO {t} SELECT i, NULL, i % 3 FROM range(6, 10) AS r(i)",
)
INLINE = "CALL lake.set_option('data_inlining_row_limit', 100)"
DO_NOT_INLINE = "CALL lake.set_option('data_inlining_row_limit', 0)"
INLINED = (
    INLINE,
    CREATE,
    "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2), (3, NULL, 0)",
    "INSERT INTO {t} VALUES (4, 'd', 1), (5, 'e', 2), (8, 'h', 2), (9, 'i', 0)",
    "DELETE FROM {t} WHERE id = 2",
)
PARTITIONED = (
    CREATE,
    "ALTER TABLE {t} SET PARTITIONED BY (p)",
    *FILES[1:],
)

STARTS = {
    "files": FILES,
    "delete files": (*FILES, "DELETE FROM {t} WHERE id IN (2, 7)", "DELETE FROM {t} WHERE id = 3"),
    "inlined deletes": (*FILES, INLINE, "DELETE FROM {t} WHERE id IN (2, 7)"),
    "both deletes": (
        *FILES,
        "DELETE FROM {t} WHERE id IN (2, 7)",
        INLINE,
        "DELETE FROM {t} WHERE id IN (3, 8)",
    ),
    "inlined rows": INLINED,
    "inlined rows of two versions": (
        *INLINED,
        "UPDATE {t} SET s = 'x' WHERE id = 3",
        "ALTER TABLE {t} ADD COLUMN q VARCHAR",
        "INSERT INTO {t} VALUES (6, 'f', 0, 'q'), (7, 'g', 1, NULL)",
    ),
    "inlined rows, and a column dropped": (
        *INLINED[:2],
        "INSERT INTO {t} VALUES (1, 'a', 1), (4, NULL, 1), (6, 'b', 2), (9, 'i', 0)",
        "ALTER TABLE {t} ADD COLUMN q VARCHAR",
        "INSERT INTO {t} VALUES (3, 'c', 1, NULL), (7, 'g', 1, NULL)",
        "ALTER TABLE {t} DROP COLUMN q",
    ),
    "merged and flushed": (
        *INLINED,
        "INSERT INTO {t} VALUES (6, 'f', 0), (7, 'g', 1)",
        "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')",
        "INSERT INTO {t} SELECT 10 + i, 'm', i % 3 FROM range(200) AS r(i)",
        "CALL ducklake_merge_adjacent_files('lake', '{name}')",
    ),
    "partitions": PARTITIONED,
    "partitions with inlined rows and deletes": (
        *PARTITIONED,
        INLINE,
        "INSERT INTO {t} VALUES (1, 'again', 1), (4, NULL, 1), (11, 'k', 2), (12, 'l', NULL)",
        "DELETE FROM {t} WHERE id IN (5, 11)",
    ),
}
"""Statements that create and fill the table `{t}`."""

NATIVE = (
    "INSERT INTO {t} (id, s, p) VALUES (5, 'new', 1), (21, 'new', 2)",
    "UPDATE {t} SET s = 'updated' WHERE id IN (4, 9, 21)",
    "DELETE FROM {t} WHERE id IN (1, 5, 8)",
    "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')",
    "CALL ducklake_merge_adjacent_files('lake', '{name}')",
    "CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)",
    "INSERT INTO {t} (id, s, p) VALUES (1, 'new', 1)",
)
"""What native DuckLake does with the table afterwards."""
