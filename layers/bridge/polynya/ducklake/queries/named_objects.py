"""Schemas, tables and views by name, their tags, and the directories of their files in S3.

Directories end with a slash, and are spelled as in DuckLake's rows.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...runtime.errors import REMEDY, Refused
from ...runtime.namespaces import Namespace, dotted
from ..connection.catalog_connection import Rows, Statement, constant, select
from ..paths import location
from ..rows.lifetimes import UnservableRange
from ..rows.objects import (
    IDENTIFIER_FIELDS,
    IdentifierFields,
    Lake,
    NameNow,
    Schema,
    Table,
    Tag,
    View,
)
from .catalog import IS_TIME, PARENT, PARENTS, VISIBLE

SCHEMAS_AT = f"""
SELECT s.schema_id, s.schema_name, s.path, s.path_is_relative, {PARENT.format("s")}
FROM ducklake_schema AS s
WHERE s.schema_name IS NOT NULL AND {VISIBLE.format("s")} ORDER BY s.schema_name"""


def schemas_at(snapshot_id: int) -> Statement[list[Schema]]:
    """The schemas of the lake at all levels, by name.

    A schema in one that does not exist is left out: DuckLake counts it as dropped.

    Raises, when it runs:
        Refused: a schema is within itself.
    """
    return Statement(SCHEMAS_AT, {"snapshot_id": snapshot_id}, _schemas)


def _schemas(rows: Rows) -> list[Schema]:
    by_id = {row[0]: row for row in rows}  # DuckLake lists a schema with two rows once
    outer = {schema_id: (row[1], row[4]) for schema_id, row in by_id.items()}
    names: dict[int | None, Namespace | None] = {None: ()}
    schemas = []
    for schema_id, schema_name, path, is_relative, parent_id in by_id.values():
        parents = _names(parent_id, outer, names)
        if parents is not None:
            schemas.append(Schema(schema_id, schema_name, path, is_relative, parents))
    return schemas


def _names(
    schema_id: int | None,
    outer: Mapping[int, tuple[str, int | None]],
    names: dict[int | None, Namespace | None],
) -> Namespace | None:
    """All levels of a schema; None if one of them does not exist.

    Args:
        outer: the name of each schema, and the id of the schema that it is in.
        names: the levels of schemas, by id; those that this call computes are added.

    Raises:
        Refused: the schema is within itself.
    """
    chain: dict[int, str] = {}
    ancestor = schema_id
    while ancestor is not None and ancestor not in names:
        if ancestor in chain:
            raise Refused(
                f"the schemas of the lake are not served: in ducklake_schema the schema "
                f"{dotted(chain[ancestor])} is within itself (parent_schema_id){REMEDY}"
            )
        if ancestor not in outer:
            names[ancestor] = None
            break
        chain[ancestor], ancestor = outer[ancestor]
    for inner in reversed(chain):
        name, parent_id = outer[inner]
        above = names[parent_id]
        names[inner] = None if above is None else (*above, name)
    return names[schema_id]


# A LEFT JOIN: the view stays when the snapshot that made it expires.
VIEWS_AT = f"""
SELECT v.view_id, v.view_uuid::text, v.begin_snapshot, CASE WHEN {IS_TIME} THEN s.snapshot_time END,
  v.view_name, v.dialect, v.sql
FROM ducklake_view AS v LEFT JOIN ducklake_snapshot AS s ON s.snapshot_id = v.begin_snapshot
WHERE v.schema_id = :schema_id AND v.view_name IS NOT NULL AND {VISIBLE.format("v")}
ORDER BY v.view_name"""


def views_at(snapshot_id: int, schema_id: int) -> Statement[list[View]]:
    """The views of a schema, by name."""
    return select(View, VIEWS_AT, snapshot_id=snapshot_id, schema_id=schema_id)


VIEW_NAME_OF_UUID = f"""
SELECT {PARENTS.format("s")}, s.schema_name, v.view_name
FROM ducklake_view AS v JOIN ducklake_schema AS s ON s.schema_id = v.schema_id
WHERE v.view_uuid = CAST(:view_uuid AS uuid)
  AND v.end_snapshot IS NULL AND s.end_snapshot IS NULL"""


def view_name_of_uuid(view_uuid: str) -> Statement[tuple[Namespace, str] | None]:
    """The namespace and the name of the view with this identity; None: it is gone."""

    def result(rows: Rows) -> tuple[Namespace, str] | None:
        for parents, schema_name, view_name in rows[:1]:
            if parents is not None:
                return (*parents, schema_name), view_name
        return None

    return Statement(VIEW_NAME_OF_UUID, {"view_uuid": view_uuid}, result)


HAS_ENTRIES = f"""
SELECT EXISTS (SELECT 1 FROM ducklake_table WHERE schema_id = :schema_id AND end_snapshot IS NULL)
  OR EXISTS (SELECT 1 FROM ducklake_view WHERE schema_id = :schema_id AND end_snapshot IS NULL)
  OR EXISTS (SELECT 1 FROM ducklake_macro WHERE schema_id = :schema_id AND end_snapshot IS NULL)
  OR EXISTS (SELECT 1 FROM ducklake_schema AS s
    WHERE {PARENT.format("s")} = :schema_id AND s.end_snapshot IS NULL)"""


def has_entries(schema_id: int) -> Statement[bool]:
    """Whether a schema has tables, views, macros or schemas at the newest snapshot."""
    return Statement(HAS_ENTRIES, {"schema_id": schema_id}, lambda rows: bool(rows[0][0]))


TAGS_AT = f"""
SELECT t.object_id, t.key, t.value FROM ducklake_tag AS t
WHERE t.object_id = :object_id AND t.key IS NOT NULL AND {VISIBLE.format("t")} ORDER BY t.key"""


def tags_at(snapshot_id: int, object_id: int) -> Statement[list[Tag]]:
    """Tags of a schema, a table or a view; the key of a comment is `comment`."""
    return select(Tag, TAGS_AT, snapshot_id=snapshot_id, object_id=object_id)


IDENTIFIERS = """
SELECT t.begin_snapshot, t.end_snapshot, t.value FROM ducklake_tag AS t
WHERE t.object_id = :table_id AND t.key = :key AND t.value ~ '^[0-9]{1,9}(,[0-9]{1,9})*$'
ORDER BY t.begin_snapshot"""


def identifier_fields(table_id: int) -> Statement[list[IdentifierFields]]:
    """The identifier fields of a table, at all snapshots."""

    def result(rows: Rows) -> list[IdentifierFields]:
        return [
            IdentifierFields(begin, end, tuple(map(int, text.split(","))))
            for begin, end, text in rows
        ]

    return Statement(IDENTIFIERS, {"table_id": table_id, "key": IDENTIFIER_FIELDS}, result)


COLUMN_TAGS_AT = f"""
SELECT t.column_id, t.key, t.value FROM ducklake_column_tag AS t
WHERE t.table_id = :table_id AND {VISIBLE.format("t")} ORDER BY t.column_id, t.key"""


def column_tags_at(snapshot_id: int, table_id: int) -> Statement[list[Tag]]:
    """Tags of a table's columns, with the column_id as `object_id`."""
    return select(Tag, COLUMN_TAGS_AT, snapshot_id=snapshot_id, table_id=table_id)


VIEW_COLUMN_COMMENTS_AT = f"""
SELECT t.column_name, t.value FROM ducklake_view_column_tag AS t
WHERE t.view_id = :view_id AND t.key = 'comment'
  AND t.value IS NOT NULL AND t.column_name IS NOT NULL AND {VISIBLE.format("t")}
ORDER BY t.column_name"""


def has_view_column_tags(lake: Lake) -> bool:
    """Whether columns of views can have tags: catalogs have the table since 1.1."""
    return "ducklake_view_column_tag.column_name" in lake.layout


def view_column_comments_at(
    lake: Lake, snapshot_id: int, view_id: int
) -> Statement[dict[str, str]]:
    """The comments of a view's columns, by the names that its query gives them."""
    if not has_view_column_tags(lake):
        return constant({})
    parameters = {"snapshot_id": snapshot_id, "view_id": view_id}
    return Statement(VIEW_COLUMN_COMMENTS_AT, parameters, lambda rows: dict(rows))


# A rename adds a row with the same table_id: the table itself began with the oldest.
COLUMNS = """t.table_id, t.table_uuid::text, {begin}, t.end_snapshot,
  t.schema_id, t.table_name, t.path, t.path_is_relative"""
TABLE_COLUMNS = COLUMNS.format(
    begin="""
  (SELECT min(o.begin_snapshot) FROM ducklake_table AS o WHERE o.table_id = t.table_id)"""
)

# All begins at once: DuckLake's table has no index, and a lake may have 20,000 tables.
TABLES_AT = f"""
SELECT {COLUMNS.format(begin="o.begin_snapshot")}
FROM ducklake_table AS t
LEFT JOIN (SELECT table_id, min(begin_snapshot) AS begin_snapshot FROM ducklake_table
  GROUP BY table_id) AS o ON o.table_id = t.table_id
WHERE t.schema_id = :schema_id AND t.table_name IS NOT NULL AND {VISIBLE.format("t")}
ORDER BY t.table_name"""


def tables_at(snapshot_id: int, schema_id: int) -> Statement[list[Table]]:
    """The tables of a schema, by name."""
    return select(Table, TABLES_AT, snapshot_id=snapshot_id, schema_id=schema_id)


TABLE_AT = f"""
SELECT s.schema_id, s.schema_name, s.path, s.path_is_relative, {TABLE_COLUMNS}
FROM ducklake_table AS t JOIN ducklake_schema AS s ON s.schema_id = t.schema_id
WHERE s.schema_name = :schema_name AND t.table_name = :table_name
  AND {VISIBLE.format("s")} AND {VISIBLE.format("t")} AND {PARENT.format("s")} """

# The window numbers equal rows, too. If two tables have one uuid, files that are read by the uuid
# are those of one of them.
ROWS_TOGETHER = """
WITH row AS (SELECT t.begin_snapshot, t.end_snapshot, t.table_name,
    row_number() OVER (ORDER BY t.begin_snapshot, t.table_name) AS number
  FROM ducklake_table AS t WHERE t.table_id = :table_id AND t.begin_snapshot IS NOT NULL)
SELECT later.begin_snapshot, least(earlier.end_snapshot, later.end_snapshot),
  earlier.begin_snapshot, earlier.table_name, later.table_name
FROM row AS earlier JOIN row AS later ON earlier.number < later.number
  AND (earlier.end_snapshot > later.begin_snapshot OR earlier.end_snapshot IS NULL)
  AND (later.end_snapshot > later.begin_snapshot OR later.end_snapshot IS NULL)
UNION ALL
SELECT t.begin_snapshot, t.end_snapshot, NULL, t.table_name, o.table_name
FROM ducklake_table AS t
JOIN ducklake_table AS o ON o.table_uuid = t.table_uuid AND o.table_id <> t.table_id
WHERE t.table_id = :table_id AND t.begin_snapshot IS NOT NULL
ORDER BY 1, 2, 4, 5"""


def unservable_rows_of_table(table_id: int) -> Statement[list[UnservableRange]]:
    """The snapshots at which the table has several rows, so that DuckLake reads no table, or has
    the uuid of another one."""

    def unservable(
        begin: int, end: int | None, earlier_begin: int | None, earlier: str, later: str
    ) -> UnservableRange:
        if earlier_begin is None:
            reason = f"the table {later!r} has the same table_uuid in ducklake_table{REMEDY}"
            return UnservableRange(begin, end, reason)
        reason = (
            f"ducklake_table has two rows of it at one snapshot ({earlier}, {later}), and then "
            "DuckLake reads no table of the lake"
        )
        if earlier_begin == begin:
            return UnservableRange(begin, end, reason + REMEDY)
        return UnservableRange(
            begin,
            end,
            f"{reason}. An ADD COLUMN before a RENAME TO in one transaction does that, and adds no "
            "column (duckdb/ducklake#1332): UPDATE ducklake_table SET end_snapshot = "
            f"{begin} WHERE table_id = {table_id} AND begin_snapshot = {earlier_begin}",
        )

    return select(unservable, ROWS_TOGETHER, table_id=table_id)


# One level after the other, the outermost schema first: the recursion ends with the last name,
# whatever the rows hold.
WITHIN = f"""IN (
  WITH RECURSIVE walked AS (
    SELECT s.schema_id, 1 AS level FROM ducklake_schema AS s
    WHERE s.schema_name = (CAST(:parents AS text[]))[1] AND {VISIBLE.format("s")}
      AND {PARENT.format("s")} IS NULL
    UNION ALL
    SELECT s.schema_id, w.level + 1 FROM walked AS w JOIN ducklake_schema AS s
      ON s.schema_name = (CAST(:parents AS text[]))[w.level + 1] AND {VISIBLE.format("s")}
      AND {PARENT.format("s")} = w.schema_id)
  SELECT w.schema_id FROM walked AS w WHERE w.level = cardinality(CAST(:parents AS text[])))"""

NEWEST = "(SELECT max(snapshot_id) FROM ducklake_snapshot)"


def table_at(
    snapshot_id: int | None, namespace: Namespace, table_name: str
) -> Statement[tuple[Schema, Table] | None]:
    """The table of this name; None if there is none.

    Args:
        snapshot_id: None for the newest.
        namespace: all levels of the schema's name.

    Raises, when it runs:
        Refused: the catalog has several rows for the table.
    """

    def result(rows: Rows) -> tuple[Schema, Table] | None:
        if len(rows) > 1:
            raise Refused(
                f"the table {dotted(*namespace, table_name)} is not served: ducklake_table or "
                f"ducklake_schema has {len(rows)} rows for it at one snapshot{REMEDY}"
            )
        return _schema_and_table(rows[0], parents) if rows else None

    *parents, schema_name = namespace
    sql = TABLE_AT + (WITHIN if parents else "IS NULL")
    parameters: dict[str, Any] = {"schema_name": schema_name, "table_name": table_name}
    if parents:
        parameters |= {"parents": parents}
    if snapshot_id is None:
        return Statement(sql.replace(":snapshot_id", NEWEST), parameters, result)
    return Statement(sql, parameters | {"snapshot_id": snapshot_id}, result)


def _schema_and_table(row: Sequence[Any], parents: Sequence[str]) -> tuple[Schema, Table]:
    return replace(Schema(*row[:4]), parents=tuple(parents)), Table(*row[4:12])


TABLE_OF_UUID = f"""
SELECT s.schema_id, s.schema_name, s.path, s.path_is_relative, {TABLE_COLUMNS},
  {PARENTS.format("s")}
FROM ducklake_table AS t JOIN ducklake_schema AS s ON s.schema_id = t.schema_id
WHERE t.table_uuid = CAST(:table_uuid AS uuid)
ORDER BY t.begin_snapshot DESC, s.begin_snapshot DESC LIMIT 1"""


def table_of_uuid(table_uuid: str) -> Statement[tuple[Schema, Table] | None]:
    """The table with this identity under its newest name, also if it has been dropped since.

    None also if no row is left of a schema that its schema is in.
    """

    def result(rows: Rows) -> tuple[Schema, Table] | None:
        if not rows or rows[0][-1] is None:
            return None
        return _schema_and_table(rows[0], rows[0][-1])

    return Statement(TABLE_OF_UUID, {"table_uuid": table_uuid}, result)


# Evaluated once for each schema, not for each table: OFFSET keeps PostgreSQL from moving it.
SCHEMA_NAMES = f"""(
  SELECT s.schema_id, s.begin_snapshot, s.schema_name, {PARENTS.format("s")} AS parents
  FROM ducklake_schema AS s OFFSET 0)"""

NAMES_OF_TABLE = f"""
SELECT DISTINCT s.parents, s.schema_name, t.table_name
FROM ducklake_table AS t LEFT JOIN {SCHEMA_NAMES} AS s USING (schema_id)
WHERE t.table_id = :table_id"""


def names_of_table(table_id: int) -> Statement[list[tuple[Namespace, str]] | None]:
    """All names that a table has had, with their namespaces; None: one of them is not known."""

    def result(rows: Rows) -> list[tuple[Namespace, str]] | None:
        if any(part is None for row in rows for part in row):
            return None
        return [((*parents, schema), name) for parents, schema, name in rows]

    return Statement(NAMES_OF_TABLE, {"table_id": table_id}, result)


NAMES_NOW = f"""
SELECT * FROM (
  SELECT DISTINCT ON (t.table_id) 'table', t.table_id, t.schema_id, s.schema_name, n.table_name,
    s.parents
  FROM ducklake_table AS t JOIN ducklake_table AS n USING (table_id)
  JOIN {SCHEMA_NAMES} AS s ON s.schema_id = n.schema_id
  WHERE {VISIBLE.format("t")}
  ORDER BY t.table_id, n.begin_snapshot DESC, s.begin_snapshot DESC) AS tables
UNION ALL
SELECT * FROM (
  SELECT DISTINCT ON (v.view_id) 'view', v.view_id, v.schema_id, s.schema_name, n.view_name,
    s.parents
  FROM ducklake_view AS v JOIN ducklake_view AS n USING (view_id)
  JOIN {SCHEMA_NAMES} AS s ON s.schema_id = n.schema_id
  WHERE {VISIBLE.format("v")}
  ORDER BY v.view_id, n.begin_snapshot DESC, s.begin_snapshot DESC) AS views"""


def names_now(snapshot_id: int) -> Statement[list[NameNow]]:
    """The newest names of the tables and views that exist at the snapshot.

    Those without a name are absent: no row is left of their schema, or of one that it is in.
    """

    def result(rows: Rows) -> list[NameNow]:
        return [
            replace(NameNow(*row[:5]), parents=tuple(row[5])) for row in rows if row[5] is not None
        ]

    return Statement(NAMES_NOW, {"snapshot_id": snapshot_id}, result)


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
    """The tables that the rights on one table do not cover: those with another name."""

    directories: frozenset[str]
    """Their directories, including those of dropped tables that a snapshot still shows."""
    table_ids: frozenset[int]
    """The tables that the rights do cover: the table itself, and tables that were dropped under its
    name, which a reader of the table may read at older snapshots. One that has also had another
    name is not covered: callers may not see all columns of a table with that name."""


def others(lake: Lake, table_id: int) -> Statement[Others]:
    """Find the tables that the rights on one table do not cover."""
    return Statement(TABLES, {}, lambda rows: _others(rows, lake, table_id))


def _others(rows: Rows, lake: Lake, table_id: int) -> Others:
    names: dict[int, tuple[Namespace, str] | None] = {}
    all_names: dict[int, set[tuple[Namespace, str] | None]] = defaultdict(set)
    directories: list[tuple[int, str]] = []
    for id_, parents, schema_name, table_name, *paths in rows:
        # The newest row comes last. A schema without its parents has no name that another could
        # have.
        names[id_] = None if parents is None else ((*parents, schema_name), table_name)
        all_names[id_].add(names[id_])
        place = location((lake.data_path, False), (paths[0], paths[1]), (paths[2], paths[3]))
        directories.append((id_, place))
    name_now = names.get(table_id)
    own = {
        id_
        for id_, name in names.items()
        if name and name == name_now and all_names[id_] == all_names[table_id]
    }
    theirs = frozenset(place for id_, place in directories if id_ not in own)
    return Others(theirs, frozenset(own | {table_id}))


ADDED_DIRECTORIES = f"""
SELECT DISTINCT {DIRECTORY} FROM (
  SELECT table_id, path, path_is_relative FROM ducklake_data_file
  UNION ALL SELECT table_id, path, path_is_relative FROM ducklake_delete_file) AS f
WHERE NOT f.path_is_relative AND NOT f.table_id = ANY(CAST(:table_ids AS bigint[]))"""


def added_directories(table_ids: Iterable[int]) -> Statement[list[str]]:
    """The directories of files that were added to any but these tables."""
    return select(str, ADDED_DIRECTORIES, table_ids=list(table_ids))
