"""A condition on one column, in each client's syntax.

A client skips files by their metadata, and may then skip the condition itself; the number of rows
shows faults of both. This module imports nothing of Polynya, because `reader.py` runs in another
Python.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

OPERATORS = ("=", ">=", "IN", "IS NULL")
PYTHON: Mapping[str, Callable[[str], Any]] = {
    "boolean": "true".__eq__,
    "integer": int,
    "float": float,
    "decimal": Decimal,
    "text": str,
    "blob": bytes.fromhex,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamptz": datetime.fromisoformat,
    "timestamp_ns": str,  # Python has no nanoseconds
    "timestamptz_ns": str,  # without its zone, which is UTC
    "uuid": UUID,
}
"""By the kind of a value: what makes a Python value of its text."""


class Dialect(NamedTuple):
    """SQL of a client."""

    quote: str
    literals: Mapping[str, str]
    """By the kind of a value; a kind without one is not asked for."""


PLAIN = {
    "boolean": "{}",
    "integer": "{}",
    "text": "'{}'",
    "float": "CAST('{}' AS DOUBLE)",
    "decimal": "CAST('{}' AS DECIMAL(38, 10))",
    "date": "CAST('{}' AS DATE)",
    "time": "CAST('{}' AS TIME)",
    "timestamp": "CAST('{}' AS TIMESTAMP)",
}
WITHOUT_TIME = {kind: literal for kind, literal in PLAIN.items() if kind != "time"}
DUCKDB = Dialect(
    '"',
    PLAIN
    | {
        "timestamptz": "CAST('{}' AS TIMESTAMPTZ)",
        "timestamp_ns": "CAST('{}' AS TIMESTAMP_NS)",
        "timestamptz_ns": "CAST('{}' AS TIMESTAMP_NS)",  # DuckLake's, the client has none
        "uuid": "CAST('{}' AS UUID)",
        "blob": "from_hex('{}')",
    },
)
DATAFUSION = Dialect(
    '"',
    PLAIN
    | {
        "time": "arrow_cast('{}', 'Time64(Microsecond)')",
        "timestamp_ns": "arrow_cast('{}', 'Timestamp(Nanosecond, None)')",
        "timestamptz_ns": "arrow_cast('{}', 'Timestamp(Nanosecond, Some(\"+00:00\"))')",
        "blob": "X'{}'",
    },
)
SPARK = Dialect(
    "`",
    WITHOUT_TIME
    | {
        "timestamp": "TIMESTAMP_NTZ '{}'",
        "timestamptz": "TIMESTAMP '{}'",
        "uuid": "'{}'",
        "blob": "X'{}'",
    },
)
SAIL = Dialect("`", SPARK.literals | {"uuid": "unhex(replace('{}', '-', ''))"})
"""Its UUIDs are bytes."""
TRINO = Dialect(
    '"',
    PLAIN
    | {
        "time": "CAST('{}' AS TIME(6))",
        "timestamp": "CAST('{}' AS TIMESTAMP(6))",
        "timestamp_ns": "CAST('{}' AS TIMESTAMP(9))",
        "timestamptz_ns": "CAST('{} UTC' AS TIMESTAMP(9) WITH TIME ZONE)",
        "uuid": "CAST('{}' AS UUID)",
        "blob": "X'{}'",
    },
)
FLINK = Dialect(
    "`",
    PLAIN
    | {
        "timestamp": "CAST('{}' AS TIMESTAMP(6))",
        "timestamp_ns": "CAST('{}' AS TIMESTAMP(9))",
        "timestamptz_ns": "CAST('{}' AS TIMESTAMP_LTZ(9))",
        # The zone of the session is UTC, and Flink reads no offset.
        "timestamptz": "CAST(REPLACE('{}', '+00', '') AS TIMESTAMP_LTZ(6))",
        "blob": "X'{}'",
    },
)
CLICKHOUSE = Dialect(
    "`",
    WITHOUT_TIME
    | {
        "float": "toFloat64('{}')",
        "decimal": "toDecimal256('{}', 10)",
        "date": "toDate32('{}')",
        "timestamp": "toDateTime64('{}', 6, 'UTC')",
        "timestamp_ns": "toDateTime64('{}', 9, 'UTC')",
        "timestamptz_ns": "toDateTime64('{}', 9, 'UTC')",
        "blob": "unhex('{}')",
    },
)


class Condition(NamedTuple):
    """A column, an operator and values."""

    path: list[str]
    """The column, then the fields within its struct."""
    kind: str
    operator: str
    """One of OPERATORS."""
    values: list[str]
    """Texts as DuckDB writes them; hexadecimal digits of a blob, an offset of +00."""
    expected: int
    """The number of rows that meet it."""
    snapshot_id: int | None = None
    """The snapshot that it is asked of; None: the newest."""

    def __str__(self) -> str:
        at = "" if self.snapshot_id is None else f" at {self.snapshot_id}"
        return " ".join([".".join(self.path), self.operator, *self.values]) + at

    def python_values(self) -> list[Any]:
        """The values for a client without SQL."""
        return [PYTHON[self.kind](value) for value in self.values]

    def sql(self, dialect: Dialect) -> str | None:
        """The condition for a client; None if it has no literal of the kind."""
        quote = dialect.quote
        name = ".".join(quote + part.replace(quote, quote * 2) + quote for part in self.path)
        literal = dialect.literals.get(self.kind)
        if self.operator == "IS NULL":
            return f"{name} IS NULL"
        if literal is None:
            return None
        values = ", ".join(literal.format(value) for value in self.values)
        return f"{name} {self.operator} " + (f"({values})" if self.operator == "IN" else values)
