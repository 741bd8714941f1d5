"""SQL for one cluster of Flink, and its rows in Arrow."""

import json
import subprocess
from threading import Timer
from urllib.parse import quote

import pyarrow as pa
from polynya_local.processes.serving import Bridge

from tests.engines.flink.session import settings, started
from tests.engines.values import Answer, Failed, arrow_table

SECONDS = 120


class Cluster:
    """Flink in a process of its own."""

    def __init__(self) -> None:
        self._process = started("Queries", stdin=subprocess.PIPE)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def execute(self, sql: str) -> Answer:
        """Run a statement.

        Raises:
            Failed: Flink says so, or does not answer.
        """
        limit = Timer(SECONDS, self._process.kill)
        limit.start()
        try:
            return self._answer(sql)
        finally:
            limit.cancel()

    def _answer(self, sql: str) -> Answer:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{quote(sql)}\n")
        self._process.stdin.flush()
        columns, rows = [], []
        for line in self._process.stdout:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "columns":
                columns = json.loads(rest)
            elif kind == "row":
                rows.append(json.loads(rest))
            elif kind == "error":
                raise Failed(rest)
            elif kind == "end":
                return Answer(columns, rows)
        raise Failed(f"Flink has ended, or did not answer within {SECONDS} s")


class Flink:
    """A catalog of a cluster; `catalog` is its name in SQL."""

    def __init__(self, cluster: Cluster, bridge: Bridge, catalog: str, planning: str) -> None:
        """`planning`: who plans the scans, `client` or `server`."""
        self._cluster, self.catalog = cluster, catalog
        of_catalog = {
            "type": "iceberg",
            "catalog-type": "rest",
            "scan-planning-mode": planning,
            **settings(bridge),
        }
        words = ", ".join(f"'{name}'='{value}'" for name, value in of_catalog.items())
        cluster.execute(f"CREATE CATALOG {catalog} WITH ({words})")

    def close(self) -> None:
        """Forget the catalog."""
        self._cluster.execute(f"DROP CATALOG {self.catalog}")

    def execute(self, sql: str) -> Answer:
        """Run a statement. Raises: as `Cluster.execute`."""
        return self._cluster.execute(sql)

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, at a snapshot or the newest."""
        source = self.source(namespace, table)
        if snapshot_id is not None:
            source += f" /*+ OPTIONS('snapshot-id'='{int(snapshot_id)}') */"
        return arrow_table(*self.execute(f"SELECT * FROM {source}"))

    def source(self, namespace: str, table: str) -> str:
        """The name of a table in SQL."""
        return ".".join(map(identifier, (self.catalog, namespace, table)))


def identifier(name: str) -> str:
    """A name, quoted for Flink."""
    return "`" + name.replace("`", "``") + "`"
