"""DuckLake's SORTED BY as an Iceberg sort order, if it names only columns."""

from collections.abc import Sequence

from ..ducklake.rows.columns import SortKey
from ..iceberg.table_metadata import SortField
from ..iceberg.types import Field, Primitive

DIRECTIONS = {"ASC": "asc", "DESC": "desc"}
NULL_ORDERS = {"NULLS_FIRST": "nulls-first", "NULLS_LAST": "nulls-last"}


def sort_fields(keys: Sequence[SortKey], fields: Sequence[Field]) -> list[SortField]:
    """The sort fields; none if a key is an expression: a part of an order is another order."""
    ids = {f.name: f.field_id for f in fields if isinstance(f.type, Primitive)}
    quoted = {'"' + name.replace('"', '""') + '"': field_id for name, field_id in ids.items()}
    known = ids | quoted
    found = [
        SortField(
            known[key.expression], DIRECTIONS[key.sort_direction], NULL_ORDERS[key.null_order]
        )
        for key in keys
        if key.expression in known
        and key.sort_direction in DIRECTIONS
        and key.null_order in NULL_ORDERS
    ]
    return found if len(found) == len(keys) else []
