"""Files that the catalog has or has had, by their paths."""

import json
from collections.abc import Collection

from ...connection.statements import Rows, Statement
from ...paths import location
from ...rows.lake import Lake

# A join, because a list of paths is compared one by one before PostgreSQL 14. JSON, because pg8000
# writes an array character by character: 10,000 files have 80,000 paths. Rows of a table that is
# gone have no directory; its files wait for their deletion then, with whole paths.
KNOWN = """
WITH p AS (SELECT json_array_elements_text(CAST(:paths AS json)) AS path)
SELECT DISTINCT s.path, s.path_is_relative, t.path, t.path_is_relative, f.path, f.path_is_relative
FROM (
  SELECT d.table_id, d.path, d.path_is_relative FROM ducklake_data_file AS d
  JOIN p ON d.path = p.path
  UNION ALL
  SELECT d.table_id, d.path, d.path_is_relative FROM ducklake_delete_file AS d
  JOIN p ON d.path = p.path
  UNION ALL
  SELECT NULL, d.path, d.path_is_relative FROM ducklake_files_scheduled_for_deletion AS d
  JOIN p ON d.path = p.path
) AS f
LEFT JOIN ducklake_table AS t ON t.table_id = f.table_id
LEFT JOIN ducklake_schema AS s ON s.schema_id = t.schema_id"""


def known_locations(lake: Lake, paths: Collection[str]) -> Statement[set[str]]:
    """The locations of files with one of these paths, as the catalog spells them.

    They are data files and delete files, live and ended ones, also of other tables, and files that
    are scheduled for deletion.

    Args:
        paths: absolute and relative ones.
    """

    def locations(rows: Rows) -> set[str]:
        return {location((lake.data_path, False), *_levels(row)) for row in rows}

    return Statement(KNOWN, {"paths": json.dumps([*paths], ensure_ascii=False)}, locations)


def _levels(row: list[object]) -> list[tuple[str, bool]]:
    pairs = zip(row[::2], row[1::2], strict=True)
    return [(str(path), bool(is_relative)) for path, is_relative in pairs if path is not None]
