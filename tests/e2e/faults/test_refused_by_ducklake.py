"""Catalogs of which DuckLake reads nothing, or Iceberg cannot have the same: a table, or the lake,
is refused with what is wrong."""

import re
from contextlib import closing

import duckdb
import pytest
from polynya_local.clients import pyiceberg
from polynya_local.clients.native import Native

from tests.support import rest
from tests.support.servers.in_process import standing_in

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE other(i INTEGER);
INSERT INTO other VALUES (1);
CREATE TABLE t(id INTEGER, i INTEGER);
INSERT INTO t VALUES (1, 2), (3, 4);
"""
RENAMED = f"""{LAKE}
BEGIN;
ALTER TABLE t ADD COLUMN n INTEGER;
ALTER TABLE t RENAME TO renamed;
COMMIT;
"""
TWO_COLUMNS = """
INSERT INTO ducklake_column (column_id, begin_snapshot, table_id, column_order, column_name,
  column_type, nulls_allowed)
SELECT 9, begin_snapshot, table_id, 9, '{name}', column_type, true FROM ducklake_column
WHERE column_name = 'id'"""
TWO_SNAPSHOTS = (
    "ALTER TABLE ducklake_snapshot DROP CONSTRAINT ducklake_snapshot_pkey",
    "INSERT INTO ducklake_snapshot SELECT * FROM ducklake_snapshot ORDER BY 1 DESC LIMIT 1",
)


def native_rows(lake, moto, table: str) -> list[tuple]:
    with closing(Native(lake, moto)) as native:
        return native.query(f"SELECT * FROM lake.{table} ORDER BY ALL")


def run(lake, *statements: str) -> None:
    with closing(lake.database.connect()) as con:
        for statement in statements:
            con.run(statement)


def client(served):
    return closing(pyiceberg.open(served.api_uri, "lake", served.s3_uri))


def test_a_table_with_two_names_is_refused_until_its_first_row_ends(lake, moto):
    written = lake.write("two_names", RENAMED)
    with standing_in(written, moto) as served, client(served) as reader:
        for table in ("t", "renamed", "other"):
            with pytest.raises(duckdb.Error, match="already exists"):
                native_rows(written, moto, table)
        assert reader.rows("main", "other", None).to_pylist() == [{"i": 1}]
        for table in ("t", "renamed"):
            with pytest.raises(Exception, match=r"two rows of it at one snapshot \(t, renamed\)"):
                reader.rows("main", table, None)
        with pytest.raises(rest.Refused) as refused:
            rest.Rest(served.api_uri, "lake").load_table("main", "renamed")
        (statement,) = re.findall("UPDATE ducklake_table .*", refused.value.message)
        run(written, statement)
        assert native_rows(written, moto, "renamed") == [(1, 2), (3, 4)]
        rows = reader.rows("main", "renamed", None).to_pylist()
        assert [tuple(row.values()) for row in rows] == [(1, 2), (3, 4)]
        assert sorted(rest.Rest(served.api_uri, "lake").tables()) == [
            ("main", "other"),
            ("main", "renamed"),
        ]


def test_two_tables_with_one_uuid_are_refused(lake, moto):
    written = lake.write("one_uuid", f"{LAKE}CREATE TABLE third AS SELECT 5 AS i;")
    run(
        written,
        "UPDATE ducklake_table SET table_uuid = (SELECT table_uuid FROM ducklake_table "
        "WHERE table_name = 'other') WHERE table_name = 't'",
    )
    assert native_rows(written, moto, "t") == [(1, 2), (3, 4)]
    with standing_in(written, moto) as served, client(served) as reader:
        for table, same in (("t", "other"), ("other", "t")):
            with pytest.raises(Exception, match=f"the table '{same}' has the same table_uuid"):
                reader.rows("main", table, None)
        assert reader.rows("main", "third", None).to_pylist() == [{"i": 5}]


@pytest.mark.parametrize("name", ["i", "I"])
def test_a_table_with_two_columns_of_one_name_is_refused(name, lake, moto):
    written = lake.write("two_columns", LAKE)
    run(written, TWO_COLUMNS.format(name=name))
    with standing_in(written, moto) as served, client(served) as reader:
        with pytest.raises(duckdb.Error, match="already exists"):
            native_rows(written, moto, "t")
        with pytest.raises(Exception, match="2 columns have the name 'i'"):
            reader.rows("main", "t", None)
        assert reader.rows("main", "other", None).to_pylist() == [{"i": 1}]


def test_a_lake_with_two_rows_of_its_newest_snapshot_is_refused(lake, moto):
    written = lake.write("two_snapshots", LAKE)
    run(written, *TWO_SNAPSHOTS)
    with pytest.raises(duckdb.Error, match="multiple snapshots"):
        native_rows(written, moto, "t")
    with standing_in(written, moto) as served:
        with pytest.raises(Exception, match="2 rows of ducklake_snapshot have the newest"):
            rest.Rest(served.api_uri, "lake").load_table("main", "t")
        run(
            written,
            "DELETE FROM ducklake_snapshot WHERE ctid = (SELECT max(ctid) FROM ducklake_snapshot)",
        )
        with client(served) as reader:
            assert reader.rows("main", "t", None).num_rows == 2
    assert native_rows(written, moto, "t") == [(1, 2), (3, 4)]
