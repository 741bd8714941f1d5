"""The SELECTs on DuckLake's catalog, as statements whose results are rows in DuckLake's own terms.

`_at` in a name means "as of this snapshot": visible from its begin_snapshot up to, but not
including, its end_snapshot. What differs between catalog versions (0.2 to 1.1-dev1) is a table at
the top of the file: the columns that exist decide, not the name of the version.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pg8000.native import identifier

from ..errors import REMEDY, Misconfigured, Refused
from .changes import MOST_CHARACTERS, changes_of
from .connection.statements import Rows, Statement, known, select
from .faults import (
    DATA_FILE_FAULTS,
    DELETE_FILE_FAULTS,
    INLINED_DELETE_FAULT,
    any_of,
    inlined_fault,
    reason_of,
)
from .records import Record, record
from .rows import (
    Column,
    ColumnStats,
    DataFile,
    DeleteFile,
    FileGroup,
    FileGroups,
    Inlined,
    InlinedDelete,
    InlinedOrigin,
    InlinedTable,
    Lake,
    Lifetime,
    MappedName,
    NameNow,
    PartitionColumn,
    Schema,
    Snapshot,
    SortKey,
    Table,
    Tag,
    UnservableRange,
    View,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The predicate of the DuckLake specification, word for word, so that one can compare them:
# https://ducklake.select/docs/stable/specification/queries
VISIBLE = """:snapshot_id >= {0}.begin_snapshot
  AND (:snapshot_id < {0}.end_snapshot OR {0}.end_snapshot IS NULL)"""

# Partial files: the newest snapshot whose rows the file holds. Until 0.4 it was at the end of
# the text partial_file_info, '14:1|15:2' (snapshot:rows so far).
FRAGMENTS = {
    "data_partial_max": (
        ("ducklake_data_file.partial_max", "f.partial_max"),
        (
            "ducklake_data_file.partial_file_info",
            r"(regexp_match(f.partial_file_info, '(?:^|[|]|partial_max:)(\d+)(?::\d+)?$'))[1]"
            "::bigint",
        ),
    ),
    # Files flushed by DuckDB 1.4 say only 'partial_max:16', and hold the snapshot of each row.
    "partial_file_info": (
        (
            "ducklake_data_file.partial_file_info",
            "CASE WHEN f.partial_file_info NOT LIKE 'partial_max:%' THEN f.partial_file_info END",
        ),
    ),
    # DuckDB 1.5 leaves partial_max out of the deletes that it flushes together with their rows;
    # a file that was written at a flush holds deletes of the snapshots up to the flush.
    "delete_partial_max": (
        (
            "ducklake_delete_file.partial_max",
            "coalesce(d.partial_max, CASE WHEN f.partial_max IS NOT NULL THEN"
            " (SELECT min(s.snapshot_id) FROM ducklake_snapshot AS s"
            " WHERE s.snapshot_id >= d.begin_snapshot AND s.next_file_id > d.delete_file_id) END)",
        ),
    ),
    "mapping_id": (("ducklake_data_file.mapping_id", "f.mapping_id"),),
    # Which snapshots made which schema versions: per table since 0.4, absent in 0.2.
    "schema_versions": (
        (
            "ducklake_schema_versions.table_id",
            "(SELECT begin_snapshot, schema_version FROM ducklake_schema_versions"
            " WHERE table_id = :table_id)",
        ),
        ("ducklake_schema_versions.begin_snapshot", "ducklake_schema_versions"),
        (
            "ducklake_data_file.data_file_id",
            "(SELECT NULL::bigint AS begin_snapshot, NULL::bigint AS schema_version)",
        ),
    ),
    "is_partition": (("ducklake_name_mapping.is_partition", "n.is_partition"),),
    "stats_table": (
        ("ducklake_file_column_stats.column_id", "ducklake_file_column_stats"),
        ("ducklake_file_column_statistics.column_id", "ducklake_file_column_statistics"),
    ),
}


def fragment(lake: Lake, name: str) -> str:
    """The SQL for what `name` is in this catalog's version; NULL where it has no such thing."""
    return next((sql for column, sql in FRAGMENTS[name] if column in lake.layout), "NULL")


# `to_regclass` looks in the schema that `catalog_connection` puts before every table.
CATALOG_SCHEMA = "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('ducklake_metadata'))"

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
    'ducklake_schema_versions', 'ducklake_sort_info', 'ducklake_file_column_stats',
    'ducklake_file_column_statistics')"""


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


SCHEMAS_AT = f"""
SELECT s.schema_id, s.schema_name, s.path, s.path_is_relative
FROM ducklake_schema AS s
WHERE s.schema_name IS NOT NULL AND {VISIBLE.format("s")} ORDER BY s.schema_name"""


def schemas_at(snapshot_id: int) -> Statement[list[Schema]]:
    """The schemas of the lake, by name."""
    return select(Schema, SCHEMAS_AT, snapshot_id=snapshot_id)


# Python and Iceberg have neither infinite times nor all years of PostgreSQL.
IS_TIME = "s.snapshot_time BETWEEN '1970-01-01' AND '9999-12-31'"

VIEWS_AT = f"""
SELECT v.view_id, v.view_uuid::text, v.begin_snapshot, CASE WHEN {IS_TIME} THEN s.snapshot_time END,
  v.view_name, v.dialect, v.sql
FROM ducklake_view AS v LEFT JOIN ducklake_snapshot AS s ON s.snapshot_id = v.begin_snapshot
WHERE v.schema_id = :schema_id AND v.view_name IS NOT NULL AND {VISIBLE.format("v")}
ORDER BY v.view_name"""


def views_at(snapshot_id: int, schema_id: int) -> Statement[list[View]]:
    """The views of a schema, by name."""
    return select(View, VIEWS_AT, snapshot_id=snapshot_id, schema_id=schema_id)


TAGS_AT = f"""
SELECT t.object_id, t.key, t.value FROM ducklake_tag AS t
WHERE t.object_id = :object_id AND t.key IS NOT NULL AND {VISIBLE.format("t")} ORDER BY t.key"""


def tags_at(snapshot_id: int, object_id: int) -> Statement[list[Tag]]:
    """Tags of a table or a view; the key of its comment is `comment`."""
    return select(Tag, TAGS_AT, snapshot_id=snapshot_id, object_id=object_id)


COLUMN_TAGS_AT = f"""
SELECT t.column_id, t.key, t.value FROM ducklake_column_tag AS t
WHERE t.table_id = :table_id AND {VISIBLE.format("t")} ORDER BY t.column_id, t.key"""


def column_tags_at(snapshot_id: int, table_id: int) -> Statement[list[Tag]]:
    """Tags of a table's columns, with the column_id as `object_id`."""
    return select(Tag, COLUMN_TAGS_AT, snapshot_id=snapshot_id, table_id=table_id)


SORT_KEYS_AT = f"""
SELECT e.expression, e.sort_direction, e.null_order
FROM ducklake_sort_info AS i JOIN ducklake_sort_expression AS e USING (sort_id)
WHERE i.table_id = :table_id AND {VISIBLE.format("i")} ORDER BY e.sort_key_index"""


def sort_keys_at(lake: Lake, snapshot_id: int, table_id: int) -> Statement[list[SortKey]]:
    """What a table is SORTED BY; an empty list in catalogs before 0.4."""
    if "ducklake_sort_info.sort_id" not in lake.layout:
        return known([])
    return select(SortKey, SORT_KEYS_AT, snapshot_id=snapshot_id, table_id=table_id)


TABLE_COLUMNS = """t.table_id, t.table_uuid::text,
  (SELECT min(o.begin_snapshot) FROM ducklake_table AS o WHERE o.table_id = t.table_id),
  t.end_snapshot,
  t.schema_id, t.table_name, t.path, t.path_is_relative"""

TABLES_AT = f"""
SELECT {TABLE_COLUMNS}
FROM ducklake_table AS t
WHERE t.schema_id = :schema_id AND t.table_name IS NOT NULL AND {VISIBLE.format("t")}
ORDER BY t.table_name"""


def tables_at(snapshot_id: int, schema_id: int) -> Statement[list[Table]]:
    """The tables of a schema, by name."""
    return select(Table, TABLES_AT, snapshot_id=snapshot_id, schema_id=schema_id)


TABLE_AT = f"""
SELECT s.schema_id, s.schema_name, s.path, s.path_is_relative, {TABLE_COLUMNS}
FROM ducklake_table AS t JOIN ducklake_schema AS s ON s.schema_id = t.schema_id
WHERE s.schema_name = :schema_name AND t.table_name = :table_name
  AND {VISIBLE.format("s")} AND {VISIBLE.format("t")}"""

NEWEST = "(SELECT max(snapshot_id) FROM ducklake_snapshot)"


def table_at(
    snapshot_id: int | None, schema_name: str, table_name: str
) -> Statement[tuple[Schema, Table] | None]:
    """The table of this name; None if there is none.

    Args:
        snapshot_id: None for the newest.

    Raises, when it runs:
        Refused: the catalog has several rows for the table.
    """

    def result(rows: Rows) -> tuple[Schema, Table] | None:
        if len(rows) > 1:
            raise Refused(
                f"the table {schema_name}.{table_name} is not served: ducklake_table or "
                f"ducklake_schema has {len(rows)} rows for it at one snapshot{REMEDY}"
            )
        return _schema_and_table(rows)

    parameters: dict[str, Any] = {"schema_name": schema_name, "table_name": table_name}
    if snapshot_id is None:
        return Statement(TABLE_AT.replace(":snapshot_id", NEWEST), parameters, result)
    return Statement(TABLE_AT, parameters | {"snapshot_id": snapshot_id}, result)


def _schema_and_table(rows: Rows) -> tuple[Schema, Table] | None:
    return (Schema(*rows[0][:4]), Table(*rows[0][4:])) if rows else None


TABLE_OF_UUID = f"""
SELECT s.schema_id, s.schema_name, s.path, s.path_is_relative, {TABLE_COLUMNS}
FROM ducklake_table AS t JOIN ducklake_schema AS s ON s.schema_id = t.schema_id
WHERE t.table_uuid = CAST(:table_uuid AS uuid)
ORDER BY t.begin_snapshot DESC, s.begin_snapshot DESC LIMIT 1"""


def table_of_uuid(table_uuid: str) -> Statement[tuple[Schema, Table] | None]:
    """The table with this identity under its newest name, also if it has been dropped since."""
    return Statement(TABLE_OF_UUID, {"table_uuid": table_uuid}, _schema_and_table)


NAMES_NOW = f"""
SELECT * FROM (
  SELECT DISTINCT ON (t.table_id) 'table', t.table_id, t.schema_id, s.schema_name, n.table_name
  FROM ducklake_table AS t JOIN ducklake_table AS n USING (table_id)
  JOIN ducklake_schema AS s ON s.schema_id = n.schema_id
  WHERE {VISIBLE.format("t")}
  ORDER BY t.table_id, n.begin_snapshot DESC, s.begin_snapshot DESC) AS tables
UNION ALL
SELECT * FROM (
  SELECT DISTINCT ON (v.view_id) 'view', v.view_id, v.schema_id, s.schema_name, n.view_name
  FROM ducklake_view AS v JOIN ducklake_view AS n USING (view_id)
  JOIN ducklake_schema AS s ON s.schema_id = n.schema_id
  WHERE {VISIBLE.format("v")}
  ORDER BY v.view_id, n.begin_snapshot DESC, s.begin_snapshot DESC) AS views"""


def names_now(snapshot_id: int) -> Statement[list[NameNow]]:
    """The newest names of the tables and views that exist at the snapshot."""
    return select(NameNow, NAMES_NOW, snapshot_id=snapshot_id)


COLUMNS = """
SELECT c.column_id, c.begin_snapshot, c.end_snapshot, c.column_name, c.column_type,
  c.initial_default, c.parent_column
FROM ducklake_column AS c
WHERE c.table_id = :table_id AND c.begin_snapshot <= :snapshot_id
ORDER BY c.column_order, c.column_id, c.begin_snapshot"""


def columns(table_id: int, snapshot_id: int) -> Statement[list[Column]]:
    """Every version of every column that began up to `snapshot_id`."""
    return select(Column, COLUMNS, table_id=table_id, snapshot_id=snapshot_id)


# A number is read ten times as fast as a timestamp.
# 0 becomes the time of the snapshot before.
MICROS = f"""CASE WHEN {IS_TIME}
  THEN (extract(epoch FROM s.snapshot_time) * 1000000)::bigint ELSE 0 END"""

# One character more than is accepted: a text that was cut off is refused.
CHANGES_MADE = f"coalesce(left(c.changes_made, {MOST_CHARACTERS + 1}), '')"

# LIKE and the pattern are only a first filter: a name may contain the same characters.
# `changes.changes_of` decides. A creation or a renaming contains the table's name, not its id.
# Changes are filtered before the join: a lake has a million of them, the table a thousand.
SNAPSHOTS = f"""
WITH touched AS (
  SELECT begin_snapshot AS snapshot_id FROM ducklake_table WHERE table_id = :table_id
  UNION
  SELECT snapshot_id FROM ducklake_snapshot_changes
  WHERE snapshot_id >= :since AND changes_made LIKE '%:' || CAST(:table_id AS text) || '%'
    AND changes_made ~ (':' || CAST(:table_id AS text) || '(,|$)'))
SELECT s.snapshot_id, {MICROS}, {CHANGES_MADE},
  EXISTS (SELECT FROM ducklake_table AS t
    WHERE t.table_id = :table_id AND t.begin_snapshot = s.snapshot_id)
FROM touched JOIN ducklake_snapshot AS s USING (snapshot_id)
LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
WHERE s.snapshot_id >= greatest(:since, 1) AND s.snapshot_id <= :snapshot_id
ORDER BY s.snapshot_id DESC LIMIT :most"""


def snapshots(
    table_id: int, snapshot_id: int, since: int, limit: int | None
) -> Statement[tuple[list[Snapshot], int]]:
    """Snapshots from `since` up to `snapshot_id` that touched the table, oldest first.

    Never snapshot 0: it only makes the schema `main`, and PyIceberg takes id 0 for "the newest".

    With a `limit` the newest so many, and one more, which is their parent; beside them the id of
    the oldest, or 0 if the list is complete.
    """
    most = None if limit is None else limit + 1

    def result(rows: Rows) -> tuple[list[Snapshot], int]:
        is_cut = most is not None and len(rows) == most
        found = [_snapshot(*row[:3]) for row in rows if row[3] or changes_of(row[2], table_id)]
        return found[::-1], rows[-1][0] if is_cut else 0

    parameters = {"table_id": table_id, "snapshot_id": snapshot_id, "since": since, "most": most}
    return Statement(SNAPSHOTS, parameters, result)


def _snapshot(snapshot_id: int, micros: int, changes_made: str) -> Snapshot:
    return Snapshot(snapshot_id, EPOCH + timedelta(microseconds=micros), changes_made)


NEXT_SNAPSHOTS = f"""
SELECT DISTINCT n.snapshot_id, n.micros, {CHANGES_MADE}
FROM unnest(CAST(:snapshot_ids AS bigint[])) AS wanted(snapshot_id)
CROSS JOIN LATERAL (
  SELECT s.snapshot_id, {MICROS} AS micros FROM ducklake_snapshot AS s
  WHERE s.snapshot_id >= wanted.snapshot_id AND s.snapshot_id <= :newest
  ORDER BY s.snapshot_id LIMIT 1) AS n
LEFT JOIN ducklake_snapshot_changes AS c ON c.snapshot_id = n.snapshot_id"""


def next_snapshots(snapshot_ids: list[int], newest: int) -> Statement[list[Snapshot]]:
    """For each id the first snapshot from it on that has not expired, up to `newest`."""
    return select(_snapshot, NEXT_SNAPSHOTS, snapshot_ids=snapshot_ids, newest=newest)


# A table that was made at an ALTER has a row of its schema version. One that was made at an INSERT,
# because nothing was inlined before, has none: it is younger than the versions below its own.
INLINED = f"""
SELECT c.relname::text, i.table_name IS NULL, i.schema_version,
  coalesce(v.made_at, v.made_after + 1), coalesce(v.made_at, v.made_until),
  a.names, a.types
FROM pg_class AS c
LEFT JOIN ducklake_inlined_data_tables AS i ON i.table_name = c.relname AND i.table_id = :table_id
CROSS JOIN LATERAL (
  SELECT array_agg(attname::text ORDER BY attnum) AS names,
    array_agg(atttypid::regtype::text ORDER BY attnum) AS types
  FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS a
CROSS JOIN LATERAL (
  SELECT min(begin_snapshot) FILTER (WHERE schema_version = i.schema_version) AS made_at,
    max(begin_snapshot) FILTER (WHERE schema_version < i.schema_version) AS made_after,
    min(begin_snapshot) FILTER (WHERE schema_version > i.schema_version) AS made_until
  FROM {{schema_versions}} AS versions) AS v
WHERE c.relnamespace = {CATALOG_SCHEMA}
  AND (i.table_id IS NOT NULL OR c.relname = :delete_table)
ORDER BY 4, 1"""


def inlined(lake: Lake, table_id: int, begin_snapshot: int) -> Statement[Inlined]:
    """Which PostgreSQL tables hold inlined rows and deletes. Deletes are registered nowhere."""
    sql = INLINED.format(schema_versions=fragment(lake, "schema_versions"))
    parameters = {"table_id": table_id, "delete_table": f"ducklake_inlined_delete_{table_id}"}
    return Statement(sql, parameters, lambda rows: _inlined(rows, begin_snapshot))


def _inlined(rows: Rows, begin_snapshot: int) -> Inlined:
    tables = tuple(
        InlinedTable(
            table_name=name,
            schema_version=version,
            schema_begin=max(begin or 0, begin_snapshot),
            schema_until=end,
            system_columns=tuple(names[:3]),
            user_columns=tuple(names[3:]),
            user_types=tuple(types[3:]),
        )
        for name, is_delete_table, version, begin, end, names, types in rows
        if not is_delete_table
    )
    deletes = [tuple(row[5][:3]) for row in rows if row[1]]
    return Inlined(tables, deletes[0] if deletes else ())


# The schema version of a snapshot never falls, so that the first snapshot with this one, or with a
# later one (a transaction may make several), is the one that made the table.
INLINED_ORIGIN = """
SELECT max(snapshot_id) FILTER (WHERE schema_version < :schema_version),
  min(snapshot_id) FILTER (WHERE schema_version = :schema_version),
  min(snapshot_id) FILTER (WHERE schema_version > :schema_version),
  (SELECT min({begin}) FROM {table}),
  (SELECT CASE WHEN bool_and({end} IS NOT NULL) THEN max({end}) END FROM {table})
FROM ducklake_snapshot"""


def inlined_origin(table: InlinedTable) -> Statement[InlinedOrigin]:
    """What snapshots and rows say about the snapshot that made a table of inlined rows."""
    _, begin, end = map(identifier, table.system_columns)
    sql = INLINED_ORIGIN.format(table=identifier(table.table_name), begin=begin, end=end)
    parameters = {"schema_version": table.schema_version}
    return Statement(sql, parameters, lambda rows: InlinedOrigin(*rows[0]))


UNSERVABLE_DELETES = f"""
SELECT DISTINCT d.begin_snapshot, least(d.end_snapshot, f.end_snapshot),
  {reason_of(DELETE_FILE_FAULTS)}
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND d.begin_snapshot IS NOT NULL AND {any_of(DELETE_FILE_FAULTS)}
ORDER BY 1, 2, 3"""


def unservable_deletes(table_id: int) -> Statement[list[UnservableRange]]:
    """The lifetimes of delete files that make a snapshot impossible to serve as it was, and why."""
    return select(UnservableRange, UNSERVABLE_DELETES, table_id=table_id)


UNSERVABLE_DATA_FILES = f"""
SELECT DISTINCT f.begin_snapshot, f.end_snapshot, {reason_of(DATA_FILE_FAULTS)}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL AND {any_of(DATA_FILE_FAULTS)}
ORDER BY 1, 2, 3"""


def unservable_data_files(lake: Lake, table_id: int) -> Statement[list[UnservableRange]]:
    """The lifetimes of data files that make a snapshot impossible to serve as it was, and why."""
    sql = UNSERVABLE_DATA_FILES.format(data_partial_max=fragment(lake, "data_partial_max"))
    return select(UnservableRange, sql, table_id=table_id)


# A table that is registered and does not exist, or is registered twice: rows are missing or double.
# A table that DuckLake drops at a flush disappears from both places within one transaction.
UNSERVABLE_INLINED_TABLES = f"""
SELECT i.table_name::text, count(c.oid) = 0
FROM ducklake_inlined_data_tables AS i
LEFT JOIN pg_class AS c ON c.relname = i.table_name AND c.relnamespace = {CATALOG_SCHEMA}
WHERE i.table_id = :table_id
GROUP BY i.table_name HAVING count(c.oid) <> 1 ORDER BY 1"""


def unservable_inlined_tables(
    table_id: int, begin_snapshot: int
) -> Statement[list[UnservableRange]]:
    """Why inlined rows cannot be read. Their snapshots are unknown, so all are affected."""

    def row(name: str | None, is_missing: bool) -> UnservableRange:
        return UnservableRange(begin_snapshot, None, inlined_fault(name, is_missing=is_missing))

    return select(row, UNSERVABLE_INLINED_TABLES, table_id=table_id)


# A file of the snapshot that added a column may have been written before the column was added, or
# after: then it has statistics of the column.
OLDER_FILES = """
SELECT c.column_id, bool_or(f.end_snapshot IS NULL), max(f.end_snapshot)
FROM unnest(CAST(:column_ids AS bigint[]), CAST(:borns AS bigint[])) AS c(column_id, born)
JOIN ducklake_data_file AS f ON f.table_id = :table_id
  AND (f.end_snapshot > c.born OR f.end_snapshot IS NULL)
  AND (f.begin_snapshot < c.born OR f.begin_snapshot = c.born AND NOT EXISTS (
    SELECT FROM {stats_table} AS s
    WHERE s.data_file_id = f.data_file_id AND s.column_id = c.column_id))
GROUP BY 1"""


def older_files(
    lake: Lake, table_id: int, borns: dict[int, int]
) -> Statement[dict[int, int | None]]:
    """The end snapshot of the files that were written before a column was added, by column_id.

    None: such files are visible now. A column without such files is absent.

    Args:
        borns: the snapshot that added each column, by column_id.
    """
    if not borns:
        return known({})
    sql = OLDER_FILES.format(stats_table=fragment(lake, "stats_table"))
    ids = list(borns)
    parameters = {"column_ids": ids, "borns": [borns[i] for i in ids], "table_id": table_id}
    return Statement(sql, parameters, _older_files)


def _older_files(rows: Rows) -> dict[int, int | None]:
    return {column_id: None if is_visible else until for column_id, is_visible, until in rows}


DATA_FILE_COLUMNS = """f.data_file_id, f.begin_snapshot, f.end_snapshot, f.path,
  f.path_is_relative, f.record_count, f.file_size_bytes, {data_partial_max}, {partial_file_info},
  f.partition_id, {mapping_id}"""


def _data_file_columns(lake: Lake) -> str:
    names = ("data_partial_max", "partial_file_info", "mapping_id")
    return DATA_FILE_COLUMNS.format(**{name: fragment(lake, name) for name in names})


# Includes files that ended at this snapshot: a manifest lists them as DELETED.
DATA_FILES_AT = """
SELECT {columns}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.data_file_id BETWEEN :first_id AND :last_id
  AND f.begin_snapshot <= :snapshot_id
  AND (f.end_snapshot >= :snapshot_id OR f.end_snapshot IS NULL)
ORDER BY f.data_file_id"""


def data_files_at(
    lake: Lake, table_id: int, snapshot_id: int, first_id: int, last_id: int
) -> Statement[list[DataFile]]:
    """Data files with an id in [first_id, last_id]: visible, or ended at `snapshot_id`."""
    return select(
        DataFile,
        DATA_FILES_AT.format(columns=_data_file_columns(lake)),
        table_id=table_id,
        snapshot_id=snapshot_id,
        first_id=first_id,
        last_id=last_id,
    )


FIRST_ADDED_FILES = f"""
SELECT DISTINCT ON (f.mapping_id) {{columns}}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.mapping_id IS NOT NULL AND f.begin_snapshot <= :snapshot_id
  AND {any_of(DATA_FILE_FAULTS)} IS NOT TRUE
ORDER BY f.mapping_id, f.end_snapshot DESC NULLS FIRST, f.data_file_id"""


def first_added_files(lake: Lake, table_id: int, snapshot_id: int) -> Statement[list[DataFile]]:
    """For each name mapping one of the files that are visible the longest."""
    partial_max = fragment(lake, "data_partial_max")
    columns = _data_file_columns(lake)
    sql = FIRST_ADDED_FILES.format(columns=columns, data_partial_max=partial_max)
    return select(DataFile, sql, table_id=table_id, snapshot_id=snapshot_id)


PARTITION_COLUMNS = """
SELECT i.partition_id, c.partition_key_index, c.column_id, c.transform
FROM ducklake_partition_info AS i JOIN ducklake_partition_column AS c USING (partition_id)
WHERE i.table_id = :table_id ORDER BY i.partition_id, c.partition_key_index"""


def partition_columns(table_id: int) -> Statement[dict[int | None, list[PartitionColumn]]]:
    """The columns of every partitioning the table ever had, by partition_id."""
    return Statement(PARTITION_COLUMNS, {"table_id": table_id}, _partition_columns)


def _partition_columns(rows: Rows) -> dict[int | None, list[PartitionColumn]]:
    columns: dict[int | None, list[PartitionColumn]] = {}
    for partition_id, *row in rows:
        columns.setdefault(partition_id, []).append(PartitionColumn(*row))
    return columns


PARTITION_AT = f"""
SELECT i.partition_id FROM ducklake_partition_info AS i
WHERE i.table_id = :table_id AND {VISIBLE.format("i")} ORDER BY 1 DESC LIMIT 1"""


def partition_at(table_id: int, snapshot_id: int) -> Statement[int | None]:
    """The partition_id of files that are written at the snapshot."""
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id}
    return Statement(PARTITION_AT, parameters, lambda rows: rows[0][0] if rows else None)


# One query for everything that concerns all data files: there may be a million.
FILE_GROUPS = f"""
SELECT f.partition_id, {{mapping_id}}, min(f.begin_snapshot),
  CASE WHEN bool_and(f.end_snapshot IS NOT NULL) THEN max(f.end_snapshot) END,
  coalesce(bool_or({{data_partial_max}} > f.begin_snapshot), false),
  coalesce(bool_or({any_of(DATA_FILE_FAULTS)}), false)
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL
GROUP BY 1, 2 ORDER BY min(f.data_file_id)"""


def file_groups(lake: Lake, table_id: int) -> Statement[FileGroups]:
    """Data files grouped by partitioning and name mapping, in the order of their oldest files."""
    names = ("mapping_id", "data_partial_max")
    sql = FILE_GROUPS.format(**{name: fragment(lake, name) for name in names})
    return Statement(sql, {"table_id": table_id}, _file_groups)


def _file_groups(rows: Rows) -> FileGroups:
    return FileGroups(
        lifetimes={FileGroup(*row[:2]): Lifetime(*row[2:4]) for row in rows},
        has_partial=any(row[4] for row in rows),
        has_faults=any(row[5] for row in rows),
    )


MAPPED_NAMES = """
SELECT n.mapping_id, n.column_id, n.source_name, n.target_field_id, n.parent_column, {is_partition}
FROM ducklake_name_mapping AS n JOIN ducklake_column_mapping AS m USING (mapping_id)
WHERE m.table_id = :table_id ORDER BY n.mapping_id, n.column_id"""


def mapped_names(lake: Lake, table_id: int) -> Statement[list[MappedName]]:
    """The names of columns in the files that were added to the table."""
    sql = MAPPED_NAMES.format(is_partition=fragment(lake, "is_partition"))
    return select(MappedName, sql, table_id=table_id)


PARTITION_VALUES = """
SELECT v.data_file_id, v.partition_key_index, v.partition_value
FROM ducklake_file_partition_value AS v
WHERE v.table_id = :table_id AND v.data_file_id BETWEEN :first_id AND :last_id"""


def partition_values(
    table_id: int, first_id: int, last_id: int
) -> Statement[dict[int, dict[int, str | None]]]:
    """Partition values as text: by data_file_id, by partition_key_index."""
    parameters = {"table_id": table_id, "first_id": first_id, "last_id": last_id}
    return Statement(PARTITION_VALUES, parameters, _partition_values)


def _partition_values(rows: Rows) -> dict[int, dict[int, str | None]]:
    values: dict[int, dict[int, str | None]] = {}
    for data_file_id, key, text in rows:
        values.setdefault(data_file_id, {})[key] = text
    return values


COLUMN_STATS = """
SELECT s.data_file_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count,
  s.min_value, s.max_value, s.contains_nan
FROM {stats_table} AS s
WHERE s.table_id = :table_id AND s.data_file_id BETWEEN :first_id AND :last_id
ORDER BY s.data_file_id, s.column_id"""


def column_stats(
    lake: Lake, table_id: int, first_id: int, last_id: int
) -> Statement[list[ColumnStats]]:
    """The statistics of each column of the data files with an id in [first_id, last_id]."""
    sql = COLUMN_STATS.format(stats_table=fragment(lake, "stats_table"))
    return select(ColumnStats, sql, table_id=table_id, first_id=first_id, last_id=last_id)


# A delete file often keeps end_snapshot NULL after its data file ended: the data file decides.
DELETE_FILES_AT = f"""
SELECT d.delete_file_id, d.data_file_id, d.begin_snapshot, d.path, d.path_is_relative,
  lower(d.format), {{delete_partial_max}}
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND {VISIBLE.format("d")} AND {VISIBLE.format("f")}
  AND d.data_file_id BETWEEN :first_id AND :last_id
ORDER BY d.data_file_id, d.delete_file_id"""


def delete_files_at(
    lake: Lake, table_id: int, snapshot_id: int, first_id: int, last_id: int
) -> Statement[list[DeleteFile]]:
    """Delete files of visible data files with an id in [first_id, last_id].

    There can be several for one data file.
    """
    sql = DELETE_FILES_AT.format(delete_partial_max=fragment(lake, "delete_partial_max"))
    at = {"table_id": table_id, "snapshot_id": snapshot_id}
    return select(DeleteFile, sql, **at, first_id=first_id, last_id=last_id)


INLINED_DELETES_AT = f"""
SELECT DISTINCT d.{{file_id}}, d.{{position}}, d.{{begin}}
FROM {{table}} AS d JOIN ducklake_data_file AS f ON f.data_file_id = d.{{file_id}}
WHERE d.{{begin}} <= :snapshot_id AND {VISIBLE.format("f")}
  AND f.data_file_id BETWEEN :first_id AND :last_id
ORDER BY 1, 2, 3"""


def inlined_deletes_at(
    inlined: Inlined, table_id: int, snapshot_id: int, first_id: int, last_id: int
) -> Statement[list[InlinedDelete]]:
    """Deletes of rows of visible data files, with an id in a range, that PostgreSQL keeps."""
    if not inlined.delete_columns:
        return known([])
    sql = INLINED_DELETES_AT.format(**inlined_delete_names(inlined, table_id))
    span = {"first_id": first_id, "last_id": last_id}
    return select(InlinedDelete, sql, snapshot_id=snapshot_id, **span)


UNSERVABLE_INLINED_DELETES = """
SELECT d.{begin} FROM {table} AS d
WHERE d.{begin} IS NOT NULL AND (d.{file_id} IS NULL OR d.{file_id} < 0)
ORDER BY 1 LIMIT 1"""


def unservable_inlined_deletes(inlined: Inlined, table_id: int) -> Statement[list[UnservableRange]]:
    """The snapshots from which on an inlined delete exists that names no data file."""
    if not inlined.delete_columns:
        return known([])
    sql = UNSERVABLE_INLINED_DELETES.format(**inlined_delete_names(inlined, table_id))
    return select(lambda begin: UnservableRange(begin, None, INLINED_DELETE_FAULT), sql)


def inlined_delete_names(inlined: Inlined, table_id: int) -> dict[str, str]:
    """The table of inlined deletes and its columns, as identifiers."""
    file_id, position, begin = map(identifier, inlined.delete_columns)
    table = inlined_delete_table(table_id)
    return {"table": table, "file_id": file_id, "position": position, "begin": begin}


def inlined_delete_table(table_id: int) -> str:
    name: str = identifier(f"ducklake_inlined_delete_{table_id}")
    return name


# Whole rows as text, because a statement that names each column grows with the number of tables
# times their columns. `(r.*)` and not `r`: a column may be called r.
INLINED_ROWS_AT = """
SELECT {number} AS number, r.{row_id} AS row_id, r.{begin} AS begun, (r.*)::text FROM {table} AS r
WHERE r.{begin} >= :since AND r.{begin} < :until
  AND r.{begin} <= :snapshot_id AND (r.{end} > :snapshot_id OR r.{end} IS NULL)"""


def inlined_rows_at(
    tables: Sequence[InlinedTable], snapshot_id: int, since: int, until: int
) -> Statement[list[tuple[InlinedTable, list[Record]]]]:
    """The rows that are visible and began from `since` on, before `until`, by their tables.

    As text because pg8000 cannot read PostgreSQL's time '24:00:00', and because DuckDB reads its
    own literals better than any other reader.
    """
    if not tables:
        return known([])
    selects = []
    for number, table in enumerate(tables):
        row_id, begin, end = map(identifier, table.system_columns)
        name = identifier(table.table_name)
        selects.append(
            INLINED_ROWS_AT.format(number=number, table=name, row_id=row_id, begin=begin, end=end)
        )
    sql = "\nUNION ALL".join(selects) + "\nORDER BY number, row_id, begun"

    def result(rows: Rows) -> list[tuple[InlinedTable, list[Record]]]:
        found: dict[int, list[Record]] = {}
        for number, *_, text in rows:
            found.setdefault(number, []).append(record(tables[number], text))
        return [(tables[number], records) for number, records in found.items()]

    return Statement(sql, {"snapshot_id": snapshot_id, "since": since, "until": until}, result)
