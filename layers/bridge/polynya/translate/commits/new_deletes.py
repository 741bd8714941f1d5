"""Which rows of a data file a commit deletes, by what its delete files say in the end."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...errors import BadRequest
from ...iceberg.positions import difference

MOST_INLINED = 100_000
"""Rows that one commit may delete as rows in PostgreSQL, which every reader of the table reads
until ducklake_flush_inlined_data writes them to files: with a million of them a native query took
1.3 s more, and our own files took longer than one request may."""

Key = TypeVar("Key")

UNDELETE = (
    "the commit brings deleted rows back, which DuckLake cannot do: read them as warehouse=lake@ID "
    "and append them"
)


def new_positions(
    after: Sequence[int], before: Sequence[int], record_count: int, *, is_replaced: bool
) -> Sequence[int] | None:
    """The positions that a commit deletes, ascending; None: all rows of the file are deleted then.

    Args:
        after: what the client's new delete files of the data file delete, ascending.
        before: what is deleted already, ascending.
        record_count: the rows of the data file.
        is_replaced: the commit removes the delete file that says what is deleted already.

    Raises:
        BadRequest: a position is outside of the file, or deleted rows come back.
    """
    check_positions(after, record_count)
    if len(after) == record_count:
        return None
    if is_replaced and difference(before, after):
        raise BadRequest(UNDELETE)
    new = difference(after, before)
    return None if len(new) + len(before) == record_count else new


def check_positions(positions: Sequence[int], record_count: int) -> None:
    """Check that a file has rows at ascending positions.

    Raises:
        BadRequest: it has not.
    """
    if positions and not 0 <= positions[0] <= positions[-1] < record_count:
        raise BadRequest(
            f"a delete file of the commit deletes row {positions[-1]} of a data file that has "
            f"{record_count} rows"
        )


def too_many_to_inline(deleted: Mapping[Key, Sequence[int]]) -> list[Key]:
    """The data files of which a commit deletes too many rows to keep these in PostgreSQL.

    Those with the most deleted rows come first, until the others together have few: so there are as
    few delete files as possible, and only large ones.

    Args:
        deleted: the new positions of each data file.
    """
    left = sum(map(len, deleted.values()))
    found = []
    for key in sorted(deleted, key=lambda key: len(deleted[key]), reverse=True):
        if left <= MOST_INLINED:
            break
        found.append(key)
        left -= len(deleted[key])
    return found
