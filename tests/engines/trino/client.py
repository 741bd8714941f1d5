"""SQL for Trino over its HTTP protocol, and its rows in Arrow."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import requests
from polynya_local.processes.serving import KEY_ID, REGION, SECRET, Bridge

from tests.engines.values import Answer, Failed, arrow_table

SECONDS = 120
HEADERS = {
    "X-Trino-User": "test",
    "X-Trino-Time-Zone": "UTC",
    "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",  # otherwise in milliseconds
}


class Trino:
    """A catalog of a Trino server; `catalog` is its name in SQL."""

    name = "Trino"

    def __init__(
        self,
        address: str,
        bridge: Bridge,
        catalog: str = "ice",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._address, self.catalog = address, catalog
        settings = catalog_settings(bridge) | (settings or {})
        words = ", ".join(f"\"{name}\" = '{value}'" for name, value in settings.items())
        self.execute(f"CREATE CATALOG {catalog} USING iceberg WITH ({words})")

    def close(self) -> None:
        self.execute(f"DROP CATALOG {self.catalog}")

    def execute(self, sql: str) -> Answer:
        """Run a statement.

        Raises:
            Failed: Trino says so.
        """
        return execute(self._address, sql)

    def query(self, sql: str) -> pa.Table:
        """The rows of a query."""
        return query(self._address, sql)

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, at a snapshot or the newest."""
        source = self.source(namespace, table)
        if snapshot_id is not None:
            source += f" FOR VERSION AS OF BIGINT '{int(snapshot_id)}'"
        return self.query(f"SELECT * FROM {source}")

    def source(self, namespace: str, table: str) -> str:
        """The name of a table in SQL."""
        return ".".join(map(identifier, (self.catalog, namespace, table)))


def execute(address: str, sql: str) -> Answer:
    """Run a statement on a server.

    Raises:
        Failed: Trino says so.
    """
    columns, rows = [], []
    with requests.Session() as session:
        session.headers.update(HEADERS)
        answer = session.post(f"{address}/v1/statement", data=sql.encode(), timeout=SECONDS)
        while True:
            answer.raise_for_status()
            page = answer.json()
            if error := page.get("error"):
                raise Failed(_sentence(error))
            columns = page.get("columns") or columns
            rows += page.get("data") or []
            if "nextUri" not in page:
                return Answer(columns, rows)
            answer = session.get(page["nextUri"], timeout=SECONDS)


def query(address: str, sql: str) -> pa.Table:
    """The rows of a query on a server. Raises: as `execute`."""
    return arrow_table(*execute(address, sql))


def catalog_settings(bridge: Bridge) -> dict[str, str]:
    """The settings of a catalog."""
    return {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": bridge.catalog_uri,
        "iceberg.rest-catalog.warehouse": bridge.warehouse,
        "iceberg.rest-catalog.case-insensitive-name-matching": "true",
        # They are commits of their own after each INSERT: further snapshots of DuckLake.
        "iceberg.extended-statistics.enabled": "false",
        "fs.native-s3.enabled": "true",
        "s3.endpoint": bridge.s3_endpoint,
        "s3.region": REGION,
        "s3.path-style-access": "true",
        "s3.aws-access-key": KEY_ID,
        "s3.aws-secret-key": SECRET,
    }


def identifier(name: str) -> str:
    """A name, quoted for Trino."""
    return '"' + name.replace('"', '""') + '"'


def _sentence(error: dict[str, Any]) -> str:
    """The message with those of its causes, which say what the catalog answered."""
    words, cause = [error["message"]], error.get("failureInfo", {}).get("cause")
    while cause:
        if cause.get("message") and cause["message"] not in words[-1]:
            words.append(cause["message"])
        cause = cause.get("cause")
    return " <- ".join(words)
