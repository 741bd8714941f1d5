"""One history's lake with a table, the table's twin in memory, and the clients that change both."""

from contextlib import closing, suppress
from functools import cached_property
from typing import Any

import duckdb as engine
from polynya_local.clients import duckdb
from polynya_local.clients.canonical import Canonical, Columns, canonical, columns_of
from polynya_local.clients.duckdb import LAKE, connect, identifier, literal
from polynya_local.clients.native import Lake
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from .operations import NATIVE
from .tables import HIDDEN

TABLE = "main.t"
MEMORY = f"memory.{TABLE}"

BROKEN: list[engine.DuckDBPyConnection] = []
"""DuckDBs that ended with an internal error: to close one ends the process."""

FINGERPRINTS = """
SELECT string_agg(format('SELECT %L, md5(string_agg(t::text, %L ORDER BY t::text)) FROM %I.%I AS t',
  table_name, chr(10), table_schema, table_name), ' UNION ALL ' ORDER BY table_name)
FROM information_schema.tables WHERE table_schema = 'public'
  AND (table_name LIKE 'ducklake%' OR table_name LIKE 'polynya%')"""

INLINED_DELETES = (
    r"SELECT tablename FROM pg_tables WHERE tablename LIKE 'ducklake\_inlined\_delete\_%'"
)
TOLD_AGAIN = """
SELECT count(*) FROM {} AS d JOIN ducklake_data_file AS f ON f.data_file_id = d.file_id
WHERE f.end_snapshot = :snapshot AND d.begin_snapshot < :snapshot"""

DOUBLED = """
SELECT s.snapshot_id FROM ducklake_snapshot AS s WHERE EXISTS (SELECT FROM ducklake_data_file AS f
  JOIN ducklake_delete_file AS d USING (data_file_id)
  WHERE f.end_snapshot > s.snapshot_id AND d.begin_snapshot <= s.snapshot_id
    AND (d.end_snapshot IS NULL OR d.end_snapshot > s.snapshot_id)
  GROUP BY f.data_file_id HAVING count(*) > 1)"""


class Scene:
    """A lake that is attached as `lake` and `other`, and its twin in the database `memory`."""

    def __init__(
        self,
        lake: Lake,
        served: Bridge,
        s3_endpoint: str,
        inlining: tuple[int, int],
        client: duckdb.DuckDB | None = None,
    ) -> None:
        self.lake, self.served, self.s3_endpoint = lake, served, s3_endpoint
        self.duckdb = client
        self.limits = dict(zip(NATIVE, inlining, strict=True))
        self.con = self._connect()
        self.pyiceberg = RestCatalog(
            "c", uri=served.catalog_uri, warehouse="lake", **s3_properties(s3_endpoint)
        )
        self.past: dict[int, Canonical] = {}
        """The rows after each snapshot."""
        self.past_columns: dict[int, Columns] = {}
        self._columns: Columns | None = None
        self._rows: Canonical | None = None
        self._catalog = lake.database.connect()

    def close(self) -> None:
        """Close all connections."""
        try:
            self.con.execute("SELECT 1")
            self.con.close()
        except engine.FatalException:
            BROKEN.append(self.con)
        self.pyiceberg.close()
        self._catalog.close()

    @cached_property
    def spark(self) -> Any:
        """The lake as a catalog in the session of Spark that all histories share."""
        from polynya_local.clients.spark import Spark

        return Spark(self.served.catalog_uri, "lake", self.s3_endpoint)

    def _connect(self) -> engine.DuckDBPyConnection:
        con = connect(LAKE, self.s3_endpoint)
        con.execute("SET arrow_lossless_conversion = true")
        self._attach(con)
        return con

    def _attach(self, con: engine.DuckDBPyConnection) -> None:
        source = literal(f"ducklake:postgres:{self.lake.database.libpq}")
        for name, limit in self.limits.items():
            con.execute(f"ATTACH {source} AS {name} (DATA_INLINING_ROW_LIMIT {limit})")

    def attach_again(self) -> None:
        """Attach again: a DuckDB that stays attached fails after another writer's flush.

        Its DELETE ends with "INTERNAL Error: Attempted to access index 0 within vector of size 0".
        """
        for name in self.limits:
            self.con.execute(f"DETACH {name}")
        self._attach(self.con)

    # The twin

    def change_twin(self, statements: tuple[str, ...]) -> None:
        """Run statements on the twin."""
        self._columns = self._rows = None
        for sql in statements:
            self.con.execute(sql.replace("{t}", MEMORY))

    def record(self) -> None:
        """Remember the twin's rows for the snapshots since the last record."""
        for snapshot_id in range(max(self.past, default=0) + 1, self.newest() + 1):
            self.past[snapshot_id] = self.rows
            self.past_columns[snapshot_id] = self.columns

    @property
    def columns(self) -> Columns:
        """The names and types of the twin's columns."""
        if self._columns is None:
            self._columns = columns_of(self.con, MEMORY)
        return self._columns

    @property
    def rows(self) -> Canonical:
        """The rows of the twin, as text."""
        if self._rows is None:
            self._rows = canonical(self.con, MEMORY, self.columns)
        return self._rows

    def values(self, sql: str) -> list[Any]:
        """The first column of a query."""
        return [row[0] for row in self.con.execute(sql).fetchall()]

    # The lake

    def native(self, by: str, statements: tuple[str, ...]) -> None:
        """Run statements as a native writer.

        Raises:
            duckdb.Error: DuckLake refuses one; then none has an effect.
        """
        try:
            for sql in statements:
                self.con.execute(sql.replace("{t}", f"{by}.{TABLE}").replace("'lake'", f"'{by}'"))
        except engine.Error:
            with suppress(engine.Error):
                self.con.execute("ROLLBACK")
            raise

    def table(self) -> Table:
        """The table as PyIceberg loads it now."""
        return self.pyiceberg.load_table(TABLE)

    def hidden(self) -> tuple[str, ...]:
        """The columns that Iceberg clients do not see."""
        return tuple(name for name, kind in self.columns.items() if str(kind) in HIDDEN)

    def newest(self) -> int:
        """The newest snapshot."""
        return max(self.snapshots())

    def snapshots(self) -> list[int]:
        """All snapshots that have not expired."""
        found = self._catalog.run("SELECT snapshot_id FROM ducklake_snapshot ORDER BY 1")
        return [row[0] for row in found]

    def doubled(self) -> set[int]:
        """The snapshots that have a data file with two delete files: DuckLake doubles its rows.

        A flush gives a file that has ended a second one; see test_flushed_deletes.py.
        """
        return {snapshot_id for (snapshot_id,) in self._catalog.run(DOUBLED)}

    def told_again(self, snapshot_id: int) -> int:
        """How many earlier deletes the change feed repeats, because a whole file ends.

        DuckLake never ends a file with inlined deletes; Iceberg clients do (docs/writes.md).
        """
        found = self._catalog.run(INLINED_DELETES)
        return sum(
            self._catalog.run(TOLD_AGAIN.format(identifier(name)), snapshot=snapshot_id)[0][0]
            for [name] in found
        )

    def fingerprints(self) -> dict[str, str]:
        """A hash of each table of the catalog database."""
        [[sql]] = self._catalog.run(FINGERPRINTS)
        return dict(self._catalog.run(sql))

    def fresh(self) -> Any:
        """A new connection that has attached the lake."""
        con = connect(LAKE, self.s3_endpoint)
        self._attach(con)
        return closing(con)
