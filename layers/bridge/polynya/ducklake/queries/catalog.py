"""The lake as a whole."""

from ...errors import Misconfigured
from ..connection.statements import Rows, Statement
from ..rows.lake import Lake
from ..rows.writers.layout import ADDED, Layout
from .fragments import CATALOG_SCHEMA

LAKE = f"""
SELECT 'option', key, value FROM ducklake_metadata
WHERE key IN ('version', 'data_path', 'encrypted')
UNION ALL
SELECT 'snapshot', max(snapshot_id)::text, NULL FROM ducklake_snapshot
UNION ALL
SELECT 'column', c.relname || '.' || a.attname, NULL
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = {CATALOG_SCHEMA} AND a.attnum > 0 AND NOT a.attisdropped
  AND c.relname IN ('ducklake_data_file', 'ducklake_delete_file', 'ducklake_name_mapping',
    'ducklake_schema_versions', 'ducklake_snapshot_changes', 'ducklake_sort_info',
    'ducklake_file_column_stats', 'ducklake_file_column_statistics', 'ducklake_schema',
    'ducklake_view_column_tag', 'polynya_commits')"""


def lake() -> Statement[Lake]:
    """The lake as a whole: its options, its newest snapshot, and which columns its catalog has.

    Raises, when it runs:
        Misconfigured: the tables are there, but no snapshot is.
    """
    return Statement(LAKE, {}, _lake)


def _lake(rows: Rows) -> Lake:
    options = {key: value for kind, key, value in rows if kind == "option"}
    newest = [key for kind, key, _ in rows if kind == "snapshot" and key is not None]
    if "version" not in options or not newest:
        raise Misconfigured("the PostgreSQL schema holds DuckLake's tables, but no snapshot")
    return Lake(
        version=options["version"],
        data_path=options.get("data_path", ""),
        encrypted=options.get("encrypted") == "true",
        snapshot_id=int(newest[0]),
        layout=frozenset(key for kind, key, _ in rows if kind == "column"),
    )


def snapshot_exists(snapshot_id: int) -> Statement[bool]:
    """Whether the lake has this snapshot, and it has not expired."""
    sql = "SELECT 1 FROM ducklake_snapshot WHERE snapshot_id = :snapshot_id"
    return Statement(sql, {"snapshot_id": snapshot_id}, bool)


LAYOUT = f"""
SELECT c.relname || '.' || a.attname
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = {CATALOG_SCHEMA} AND a.attnum > 0 AND NOT a.attisdropped
  AND c.relname || '.' || a.attname = ANY(CAST(:added AS text[]))"""


def layout() -> Statement[Layout]:
    """What the catalog has that not every version has."""

    def result(rows: Rows) -> Layout:
        return Layout(frozenset(name for (name,) in rows))

    return Statement(LAYOUT, {"added": list(ADDED)}, result)
