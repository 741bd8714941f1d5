"""A column with a default that is added in the transaction that creates the table and fills it.

DuckLake writes the same rows about it as about one that CREATE TABLE names, and a file without it.
"""

from contextlib import closing

import pytest
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import from_arrow

from tests.support.servers.in_process import bridge

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
BEGIN; CREATE TABLE added(id INT); INSERT INTO added VALUES (1);
  ALTER TABLE added ADD COLUMN n INT DEFAULT 42; INSERT INTO added VALUES (2, 7); COMMIT;
BEGIN; CREATE TABLE field(id INT, s STRUCT(x INT)); INSERT INTO field VALUES (1, {'x': 1});
  ALTER TABLE field ADD COLUMN s.y INT DEFAULT 5; INSERT INTO field VALUES (2, {'x': 2, 'y': 2});
  COMMIT;
BEGIN; CREATE TABLE named(id INT, n INT DEFAULT 42);
  INSERT INTO named VALUES (1, 7); INSERT INTO named(id) VALUES (2); COMMIT;
"""


@pytest.fixture(scope="module")
def served(lake, moto):
    one = lake.write("defaults_of_one_transaction", SCRIPT)
    with bridge(one, moto, delivery="object-lambda") as bridged:
        yield one, bridged


@pytest.mark.parametrize("warehouse", ["lake", "lake+duckdb+pyiceberg"])
@pytest.mark.parametrize(("table", "version"), [("added", 3), ("field", 3), ("named", 2)])
def test_files_that_lack_it_have_its_default(
    served, moto, shared_duckdb, table, version, warehouse
):
    one, bridged = served
    where = bridged.catalog_uri, warehouse, bridged.s3_endpoint
    with closing(native.open(one, moto)) as judge, closing(pyiceberg.open(*where)) as client:
        columns = judge.columns("main", table)
        expected = judge.canonical("main", table)
        assert from_arrow(client.rows("main", table), columns) == expected
        rows = shared_duckdb.attached_to(*where).rows("main", table)
        assert from_arrow(rows, columns) == expected
        assert client._catalog.load_table(f"main.{table}").format_version == version
