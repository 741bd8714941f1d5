"""What a commit changes: files, by the manifests before and after it; deleted rows; row lineage."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ...iceberg.avro.client_manifests import ListedManifest, WrittenFile
from ...iceberg.deletion_vector import difference as positions_difference
from ...iceberg.manifest import FileContent, Status
from ...iceberg.parquet.kept_rows import Uncertain
from ...iceberg.parquet.metadata import ParquetMetadata, RowGroup
from ...iceberg.table_metadata import LAST_UPDATED, ROW_ID
from ...runtime.errors import BadRequest
from .file_statistics import normalised


@dataclass(frozen=True, slots=True)
class Difference:
    """The manifests that one of two manifest lists has and the other has not."""

    new: list[ListedManifest]
    gone: list[ListedManifest]


def difference(base: Iterable[ListedManifest], after: Iterable[ListedManifest]) -> Difference:
    """Compare the manifest list of a commit with that of its base."""
    old = {normalised(manifest.manifest_path): manifest for manifest in base}
    new = {normalised(manifest.manifest_path): manifest for manifest in after}
    return Difference(
        [manifest for path, manifest in new.items() if path not in old],
        [manifest for path, manifest in old.items() if path not in new],
    )


@dataclass(frozen=True, slots=True)
class NetChange:
    """The files that a commit adds to the table and removes from it."""

    added: Sequence[WrittenFile] = ()
    removed: Sequence[WrittenFile] = ()
    added_deletes: Sequence[WrittenFile] = ()
    removed_deletes: Sequence[WrittenFile] = ()
    lost: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The positions of all deleted rows, ascending, in data files that stay and lose rows, by their
    normalised locations."""

    @property
    def ends_rows(self) -> bool:
        """Whether rows may end that were there before."""
        return bool(self.removed or self.added_deletes or self.lost)


def net_change(new: Iterable[WrittenFile], gone: Iterable[WrittenFile]) -> NetChange:
    """The files that are live in new manifests and not in those that are gone, and the reverse.

    Raises:
        BadRequest: an entry is of a kind that DuckLake does not have.
    """
    # An entry's status is only trusted to be live or deleted: a commit may have merged and
    # rewritten manifests, and files that it added and removed again never become rows.
    before, twice = _live(gone)
    if twice:
        raise BadRequest(
            "the commit changes the list of a data file that is registered twice in the table, and "
            "does not say which of the two it means: copy the rows into a new table with DuckLake, "
            "and drop this one"
        )
    after, twice = _live(new)
    if twice:
        raise BadRequest("the commit adds one file twice")
    added = [file for path, file in after.items() if path not in before]
    removed = [file for path, file in before.items() if path not in after]
    for file in added:
        _check(file)
    return NetChange(
        added=[file for file in added if file.content == FileContent.DATA],
        removed=[file for file in removed if file.content == FileContent.DATA],
        added_deletes=[file for file in added if file.content != FileContent.DATA],
        removed_deletes=[file for file in removed if file.content != FileContent.DATA],
    )


def _live(files: Iterable[WrittenFile]) -> tuple[dict[tuple[str, int | None], WrittenFile], bool]:
    """The live entries by path, and whether one is there twice; several deletion vectors are in one
    file."""
    live: dict[tuple[str, int | None], WrittenFile] = {}
    twice = False
    for file in files:
        if file.status == Status.DELETED:
            continue
        offset = file.content_offset if file.content != FileContent.DATA else None
        key = (normalised(file.file_path), offset)
        twice = twice or key in live
        live[key] = file
    return live, twice


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Data files, and those with which a client has replaced them: these have the rows that stay,
    and nothing else."""

    replaced: Sequence[WrittenFile]
    added: Sequence[WrittenFile]


PYICEBERG = "PyIceberg "
MANIFEST_LIST = re.compile(r"snap-\d+-\d+-(?P<uuid>[0-9a-f-]{36})[.]avro")
OF_DELETE = r"00000-\d+-{uuid}[.]parquet"


def rewrites(steps: Iterable[tuple[str, NetChange]], client: str) -> list[Rewrite]:
    """The files that a commit rewrites to delete rows, snapshot by snapshot.

    Args:
        steps: the manifest list of each snapshot of the commit, and what has changed up to it.
        client: as it names itself.

    Raises:
        Uncertain: a snapshot may have removed rows and added them again, with other values in
            columns that the client does not see.
    """
    rewritten: list[Rewrite] = []
    before = NetChange()
    for manifest_list, after in steps:
        if _more(before.added, after.added) or _more(before.removed, after.removed):
            raise Uncertain("it rewrites a file that it has added itself: commit in between")
        added, removed = _more(after.added, before.added), _more(after.removed, before.removed)
        if added and removed:
            # That no row is new in a snapshot which removes and adds files is only known of
            # PyIceberg's `delete`, which its `overwrite` and `upsert` begin with: the new rows of
            # these are in a snapshot of their own. It names the files by the uuid of the snapshot
            # itself. So does iceberg-go, and there they may hold new rows; programs that use
            # PyIceberg name files of their own otherwise.
            match = MANIFEST_LIST.fullmatch(_name(manifest_list))
            names = re.compile(OF_DELETE.format(uuid=match["uuid"] if match else "(?!)"))
            is_delete = all(names.fullmatch(_name(file.file_path)) for file in added)
            if after.added_deletes or not is_delete or not client.startswith(PYICEBERG):
                raise Uncertain("it does not say which rows it keeps and which are new")
            rewritten.append(Rewrite(removed, added))
        before = after
    return rewritten


def _more(files: Sequence[WrittenFile], earlier: Sequence[WrittenFile]) -> list[WrittenFile]:
    """The files that are not among earlier ones."""
    paths = {normalised(file.file_path) for file in earlier}
    return [file for file in files if normalised(file.file_path) not in paths]


def _name(location: str) -> str:
    return location.rpartition("/")[2]


EQUALITY_DELETES = 2


def _check(file: WrittenFile) -> None:
    if file.content == EQUALITY_DELETES:
        raise BadRequest(
            "DuckLake has no equality deletes: it deletes rows by their positions. Let the writer "
            "append instead of upsert: in Flink write.upsert.enabled=false and a table without "
            "identifier fields, in Debezium upsert=false, in RisingWave type='append-only', in "
            "OLake and Airbyte the append mode; or upsert with Spark, Trino or PyIceberg"
        )
    formats = {"PARQUET"} if file.content == FileContent.DATA else {"PARQUET", "PUFFIN"}
    if file.file_format not in formats:
        raise BadRequest(
            f"DuckLake has no {file.file_format.lower()} files: set write.format.default=parquet"
        )


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
    if is_replaced and positions_difference(before, after):
        raise BadRequest(UNDELETE)
    new = positions_difference(after, before)
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
    chosen = []
    for key in sorted(deleted, key=lambda key: len(deleted[key]), reverse=True):
        if left <= MOST_INLINED:
            break
        chosen.append(key)
        left -= len(deleted[key])
    return chosen


class RowLineage(NamedTuple):
    """What DuckLake makes of the lineage in a file."""

    has_row_ids: bool
    """Whether the file carries the ids of its rows."""
    hidden: tuple[int, ...]
    """The field ids of columns that DuckLake must not see."""


def row_lineage(file: ParquetMetadata, next_row_id: int) -> RowLineage:
    """The lineage of a file's rows.

    Args:
        next_row_id: the first row id that the table never had.
    """
    # Iceberg and DuckLake reserve the same field ids, and DuckLake takes row ids and snapshots from
    # such columns, also where they are NULL. A client's sequence numbers are no snapshots of its.
    ids = {leaf.ids for leaf in file.leaves}
    hidden = (LAST_UPDATED,) if (LAST_UPDATED,) in ids else ()
    if (ROW_ID,) not in ids:
        return RowLineage(False, hidden)
    of_leaves = zip(file.leaves, file.row_groups, strict=True)
    groups = [group for leaf, column in of_leaves if leaf.ids == (ROW_ID,) for group in column]
    groups = [group for group in groups if group.num_values]
    # If only some rows have an id of the table, all get new ones: Spark's MERGE writes NULL for new
    # rows, which DuckLake would read as theirs, and DuckDB ids of its own for those that a
    # transaction inserts and then updates.
    if not groups or not all(_is_valid(group, next_row_id) for group in groups):
        return RowLineage(False, (*hidden, ROW_ID))
    return RowLineage(True, hidden)


def _is_valid(group: RowGroup, next_row_id: int) -> bool:
    low, high = group.min_value, group.max_value
    if group.null_count != 0 or low is None or high is None:
        return False
    return 0 <= int(low) <= int(high) < next_row_id
