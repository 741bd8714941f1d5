"""Overwrites and deletes that DuckLake cannot represent: 400, and nothing has changed."""

from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from polynya.commits.plan import row_deletes
from pyiceberg.exceptions import BadRequestError
from pyiceberg.io.pyarrow import _dataframe_to_data_files

from tests.support.writes.starts import DO_NOT_INLINE

HIDING = (
    "CREATE TABLE {t} (id BIGINT, s VARCHAR, secret INTERVAL)",
    "INSERT INTO {t} SELECT i % 9, 's', to_days(i) FROM range(1, 11) AS r(i)",
    "INSERT INTO {t} SELECT i, 's', NULL FROM range(10, 20) AS r(i)",
)


def replace_first_file(table, keep, *, is_like_delete=True, client="PyIceberg 0.12.0"):
    """Replace the file with the ids 0 to 8, of which 1 is there twice, by a file of other rows.

    Args:
        keep: (rows of the file) -> the rows of the new one.
        is_like_delete: the new file is named as PyIceberg's `delete` names it.
        client: what it says that it is.
    """
    [old] = table.scan("id < 9").plan_files()
    table.catalog._session.headers["X-Client-Version"] = client
    rows = keep(table.scan("id < 9").to_arrow())
    with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
        uuid = snapshot.commit_uuid if is_like_delete else uuid4()
        snapshot.delete_data_file(old.file)
        for file in _dataframe_to_data_files(change.table_metadata, rows, table.io, uuid):
            snapshot.append_data_file(file)


HIDING_REWRITES = {
    "new rows are among the kept ones": (
        lambda rows: pa.concat_tables([rows[2:], rows[2:3]]),
        {},
        "rows into them that the replaced files do not have",
    ),
    "values have changed": (
        lambda rows: rows.set_column(0, rows.schema.field(0), pc.add(rows["id"], 1)),
        {},
        "rows into them that the replaced files do not have",
    ),
    "one of two rows that differ only there stays": (
        lambda rows: rows[1:],
        {},
        "some of several rows that differ in these columns alone",
    ),
    "another client overwrites": (
        lambda rows: rows.filter(pc.field("id") != 1),
        {"is_like_delete": False},
        "does not say which rows it keeps",
    ),
    # iceberg-go gives the new rows of its overwrite the names of PyIceberg's rewritten files.
    "a client with the same names of files overwrites": (
        lambda rows: rows.filter(pc.field("id") != 1),
        {"client": "Go 0.7"},
        "does not say which rows it keeps",
    ),
}


@pytest.mark.slow("[values have changed]", "[another client overwrites]")
@pytest.mark.parametrize("case", HIDING_REWRITES)
def test_rewrites_of_which_the_kept_rows_are_not_certain(twin, case):
    keep, options, words = HIDING_REWRITES[case]
    twin.native(DO_NOT_INLINE, *HIDING)
    before = twin.newest()
    with pytest.raises(BadRequestError, match=words):
        replace_first_file(twin.table(), keep, **options)
    assert twin.newest() == before
    # Whatever a client does is certain if all of them stay, or none.
    certain = lambda rows: rows.filter(pc.field("id") != 1)  # noqa: E731
    twin.changes("DELETE FROM {t} WHERE id = 1", lambda: replace_first_file(twin.table(), certain))
    assert twin.con.execute(f"FROM {twin.source} EXCEPT ALL FROM {twin.memory}").fetchall() == []


def test_a_transaction_that_rewrites_its_own_file_of_a_table_with_hidden_columns(twin):
    twin.native(DO_NOT_INLINE, *HIDING)
    before, refused = twin.newest(), "a file that it has added itself"
    with pytest.raises(BadRequestError, match=refused), twin.table().transaction() as change:
        change.delete("id = 1")
        change.delete("id = 2")
    assert twin.newest() == before


@pytest.mark.slow("[MOST_REWRITTEN_BYTES]")
@pytest.mark.parametrize("limit", ["MOST_REWRITTEN_BYTES", "MOST_REWRITTEN_ROWS"])
def test_more_than_is_read_of_a_table_with_hidden_columns(twin, monkeypatch, limit):
    twin.native(DO_NOT_INLINE, *HIDING)
    before = twin.newest()
    monkeypatch.setattr(row_deletes, limit, 10)
    with pytest.raises(BadRequestError, match="it rewrites more than"):
        twin.table().delete("id = 1")
    assert twin.newest() == before


def test_buckets_that_iceberg_does_not_have(twin):
    twin.native(
        DO_NOT_INLINE,
        "CREATE TABLE {t} (id BIGINT, d DECIMAL(9, 3))",
        "ALTER TABLE {t} SET PARTITIONED BY (bucket(2, d))",
    )
    before = twin.newest()
    with pytest.raises(BadRequestError, match=r"bucket\(2\) of d, and Iceberg has no such"):
        twin.table().append(pa.table({"id": [30], "d": pa.array([1], pa.decimal128(9, 3))}))
    assert twin.newest() == before
    # The bucket of NULL is NULL.
    twin.changes(
        "INSERT INTO {t} VALUES (30, NULL)", lambda: twin.table().append(pa.table({"id": [30]}))
    )
