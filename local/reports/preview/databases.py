"""The two DuckDBs of a preview: a client of the Iceberg endpoints, and native DuckLake."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from ...clients.duckdb_connection import ICEBERG, LAKE, attaching, connect, identifier, literal
from ...lakes.conninfo import for_libpq
from ..duckdb_access import connect_to_s3
from .answers import Question


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where both sides are."""

    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    """The one that Iceberg clients use."""
    database: str = field(repr=False)
    """The URL of the catalog, which may hold a password."""
    metadata_schema: str
    data_s3_endpoint: str | None
    """The one of the data, for native DuckLake; None: AWS."""

    def pinned(self, snapshot_id: int) -> str:
        """The warehouse as of a snapshot of DuckLake."""
        return f"{self.warehouse}@{snapshot_id}"


class TimeIsOver(Exception):
    """A statement was interrupted."""


class NoName(Exception):
    """DuckDB has no name for the table; the message says why."""


class IcebergDuckDB:
    """DuckDB with its extension iceberg."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self.con = connect(ICEBERG, endpoints.s3_endpoint)

    @contextmanager
    def attached(self, question: Question) -> Iterator[str]:
        """Attach the catalog as of the snapshot; gives what follows FROM.

        Raises:
            NoName: DuckDB could read another table instead.
        """
        has_dots = any("." in level for level in question.namespace)
        if has_dots and len(question.namespace) > 1:
            raise NoName("DuckDB takes a dot in the name of a namespace for one between two levels")
        warehouse = self._endpoints.pinned(question.snapshot)
        self.con.execute(attaching(self._endpoints.catalog_uri, warehouse))
        try:
            if has_dots:
                # Until DuckDB knows a namespace by name, it takes each dot for one between levels.
                self.con.execute(
                    "SELECT count(*) FROM duckdb_schemas() WHERE database_name = 'ice'"
                )
            yield f"ice.{identifier('.'.join(question.namespace))}.{identifier(question.table)}"
        finally:
            self.con.execute("DETACH ice")


class NativeDuckDB:
    """DuckDB with its extension ducklake, read-only."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self.con = connect_to_s3(endpoints.data_s3_endpoint, LAKE)

    @contextmanager
    def attached(self, question: Question) -> Iterator[str]:
        """Attach the lake as it is now; gives what follows FROM."""
        source = literal(f"ducklake:postgres:{for_libpq(self._endpoints.database)}")
        schema = literal(self._endpoints.metadata_schema)
        self.con.execute(f"ATTACH {source} AS lake (METADATA_SCHEMA {schema}, READ_ONLY)")
        try:
            name = ".".join(map(identifier, ("lake", *question.namespace, question.table)))
            yield f"{name} AT (VERSION => {int(question.snapshot)})"
        finally:
            self.con.execute("DETACH lake")


def limit_memory(con: DuckDBPyConnection, memory: str) -> None:
    """Limit the memory of all that follows."""
    con.execute(f"SET memory_limit = {literal(memory)}")
    # What does not fit into memory is too much for a preview.
    con.execute("SET max_temp_directory_size = '0B'")


def query(
    con: DuckDBPyConnection, sql: str, parameters: list[str], seconds: float
) -> list[tuple[Any, ...]]:
    """The rows of a statement.

    Raises:
        TimeIsOver: it took longer; DuckDB has interrupted it.
        duckdb.Error: DuckDB reports another error.
    """
    if seconds <= 0:
        raise TimeIsOver
    timer = threading.Timer(seconds, con.interrupt)
    timer.start()
    try:
        rows: list[tuple[Any, ...]] = con.execute(sql, parameters).fetchall()
        return rows
    except duckdb.InterruptException:
        raise TimeIsOver from None
    finally:
        timer.cancel()
