"""What a type is: a record for each of Iceberg's primitive types and for each of DuckLake's types.

The defaults say that nothing is supported. A new type is an entry in the module of its family, with
what is supported; `names` has all entries by their names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Literal = bool | int | float | str
"""A value in a client's filter."""


def refuse_value(value: Any) -> Any:
    """Refuse any value.

    Raises:
        ValueError: always.
    """
    raise ValueError("this type has no certain form")


@dataclass(frozen=True, slots=True)
class IcebergType:
    """A primitive type of Iceberg.

    A date's value is its days since 1970; another time's value is its microseconds since then, or
    its nanoseconds if the type has them.
    """

    name: str
    """The specification's spelling: `int`, `long`, `decimal(9, 2)`, `timestamptz`, …"""
    ducklake: str = ""
    """The DuckLake type of columns that clients add with this type; empty: they cannot."""
    format_version: int = 2
    """The first format version of tables that may have the type."""
    hive: str = ""
    """Hive's name in Glue; empty: as in Iceberg."""
    parse: Callable[[str], Any] = refuse_value
    """Reads a text of DuckLake's statistics, partition values and defaults, if it is certain: years
    1 to 9999, no NaN. Everything else is a ValueError."""
    layout: str = ""
    """How `struct` and numpy write a value of fixed length."""
    to_bytes: Callable[[Any], bytes] = refuse_value
    """Binary single-value serialization of other values (specification, Appendix D)."""
    default: Callable[[str], Any] | None = None
    """Converts the text of a default to its JSON single value; None: `parse` does."""
    has_loadable_default: bool = True
    """Whether PyIceberg can load a table that has a default of the type."""
    avro: Any = None
    """The Avro type of a partition value, with its logical type: without it DuckDB 1.5.5 aborts.
    None: no partition has values of the type."""
    has_identity: bool = False
    """Whether the partition values that DuckLake itself writes are certain: not those of floats
    (NaN, two zeros), nor texts in the time zone of the writer."""
    truncated: Callable[[Any, int], Any] | None = None
    """Applies the transform `truncate` to a value and a width; None: there is none."""
    hashed: Callable[[Any], bytes] | None = None
    """The bytes from which a bucket is computed (specification, Appendix B); None: no buckets."""
    parts: Mapping[str, Callable[[int], int]] = field(default_factory=dict)
    """The transforms that count years, months, days or hours from 1970 (in UTC)."""
    form: str | None = None
    """How texts of bounds are compared; `ducklake.queries.file_columns` has SQL for each form."""
    literal: Callable[[Literal], str] = refuse_value
    """Spells a literal of a filter as DuckLake spells statistics."""
    sort_key: Callable[[str], Any] = str.encode
    """Sorts the texts of `literal`."""
    promoted: str = ""
    """The type that a column may get later, by its name."""
    is_float: bool = False
    has_cut_bounds: bool = False
    """Whether clients expect that bounds may be truncated, and so are no values."""
    has_bounds: bool = True
    has_counts: bool = True
    """Whether clients get the number of NULLs, because DuckLake's is right."""


@dataclass(frozen=True, slots=True)
class DuckLakeType:
    """A type of a DuckLake column that is not nested.

    https://ducklake.select/docs/stable/specification/data_types
    """

    name: str
    iceberg: IcebergType | None = None
    """The type that holds every value in existing Parquet files unchanged; None: the column is
    hidden, because a wrong type would not fail, it would read wrong rows."""
    reason: str = ""
    """Why there is none, or why tables of version 2 do not show it, in words for users."""
    duckdb: str = ""
    """DuckDB's name."""
    duckdb_1: str = ""
    """The type with which DuckDB 1.5 reads the texts of values, if it lacks the type itself."""
    postgres: str = "varchar"
    """PostgreSQL's type of inlined values."""
    order: Callable[[str], Any] | None = None
    """Parses a text of statistics into a value that Python orders as DuckDB orders the column; None
    if the type has no known order."""
    text: Callable[[Any], str] = str
    """Spells a value as DuckLake does in partition values, and in statistics, booleans excepted.
    Values are PyArrow's, with times as days or units since 1970."""
    limit: int = 0
    """The smallest integer that is too large."""
    in_files: frozenset[str] = frozenset()
    """The types in clients' Parquet files, by DuckDB's names, that DuckLake and Iceberg clients
    read exactly. Microseconds are not exact in a column of milliseconds, and bounds do not say
    so."""
    has_same_buckets: bool = False
    """Whether DuckLake and Iceberg hash it alike (measured, 40 values each)."""
    has_same_calendar: bool = False
    """Whether years, months, days and hours are computed in UTC."""
    decimals: int = 6
    """Decimal places of the seconds. DuckLake rounds finer values of an added file; Iceberg clients
    do not, and Java reads nanoseconds as microseconds."""
    has_counts: bool = True
    """Whether DuckLake writes correct counts."""
    spark: str = ""
    """The Spark type whose new columns have this type."""
    read_as: str = ""
    """If there is none: the Spark type, in DDL, that can hold all values of the column."""
    accepts: tuple[str, ...] = ()
    """Other Spark types whose values are written: each value fits, or the job fails."""
    arrow: tuple[str, ...] = ()
    """The function of PyArrow that makes the type in which Parquet files for DuckLake are written,
    and its arguments."""

    @property
    def read_by(self) -> str:
        """DuckDB's type that reads the texts of inlined values."""
        return self.duckdb_1 or self.duckdb

    @property
    def needs_version_3(self) -> bool:
        """Whether only tables of Iceberg's format version 3 can show it."""
        return self.iceberg is not None and self.iceberg.format_version > 2

    @property
    def is_unsigned(self) -> bool:
        """Whether no value is negative."""
        return self.name.startswith("uint")
