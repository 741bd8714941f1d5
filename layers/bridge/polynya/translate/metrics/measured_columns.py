"""The columns of which a manifest has metrics."""

from itertools import islice

from ...iceberg.types import primitives
from ..columns.schemas import Schemas
from ..partitions import Partitions

MOST_COLUMNS = 100
"""As many as Iceberg's writers keep metrics of, by default (write.metadata.metrics)."""


def columns_with_metrics(schemas: Schemas, partitions: Partitions, snapshot_id: int) -> set[int]:
    """The columns of which statistics are needed, by column_id."""
    return _first(schemas, snapshot_id) | _sources(partitions)


def late_columns(schemas: Schemas, partitions: Partitions, snapshot_id: int) -> list[int]:
    """Those of them that have metrics only because some partition spec stands on them, whenever it
    came: what a manifest holds hangs on them."""
    late = _sources(partitions) - _first(schemas, snapshot_id)
    return sorted(late & primitives(schemas.at(snapshot_id).fields).keys())


def _first(schemas: Schemas, snapshot_id: int) -> set[int]:
    return set(islice(primitives(schemas.at(snapshot_id).fields), MOST_COLUMNS))


def _sources(partitions: Partitions) -> set[int]:
    return {field.source_id for spec in partitions.specs for field in spec.fields}
