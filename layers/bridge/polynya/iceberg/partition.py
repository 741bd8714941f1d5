"""Partition specs and tuples (specification, "Partitioning").

https://iceberg.apache.org/spec/#partitioning
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .single_value import DECIMAL, to_bytes
from .types import TableSchema, primitives


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of a partition spec."""

    source_id: int
    field_id: int
    """From 1000 on; the same source and transform have the same id in every spec."""
    name: str
    transform: str
    """`identity`, `bucket[16]`, `year`, `month`, `day`, `hour`."""
    result_type: str
    """The type of the values, by its name in the specification."""

    def json(self) -> dict[str, Any]:
        """The field in the table metadata (Appendix C)."""
        return {
            "source-id": self.source_id,
            "field-id": self.field_id,
            "name": self.name,
            "transform": self.transform,
        }


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A partition spec; without fields the table is unpartitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    def json(self) -> dict[str, Any]:
        """The spec in the table metadata (Appendix C)."""
        return {"spec-id": self.spec_id, "fields": [field.json() for field in self.fields]}

    def in_schema(self, schema: TableSchema) -> "PartitionSpec":
        """The spec with the types that its columns have in a schema.

        Java gives the values of a manifest to readers in the type that they have there: it must not
        be a newer one than that of the column in any snapshot that lists the manifest.
        """
        types = primitives(schema.fields)
        return replace(self, fields=tuple(_typed(field, types) for field in self.fields))


def _typed(field: PartitionField, types: Mapping[int, str]) -> PartitionField:
    if field.transform != "identity":
        return field
    return replace(field, result_type=types.get(field.source_id, field.result_type))


UNPARTITIONED = PartitionSpec(0, ())

# The logical types are required: without them DuckDB 1.5.5 aborts the process.
AVRO_TYPES: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
}


def avro_type(field: PartitionField) -> Any:
    """The Avro type of a partition value (specification, Appendix A)."""
    match = DECIMAL.fullmatch(field.result_type)
    if match is None:
        return AVRO_TYPES[field.result_type]
    precision, scale = map(int, match.groups())
    return {
        "type": "fixed",
        "name": f"decimal_{precision}_{scale}_{field.field_id}",
        "size": ((10**precision).bit_length() + 8) // 8,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


def summaries(spec: PartitionSpec, columns: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """The field summaries of a manifest, for the manifest list: always exact.

    Bounds are in base64, because they are stored in a manifest's metadata.

    Args:
        columns: for each field of the spec the values of all entries.
    """
    result = []
    for field, column in zip(spec.fields, columns, strict=True):
        values = [value for value in column if value is not None]
        lower, upper = (min(values), max(values)) if values else (None, None)
        result.append(
            {
                "contains_null": len(values) < len(column),
                "contains_nan": False,
                "lower_bound": _bound(field, lower),
                "upper_bound": _bound(field, upper),
            }
        )
    return result


def _bound(field: PartitionField, value: Any) -> str | None:
    if value is None:
        return None
    return base64.b64encode(to_bytes(field.result_type, value)).decode()
