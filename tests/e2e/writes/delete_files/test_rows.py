"""Deletes in delete files: rows at every snapshot, change feed, and what native writers do next."""

from collections import Counter

import pytest

from tests.support.writes.starts import DO_NOT_INLINE, FILES, INLINE, NATIVE, STARTS

pytestmark = pytest.mark.versions("1.1", "1.0")

MERGE = """
MERGE INTO {t} AS t USING (VALUES (4, 'new'), (300, 'new')) AS n (id, s) ON t.id = n.id
WHEN MATCHED THEN UPDATE SET s = n.s
WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, n.s)"""

OPERATIONS = {
    "delete twice": ["DELETE FROM {t} WHERE id IN (1, 6)", "DELETE FROM {t} WHERE id IN (4, 9)"],
    "update": ["UPDATE {t} SET s = 'new' WHERE id IN (3, 9)", "UPDATE {t} SET p = 5 WHERE id >= 3"],
    "merge": [MERGE],
    "delete a whole file": ["DELETE FROM {t} WHERE id = 4", "DELETE FROM {t} WHERE id < 6"],
}

AFTERWARDS = {
    "delete": ["DELETE FROM {t} WHERE id = 5"],
    "inlined delete": [INLINE, "DELETE FROM {t} WHERE id = 5"],
    "flush": [
        INLINE,
        "DELETE FROM {t} WHERE id = 5",
        "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')",
    ],
    "merge": ["CALL ducklake_merge_adjacent_files('lake', '{name}')"],
    "rewrite": ["CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)"],
    "cleanup": ["CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"],
    "all": [*NATIVE],
}

VECTORS = "CALL lake.set_option('write_deletion_vectors', {on})".format
OF_VECTOR = (*FILES, VECTORS(on="true"), "DELETE FROM {t} WHERE id IN (2, 7)", VECTORS(on="false"))


@pytest.mark.slow(but=["[partitions-delete twice]"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_an_operation_gives_the_same_rows_everywhere(twin, change, client, start, operation):
    twin.native(*STARTS[start], DO_NOT_INLINE)
    for sql in OPERATIONS[operation]:
        change(sql)
    assert "deleted_from_table" in twin.changes_made() or "inlined" in twin.changes_made()
    check(twin, client)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["files", "delete files", "both deletes", "merged and flushed"])
@pytest.mark.parametrize("then", AFTERWARDS)
def test_what_native_ducklake_does_next_is_right(twin, change, client, start, then):
    twin.native(*STARTS[start], DO_NOT_INLINE)
    change("DELETE FROM {t} WHERE id IN (1, 6)")
    assert delete_files(twin)
    twin.native(*AFTERWARDS[then])
    check(twin, client)
    twin.native(DO_NOT_INLINE)
    change("DELETE FROM {t} WHERE id IN (4, 9)")
    check(twin, client)


@pytest.mark.slow
def test_the_positions_of_a_deletion_vector_are_in_the_new_file(twin, change):
    twin.native(*OF_VECTOR)
    change("DELETE FROM {t} WHERE id IN (1, 6)")
    assert delete_files(twin) == [[2, True], [2, True]]
    twin.check()


def test_expired_snapshots(twin, change, client):
    twin.native(*STARTS["both deletes"], DO_NOT_INLINE)
    change("DELETE FROM {t} WHERE id IN (1, 6)")
    kept = twin.newest()
    twin.con.execute(f"CALL ducklake_expire_snapshots('lake', versions => {[*range(1, kept)]})")
    twin.con.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    twin.forget(kept)
    change("DELETE FROM {t} WHERE id IN (4, 9)")
    check(twin, client)


def check(twin, client):
    """Every snapshot natively, by PyIceberg and by DuckDB."""
    twin.check()
    for snapshot_id, expected in twin.listed():
        source = f"ice.main.{twin.name} AT (VERSION => {snapshot_id})"
        table = client.query(f"SELECT * FROM {source}")
        rows = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
        assert rows == expected, f"DuckDB at {snapshot_id}"
        count = client.query(f"SELECT count(*) AS n FROM {source}").column("n").to_pylist()
        assert count == [expected.total()], f"DuckDB's count at {snapshot_id}"


def delete_files(twin):
    """How many rows the live delete files of a table delete, and whether of several snapshots."""
    return twin.lake.database.run(FILES_OF, name=twin.name)


FILES_OF = """
SELECT d.delete_count, d.partial_max IS NOT NULL FROM ducklake_delete_file AS d
JOIN ducklake_table AS t USING (table_id) JOIN ducklake_data_file AS f USING (data_file_id)
WHERE t.table_name = :name AND t.end_snapshot IS NULL AND f.end_snapshot IS NULL
  AND d.end_snapshot IS NULL AND d.format = 'parquet'
ORDER BY d.data_file_id"""
