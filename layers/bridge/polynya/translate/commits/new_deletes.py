"""Which rows of a data file a commit deletes, by what its delete files say in the end."""

from collections.abc import Collection, Sequence

from ...errors import BadRequest

UNDELETE = (
    "the commit brings deleted rows back, which DuckLake cannot do: read them as warehouse=lake@ID "
    "and append them"
)


def new_positions(
    after: Sequence[int], before: Collection[int], record_count: int, *, is_replaced: bool
) -> Sequence[int] | None:
    """The positions that a commit deletes, ascending; None: all rows of the file are deleted then.

    Args:
        after: what the client's new delete files of the data file delete, ascending.
        before: what is deleted already.
        record_count: the rows of the data file.
        is_replaced: the commit removes the delete file that says what is deleted already.

    Raises:
        BadRequest: a position is outside of the file, or deleted rows come back.
    """
    check_positions(after, record_count)
    if len(after) == record_count:
        return None
    found = set(after)
    if is_replaced and not found.issuperset(before):
        raise BadRequest(UNDELETE)
    new = sorted(found.difference(before))
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
