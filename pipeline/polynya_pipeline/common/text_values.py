"""Texts of values in DuckLake's statistics and partition values; parsing of table names.

Values are those of `plain_array`: days for dates, units since 1970 for timestamps, bytes for UUIDs
and blobs, `str` for strings. Python's `datetime` is not used: its range is smaller.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from polynya.ducklake.writes.stats import truncated
from polynya.runtime.errors import BadRequest
from polynya.runtime.namespaces import Namespace, dotted, parsed
from polynya.types.names import ducklake_type

from .errors import BadInput


def plain_array(array: pa.Array) -> pa.Array:
    """The array in a type whose Python values are exact, and ordered as DuckLake orders them."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_date(array.type):
        return array.view(pa.int32())
    if pa.types.is_time64(array.type) or pa.types.is_timestamp(array.type):
        return array.view(pa.int64())
    return array


def statistics_text(column_type: str, value: Any) -> str:
    """A value as DuckLake writes it in statistics."""
    if column_type == "boolean":
        return str(int(value))  # 0 and 1 here; partition values are false and true
    return ducklake_type(column_type).text(value)


def bounds(column_type: str, low: Any, high: Any) -> tuple[str | None, str | None]:
    """Texts of the smallest and the largest value; long ones are truncated and remain bounds.

    Returns:
        None for a bound that cannot be written.
    """
    return truncated(
        column_type, statistics_text(column_type, low), statistics_text(column_type, high)
    )


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table, with all levels of its namespace."""

    schema_name: str
    table_name: str
    parents: Namespace = ()
    """The names of the schemas that the schema is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All levels of the schema's name."""
        return (*self.parents, self.schema_name)

    def __str__(self) -> str:
        return dotted(*self.namespace, self.table_name)


def table_name(text: str) -> TableName:
    """Parse `t`, `s.t`, `a.b.t`; with quotes around names that have a dot: `"my.schema"."t"`.

    Raises:
        BadInput: the text is not a table name.
    """
    *levels, name = _levels(text)
    *parents, schema_name = levels or ["main"]
    return TableName(schema_name, name, tuple(parents))


def _levels(text: str) -> Namespace:
    try:
        names = parsed(text)
    except BadRequest:
        names = ()
    if not names or not all(names) or "\0" in text:
        raise BadInput(
            f'{text or "an empty text"} is not a table name: write schema.table, and "a.b"."c" if '
            "a name contains a dot or a quote"
        )
    return names
