"""Row lineage: the columns in which a data file carries the ids of its rows.

https://iceberg.apache.org/spec/#row-lineage
"""

from collections.abc import Iterable

from .types import Field, Primitive

ROW_ID = 2147483540
"""The field id of `_row_id`."""

LAST_UPDATED = 2147483539
"""The field id of `_last_updated_sequence_number`."""


def lineage_fields(fields: Iterable[Field]) -> tuple[Field, Field]:
    """The two columns, for a file with these columns, one of which may have their names."""
    taken = {field.name.casefold() for field in fields}
    row_id, last_updated = "_row_id", "_last_updated_sequence_number"
    while {row_id, last_updated} & taken:
        row_id, last_updated = f"_{row_id}", f"_{last_updated}"
    long = Primitive("long")
    return Field(ROW_ID, row_id, long), Field(LAST_UPDATED, last_updated, long)
