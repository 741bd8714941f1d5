"""The text `ducklake_snapshot_changes.changes_made`: what one snapshot did, and to which tables.

A comma list of `type:value`; a value is an id or quoted names, in which a quote is written `""`.
https://ducklake.select/docs/stable/specification/tables/ducklake_snapshot_changes
"""

import re

from ..errors import Refused

# Two quotes within a name end one match and begin the next, so that each text has only one reading.
QUOTED = re.compile('"[^"]*(?:"|$)')

ADDING = frozenset({"inserted_into_table", "inlined_insert"})
DELETING = frozenset({"deleted_from_table", "inlined_delete"})
REWRITING = frozenset(
    {"inline_flush", "flushed_inlined", "merge_adjacent", "compacted_table", "rewrite_delete"}
)
"""The types of changes that add rows, delete rows, and move rows to other files."""

MOST_CHARACTERS = 1_000_000
"""The longest text that is read: about 40,000 changes."""


def quoted(*names: str) -> str:
    """Names as the value of a change: those of a schema and a table, for `created_table`."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def changes_of(changes_made: str, table_id: int) -> frozenset[str]:
    """The types of the changes that name this table by its id, in time linear in the text.

    Raises:
        Refused: the text is too long.
    """
    if len(changes_made) > MOST_CHARACTERS:
        raise Refused(
            f"a snapshot that changed this table lists more than {MOST_CHARACTERS:,} characters of "
            "changes; ducklake_expire_snapshots removes it"
        )
    if '"' in changes_made:
        changes_made = QUOTED.sub('"', changes_made)  # no id has a quote
    changes = (change.partition(":") for change in changes_made.split(","))
    return frozenset(kind for kind, _, value in changes if value == str(table_id))
