"""A condition on one column, in each client's syntax.

A client skips files by their metadata, and may then skip the condition itself; the number of rows
shows faults of both. This module imports nothing of Polynya, because `reader.py` runs in another
Python.
"""

from datetime import date
from typing import Any, NamedTuple


class Condition(NamedTuple):
    """`column = value`."""

    column: str
    kind: str
    value: Any
    """A boolean, an int or a text; a date is in ISO format."""
    expected: int
    """The number of rows that meet it."""

    def __str__(self) -> str:
        return f"{self.column} = {self.value}"

    def python_value(self) -> Any:
        return date.fromisoformat(self.value) if self.kind == "date" else self.value

    def sql(self, quote: str) -> str:
        """For DuckDB, Spark, Sail and ClickHouse, which quote a name by `"` or a backtick."""
        name = quote + self.column.replace(quote, quote * 2) + quote
        if self.kind == "date":
            return f"{name} = CAST('{self.value}' AS DATE)"
        text = str(self.value)
        return f"{name} = '{text}'" if self.kind == "text" else f"{name} = {text.lower()}"
