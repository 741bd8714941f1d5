"""The columns that have metrics in a manifest."""

from itertools import islice

from ...iceberg.types import primitives
from ..columns.schemas import Schemas
from ..partitions import Partitions

MOST_COLUMNS = 100
"""The default number of columns with metrics in Iceberg (write.metadata.metrics)."""


def columns_with_metrics(schemas: Schemas, partitions: Partitions, snapshot_id: int) -> set[int]:
    """The ids of the columns whose statistics are needed."""
    return _first(schemas, snapshot_id) | _sources(partitions)


def late_columns(schemas: Schemas, partitions: Partitions, snapshot_id: int) -> list[int]:
    """The ids of the columns that have metrics only because a partition spec uses them.

    The content of a manifest depends on them, also if the spec is newer than the manifest.
    """
    late = _sources(partitions) - _first(schemas, snapshot_id)
    return sorted(late & primitives(schemas.at(snapshot_id).fields).keys())


def _first(schemas: Schemas, snapshot_id: int) -> set[int]:
    return set(islice(primitives(schemas.at(snapshot_id).fields), MOST_COLUMNS))


def _sources(partitions: Partitions) -> set[int]:
    return {field.source_id for spec in partitions.specs for field in spec.fields}
