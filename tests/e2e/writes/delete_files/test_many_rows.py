"""More deleted rows than a commit may inline, with nothing changed for the test."""

import pyarrow.compute as pc
import pytest
from polynya.commits.plan.row_deletes import MOST_INLINED
from polynya_pipeline.verify.job import verify

from tests.support.writes.starts import INLINE

LARGE, SMALL = 400_000, 60_000

START = (
    "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER)",
    f"INSERT INTO {{t}} SELECT i, 's' || (i % 100), i % 5 FROM range({LARGE}) AS r(i)",
    f"INSERT INTO {{t}} SELECT {LARGE} + i, NULL, i % 5 FROM range({SMALL}) AS r(i)",
)

BEFORE = {
    "nothing": (),
    "a delete file": ("DELETE FROM {t} WHERE id % 1000 = 0",),
    "inlined deletes": (INLINE, "DELETE FROM {t} WHERE id IN (2, 3, 4)"),
    "both": (
        "DELETE FROM {t} WHERE id % 1000 = 0",
        INLINE,
        "DELETE FROM {t} WHERE id IN (2, 3, 4)",
    ),
}

STATEMENTS = {
    # A delete file for the large data file, while the deletes of the small one are inlined.
    "DELETE FROM {t} WHERE id % 3 = 0": {"deleted_from_table", "inlined_delete"},
    "DELETE FROM {t} WHERE id % 100 = 1": {"deleted_from_table", "inlined_delete"},
    f"UPDATE {{t}} SET p = -1 WHERE id < {LARGE} AND id % 2 = 0": {"deleted_from_table"},
}
"""With what DuckLake says of the snapshot about deletes."""

SUMS = """
SELECT count(*), count(id), min(id), max(id), CAST(sum(id) AS VARCHAR),
  CAST(sum(hash(id, s, p)) AS VARCHAR) FROM {}"""


@pytest.fixture
def nothing_is_inlined():
    """Not here."""


@pytest.mark.slow
@pytest.mark.parametrize("before", BEFORE)
def test_many_deleted_rows(twin, change, client, served, monkeypatch, before):
    assert MOST_INLINED < LARGE // 3
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", served[2])
    twin.native(*START, *BEFORE[before])
    expected = {twin.newest(): sums(twin, twin.memory)}
    for sql, changes in STATEMENTS.items():
        change(sql)
        expected[twin.newest()] = sums(twin, twin.memory)
        made = {one.partition(":")[0] for one in twin.changes_made().split(",")}
        assert made & {"deleted_from_table", "inlined_delete"} == changes
        check(twin, client, expected)
    twin.native("DELETE FROM {t} WHERE id % 7 = 0")
    expected[twin.newest()] = sums(twin, twin.memory)
    twin.native("CALL ducklake_flush_inlined_data('lake', table_name => '{name}')")
    check(twin, client, expected)
    report = verify(
        database=served[0].database.url,
        levels=("catalog", "storage", "metadata"),
        table=f"main.{twin.name}",
        footers=True,
        catalog_uri=served[1].catalog_uri,
        bridge_s3_endpoint=served[1].s3_endpoint,
    )
    assert report.findings == []


def sums(twin, source):
    return twin.con.execute(SUMS.format(source)).fetchall()


def check(twin, client, expected):
    """Every snapshot, natively and through Iceberg."""
    ids = {one.sequence_number: one.snapshot_id for one in twin.table().snapshots()}
    for at, rows in expected.items():
        assert sums(twin, f"{twin.source} AT (VERSION => {at})") == rows, f"natively at {at}"
        # DuckDB's hashes are the same in every process.
        asked = SUMS.format(f"ice.main.{twin.name} AT (VERSION => {ids[at]})")
        [found] = zip(*(c.to_pylist() for c in client.query(asked).columns), strict=True)
        assert found == rows[0], f"DuckDB at {at}"
        scanned = twin.table().scan(snapshot_id=ids[at]).to_arrow()
        assert (len(scanned), str(pc.sum(scanned["id"]))) == (rows[0][0], rows[0][4])
