"""What DuckLake has a place for, or keeps in tags: written by a client, read and changed by all."""

import pytest

from tests.support.writes.everywhere import everywhere, plain

CREATED = "CREATE TABLE {}.main.{} AS SELECT range AS id, 'r' || range AS s FROM range(10)"
DELETED = "DELETE FROM {}.main.{} WHERE id % 3 = 0"
CHANGES = (
    "INSERT INTO {0} (id, s) VALUES (20, 'native')",
    "UPDATE {0} SET s = 'native' WHERE id = 4",
    "DELETE FROM {0} WHERE id = 5",
    "ALTER TABLE {0} ADD COLUMN n INTEGER",
    "INSERT INTO {0} (id, s, n) VALUES (21, 'native', 1)",
)


@pytest.fixture(scope="module")
def lake_of(lake, moto):
    with everywhere(lake, moto, "accepted") as one:
        yield one


def test_a_first_commit_with_deletes(lake_of):
    """A transaction that creates a table, fills it, and deletes some of the rows."""
    at = lake_of
    with at.commits():
        statements = [sql.format("ice", "first") for sql in (CREATED, DELETED)]
        at.duckdb("BEGIN", *statements, "COMMIT")
    at.native("BEGIN", *(sql.format("lake", "expected") for sql in (CREATED, DELETED)), "COMMIT")
    assert plain(at.check("first")) == plain(at.native("FROM main.expected"))
    at.maintain("first", *(sql.format("first") for sql in CHANGES))


@pytest.mark.slow
def test_a_first_commit_with_many_deletes(lake_of):
    """They become a delete file of DuckLake's own form."""
    at, created = lake_of, CREATED.replace("range(10)", "range(200_000)")
    deleted = DELETED.replace("% 3 =", "% 3 <")
    statements = [sql.format("ice", "many") for sql in (created, deleted.replace("< 0", "< 2"))]
    with at.commits():
        at.duckdb("BEGIN", *statements, "COMMIT")
    rows = at.native("SELECT count(*), sum(id) FROM main.many")
    assert rows == [(66_666, sum(range(2, 200_000, 3)))]
    assert at.duckdb("SELECT count(*), sum(id) FROM ice.main.many") == rows
    deletes = "SELECT sum(delete_count) FROM ducklake_delete_file WHERE end_snapshot IS NULL"
    assert at.lake.database.run(deletes) == [[133_334]]
