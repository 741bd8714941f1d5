"""A delete file of a commit is registered, row by row of the catalog, as DuckLake's own DELETE
registers its delete file; a native twin of the lake is the judge."""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb

from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, INLINE
from tests.support.writes.twins import query, twins

CREATE = "CREATE TABLE t (id BIGINT, p INTEGER)"
TWO_FILES = (
    DO_NOT_INLINE,
    CREATE,
    "INSERT INTO t SELECT i, i % 2 FROM range(0, 500) AS r(i)",
    "INSERT INTO t SELECT i, i % 2 FROM range(500, 900) AS r(i)",
)
# Not of the second file: DuckLake does not end a file whose last rows are deleted in both ways.
DELETE = "DELETE FROM t WHERE id IN (3, 4)"
VECTORS = "CALL lake.set_option('write_deletion_vectors', {on})".format

STARTS = {
    "no deletes": TWO_FILES,
    "a delete file": (*TWO_FILES, DELETE),
    "a delete file of several snapshots": (*TWO_FILES, DELETE, "DELETE FROM t WHERE id < 3"),
    "inlined deletes": (*TWO_FILES, INLINE, DELETE),
    "both": (*TWO_FILES, DELETE, INLINE, "DELETE FROM t WHERE id IN (7, 8)"),
    "a flushed delete": (*TWO_FILES, INLINE, DELETE, "CALL ducklake_flush_inlined_data('lake')"),
    "a deletion vector": (*TWO_FILES, VECTORS(on="true"), DELETE, VECTORS(on="false")),
    "partitions": (
        *TWO_FILES[:2],
        "ALTER TABLE t SET PARTITIONED BY (p)",
        *TWO_FILES[2:],
        DELETE,
    ),
    "a rewritten file": (
        *TWO_FILES,
        DELETE,
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    ),
}
STATEMENTS = (
    "DELETE FROM t WHERE id BETWEEN 100 AND 300",
    "DELETE FROM t WHERE id % 7 = 0",
    "DELETE FROM t WHERE id >= 500",
)
"""Of one file, of both, and of all rows of one."""


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_rows_of_the_catalog(lake, moto, start):
    with twins(lake, moto, "SELECT 1;") as both:
        both.native(*STARTS[start], DO_NOT_INLINE, also_here=True)
        with (
            bridge(both.lake, moto, writes=True) as served,
            closing(duckdb.open(served.catalog_uri, "lake", served.s3_endpoint)) as client,
        ):
            for sql in STATEMENTS:
                client.query(sql.replace("FROM t", "FROM ice.main.t"))
                both.native(sql)
                both.check(ignoring={"ducklake_snapshot_changes"})
                here, there = (changes_made(one) for one in (both.lake, both.twin))
                assert here - {"altered_table:1"} == there
                assert history(both.lake, moto) == history(both.twin, moto)


def changes_made(lake):
    [[text]] = lake.database.run(
        "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 1"
    )
    return {*text.split(",")}


def history(lake, s3_endpoint):
    """The rows and the changes at each snapshot, natively."""
    [[newest]] = query(lake, s3_endpoint, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    found = []
    for at in range(2, newest + 1):
        rows = f"SELECT count(*), sum(id) FROM t AT (VERSION => {at})"
        changes = (
            "SELECT change_type, count(*), sum(id) FROM "
            f"ducklake_table_changes('lake', 'main', 't', {at}, {at}) GROUP BY 1 ORDER BY 1"
        )
        found.append([query(lake, s3_endpoint, sql) for sql in (rows, changes)])
    return found
