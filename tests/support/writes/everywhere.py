"""A lake that Iceberg clients write, and whether all clients and native DuckLake read the same."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any

from polynya_local.clients.duckdb import attached
from polynya_local.clients.native import Lake
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from requests import HTTPError

from tests.support.catalog_versions import SERVED
from tests.support.lakes import Lakes
from tests.support.servers.in_process import bridge
from tests.support.writes.altered import newest, reading
from tests.support.writes.twins import query
from tests.support.writes.writable import EMPTY, set_up_writes

MAINTENANCE = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
)
EXPIRE = "CALL ducklake_expire_snapshots('lake', versions => [{}])"


class Everywhere:
    """The lake of one module."""

    def __init__(self, lake: Lake, uri: str, s3_endpoint: str, s3: str) -> None:
        """`s3` is that of the data, `s3_endpoint` the one for clients."""
        self.lake, self.uri, self.s3_endpoint, self._s3 = lake, uri, s3_endpoint, s3
        self._numbers = count(1)
        self.catalog = RestCatalog("c", uri=uri, warehouse="lake", **s3_properties(s3_endpoint))

    def new(self, name: str) -> str:
        """The name of a table that does not exist yet."""
        return f"{name}_{next(self._numbers)}"

    def native(self, *statements: str) -> list[tuple]:
        """The rows of the last statement, by a new native DuckLake."""
        return query(self.lake, self._s3, *statements)

    def duckdb(self, *statements: str) -> list[tuple]:
        """The rows of the last statement, by a new DuckDB as an Iceberg client."""
        with closing(attached(self.uri, "lake", self.s3_endpoint)) as con:
            rows: list[tuple] = []
            for statement in statements:
                rows = con.execute(statement).fetchall()
            return rows

    def commit(self, name: str, *updates: dict[str, Any]) -> None:
        """Commit updates of a table as they are, through PyIceberg's session.

        Raises:
            BadRequestError: and others, as PyIceberg raises them.
        """
        url = self.catalog.url(f"namespaces/main/tables/{name}")
        answer = self.catalog._session.post(url, json={"requirements": [], "updates": updates})
        try:
            answer.raise_for_status()
        except HTTPError as error:
            _handle_non_200_response(error, {})

    def alter(self, name: str, change: Callable[[list[dict]], list[dict]]) -> None:
        """Commit another schema, of the fields that `change` makes of those of now."""
        document = self.document(name)
        [now] = [s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"]]
        schema = {**now, "schema-id": len(document["schemas"]), "fields": change(now["fields"])}
        set_current = {"action": "set-current-schema", "schema-id": -1}
        with self.commits():
            self.commit(name, {"action": "add-schema", "schema": schema}, set_current)

    def commits(self) -> Any:
        """The lake in the version of the test while an Iceberg client commits once."""
        return SERVED.of(self.lake)

    def check(self, name: str) -> list[tuple]:
        """Compare all readers at each listed snapshot; returns the rows of now, sorted."""
        table = self.catalog.load_table(f"main.{name}")
        with (
            reading(self.lake, self._s3) as native,
            closing(attached(self.uri, "lake", self.s3_endpoint)) as duckdb,
        ):
            for snapshot in table.snapshots():
                expected = _rows(native, f"lake.main.{name}", snapshot.sequence_number)
                by_duckdb = _rows(duckdb, f"ice.main.{name}", snapshot.snapshot_id)
                scanned = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
                assert plain(tuple(row.values()) for row in scanned) == plain(expected), snapshot
                assert plain(by_duckdb) == plain(expected), snapshot
            now = _rows(native, f"lake.main.{name}")
            assert plain(_rows(duckdb, f"ice.main.{name}")) == plain(now)
        return sorted(now, key=repr)

    def maintain(self, name: str, *changes: str) -> None:
        """Change and maintain the table natively, then expire all snapshots but the newest."""
        self.native(*(change.format(name) for change in changes))
        self.check(name)
        self.native(*MAINTENANCE)
        self.check(name)
        self.expire()
        self.check(name)

    def expire(self) -> None:
        """Expire all snapshots but the newest natively."""
        [(ids,)] = self.lake.database.run(
            "SELECT string_agg(snapshot_id::text, ',') FROM ducklake_snapshot "
            "WHERE snapshot_id < (SELECT max(snapshot_id) FROM ducklake_snapshot)"
        )
        self.native(EXPIRE.format(ids))

    def newest(self) -> int:
        """The newest snapshot of the lake."""
        return newest(self.lake)

    def document(self, name: str, query: str = "") -> dict[str, Any]:
        """The table metadata."""
        url = self.catalog.url(f"namespaces/main/tables/{name}{query}")
        return self.catalog._session.get(url).json()["metadata"]


def _rows(con: Any, table: str, snapshot_id: int | None = None) -> list[tuple]:
    at = "" if snapshot_id is None else f" AT (VERSION => {snapshot_id})"
    return con.execute(f"FROM {table}{at}").fetchall()


def plain(rows: Any) -> list[str]:
    """Rows in one form and order."""
    return sorted(repr(tuple(_plain(value) for value in row)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)  # PyArrow's maps
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).isoformat()
    return value


@contextmanager
def everywhere(
    lakes: Lakes, s3: str, name: str, script: str = EMPTY, **settings: str
) -> Iterator[Everywhere]:
    """A lake of a script, which Iceberg clients may write."""
    lake = set_up_writes(lakes.write(name, script))
    with bridge(lake, s3, writes=True, delivery="object-lambda", settings=settings) as served:
        one = Everywhere(lake, served.catalog_uri, served.s3_endpoint, s3)
        with closing(one.catalog):
            yield one
