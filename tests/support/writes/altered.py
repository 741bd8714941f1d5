"""A table that an Iceberg client alters, and a twin that native DuckLake alters.

The twins are lakes with equal rows; after equal changes all rows of their catalogs must be equal,
and whatever native DuckLake does on top of them must have equal results.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from duckdb import DuckDBPyConnection
from polynya.mapping.properties import PARTITION_SPECS
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from tests.support.catalog_versions import SERVED
from tests.support.lakes import Lakes
from tests.support.servers.in_process import bridge
from tests.support.writes.twins import Rows, Twins, catalog_rows, twins

SETUP = """
CREATE TABLE t(id BIGINT, i INTEGER, s VARCHAR, f FLOAT, d DECIMAL(9, 2),
  st STRUCT(a INTEGER, b VARCHAR), l STRUCT(x INTEGER, y FLOAT)[],
  m MAP(VARCHAR, STRUCT(q INTEGER)), ts TIMESTAMP);
INSERT INTO t SELECT range, range, 'k' || range, 0.1, 2.5, {'a': range, 'b': 'z'},
  [{'x': 1, 'y': 0.2}], MAP {'k': {'q': 1}}, TIMESTAMP '2024-01-01' + INTERVAL (range) DAY
  FROM range(20);
"""
INLINED = """
INSERT INTO t SELECT range + 100, 7, 'inlined', 0.7, 2.5, {'a': 1, 'b': 'q'},
  [{'x': 1, 'y': 0.2}], MAP {'k': {'q': 1}}, NULL FROM range(2);
"""

SORTED_BY = re.compile(r'"(\w+)"')

COLUMNS = """
SELECT table_name, string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position)
FROM information_schema.columns WHERE table_schema = 'public'
AND table_name LIKE 'ducklake\\_inlined\\_data\\_%' GROUP BY 1 ORDER BY 1"""


class Altered:
    """The table `main.t` of two lakes."""

    def __init__(self, twins: Twins, uri: str) -> None:
        self.twins, self.uri, self.s3_endpoint = twins, uri, twins.s3_endpoint
        self.pyiceberg = RestCatalog(
            "c", uri=uri, warehouse="lake", **s3_properties(twins.s3_endpoint)
        )

    def table(self) -> Table:
        """The table as PyIceberg loads it now."""
        return self.pyiceberg.load_table("main.t")

    def alter(self, action: Callable[[Table], object], *native: str) -> None:
        """Alter the one table by one commit, and its twin by statements of one transaction."""
        before = newest(self.twins.lake)
        with SERVED.of(self.twins.lake):
            action(self.table())
        assert newest(self.twins.lake) == before + 1, "a commit is one snapshot"
        transaction = ["BEGIN", *native, "COMMIT"] if len(native) > 1 else native
        self.twins.native(*transaction)

    def check_catalogs(self) -> None:
        """Compare all rows of both catalogs, and the tables of inlined rows."""
        one, other = (compared(lake) for lake in self._lakes)
        for name in one.keys() | other.keys():
            assert one.get(name) == other.get(name), name
        here, there = (lake.database.run(COLUMNS) for lake in self._lakes)
        assert here == there

    def check_rows(self) -> None:
        """Compare what native DuckLake reads at every snapshot, and what PyIceberg reads now."""
        one, other = (snapshots(lake, self.twins.s3_endpoint) for lake in self._lakes)
        assert one == other
        table = self.table()
        found = table.scan().to_arrow().to_pylist()
        with reading(self.twins.twin, self.twins.s3_endpoint) as con:
            wanted = con.execute("FROM lake.t").to_arrow_table().to_pylist()
        assert sorted(map(_plain, found), key=str) == sorted(map(_plain, wanted), key=str)

    def work(self) -> None:
        """What native DuckLake does afterwards, in both lakes; the results must be equal."""
        with reading(self.twins.twin, self.twins.s3_endpoint) as con:
            names = [f't."{name}"' for (name,) in con.execute(NAMES).fetchall()]
        values = ", ".join(names)
        statements = [
            f"INSERT INTO t SELECT {values} FROM t ORDER BY id LIMIT 3",
            f"INSERT INTO t SELECT {values} FROM t, range(4) ORDER BY ALL",
            "CALL ducklake_flush_inlined_data('lake')",
            "ALTER TABLE t ADD COLUMN added_natively INTEGER",
            f"INSERT INTO t SELECT {values}, 5 FROM t ORDER BY id LIMIT 2",
            f"UPDATE t SET {names[0].removeprefix('t.')} = NULL WHERE {names[0]} IN (3, 101)",
        ]
        self.twins.native(*statements, also_here=True)
        self.check_rows()
        for call in ("flush_inlined_data", "merge_adjacent_files"):
            self.twins.native(f"CALL ducklake_{call}('lake')", also_here=True)
        self.check_rows()

    @property
    def _lakes(self) -> list[Lake]:
        return [self.twins.lake, self.twins.twin]


NAMES = "SELECT column_name FROM (DESCRIBE lake.t)"


@contextmanager
def reading(lake: Lake, s3_endpoint: str) -> Iterator[DuckDBPyConnection]:
    """A new native DuckLake."""
    with connect(LAKE, s3_endpoint) as con:
        attach(con, lake)
        yield con


def snapshots(lake: Lake, s3_endpoint: str) -> dict[int, list[Any]]:
    """The rows of the table at every snapshot of a lake."""
    with reading(lake, s3_endpoint) as con:
        return {
            at: sorted(con.execute(f"FROM lake.t AT (VERSION => {at})").fetchall(), key=str)
            for at in range(1, newest(lake) + 1)
        }


def newest(lake: Lake) -> int:
    [[found]] = lake.database.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
    return int(found)


def compared(lake: Lake) -> Rows:
    """The rows of a catalog, without what differs by intent."""
    rows = catalog_rows(lake)
    tags = rows["ducklake_tag"]
    rows["ducklake_tag"] = [row for row in tags if row["key"] != PARTITION_SPECS]
    for row in rows["ducklake_sort_expression"]:
        row["expression"] = SORTED_BY.sub(r"\1", row["expression"] or "")
    for row in rows["ducklake_column"]:
        if row["parent_column"] is not None:
            # DuckLake writes NOT NULL for every nested column that it adds or renames.
            row["nulls_allowed"] = row["default_value_type"] = None
    return rows


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) for name, value in row.items()}


@contextmanager
def altered(lakes: Lakes, s3_endpoint: str, script: str) -> Iterator[Altered]:
    """Twins of one script, of which the first is served."""
    with (
        twins(lakes, s3_endpoint, script) as both,
        bridge(both.lake, s3_endpoint, writes=True) as served,
    ):
        yield Altered(both, served.catalog_uri)
