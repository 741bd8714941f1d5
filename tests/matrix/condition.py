"""A condition on one column, in each client's words.

A client leaves files out by what the metadata says of them, and may leave the condition out too:
the number of rows tells both. Nothing of ours is imported: `reader.py` runs in another Python.
"""

from datetime import date
from typing import Any, NamedTuple


class Condition(NamedTuple):
    """`column = value`."""

    column: str
    kind: str
    value: Any
    """A boolean, an int or a text; a date as a text."""
    expected: int
    """Rows that meet it."""

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
