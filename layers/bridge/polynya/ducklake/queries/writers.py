"""What writers read before they write: files by path, statistics, rights, texts of views.

`writer_rights` reads PostgreSQL's own tables, which every role can read, so that a missing grant is
found before a commit fails.
"""

import json
from collections.abc import Collection, Sequence

from ..connection.catalog_connection import Rows, Statement, select
from ..paths import location
from ..rows.files import LiveFile, TableColumnStats
from ..rows.objects import VIEW_VERSION, Lake, ViewText, WriterRights
from .catalog import CATALOG_SCHEMA, IS_TIME, sql_location

# A join, because a list of paths is compared one by one before PostgreSQL 14. JSON, because pg8000
# writes an array character by character: 10,000 files have 80,000 paths. The rows of a dropped
# table have no directory; its files are then scheduled for deletion, with whole paths.
PATHS = "WITH p AS (SELECT json_array_elements_text(CAST(:paths AS json)) AS path)"
IS_ONE = "JOIN p ON d.path = p.path"
KNOWN = """
{paths}
SELECT DISTINCT s.path, s.path_is_relative, t.path, t.path_is_relative, f.path, f.path_is_relative
FROM (
  SELECT d.table_id, d.path, d.path_is_relative FROM ducklake_data_file AS d
  {is_one}
  UNION ALL
  SELECT d.table_id, d.path, d.path_is_relative FROM ducklake_delete_file AS d
  {is_one}
  UNION ALL
  SELECT NULL, d.path, d.path_is_relative FROM ducklake_files_scheduled_for_deletion AS d
  {is_one}
) AS f
LEFT JOIN ducklake_table AS t ON t.table_id = f.table_id
LEFT JOIN ducklake_schema AS s ON s.schema_id = t.schema_id"""


def known_locations(lake: Lake, paths: Collection[str] | None = None) -> Statement[set[str]]:
    """The locations of files with one of these paths, as the catalog spells them.

    They are data files and delete files, live and ended ones, also of other tables, and files that
    are scheduled for deletion.

    Args:
        paths: absolute and relative ones; None: all that the catalog has.
    """

    def locations(rows: Rows) -> set[str]:
        return {location((lake.data_path, False), *_levels(row)) for row in rows}

    if paths is None:
        return Statement(KNOWN.format(paths="", is_one=""), {}, locations)
    sql = KNOWN.format(paths=PATHS, is_one=IS_ONE)
    return Statement(sql, {"paths": json.dumps([*paths], ensure_ascii=False)}, locations)


NAMES = "WITH p AS (SELECT json_array_elements_text(CAST(:names AS json)) AS name)"
# The last part of a path, without a regular expression for each.
IS_ONE_OF_NAMES = "JOIN p ON reverse(split_part(reverse(d.path), '/', 1)) = p.name"


def locations_of_names(lake: Lake, names: Collection[str]) -> Statement[set[str]]:
    """The locations of files with one of these names, the last parts of their paths.

    They are those of `known_locations`.
    """

    def locations(rows: Rows) -> set[str]:
        return {location((lake.data_path, False), *_levels(row)) for row in rows}

    sql = KNOWN.format(paths=NAMES, is_one=IS_ONE_OF_NAMES)
    return Statement(sql, {"names": json.dumps([*names], ensure_ascii=False)}, locations)


def _levels(row: list[object]) -> list[tuple[str, bool]]:
    pairs = zip(row[::2], row[1::2], strict=True)
    return [(str(path), bool(is_relative)) for path, is_relative in pairs if path is not None]


LIVE_FILES = f"""
SELECT f.data_file_id, f.path, f.path_is_relative, f.record_count FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL
  AND {sql_location("f")} = ANY(CAST(:locations AS text[]))"""


def live_files(
    table_id: int, directory: str, locations: Sequence[str]
) -> Statement[list[LiveFile]]:
    """The live data files at these locations; two of them may be at one.

    Args:
        directory: of the table.
    """
    parameters = {"directory": directory, "locations": list(locations)}
    return select(LiveFile, LIVE_FILES, table_id=table_id, **parameters)


# Older catalogs do not have the last three: as members of an object they are NULL there.
TABLE_COLUMN_STATS = """
SELECT s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value,
  (to_jsonb(s)->>'min_is_exact')::boolean, (to_jsonb(s)->>'max_is_exact')::boolean,
  to_jsonb(s)->>'extra_stats'
FROM ducklake_table_column_stats AS s WHERE s.table_id = :table_id"""


def table_column_stats(table_id: int) -> Statement[dict[int, TableColumnStats]]:
    """The statistics of the columns of a table, by column_id."""

    def result(rows: Rows) -> dict[int, TableColumnStats]:
        return {row[0]: TableColumnStats(*row) for row in rows}

    return Statement(TABLE_COLUMN_STATS, {"table_id": table_id}, result)


NEXT_ROW_ID = """
SELECT next_row_id FROM ducklake_table_stats WHERE table_id = :table_id"""


def next_row_id(table_id: int) -> Statement[int]:
    """The first row id that a table never had."""
    return Statement(NEXT_ROW_ID, {"table_id": table_id}, lambda rows: rows[0][0] if rows else 0)


# Tables that a commit creates must belong to the owner of DuckLake's: DuckLake drops them at a
# flush, and the owner's default privileges let readers read them. So the role must be able to
# SET ROLE; before PostgreSQL 16 each member is.
MAY_BECOME = """pg_has_role({0}, CASE WHEN current_setting('server_version_num')::int >= 160000
    THEN 'SET' ELSE 'MEMBER' END)"""

WRITER_RIGHTS = f"""
SELECT current_user::text, pg_get_userbyid(s.relowner)::text,
  {MAY_BECOME.format("s.relowner")},
  (SELECT value FROM ducklake_metadata WHERE key = 'version'),
  pg_get_userbyid(p.relowner)::text,
  ARRAY(SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(a.grantee)::text END
    FROM aclexplode(s.relacl) AS a WHERE a.privilege_type = 'SELECT' AND a.grantee <> s.relowner
    EXCEPT
    SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(a.grantee)::text END
    FROM aclexplode(p.relacl) AS a WHERE a.privilege_type = 'SELECT' ORDER BY 1)
FROM pg_class AS s
LEFT JOIN pg_class AS p ON p.relnamespace = s.relnamespace AND p.relname = 'polynya_commits'
WHERE s.relnamespace = {CATALOG_SCHEMA} AND s.relname = 'ducklake_snapshot'"""


def writer_rights() -> Statement[WriterRights]:
    """What the connection's role may do."""
    return Statement(WRITER_RIGHTS, {}, lambda rows: WriterRights(*rows[0]))


# As in VIEWS_AT, a text stays when its snapshot expires.
VIEW_TEXTS = f"""
SELECT v.begin_snapshot, CASE WHEN {IS_TIME} THEN s.snapshot_time END, v.sql,
  (SELECT t.value FROM ducklake_tag AS t
   WHERE t.object_id = v.view_id AND t.key = :key AND t.begin_snapshot <= v.begin_snapshot
     AND (t.end_snapshot IS NULL OR t.end_snapshot > v.begin_snapshot) LIMIT 1)
FROM ducklake_view AS v LEFT JOIN ducklake_snapshot AS s ON s.snapshot_id = v.begin_snapshot
WHERE v.view_id = :view_id AND v.begin_snapshot <= :snapshot_id
ORDER BY v.begin_snapshot"""


def view_texts(snapshot_id: int, view_id: int) -> Statement[list[ViewText]]:
    """The texts that a view had up to a snapshot, oldest first; a name has a row of its own."""
    return select(ViewText, VIEW_TEXTS, snapshot_id=snapshot_id, view_id=view_id, key=VIEW_VERSION)
