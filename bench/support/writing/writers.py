"""Clients that append a file and delete a row, on any catalog."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
from polynya_local.clients import spark
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import update_table_metadata

from ..lakes import NAMESPACE

ROWS = 1000
"""Of each append."""

DAY = date(2030, 1, 1)


@dataclass(frozen=True, slots=True)
class Writer:
    """The operations of one client on one table; each call is a commit."""

    client: str
    steps: dict[str, Callable[[], object]]
    """In the order in which they run: a delete is of a row of the last append."""


def rows(first_id: int) -> pa.Table:
    """Rows of the columns of `lake.sql`, of one day."""
    ids = range(first_id, first_id + ROWS)
    numbers = pa.array(ids, pa.int64())
    return pa.table(
        {
            "id": numbers,
            "moment": numbers.cast(pa.timestamp("us")),
            "day": pa.array([DAY] * ROWS),
            "user_id": numbers,
            "country": pa.array(["DE", "FI", "NO", "SE"] * (ROWS // 4)),
            "page": pa.array([f"/page/{number % 997}" for number in ids]),
            "amount": pa.array([Decimal(number % 1000) for number in ids], pa.decimal128(12, 2)),
            "seconds": numbers.cast(pa.float64()),
            "score": pa.array([number % 100 for number in ids], pa.int32()),
            "active": pa.array([number % 3 == 0 for number in ids]),
        }
    )


class InMemoryCatalog(NoopCatalog):
    """Keeps table metadata in this process: what is left of a commit if a catalog takes no time."""

    def __init__(self, location: str, s3_endpoint: str) -> None:
        super().__init__("memory", **s3_properties(s3_endpoint))
        self._location = location
        self._tables: dict[Any, TableMetadata] = {}

    def create_table(self, identifier: Any, schema: Any, *_: Any, **__: Any) -> Table:
        schema = self._convert_schema_if_needed(schema)
        unpartitioned, unsorted = PartitionSpec(), SortOrder(order_id=0)
        location = f"{self._location}/{identifier}"
        fresh = new_table_metadata(schema, unpartitioned, unsorted, location)
        self._tables[identifier,] = fresh
        return self.load_table(identifier)

    def load_table(self, identifier: Any) -> Table:
        metadata = self._tables[identifier,]
        location = f"{metadata.location}/metadata.json"
        return Table((identifier,), metadata, location, self._load_file_io(), self)

    def commit_table(self, table: Table, _: Any, updates: Any) -> CommitTableResponse:
        metadata = update_table_metadata(table.metadata, updates)
        self._tables[table.name()] = metadata
        where = {"metadata-location": f"{metadata.location}/metadata.json"}
        return CommitTableResponse(metadata=metadata, **where)


def open_pyiceberg(uri: str, s3_endpoint: str) -> Catalog:
    where = {"type": "rest", "uri": uri, "warehouse": "lake", **s3_properties(s3_endpoint)}
    catalog = load_catalog("bench", **where)
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace(NAMESPACE)
    return catalog


def pyiceberg(uri: str, s3_endpoint: str, table: str, *, creates: bool = True) -> Writer:
    """An append of a file, and the deletion of a row: the file is rewritten without it."""
    catalog = open_pyiceberg(uri, s3_endpoint)
    name = (NAMESPACE, table)
    if creates:
        catalog.create_table(name, rows(0).schema)
    numbers = _numbers()
    appended: list[int] = []

    def append() -> None:
        appended.append(next(numbers))
        catalog.load_table(name).append(rows(appended[-1]))

    def delete() -> None:
        catalog.load_table(name).delete(f"id = {appended[-1] + 5}")

    return Writer("PyIceberg", {"append a file": append, "delete a row (copy-on-write)": delete})


def spark_writer(uri: str, s3_endpoint: str, table: str) -> Writer:
    """An append of a file, and the deletion of a row by a position."""
    name = f"{spark.open(uri, 'lake', s3_endpoint).catalog}.{NAMESPACE}.{table}"
    session = spark.session()
    columns = "id BIGINT, moment TIMESTAMP_NTZ, country STRING, seconds DOUBLE, score INT"
    properties = "'write.delete.mode'='merge-on-read'"
    session.sql(f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})")
    numbers = _numbers()
    appended: list[int] = []

    def append() -> None:
        appended.append(first := next(numbers))
        source = f"range({first}, {first + ROWS}, 1, 1)"
        values = (
            "id, TIMESTAMP_NTZ '2026-01-01 00:00:00', 'FI', CAST(id AS DOUBLE), CAST(id % 9 AS INT)"
        )
        session.sql(f"INSERT INTO {name} SELECT {values} FROM {source}")

    def delete() -> None:
        session.sql(f"DELETE FROM {name} WHERE id = {appended[-1] + 5}")

    return Writer("Spark", {"append a file": append, "delete a row (merge-on-read)": delete})


def _numbers() -> Iterator[int]:
    """First ids of appends, far from those of other rows."""
    return count(10**12, ROWS)
