"""Overwrites and deletes that DuckLake cannot represent: 400, and nothing has changed."""

import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError

from tests.support.writes.starts import DO_NOT_INLINE

HIDING = (
    "CREATE TABLE {t} (id BIGINT, s VARCHAR, secret INTERVAL)",
    "INSERT INTO {t} SELECT i, 's', INTERVAL 1 DAY FROM range(1, 10) AS r(i)",
    "INSERT INTO {t} SELECT i, 's', NULL FROM range(10, 20) AS r(i)",
)


def test_columns_that_clients_do_not_see(twin):
    twin.native(DO_NOT_INLINE, *HIDING)
    before = twin.newest()
    with pytest.raises(BadRequestError, match="merge-on-read"):
        twin.table().delete("id = 1")
    with pytest.raises(BadRequestError, match="secret"):
        twin.table().overwrite(pa.table({"id": [1], "s": ["new"]}))
    assert twin.newest() == before
    twin.changes("DELETE FROM {t} WHERE id >= 10", lambda: twin.table().delete("id >= 10"))
    twin.changes(
        "INSERT INTO {t} VALUES (30, 'new', NULL)",
        lambda: twin.table().append(pa.table({"id": [30], "s": ["new"]})),
    )
    assert twin.con.execute(f"FROM {twin.source} EXCEPT ALL FROM {twin.memory}").fetchall() == []


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
