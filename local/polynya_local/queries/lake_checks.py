"""Queries for the checks of a lake, and for the advice about its tables."""

from polynya.ducklake.connection.catalog_connection import Rows, Statement, constant
from polynya.ducklake.paths import location
from polynya.ducklake.queries.catalog import VISIBLE, sql_for_version, sql_location
from polynya.ducklake.rows.files import FileGroups
from polynya.ducklake.rows.objects import Lake


def option(name: str) -> Statement[str | None]:
    """An option of the whole lake, as `set_option` stores it; None if it is not set."""
    sql = "SELECT value FROM ducklake_metadata WHERE key = :name AND scope IS NULL"
    return Statement(sql, {"name": name}, lambda rows: rows[0][0] if rows else None)


NEWEST_FILE = """
SELECT s.path, s.path_is_relative, t.path, t.path_is_relative, f.path, f.path_is_relative
FROM ducklake_data_file AS f
JOIN ducklake_table AS t ON t.table_id = f.table_id AND t.end_snapshot IS NULL
JOIN ducklake_schema AS s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
WHERE f.end_snapshot IS NULL ORDER BY f.data_file_id DESC LIMIT 1"""


def newest_file(lake: Lake) -> Statement[str | None]:
    """The location of the data file that was added last; None: no table has one."""

    def newest(rows: Rows) -> str | None:
        levels = [zip(row[::2], row[1::2], strict=True) for row in rows]
        return location((lake.data_path, False), *levels[0]) if levels else None

    return Statement(NEWEST_FILE, {}, newest)


SHARED_FILES_AT = f"""
SELECT count(*) OVER (), location FROM (
  SELECT {sql_location("f")} AS location FROM ducklake_data_file AS f
  WHERE f.table_id = :table_id AND {VISIBLE.format("f")}) AS file
GROUP BY 2 HAVING count(*) > 1 ORDER BY 2 LIMIT 1"""


def shared_files_at(
    table_id: int, snapshot_id: int, directory: str, groups: FileGroups
) -> Statement[tuple[int, str]]:
    """How many locations several visible data files have, and the first of them.

    Args:
        directory: of the table.
        groups: all data files of the table.
    """
    if not groups.has_added:
        return constant((0, ""))
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id, "directory": directory}
    return Statement(
        SHARED_FILES_AT, parameters, lambda rows: (rows[0][0], rows[0][1]) if rows else (0, "")
    )


HAS_LATE_TABLES = """
SELECT EXISTS (SELECT FROM ducklake_inlined_data_tables AS i
  WHERE i.table_id = :table_id AND NOT EXISTS (
    SELECT FROM {schema_versions} AS v WHERE v.schema_version = i.schema_version))"""


def has_late_tables(lake: Lake, table_id: int) -> Statement[bool]:
    """Whether a table of inlined rows has a version that ducklake_schema_versions lacks.

    DuckLake creates such a table at an INSERT.
    """
    sql = sql_for_version(lake, HAS_LATE_TABLES)
    return Statement(sql, {"table_id": table_id}, lambda rows: bool(rows[0][0]))
