"""Statistics files that a commit sets and removes, as changes of DuckLake's tags, or a refusal."""

import time
from collections.abc import Sequence

from ...ducklake.rows.named_objects import Tag
from ...errors import BadRequest
from ..statistics_files import KINDS, file_text, kept_file
from .paths import relative
from .table_commit import TableCommit

MOST_CHARACTERS = 1_000_000


def changed_statistics(
    commit: TableCommit, tags: Sequence[Tag], staging: str
) -> dict[str, str | None]:
    """The tags that change, with their new values; None: the tag ends.

    Args:
        tags: of the table now.
        staging: where clients write metadata files, with a slash at its end.

    Raises:
        BadRequest: the file is elsewhere, or its description is too long.
    """
    changed: dict[str, str | None] = {}
    for kind, snapshot_id in commit.removed_statistics:
        kept = kept_file(kind, tags)
        if kept and kept[0]["snapshot-id"] == snapshot_id:
            changed[KINDS[kind]] = None
    for kind, file in commit.statistics.items():
        # Readers open what the table metadata names, with their own credentials.
        relative(file["statistics-path"], staging, "the statistics file")
        kept = kept_file(kind, tags)
        if kept and kept[0] == file:
            continue
        text = file_text(file, round(time.time() * 1000))
        if len(text) > MOST_CHARACTERS:
            raise BadRequest(
                f"the description of the statistics file has more than {MOST_CHARACTERS:,} "
                "characters: compute statistics for fewer columns"
            )
        changed[KINDS[kind]] = text
    return changed
