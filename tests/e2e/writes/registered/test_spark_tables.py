"""Tables of Iceberg's Java, written by Spark, that are registered: Spark gives the rows."""

import pytest

from tests.support.writes.everywhere import MAINTENANCE
from tests.support.writes.registered import compare, dry_run, register, scanned

pytestmark = pytest.mark.spark

V2 = "TBLPROPERTIES ('format-version' = '2', {})"
V3 = "TBLPROPERTIES ('format-version' = '3', {})"
MERGE_ON_READ = ", ".join(
    f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge")
)
PYICEBERG_IGNORES_IT = "ignore:Merge on read is not yet supported:UserWarning"
CREATE = "CREATE TABLE {{t}} (id BIGINT, s STRING, p INT) USING iceberg {} {}"
ROWS = (
    "INSERT INTO {t} SELECT id, concat('s', id), id % 3 FROM range(1, 13)",
    "INSERT INTO {t} SELECT id, NULL, id % 3 FROM range(40, 46)",
)
CHANGES = (
    "DELETE FROM {t} WHERE id IN (2, 5, 41)",
    "UPDATE {t} SET s = 'updated' WHERE id IN (7, 8, 44)",
    "DELETE FROM {t} WHERE id = 11",
)


def started(partitioned, version):
    return (CREATE.format(partitioned, version.format(MERGE_ON_READ)), *ROWS, *CHANGES)


CASES = {
    "position deletes": started("", V2),
    "deletion vectors": started("", V3),
    "identity": started("PARTITIONED BY (p)", V2),
    "bucket": started("PARTITIONED BY (bucket(4, id))", V2),
    "truncate, in version 3": started("PARTITIONED BY (truncate(1, s))", V3),
    "compacted": (
        *started("", V2),
        "CALL source.system.rewrite_data_files(table => '{of}', "
        "options => map('rewrite-all', 'true'))",
        "DELETE FROM {t} WHERE id = 12",
    ),
    "copy-on-write": (CREATE.format("", ""), *ROWS, *CHANGES),
    "renamed and dropped": (
        *started("", V2),
        "ALTER TABLE {t} RENAME COLUMN s TO u",
        "ALTER TABLE {t} DROP COLUMN p",
        "ALTER TABLE {t} ADD COLUMN s STRING",
        "ALTER TABLE {t} ADD COLUMN p BIGINT",
        "INSERT INTO {t} VALUES (100, 'u', 's', 1)",
        "ALTER TABLE {t} ADD COLUMN z STRING",
        "INSERT INTO {t} VALUES (101, 'u', 's', 1, 'z')",
        "ALTER TABLE {t} DROP COLUMN z",
    ),
    "promoted": (
        CREATE.format("PARTITIONED BY (p)", V2.format(MERGE_ON_READ)),
        "ALTER TABLE {t} ADD COLUMN (f FLOAT, d DECIMAL(9, 2))",
        "INSERT INTO {t} SELECT id, 's', id % 3, 0.5, 1.25 FROM range(10)",
        "ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(18, 2)",
        "INSERT INTO {t} VALUES (5000000000, 'x', 5000000000, 0.1, 12345678901.25)",
        "DELETE FROM {t} WHERE id = 3",
    ),
    "partition evolution": (
        *started("PARTITIONED BY (p)", V2),
        "ALTER TABLE {t} DROP PARTITION FIELD p",
        "ALTER TABLE {t} ADD PARTITION FIELD truncate(2, s)",
        "INSERT INTO {t} SELECT id, concat('s', id), id % 3 FROM range(100, 106)",
        "DELETE FROM {t} WHERE id IN (1, 101)",
    ),
    "reordered": (
        *started("", V2),
        "ALTER TABLE {t} ALTER COLUMN p FIRST",
        "INSERT INTO {t} VALUES (1, 100, 'x')",
    ),
    "nested": (
        "CREATE TABLE {t} (id BIGINT, st STRUCT<a: INT, b: STRING, c: STRUCT<d: INT>>, "
        "l ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, STRUCT<q: INT>>) USING iceberg "
        + V2.format(MERGE_ON_READ),
        "INSERT INTO {t} VALUES (1, struct(1, 'b', struct(3)), array(struct(1, 'y')), "
        "map('k', struct(5)))",
        "ALTER TABLE {t} ADD COLUMN st.e BIGINT AFTER a",
        "ALTER TABLE {t} RENAME COLUMN st.b TO bb",
        "ALTER TABLE {t} ALTER COLUMN st.c.d TYPE BIGINT",
        "ALTER TABLE {t} DROP COLUMN l.element.x",
        "ALTER TABLE {t} ADD COLUMN l.element.x STRING",
        "ALTER TABLE {t} ADD COLUMN m.value.r STRING",
        "INSERT INTO {t} VALUES (2, struct(1, 7, 'bb', struct(8)), array(struct('y', 'x')), "
        "map('k', struct(5, 'r')))",
        "DELETE FROM {t} WHERE id = 1 AND st.a = 2",
    ),
    "empty": (CREATE.format("PARTITIONED BY (p)", ""),),
    "of format version 1": (
        CREATE.format("PARTITIONED BY (p)", "TBLPROPERTIES ('format-version' = '1')"),
        *ROWS,
    ),
    "no rows": (CREATE.format("", ""), *ROWS, "DELETE FROM {t}"),
}


FEW = ["deletion vectors]", "partition evolution]", "nested]"]
FILTERS = {"p": "p = 1", "s": "s = 's7'", "id": "id > 10"}


@pytest.mark.slow(but=FEW)
@pytest.mark.filterwarnings(PYICEBERG_IGNORES_IT)
@pytest.mark.parametrize("case", CASES)
def test_rows(lake_of, java, moto, case, version):
    at, name = lake_of, lake_of.new("spark")
    java.sql(name, *CASES[case])
    location = java.copied(name)
    rows = java.arrow(name)
    planned = dry_run(at, name, location)
    register(at, name, location)
    compare(at, name, rows, moto)
    assert planned["rows"] == rows.num_rows
    for column, condition in FILTERS.items():
        if column in rows.column_names:
            expected = java.sql(name, f"SELECT count(*) FROM {{t}} WHERE {condition}")
            got = scanned(at, name, row_filter=condition).num_rows
            assert got == expected[0][0], condition
    changed_afterwards(at, name, version)


def changed_afterwards(at, name, version):
    """The table goes on: natively, by PyIceberg, and with new columns."""
    at.native(
        f"INSERT INTO main.{name} SELECT t.* REPLACE (n AS id) "
        f"FROM (FROM main.{name} ORDER BY id LIMIT 1) AS t, (VALUES (1000), (1001)) AS v(n)"
    )
    if not at.native(f"FROM main.{name}"):
        at.native(f"INSERT INTO main.{name} (id) VALUES (1000), (1001)")
    at.native(f"DELETE FROM main.{name} WHERE id IN (1, 1000)")
    at.native(f"ALTER TABLE main.{name} ADD COLUMN added VARCHAR")
    at.native(f"UPDATE main.{name} SET added = 'x' WHERE id = 1001")
    table = at.catalog.load_table(f"main.{name}")
    if table.format_version == 2:  # PyIceberg writes no version 3
        with at.commits():
            table.append(table.scan(row_filter="id >= 1001").to_arrow())
        with at.commits():
            at.catalog.load_table(f"main.{name}").delete("id >= 1001")
    at.check(name)
    if version == "1.0":  # of a partitioned table of 1.1, DuckLake 1.0 cannot merge files elsewhere
        at.native(*MAINTENANCE)
        at.check(name)
