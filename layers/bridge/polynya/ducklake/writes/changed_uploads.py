"""`polynya_changed_uploads`: files that clients remove, or upload again, before a commit names
them.

A server records here each change that it is about to make in S3, and when the change has ended. A
commit that has read such a file before, through any server, finds the change after the claim of its
snapshot. So neither waits for the other, and the changes of a server that stopped halfway are known
too.
"""

import json
from collections.abc import Collection
from typing import NamedTuple

from pg8000.native import Connection

from ..connection.catalog_connection import Statement, select
from ..rows.objects import Layout

TABLE = """
CREATE TABLE IF NOT EXISTS polynya_changed_uploads (
  location text NOT NULL,
  change uuid NOT NULL,
  begun timestamptz NOT NULL DEFAULT now(),
  is_done boolean NOT NULL DEFAULT false)"""

# No commit that has read a file before takes this long.
REMOVE_OLD = "DELETE FROM polynya_changed_uploads WHERE begun < now() - interval '1 hour'"

ADD = """
INSERT INTO polynya_changed_uploads (location, change)
SELECT l.location, CAST(:change AS uuid)
FROM json_array_elements_text(CAST(:locations AS json)) AS l(location)"""

END = """
UPDATE polynya_changed_uploads SET is_done = true WHERE change = CAST(:change AS uuid)"""

# A server that has stopped halfway records no end. No request to S3 takes five minutes.
CHANGES_OF = """
SELECT DISTINCT u.change::text, u.is_done OR u.begun < now() - interval '5 minutes'
FROM polynya_changed_uploads AS u
JOIN json_array_elements_text(CAST(:locations AS json)) AS l(location) ON l.location = u.location"""


class UploadChange(NamedTuple):
    """A change of files in S3."""

    change: str
    """Its UUID."""
    is_done: bool


def are_recorded(layout: Layout) -> bool:
    """Whether the catalog has the table: where no server has served it, nobody changes uploads."""
    return "polynya_changed_uploads.location" in layout


def begin(con: Connection, change: str, locations: Collection[str]) -> None:
    """Record files before they are changed in S3, in the transaction of `BEGIN_COMMIT`.

    Args:
        change: a new UUID.
        locations: normalised.
    """
    con.run(REMOVE_OLD)
    con.run(ADD, change=change, locations=_json(locations))


def end(con: Connection, change: str) -> None:
    """Record that a change has ended."""
    con.run(END, change=change)


def changes_of(locations: Collection[str]) -> Statement[list[UploadChange]]:
    """The changes of these files during the last hour.

    Args:
        locations: normalised.
    """
    return select(UploadChange, CHANGES_OF, locations=_json(locations))


def _json(locations: Collection[str]) -> str:
    return json.dumps([*locations], ensure_ascii=False)
