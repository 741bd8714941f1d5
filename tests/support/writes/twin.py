"""A table that native DuckLake and Iceberg clients change, and its twin in memory as the judge."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from tests.support.catalog_versions import SERVED

Rows = Counter[tuple[Any, ...]]

NUMBERS = itertools.count(1)


class Twin:
    """A new table of a lake. In SQL `{t}` is the table, and `{name}` its name."""

    def __init__(
        self, lake: Lake, served: Bridge, s3_endpoint: str, warehouse: str = "lake"
    ) -> None:
        self.lake, self._s3_endpoint = lake, s3_endpoint
        self.name = f"t{next(NUMBERS)}"
        self.source, self.memory = f"lake.main.{self.name}", f"memory.main.{self.name}"
        self.con = connect(LAKE, s3_endpoint)
        attach(self.con, lake, read_only=False)
        # No more S3 than needed is between; virtual files are in no bucket behind.
        endpoint = s3_endpoint if served.delivery == "materialize" else served.s3_endpoint
        self.pyiceberg = RestCatalog(
            "c", uri=served.catalog_uri, warehouse=warehouse, **s3_properties(endpoint)
        )
        self.past: dict[int, Rows] = {}
        """The rows at each snapshot of the lake."""

    def close(self) -> None:
        self.con.close()
        self.pyiceberg.close()

    def table(self) -> Table:
        """The table as PyIceberg loads it now."""
        return self.pyiceberg.load_table(f"main.{self.name}")

    def native(self, *statements: str) -> None:
        """Change the table and its twin."""
        for sql in statements:
            self.con.execute(sql.format(t=self.source, name=self.name))
            if "set_option" in sql:
                continue
            if not sql.startswith("CALL") and "PARTITIONED" not in sql:
                self.con.execute(sql.format(t=self.memory))
            self.past[self.newest()] = self._rows(self.con, self.memory)

    def changes(self, sql: str, action: Callable[[], object], *, others: int = 0) -> None:
        """Change the table by one Iceberg commit, and the twin by SQL.

        Args:
            others: how many snapshots other writers commit meanwhile.
        """
        before = self.newest()
        with SERVED.of(self.lake):
            action()
        assert self.newest() == before + 1 + others, "a commit is one snapshot"
        for one in filter(None, sql.split(";")):
            self.con.execute(one.format(t=self.memory))
        self.past[self.newest()] = self._rows(self.con, self.memory)

    def newest(self) -> int:
        [[found]] = self.lake.database.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
        return int(found)

    def forget(self, before: int) -> None:
        """Do not check snapshots before this one any more: they have expired."""
        self.past = {at: rows for at, rows in self.past.items() if at >= before}

    def listed(self) -> Iterator[tuple[int, Rows]]:
        """The Iceberg snapshots that can be checked, by their ids there, with their rows."""
        for snapshot in self.table().snapshots():
            if (rows := self.past.get(snapshot.sequence_number)) is not None:
                yield snapshot.snapshot_id, rows

    def changes_made(self) -> str:
        """What DuckLake says of the newest snapshot."""
        [[found]] = self.lake.database.run(
            "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 1"
        )
        return str(found)

    def check(self) -> None:
        """Compare every snapshot, natively and through Iceberg."""
        self.check_native()
        self._check_iceberg()

    def check_native(self) -> None:
        """Compare every snapshot natively."""
        with connect(LAKE, self._s3_endpoint) as con:
            attach(con, self.lake)
            for snapshot_id, rows in self.past.items():
                self._check_rows(con, snapshot_id, rows)
            self._check_aggregates(con)
            self._check_change_feed(con)

    def _check_rows(self, con: Any, snapshot_id: int, rows: Rows) -> None:
        """The rows of a snapshot, no two of which have the same id."""
        source = f"{self.source} AT (VERSION => {snapshot_id})"
        with_ids = con.execute(f"SELECT rowid, * FROM {source}").fetchall()
        found = Counter(_hashable(row[1:]) for row in with_ids)
        differing = list((found - rows).items())[:5], list((rows - found).items())[:5]
        assert differing == ([], []), f"natively at {snapshot_id}"
        assert len({row[0] for row in with_ids}) == len(with_ids), f"row ids at {snapshot_id}"

    def _check_aggregates(self, con: Any) -> None:
        asked = "count(*), min(id), max(id), count(s), min(s), max(s)"
        conditions = ["true", "id <= 3", "id = 5", "id > 8", "s = 'new'", "s IS NULL"]
        for where in conditions:
            sql = f"SELECT {asked} FROM {{}} WHERE {where}"
            expected = self.con.execute(sql.format(self.memory)).fetchall()
            assert con.execute(sql.format(self.source)).fetchall() == expected, where

    def _check_change_feed(self, con: Any) -> None:
        """What each snapshot adds and deletes leads from the rows before it to those after it."""
        ids = sorted(self.past)
        rewrites = {
            at
            for [at] in self.lake.database.run(
                "SELECT snapshot_id FROM ducklake_snapshot_changes "
                "WHERE changes_made LIKE '%rewrite_delete%'"
            )
        }
        for before, after in itertools.pairwise(ids):
            feed = con.execute(
                "SELECT * FROM ducklake_table_changes("
                f"'lake', 'main', '{self.name}', {after}, {after})"
            ).fetchall()
            rows = Counter(self.past[before])
            added = [_hashable(row[3:]) for row in feed if row[2] in {"insert", "update_postimage"}]
            gone = [_hashable(row[3:]) for row in feed if row[2] in {"delete", "update_preimage"}]
            width = len(next(iter(self.past[after]), ()))
            if any(len(row) != width for row in [*added, *gone, *rows]):
                continue  # the columns have changed since
            rows.update(added)
            rows.subtract(gone)
            if after in rewrites:
                # It tells inlined deletes of the files once more (docs/developers/ducklake.md).
                rows = +rows
            assert rows == self.past[after], f"change feed of {after}"

    def _check_iceberg(self) -> None:
        table = self.table()
        places = self._shown(table)
        listed = {snapshot.sequence_number: snapshot.snapshot_id for snapshot in table.snapshots()}
        width = len(table.schema().fields)
        for snapshot_id in [*sorted(self.past.keys() & listed.keys())]:
            found = table.scan(snapshot_id=listed[snapshot_id]).to_arrow()
            if found.num_columns != width:
                continue
            columns = (found.column(name).to_pylist() for name in places)
            rows = Counter(zip(*columns, strict=True))
            wanted: Rows = Counter()
            for row, count in self.past[snapshot_id].items():
                wanted[tuple(row[place] for place in places.values())] += count
            assert rows == wanted, f"PyIceberg at {snapshot_id}"

    def _shown(self, table: Table) -> dict[str, int]:
        """The columns of which clients see all, and their places among all of the table."""
        hidden = json.loads(table.properties.get("polynya.hidden-columns", "[]"))
        names = [row[0] for row in self.con.execute(f"DESCRIBE {self.memory}").fetchall()]
        partly = {path.split(".")[0] for path in hidden}
        return {name: place for place, name in enumerate(names) if name not in partly}

    @staticmethod
    def _rows(con: Any, source: str) -> Rows:
        return Counter(map(_hashable, con.execute(f"SELECT * FROM {source}").fetchall()))


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row, with texts in place of structs and lists."""
    return tuple(str(value) if isinstance(value, dict | list) else value for value in row)


@contextmanager
def opened(lake: Lake, served: Bridge, s3_endpoint: str, warehouse: str = "lake") -> Iterator[Twin]:
    """A twin for one test."""
    with closing(Twin(lake, served, s3_endpoint, warehouse)) as twin:
        yield twin
