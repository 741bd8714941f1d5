"""The delete files that a commit will need, found out before its transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...ducklake import queries
from ...ducklake.paths import file_location, within_lake
from ...ducklake.rows.data_files import LiveFile
from ...ducklake.rows.deletes import DeleteFile
from ...errors import BadRequest
from ..plans.table_state import TableState


@dataclass(frozen=True, slots=True)
class Replaced:
    """A delete file whose deletes will be in a new one too."""

    file: DeleteFile
    location: str
    path: tuple[str, bool]
    """Of the lake, and whether it is relative to the lake's data path."""


@dataclass(frozen=True, slots=True)
class LargeDelete:
    """Rows of one data file that a commit deletes: too many to inline them."""

    data_file: int
    """Its id, or the index of a file that the commit adds."""
    location: str
    """Of the data file; empty for one that the commit adds."""
    positions: Sequence[int]
    """Ascending; rows that are not deleted yet."""
    replaces: Replaced | None = None

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
            location=state.location + file.path if file.path_is_relative else file.path,
            positions=deleted[file.data_file_id],
            replaces=replaced.get(file.data_file_id),
        )
        for file in files
        if file.data_file_id in deleted
    ]


def _replaced(state: TableState, data_file_ids: Iterable[int]) -> dict[int, Replaced]:
    wanted, lake = list(data_file_ids), state.lake.lake
    at = (state.table.table_id, lake.snapshot_id, min(wanted), max(wanted), wanted)
    found: dict[int, Replaced] = {}
    for file in queries.delete_files_at(lake, *at).run(state.lake.con):
        has_history = file.format != "parquet" and file.partial_max is not None
        if file.data_file_id in found or has_history:
            raise BadRequest(
                "the commit deletes many rows of a data file whose delete files cannot be merged: "
                f"CALL ducklake_rewrite_data_files('…', '{state.table.table_name}') in DuckDB and "
                "delete again, or let the client rewrite the files "
                "(write.delete.mode=copy-on-write)"
            )
        location = file_location(lake, state.schema, state.table, file)
        found[file.data_file_id] = Replaced(file, location, within_lake(location, lake))
    return found
