"""DuckLake's SORTED BY as an Iceberg sort order, if it names only columns; else a client's own."""

import json
from collections.abc import Iterable, Sequence

from ..ducklake.rows.columns import SortKey
from ..ducklake.rows.named_objects import Tag
from ..iceberg.table_metadata import SortField
from ..iceberg.types import Field, Primitive, primitives
from .client_properties import SORT_ORDER

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


def order_text(fields: Iterable[SortField]) -> str:
    """The value of the tag that keeps a sort order."""
    return json.dumps([[f.source_id, f.direction, f.null_order, f.transform] for f in fields])


def tagged_sort_fields(tags: Iterable[Tag], fields: tuple[Field, ...]) -> list[SortField]:
    """The sort order that a tag keeps; none if there is none, or a column of it was dropped."""
    texts = [tag.value for tag in tags if tag.key == SORT_ORDER and tag.value is not None]
    try:
        found = [SortField(*row) for text in texts for row in json.loads(text)]
    except (ValueError, TypeError):
        return []  # somebody has changed the tag by hand
    known = primitives(fields)
    return found if all(one.source_id in known for one in found) else []
