"""Rows of delete files: added at a snapshot, where they replace those that are there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pg8000.native import Connection

from ..rows.writers.layout import Layout
from .copy import copy


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeleteFile:
    """A delete file that is not in the catalog yet, with what the catalog will say about it."""

    path: str
    """Relative to the table's directory."""
    delete_count: int
    file_size_bytes: int
    footer_size: int
    row_group_count: int
    first_snapshot: int | None = None
    """That of the first delete in it, if it has deletes of several snapshots."""
    partial_max: int | None = None
    """That of the newest delete, if it has deletes of several snapshots."""


FILE_COLUMNS = (
    *("delete_file_id", "table_id", "begin_snapshot", "data_file_id", "path", "path_is_relative"),
    *("format", "delete_count", "file_size_bytes", "footer_size", "partial_max"),
    "row_group_count",
)


def add(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    first_id: int,
    files: Sequence[tuple[int, NewDeleteFile]],
    layout: Layout,
) -> None:
    """Add delete files.

    Args:
        first_id: the delete_file_id of the first file; the others follow in order.
        files: each with the data_file_id of its data file.
        layout: what the catalog has.
    """
    rows = [
        (
            *(id_, table_id, file.first_snapshot or snapshot_id),
            *(data_file_id, file.path, True, "parquet"),
            *(file.delete_count, file.file_size_bytes, file.footer_size, file.partial_max),
            file.row_group_count,
        )
        for id_, (data_file_id, file) in enumerate(files, first_id)
    ]
    copy(con, "ducklake_delete_file", FILE_COLUMNS, rows, layout)


REMOVE = """
DELETE FROM ducklake_delete_file
WHERE table_id = :table_id AND data_file_id = ANY(:data_file_ids) AND end_snapshot IS NULL
RETURNING delete_file_id"""


def remove(con: Connection, table_id: int, data_file_ids: list[int]) -> set[int]:
    """Remove the rows of the live delete files of data files; gives their ids.

    As DuckLake does it: what older snapshots read of them is in the files that replace them.
    """
    rows = con.run(REMOVE, table_id=table_id, data_file_ids=data_file_ids)
    return {delete_file_id for (delete_file_id,) in rows}


SCHEDULE = """
INSERT INTO ducklake_files_scheduled_for_deletion
  (data_file_id, path, path_is_relative, schedule_start)
SELECT f.id, f.path, f.is_relative, now() FROM unnest(
  CAST(:ids AS bigint[]), CAST(:paths AS text[]), CAST(:are_relative AS boolean[])
) AS f (id, path, is_relative)"""


def schedule_deletion(con: Connection, paths: Mapping[int, tuple[str, bool]]) -> None:
    """Leave the deletion of files that were removed to ducklake_cleanup_old_files.

    Args:
        paths: by delete_file_id, at least one; with each, whether it is relative to the lake's
            data path.
    """
    texts, are_relative = zip(*paths.values(), strict=True)
    values = {"paths": list(texts), "are_relative": list(are_relative)}
    con.run(SCHEDULE, ids=list(paths), **values)
