"""Structs, lists and maps; variant and geometry, whose values Polynya does not read."""

from collections.abc import Mapping
from dataclasses import dataclass

from .records import DuckLakeType, IcebergType


@dataclass(frozen=True, slots=True)
class NestedType:
    """A type of DuckLake whose columns have children."""

    name: str
    fewest: int
    """The smallest number of children."""
    most: int | None
    spark: str
    """Spark's name."""


STRUCT, LIST, MAP = "struct", "list", "map"

NESTED: Mapping[str, NestedType] = {
    STRUCT: NestedType(STRUCT, fewest=1, most=None, spark="struct"),
    LIST: NestedType(LIST, fewest=1, most=1, spark="array"),
    MAP: NestedType(MAP, fewest=2, most=2, spark="map"),
}

WITHOUT_NOT_NULL = frozenset({*NESTED, "variant"})
"""The types of columns that may have NULL although they are NOT NULL: DuckLake checks NOT NULL by a
column's own count of NULL, and these have none, or a wrong one (decision 31)."""


def _no_default(text: str) -> str:
    raise ValueError("defaults of this type are not served")


GEOMETRY = IcebergType(
    "geometry",
    ducklake="geometry",
    format_version=3,
    hive="binary",
    default=_no_default,
    has_bounds=False,
    has_counts=False,
)
VARIANT = IcebergType(
    "variant",
    ducklake="variant",
    format_version=3,
    hive="binary",
    default=_no_default,
    has_bounds=False,
    has_counts=False,
)
ICEBERG = (GEOMETRY, VARIANT)

DUCKLAKE = (
    DuckLakeType(
        "geometry",
        GEOMETRY,
        reason="geometry needs format version 3, which not every client reads",
        duckdb="GEOMETRY",
        in_files=frozenset({"GEOMETRY"}),
        has_counts=False,
    ),
    DuckLakeType(
        "variant",
        VARIANT,
        reason="variant needs format version 3, which not every client reads",
        duckdb="VARIANT",
        in_files=frozenset({"VARIANT", "VARIANT with shredded fields"}),
        # DuckLake's statistics have no NULL for files that have some.
        has_counts=False,
    ),
)
