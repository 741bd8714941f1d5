"""Structs, lists and maps; variant and geometry, which Polynya does not read."""

from collections.abc import Mapping
from dataclasses import dataclass

from .records import DuckLakeType


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

DUCKLAKE = (
    DuckLakeType(
        "geometry",
        reason="geometry needs format version 3, which not every client reads",
        has_counts=False,
    ),
    DuckLakeType(
        "variant",
        reason="variant needs format version 3, which not every client reads",
        has_counts=False,
    ),
)
