"""The text `ducklake_snapshot_changes.changes_made`: what one snapshot did, and to which tables.

A comma list of `type:value`; a value is an id or quoted names, in which `""` stands for a quote.
https://ducklake.select/docs/stable/specification/tables/ducklake_snapshot_changes
"""

import re
from functools import lru_cache

CHANGE = re.compile(r'([a-z_]+):((?:"(?:[^"]|"")*"|[^",])*)(?:,|$)')


@lru_cache(maxsize=4096)  # most snapshots of a table say the same
def changes_of(changes_made: str, table_id: int) -> frozenset[str]:
    """The types of the changes that name this table by its id."""
    return frozenset(kind for kind, value in CHANGE.findall(changes_made) if value == str(table_id))
