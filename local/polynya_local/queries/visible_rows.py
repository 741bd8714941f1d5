"""The catalog as one caller sees it, without rows about tables that the caller may not read.

`VisibleRows` takes the place of a connection. For each of DuckLake's tables that a statement names,
it adds a query in a WITH clause, from which the statement then reads. This limits every report of
the page, even one that knows nothing of callers. A table of DuckLake without such a query is an
error.

Rights depend on the newest name of a table or view, as in the REST catalog. A snapshot is visible
if it touched something that the caller may read. The oldest and the newest are visible too, though
perhaps without changes, because the caller may read the state that they show.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from re import Match
from typing import Any

from pg8000.native import Connection
from polynya.ducklake.connection.catalog_connection import TABLE, Statement, select
from polynya.ducklake.queries.catalog import PARENTS

WITH = re.compile(r"\s*WITH\s+(?:RECURSIVE\s+)?")

SEEN = "seen_"
"""The beginning of the names of the queries."""

# A change as `rows.listing.CHANGE` reads it: the first group is the id, the second has the names.
PART = r"""'\w+:(?:(\d{1,18})|("(?:[^"]|"")*"(?:\."(?:[^"]|"")*")*))(?=,|$)'"""
# With the whole change as the first group, for `regexp_matches`.
WHOLE_PART = f"'({PART[1:-1]})'"

OBJECTS = "ANY(CAST(:seen_objects AS bigint[]))"
SCHEMAS = "ANY(CAST(:seen_schemas AS bigint[]))"
IS_SEEN = f"""(CAST(p.part[2] AS bigint) = {OBJECTS} OR CAST(p.part[2] AS bigint) = {SCHEMAS}
  OR c.snapshot_id || ' ' || p.part[1] = ANY(CAST(:seen_creations AS text[])))"""
PARTS = f"regexp_matches(c.changes_made, {WHOLE_PART}, 'g') WITH ORDINALITY AS p(part, place)"


def _rows_of(column: str, ids: str = OBJECTS) -> str:
    return f"SELECT * FROM {{table}} WHERE {column} = {ids}"


OF_TABLE = _rows_of("table_id")

# Texts of a snapshot may speak of everything that it changed (as in the events of the catalog).
CHANGES = f"""
SELECT c.snapshot_id, CASE WHEN c.is_whole THEN c.changes_made ELSE (
    SELECT coalesce(string_agg(p.part[1], ',' ORDER BY p.place), '') FROM {PARTS} WHERE {IS_SEEN})
  END AS changes_made,
  CASE WHEN c.is_whole THEN c.texts ->> 'author' END AS author,
  CASE WHEN c.is_whole THEN c.texts ->> 'commit_message' END AS commit_message
FROM (SELECT n.snapshot_id, n.changes_made, to_jsonb(n) AS texts,
    n.snapshot_id = ANY(CAST(:seen_whole AS bigint[])) AS is_whole
  FROM {{table}} AS n WHERE n.snapshot_id = ANY(CAST(:seen_snapshots AS bigint[]))) AS c"""

# The caller must not learn either when others committed last.
SNAPSHOTS = """
SELECT s.snapshot_id, CASE WHEN s.snapshot_id = ANY(CAST(:seen_touching AS bigint[]))
    THEN s.snapshot_time ELSE least(s.snapshot_time, CAST(:seen_time AS timestamptz))
  END AS snapshot_time, s.schema_version, s.next_catalog_id, s.next_file_id
FROM {table} AS s WHERE s.snapshot_id = ANY(CAST(:seen_snapshots AS bigint[]))"""

NOTHING = "SELECT * FROM {table} WHERE false"

QUERIES = {
    "ducklake_metadata": """
SELECT * FROM {table} WHERE CASE to_jsonb({table}) ->> 'scope' WHEN 'table' THEN
    CAST(to_jsonb({table}) ->> 'scope_id' AS bigint) = """
    + OBJECTS
    + """
  WHEN 'schema' THEN CAST(to_jsonb({table}) ->> 'scope_id' AS bigint) = """
    + SCHEMAS
    + " ELSE to_jsonb({table}) ->> 'scope' IS NULL END",
    "ducklake_snapshot": SNAPSHOTS,
    "ducklake_snapshot_changes": CHANGES,
    "ducklake_schema": _rows_of("schema_id", SCHEMAS),
    "ducklake_table": OF_TABLE,
    "ducklake_view": _rows_of("view_id"),
    "ducklake_view_column_tag": _rows_of("view_id"),
    "ducklake_tag": _rows_of("object_id"),
    "ducklake_column": OF_TABLE,
    "ducklake_column_tag": OF_TABLE,
    "ducklake_column_mapping": OF_TABLE,
    "ducklake_name_mapping": f"""
SELECT * FROM {{table}} WHERE mapping_id IN (
  SELECT m.mapping_id FROM ducklake_column_mapping AS m WHERE m.table_id = {OBJECTS})""",
    "ducklake_data_file": OF_TABLE,
    "ducklake_delete_file": OF_TABLE,
    "ducklake_file_column_stats": OF_TABLE,
    "ducklake_file_column_statistics": OF_TABLE,
    "ducklake_file_partition_value": OF_TABLE,
    "ducklake_inlined_data_tables": OF_TABLE,
    "ducklake_partition_column": OF_TABLE,
    "ducklake_partition_info": OF_TABLE,
    "ducklake_sort_expression": OF_TABLE,
    "ducklake_sort_info": OF_TABLE,
    "ducklake_table_column_stats": OF_TABLE,
    "ducklake_table_stats": OF_TABLE,
    # Until version 0.4 they belong to the lake, not to a table.
    "ducklake_schema_versions": f"""
SELECT * FROM {{table}} WHERE to_jsonb({{table}}) ->> 'table_id' IS NULL
  OR CAST(to_jsonb({{table}}) ->> 'table_id' AS bigint) = {OBJECTS}""",
    "ducklake_files_scheduled_for_deletion": NOTHING,
    "ducklake_macro": NOTHING,
    "polynya_refused": OF_TABLE,
    "polynya_commits": _rows_of("table_uuid", "ANY(CAST(:seen_uuids AS uuid[]))"),
}
"""What a caller sees of each of DuckLake's tables, and of Polynya's."""


class Unlimited(Exception):
    """A statement that is not limited to what a caller may see."""


@lru_cache(maxsize=1024)
def limited(sql: str) -> str:
    """The SELECT, limited to what a caller may see.

    Raises:
        Unlimited: it may read something else.
    """
    names: dict[str, None] = {}

    def replace(match: Match[str]) -> str:
        name = match["table"]
        # The name of a table of inlined rows comes from what the caller sees.
        if name is None or name.startswith('"'):
            return match[0]
        if name not in QUERIES or match["before"].split()[0].upper() not in ("FROM", "JOIN"):
            raise Unlimited(f"what a caller sees of {name} is not known")
        names[name] = None
        return f"{match['before']}{SEEN}{name}"

    text = TABLE.sub(replace, sql)
    if not names:
        return sql
    queries = ", ".join(
        f"{SEEN}{name} AS NOT MATERIALIZED ({QUERIES[name].replace('{table}', name)})"
        for name in names
    )
    # A statement has only one WITH.
    own = WITH.match(text)
    return f"{own[0]}{queries}, {text[own.end() :]}" if own else f"WITH {queries} {text}"


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """A connection, within a transaction, that reads only what a caller may see."""

    con: Connection
    parameters: dict[str, Any] = field(repr=False)
    """The parameters of `QUERIES`."""

    def run(self, sql: str, **parameters: Any) -> Any:
        """Send one statement. Raises: as `limited`, and `CatalogConnection.run`."""
        text = limited(sql)
        return self.con.run(text, **parameters, **(self.parameters if text is not sql else {}))


NAMINGS = f"""
SELECT n.kind, n.id, n.uuid, n.schema_id, s.schema_name, n.name,
  greatest(n.begin_snapshot, s.begin_snapshot), s.parents
FROM (
  SELECT 'table' AS kind, t.table_id AS id, CAST(t.table_uuid AS text) AS uuid, t.schema_id,
    t.table_name AS name, t.begin_snapshot FROM ducklake_table AS t
  UNION ALL
  SELECT 'view', v.view_id, CAST(v.view_uuid AS text), v.schema_id, v.view_name, v.begin_snapshot
  FROM ducklake_view AS v) AS n
LEFT JOIN (
  SELECT s.schema_id, s.begin_snapshot, s.schema_name, {PARENTS.format("s")} AS parents
  FROM ducklake_schema AS s OFFSET 0) AS s USING (schema_id)
ORDER BY n.begin_snapshot, s.begin_snapshot"""


@dataclass(frozen=True, slots=True)
class Naming:
    """A name of a table or a view, from a snapshot on."""

    kind: str
    object_id: int
    uuid: str | None
    schema_id: int
    schema_name: str | None
    name: str | None
    begin_snapshot: int
    parents: list[str] | None

    @property
    def levels(self) -> tuple[str, ...] | None:
        """All levels of the full name; None: one of them has no row."""
        if self.schema_name is None or self.name is None or self.parents is None:
            return None
        return (*self.parents, self.schema_name, self.name)


def namings() -> Statement[list[Naming]]:
    """All names that tables and views have had, oldest first."""
    return select(Naming, NAMINGS)


@dataclass(frozen=True, slots=True)
class SchemaNaming:
    """The name of a schema, from a snapshot on."""

    schema_id: int
    name: str
    begin_snapshot: int
    parents: list[str] | None

    @property
    def levels(self) -> tuple[str, ...] | None:
        """All levels of the full name; None: one of them has no row."""
        return None if self.parents is None else (*self.parents, self.name)


SCHEMA_ROWS = f"""
SELECT s.schema_id, s.schema_name, s.begin_snapshot, {PARENTS.format("s")}
FROM ducklake_schema AS s WHERE s.schema_name IS NOT NULL"""


def schema_namings() -> Statement[list[SchemaNaming]]:
    """All names that schemas have had."""
    return select(SchemaNaming, SCHEMA_ROWS)


TOUCHING = f"""
SELECT c.snapshot_id, t.seen = t.all_of_them
  AND regexp_replace(c.changes_made, {PART}, '', 'g') ~ '^,*$'
FROM ducklake_snapshot_changes AS c CROSS JOIN LATERAL (
  SELECT count(*) AS all_of_them, count(*) FILTER (WHERE {IS_SEEN}) AS seen FROM {PARTS}) AS t
WHERE c.snapshot_id > :since AND t.seen > 0"""


def touching(visible: Mapping[str, Any], since: int) -> Statement[dict[int, bool]]:
    """The snapshots after `since` that touched something visible; and whether nothing else.

    Args:
        visible: the parameters of `QUERIES` for objects, schemas and creations.
    """
    return Statement(
        TOUCHING, {**visible, "since": since}, lambda rows: {row[0]: row[1] for row in rows}
    )


# Snapshots that the texts miss: an Iceberg commit without any change, and rows of other writers.
BESIDE = f"""
SELECT s.snapshot_id FROM ducklake_snapshot AS s WHERE s.snapshot_id IN (
  SELECT t.begin_snapshot FROM ducklake_table AS t WHERE t.table_id = {OBJECTS}
  UNION ALL SELECT t.end_snapshot FROM ducklake_table AS t WHERE t.table_id = {OBJECTS}
  UNION ALL SELECT v.begin_snapshot FROM ducklake_view AS v WHERE v.view_id = {OBJECTS}
  UNION ALL SELECT v.end_snapshot FROM ducklake_view AS v WHERE v.view_id = {OBJECTS}{{commits}})"""
OF_COMMITS = """
  UNION ALL SELECT p.snapshot_id FROM polynya_commits AS p
  WHERE p.table_uuid = ANY(CAST(:seen_uuids AS uuid[]))"""


def unnamed_changes(visible: Mapping[str, Any], *, has_commits: bool) -> Statement[list[int]]:
    """The snapshots that touched something visible, though their texts may not say so.

    Args:
        has_commits: whether the catalog has the table of commits.
    """
    sql = BESIDE.format(commits=OF_COMMITS if has_commits else "")
    return select(int, sql, **visible)


ENDS = """
SELECT s.snapshot_id, CAST(s.snapshot_time AS text), to_regclass('polynya_commits') IS NOT NULL
FROM ducklake_snapshot AS s WHERE s.snapshot_id IN (
  SELECT min(snapshot_id) FROM ducklake_snapshot
  UNION ALL SELECT max(snapshot_id) FROM ducklake_snapshot)
ORDER BY 1"""


@dataclass(frozen=True, slots=True)
class End:
    """The oldest or the newest snapshot of a lake."""

    snapshot_id: int
    time: str
    has_commits: bool
    """Whether the catalog has the table of commits."""


def ends() -> Statement[list[End]]:
    """The oldest and the newest snapshot; one if they are the same."""
    return select(End, ENDS)


TIME_OF = """
SELECT CAST(max(s.snapshot_time) AS text) FROM ducklake_snapshot AS s
WHERE s.snapshot_id = ANY(CAST(:seen_touching AS bigint[]))"""


def newest_time(visible: Mapping[str, Any]) -> Statement[str | None]:
    """When the newest snapshot that touched something visible was made; None: there is none."""
    return Statement(TIME_OF, visible, lambda rows: rows[0][0])
