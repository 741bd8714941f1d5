"""The statement that reads a table, in the SQL of each client."""

from collections.abc import Callable

from .languages import backticked, clickhouse_name, identifier
from .place import Place

CATALOG = "ice"
"""The name that all snippets give to the catalog."""


def _joined(quote: Callable[[str], str], place: Place) -> str:
    """The name for clients that take a namespace for one name, with dots between its levels."""
    return f"{CATALOG}.{quote('.'.join(place.levels))}.{quote(place.table)}"


def duckdb(place: Place) -> str:
    """DuckDB's."""
    at = "" if place.snapshot_id is None else f" AT (VERSION => {place.snapshot_id})"
    return f"SELECT * FROM {_joined(identifier, place)}{at}"


def spark(place: Place) -> str:
    """Spark's."""
    at = "" if place.snapshot_id is None else f" VERSION AS OF {place.snapshot_id}"
    name = ".".join(map(backticked, (*place.levels, place.table)))
    return f"SELECT * FROM {CATALOG}.{name}{at}"


def clickhouse(place: Place) -> str:
    """ClickHouse's, whose tables have the namespace in their names."""
    name = clickhouse_name(".".join((*place.levels, place.table)))
    at = "" if place.snapshot_id is None else f" SETTINGS iceberg_snapshot_id = {place.snapshot_id}"
    return f"SELECT * FROM {CATALOG}.{name}{at}"


def trino(place: Place) -> str:
    """Trino's."""
    # Trino refuses a plain number.
    at = "" if place.snapshot_id is None else f" FOR VERSION AS OF BIGINT '{place.snapshot_id}'"
    return f"SELECT * FROM {_joined(identifier, place)}{at}"


def flink(place: Place) -> str:
    """Flink's."""
    hint = f" /*+ OPTIONS('snapshot-id'='{place.snapshot_id}') */"
    at = "" if place.snapshot_id is None else hint
    return f"SELECT * FROM {_joined(backticked, place)}{at}"
