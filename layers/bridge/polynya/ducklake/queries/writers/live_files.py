"""The data files of a table that are live now, found by their paths."""

from collections.abc import Sequence

from ...connection.statements import Statement, select
from ...rows.data_files import LiveFile

LIVE_FILES = """
SELECT f.data_file_id, f.path, f.path_is_relative, f.record_count FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND CASE WHEN f.path_is_relative
  THEN f.path = ANY(CAST(:relative AS text[])) ELSE f.path = ANY(CAST(:absolute AS text[])) END"""


def live_files(
    table_id: int, relative: Sequence[str], absolute: Sequence[str]
) -> Statement[list[LiveFile]]:
    """The live data files with one of these paths.

    Args:
        relative: to the directory of the table.
        absolute: of files that are elsewhere.
    """
    paths = {"relative": list(relative), "absolute": list(absolute)}
    return select(LiveFile, LIVE_FILES, table_id=table_id, **paths)
