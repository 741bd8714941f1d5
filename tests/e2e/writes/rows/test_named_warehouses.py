"""PyIceberg writes through warehouses for named clients, such as `lake+daft`.

Columns that these hide keep their values, and files get the partitions that these do not show.
"""

import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.types import StringType

from tests.e2e.writes.rows.test_overwrites import OPERATIONS, rows
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE, NATIVE
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

CREATE = "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER, u UINTEGER, t TIME, b BLOB)"
VALUES = "4294967295 - i, TIME '01:02:03' + INTERVAL (i) MINUTE, 'b'::BLOB"
FILES = (
    f"INSERT INTO {{t}} SELECT i, 's' || i, i % 3, {VALUES} FROM range(1, 6) AS r(i)",
    f"INSERT INTO {{t}} SELECT i, NULL, i % 3, {VALUES} FROM range(6, 10) AS r(i)",
)
STARTS = {
    "files": (CREATE, *FILES, "DELETE FROM {t} WHERE id = 2"),
    "partitions": (CREATE, "ALTER TABLE {t} SET PARTITIONED BY (p)", *FILES),
    "partitions and inlined rows": (
        *(CREATE, FILES[0], "ALTER TABLE {t} SET PARTITIONED BY (p)", FILES[1], INLINE),
        f"INSERT INTO {{t}} SELECT 11, 'k', 2, {VALUES} FROM range(1, 2) AS r(i)",
        "DELETE FROM {t} WHERE id IN (5, 11)",
    ),
    "partitions by a hidden column": (CREATE, "ALTER TABLE {t} SET PARTITIONED BY (u)", *FILES),
}
BUCKETS = (CREATE, "ALTER TABLE {t} SET PARTITIONED BY (bucket(4, id))", *FILES)
WAREHOUSES = ["lake+daft", "lake+spark+trino", "lake+flink+sail", "lake+pyiceberg"]


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("rows", LAKE))
    with bridge(one, moto, writes=True, delivery="object-lambda") as served:
        yield one, served, moto


@pytest.fixture
def twin(served, warehouse):
    with opened(*served, warehouse) as twin:
        yield twin


def check(twin) -> None:
    """Also that native filters find all rows, by the partitions of files."""
    twin.check()
    for column in ("p", "u"):
        counts = f"SELECT {column}, count(*) FROM {{}} GROUP BY ALL"
        for value, count in twin.con.execute(counts.format(twin.memory)).fetchall():
            where = f"{column} IS NULL" if value is None else f"{column} = {value}"
            found = twin.con.execute(f"SELECT count(*) FROM {twin.source} WHERE {where}")
            assert found.fetchone() == (count,), where


@pytest.mark.slow(but=["[partitions-delete some-lake+daft]", "[files-upsert-lake+spark+trino]"])
@pytest.mark.parametrize("warehouse", WAREHOUSES)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_an_operation_gives_the_same_rows_everywhere(twin, start, operation):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    action, sql = OPERATIONS[operation]
    twin.changes(sql, lambda: action(twin.table()))
    check(twin)
    twin.native(*NATIVE)
    check(twin)


@pytest.mark.parametrize("warehouse", ["lake+daft"])
def test_buckets_that_the_client_does_not_see_are_refused(twin):
    twin.native(DO_NOT_INLINE, *BUCKETS)
    before = twin.newest()
    for write in (
        lambda table: table.append(rows(table, (40, "new", 1))),
        lambda table: table.delete("id = 3"),
    ):
        with pytest.raises(BadRequestError, match="write through the warehouse without clients"):
            write(twin.table())
    assert twin.newest() == before
    twin.native(*NATIVE)
    check(twin)


@pytest.mark.parametrize("warehouse", ["lake+daft"])
def test_a_table_that_has_version_2_for_the_client_keeps_its_defaults(twin):
    """PyIceberg writes no table of version 3, which this one has for others."""
    twin.native(
        *(DO_NOT_INLINE, CREATE, *FILES, "DELETE FROM {t} WHERE id = 2"),
        "ALTER TABLE {t} ADD COLUMN country VARCHAR DEFAULT 'DE'",
        "INSERT INTO {t} (id, s, country) VALUES (20, 'x', 'FR')",
    )
    assert twin.table().format_version == 2
    action, sql = OPERATIONS["delete some"]
    twin.changes(sql, lambda: action(twin.table()))
    check(twin)
    new = rows(twin.table(), (40, "new", 1))
    twin.changes(
        "INSERT INTO {t} (id, s, p, country) VALUES (40, 'new', 1, NULL)",
        lambda: twin.table().append(new),
    )
    check(twin)
    with twin.table().update_schema() as update:
        update.add_column("more", StringType())
    described = twin.con.execute(f"DESCRIBE {twin.source}").fetchall()
    assert {row[0]: row[4] for row in described}["country"] == "'DE'"
