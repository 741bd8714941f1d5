"""The directories and files of one table in S3, and those of all other tables.

Directories end with a slash, and are spelled as in DuckLake's rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ...namespaces import Namespace
from ..connection.statements import Rows, Statement, select
from ..paths import location
from ..rows.lake import Lake
from .fragments import PARENTS

DIRECTORY = "regexp_replace(f.path, '[^/]*$', '')"

OWN_DIRECTORIES = f"""
SELECT {DIRECTORY}, count(DISTINCT f.path) FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.path_is_relative = :is_relative GROUP BY 1"""


def own_directories(table_id: int, *, is_relative: bool) -> Statement[dict[str, int]]:
    """The number of data files of a table in each directory, over all snapshots.

    Args:
        is_relative: True for files below the table's path, with directories relative to it; False
            for the others.
    """
    parameters = {"table_id": table_id, "is_relative": is_relative}
    return Statement(OWN_DIRECTORIES, parameters, _counts)


def _counts(rows: Rows) -> dict[str, int]:
    return {directory: count for directory, count in rows}  # noqa: C416 (the types)


OWN_FILES = f"""
SELECT DISTINCT f.path FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.path_is_relative = :is_relative
  AND {DIRECTORY} = ANY(CAST(:directories AS text[]))"""


def own_files(
    table_id: int, directories: Iterable[str], *, is_relative: bool
) -> Statement[list[str]]:
    """The paths of the data files in some of these directories."""
    within = {"is_relative": is_relative, "directories": list(directories)}
    return select(str, OWN_FILES, table_id=table_id, **within)


TABLES = f"""
SELECT t.table_id, s.parents, s.schema_name, t.table_name,
  s.path, s.path_is_relative, t.path, t.path_is_relative
FROM ducklake_table AS t JOIN (
  SELECT s.schema_id, s.begin_snapshot, s.schema_name, s.path, s.path_is_relative,
    {PARENTS.format("s")} AS parents
  FROM ducklake_schema AS s OFFSET 0) AS s USING (schema_id)
ORDER BY t.begin_snapshot, s.begin_snapshot"""


@dataclass(frozen=True, slots=True)
class Others:
    """The tables that are not readable with the rights on one table: those with another name."""

    directories: frozenset[str]
    """Their directories, including those of dropped tables that a snapshot still shows."""
    table_ids: frozenset[int]
    """The table itself, and tables that were dropped under its name: a reader of the table may read
    them at older snapshots."""


def others(lake: Lake, table_id: int) -> Statement[Others]:
    """The tables that are not readable with the rights on one table."""
    return Statement(TABLES, {}, lambda rows: _others(rows, lake, table_id))


def _others(rows: Rows, lake: Lake, table_id: int) -> Others:
    names: dict[int, tuple[Namespace, str] | None] = {}
    directories: list[tuple[int, str]] = []
    for id_, parents, schema_name, table_name, *paths in rows:
        # The newest comes last. Without its parents a schema has no name that others could have.
        names[id_] = None if parents is None else ((*parents, schema_name), table_name)
        place = location((lake.data_path, False), (paths[0], paths[1]), (paths[2], paths[3]))
        directories.append((id_, place))
    name_now = names.get(table_id)
    own = {id_ for id_, name in names.items() if name and name == name_now}
    theirs = frozenset(place for id_, place in directories if id_ not in own)
    return Others(theirs, frozenset(own | {table_id}))


NEWEST_FILE = """
SELECT s.path, s.path_is_relative, t.path, t.path_is_relative, f.path, f.path_is_relative
FROM ducklake_data_file AS f
JOIN ducklake_table AS t ON t.table_id = f.table_id AND t.end_snapshot IS NULL
JOIN ducklake_schema AS s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
WHERE f.end_snapshot IS NULL ORDER BY f.data_file_id DESC LIMIT 1"""


def newest_file(lake: Lake) -> Statement[str | None]:
    """The location of the data file that was added last; None: no table has one."""

    def newest(rows: Rows) -> str | None:
        for schema, schema_relative, table, table_relative, path, relative in rows:
            levels = ((schema, schema_relative), (table, table_relative), (path, relative))
            return location((lake.data_path, False), *levels)
        return None

    return Statement(NEWEST_FILE, {}, newest)


ADDED_DIRECTORIES = f"""
SELECT DISTINCT {DIRECTORY} FROM (
  SELECT table_id, path, path_is_relative FROM ducklake_data_file
  UNION ALL SELECT table_id, path, path_is_relative FROM ducklake_delete_file) AS f
WHERE NOT f.path_is_relative AND NOT f.table_id = ANY(CAST(:table_ids AS bigint[]))"""


def added_directories(table_ids: Iterable[int]) -> Statement[list[str]]:
    """The directories of files that were added to any but these tables."""
    return select(str, ADDED_DIRECTORIES, table_ids=list(table_ids))
