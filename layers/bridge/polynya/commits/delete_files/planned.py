"""The delete files that a commit will need, found out before its transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...ducklake import queries
from ...ducklake.faults import MAX_ID
from ...ducklake.paths import file_location, within_lake
from ...ducklake.rows.data_files import DataFile, LiveFile
from ...ducklake.rows.deletes import DeleteFile, InlinedDelete
from ...errors import BadRequest
from ..plans.table_state import TableState

MOST_DELETE_FILES = 1_000
"""Delete files that a commit writes: each is put into S3, and read by native readers."""


CANNOT_BE_MERGED = (
    "the commit deletes many rows of a data file whose delete files cannot be merged: CALL "
    "ducklake_rewrite_data_files in DuckDB and delete again, or let the client rewrite the files "
    "(write.delete.mode=copy-on-write)"
)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A delete file whose deletes will be in a new one too."""

    file: DeleteFile
    location: str
    path: tuple[str, bool]
    """Of the lake, and whether it is relative to the lake's data path."""


@dataclass(frozen=True, slots=True)
class LargeDelete:
    """What the new delete file of a data file will say that was not in a file before."""

    data_file: int
    """Its id, or the index of a file that the commit adds."""
    location: str
    """Of the data file; empty for one that the commit adds."""
    positions: Sequence[int] = ()
    """Ascending; rows that the commit deletes, too many to inline them."""
    replaces: Replaced | None = None
    flushed: Sequence[InlinedDelete] = ()
    """Deletes that PostgreSQL has, ascending by position: the data file ends with this commit."""

    @property
    def is_added(self) -> bool:
        """Whether the commit adds the data file."""
        return not self.location


def large_deletes(
    state: TableState, deleted: Mapping[int, Sequence[int]], files: Iterable[LiveFile]
) -> list[LargeDelete]:
    """The deletes of live data files, with the delete files that theirs replace.

    A data file has one delete file at most: with two that are visible DuckLake reads rows twice.

    Args:
        deleted: positions by data_file_id, of the data files that get delete files.
        files: these data files, and others.

    Raises:
        BadRequest: a delete file cannot be replaced exactly.
    """
    if not deleted:
        return []
    replaced = _replaced(state, deleted.keys())
    return [
        LargeDelete(
            data_file=file.data_file_id,
            location=_location(state, file),
            positions=deleted[file.data_file_id],
            replaces=replaced.get(file.data_file_id),
        )
        for file in files
        if file.data_file_id in deleted
    ]


def flushed_deletes(
    state: TableState, data_file_ids: Collection[int] | None = None
) -> list[LargeDelete]:
    """The inlined deletes of data files that a commit ends, which go into delete files first.

    DuckLake never ends a data file with inlined deletes: the change feed of the commit would tell
    them once more. It ends one with a delete file, and this is what its flush writes.

    Args:
        data_file_ids: the data files that end; None: all. Of very many with inlined deletes only
            some are flushed.

    Raises:
        BadRequest: a delete file cannot be replaced exactly.
    """
    if data_file_ids is not None and not data_file_ids:
        return []
    lake, con = state.lake.lake, state.lake.con
    ids = None if data_file_ids is None else list(data_file_ids)
    span = (min(ids), max(ids)) if ids else (0, MAX_ID)
    at = (state.table.table_id, lake.snapshot_id, *span)
    inlined: dict[int, list[InlinedDelete]] = defaultdict(list)
    for row in queries.inlined_deletes_at(state.files.history.inlined, *at, ids).run(con):
        inlined[row.data_file_id].append(row)
    if not inlined:
        return []
    flushed = {id_: inlined[id_] for id_ in sorted(inlined)[:MOST_DELETE_FILES]}
    replaced = _replaced(state, flushed)
    at = (state.table.table_id, lake.snapshot_id, min(flushed), max(flushed))
    return [
        LargeDelete(
            data_file=file.data_file_id,
            location=_location(state, file),
            replaces=replaced.get(file.data_file_id),
            flushed=flushed[file.data_file_id],
        )
        for file in queries.data_files_at(lake, *at).run(con)
        if file.data_file_id in flushed
    ]


def _location(state: TableState, file: LiveFile | DataFile) -> str:
    return state.location + file.path if file.path_is_relative else file.path


def _replaced(state: TableState, data_file_ids: Iterable[int]) -> dict[int, Replaced]:
    wanted, lake = list(data_file_ids), state.lake.lake
    at = (state.table.table_id, lake.snapshot_id, min(wanted), max(wanted), wanted)
    found: dict[int, Replaced] = {}
    for file in queries.delete_files_at(lake, *at).run(state.lake.con):
        has_history = file.format != "parquet" and file.partial_max is not None
        if file.data_file_id in found or has_history:
            raise BadRequest(CANNOT_BE_MERGED)
        location = file_location(lake, state.schema, state.table, file)
        found[file.data_file_id] = Replaced(file, location, within_lake(location, lake))
    return found
