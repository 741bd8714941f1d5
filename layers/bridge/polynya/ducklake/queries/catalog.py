"""The lake as a whole, its snapshots, what clients committed, and SQL that statements share.

`fragment` is the SQL that differs between the catalog's versions, 0.2 to 1.1. The columns that
exist decide, not the name of the version.
"""

from array import array
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import lt
from typing import Any

from ...runtime.errors import Misconfigured
from ..connection.catalog_connection import Rows, Statement, constant, select
from ..rows.objects import (
    MOST_CHARACTERS,
    NO_CHOSEN_IDS,
    CatalogState,
    ChosenIds,
    ClientSnapshot,
    Lake,
    Layout,
    Snapshot,
    Table,
    changes_of,
    changes_rows_of_others,
)

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
    # a file that was written at a flush holds deletes of the snapshots up to the flush. A flush of
    # 1.1 also writes deletion vectors so; a Puffin file that has a footer may hold several.
    "delete_partial_max": (
        (
            "ducklake_delete_file.partial_max",
            "coalesce(d.partial_max, CASE WHEN f.partial_max IS NOT NULL"
            " OR lower(d.format) = 'puffin' AND d.footer_size > 0 THEN"
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
    "row_group_count": (("ducklake_data_file.row_group_count", "f.row_group_count"),),
    # Whether a bound is a value of the column; NULL: not known, as in catalogs without these
    # columns.
    "min_is_exact": (("ducklake_file_column_stats.min_is_exact", "s.min_is_exact"),),
    "max_is_exact": (("ducklake_file_column_stats.max_is_exact", "s.max_is_exact"),),
    "is_partition": (("ducklake_name_mapping.is_partition", "n.is_partition"),),
    "author": (("ducklake_snapshot_changes.author", "c.author"),),
    "commit_message": (("ducklake_snapshot_changes.commit_message", "c.commit_message"),),
    "stats_table": (
        ("ducklake_file_column_stats.column_id", "ducklake_file_column_stats"),
        ("ducklake_file_column_statistics.column_id", "ducklake_file_column_statistics"),
    ),
}

# The schema that a schema is in: a column of 1.1. The row itself is asked for it, so that one text
# of SQL serves catalogs with and without the column, also while a lake is migrated.
PARENT = "CAST(to_jsonb({0}) ->> 'parent_schema_id' AS bigint)"

# The names of the schemas that a schema is in, by their newest rows, outermost first. It is NULL if
# a row is missing, or a schema is within itself.
PARENTS = f"""
CASE WHEN {PARENT} IS NULL THEN CAST(ARRAY[] AS text[]) ELSE (
  WITH RECURSIVE above AS (
    SELECT ARRAY[{{0}}.schema_id] AS ids, {PARENT} AS parent_id, CAST(ARRAY[] AS text[]) AS names
    UNION ALL
    SELECT a.ids || a.parent_id, p.parent_id, CAST(p.schema_name AS text) || a.names
    FROM above AS a CROSS JOIN LATERAL (
      SELECT o.schema_name, {PARENT.format("o")} AS parent_id FROM ducklake_schema AS o
      WHERE o.schema_id = a.parent_id ORDER BY o.begin_snapshot DESC LIMIT 1) AS p
    WHERE NOT a.parent_id = ANY(a.ids))
  SELECT a.names FROM above AS a WHERE a.parent_id IS NULL) END"""


def sql_location(file: str) -> str:
    """SQL of `paths.location` of a file, by the alias of its row and the parameter `directory`."""
    joined = f"CASE WHEN {file}.path_is_relative THEN CAST(:directory AS text) ELSE '' END"
    joined += f" || {file}.path"
    # A regular expression takes longer than LIKE, and few paths have dots.
    plain = f"regexp_replace({joined}, '(/[.])+/', '/', 'g')"
    return f"CASE WHEN {file}.path LIKE '%./%' THEN {plain} ELSE {joined} END"


def fragment(lake: Lake, name: str) -> str:
    """The SQL of `name` in this catalog's version; NULL if the catalog has no such column."""
    return next((sql for column, sql in FRAGMENTS[name] if column in lake.layout), "NULL")


def sql_for_version(lake: Lake, sql: str, **texts: object) -> str:
    """A statement for this catalog's version: with its fragments, and with other texts."""
    return sql.format(**{name: fragment(lake, name) for name in FRAGMENTS}, **texts)


# `to_regclass` looks in the schema that `catalog_connection` puts before every table.
CATALOG_SCHEMA = "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('ducklake_metadata'))"


# Whoever replaces DuckLake's tables by something else, such as views, replaces these too.
MAIN_TABLES = ("schema", "table", "snapshot", "data_file", "file_partition_value")

# The rows that a transaction sees follow from which transactions have ended, and only one that
# writes takes an id. The ids continue when the server starts again, but an id that was lost in a
# crash is given twice. A standby knows only the transactions that it has replayed. The rows of
# views and foreign tables, and those that row security shows, may change without an id; only tables
# of the access method `heap` certainly have `xmin`.
XMIN, XMAX = (f"txid_snapshot_{end}(txid_current_snapshot())" for end in ("xmin", "xmax"))
IS_PLAIN = f"""NOT EXISTS (SELECT FROM pg_class AS c
    WHERE c.relnamespace = {CATALOG_SCHEMA}
      AND c.relname IN ({", ".join(f"'ducklake_{name}'" for name in MAIN_TABLES)})
      AND (c.relkind <> 'r' OR c.relrowsecurity OR c.relhassubclass
        OR c.relam <> (SELECT a.oid FROM pg_am AS a WHERE a.amname = 'heap')))"""
IS_KNOWN = f"""NOT pg_is_in_recovery()
    AND current_setting('transaction_isolation') = 'repeatable read' AND {IS_PLAIN}"""
# After a crash of one backend the server keeps its start time, but resets its statistics; their
# reset time shows that.
SERVER = "pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time()"
TEXT = f"concat_ws(' ', {SERVER}, {{0}})"
STATE_NOW = TEXT.format("txid_current_snapshot()")
"""The state that a statement sees, on a server that is no standby."""

STATE = f"""CASE WHEN current_setting('transaction_read_only') = 'on' AND {IS_KNOWN}
  THEN {STATE_NOW} END"""

# Only this transaction's rows are added: all transactions with lower ids had ended when it began.
STATE_AFTER = f"""CASE WHEN {IS_KNOWN} AND {XMIN} = {XMAX} AND txid_current() = {XMAX}
  THEN {TEXT.format(f"concat({XMAX} + 1, ':', {XMAX} + 1, ':')")} END"""
"""The state after this transaction's COMMIT, if no other transaction has ended by then."""


def catalog_state(text: str | None, *, is_committed: bool = True) -> CatalogState | None:
    """The state of a text that `STATE`, `STATE_NOW` or `STATE_AFTER` gave."""
    if text is None:
        return None
    server, _, snapshot = text.rpartition(" ")
    xmin, xmax, running = snapshot.split(":")
    ids = frozenset(map(int, running.split(","))) if running else frozenset()
    return CatalogState(server, int(xmin), int(xmax), ids, is_committed)


# The part of a summary that names the sink which has committed: a job of Flink, a query of Spark,
# the offsets of a group of Kafka Connect. `commits/plan/existing_table.py:commit_rows` writes the
# summary.
SINK = (
    r'"(?:flink\.job-id|spark\.sql\.streaming\.queryId)": "(?:[^"\\]|\\.)*"'
    r'|"(?:kafka\.connect\.offsets\.|equality-convert-staging-snapshot)[^"]*"'
)
OPERATOR = r'"flink\.operator-id": "(?:[^"\\]|\\.)*"'
SINK_OF = (
    f"(substring(c.summary FROM '{SINK}') || coalesce(substring(c.summary FROM '{OPERATOR}'), ''))"
)

INDEX_OF_SINKS = "polynya_commits_of_sink"
"""Without it the summaries of all commits would be searched whenever a table is loaded."""

OF_SINK = SINK_OF.replace("c.summary", "summary")
INDEXED_SINKS = f"(table_uuid, {OF_SINK}, snapshot_id) WHERE {OF_SINK} IS NOT NULL"
"""The expressions of the index, as in CREATE INDEX."""

LAKE = f"""
SELECT 'state', {STATE}, NULL
UNION ALL
SELECT 'option', key, value FROM ducklake_metadata
WHERE key IN ('version', 'data_path', 'encrypted')
UNION ALL
SELECT 'snapshot', s.snapshot_id::text, count(*)::text FROM ducklake_snapshot AS s
WHERE s.snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot) GROUP BY 2
UNION ALL
SELECT 'bytes', sum(pg_relation_size(c.oid))::text, NULL FROM pg_class AS c
WHERE c.relnamespace = {CATALOG_SCHEMA} AND c.relname IN ('ducklake_data_file',
  'ducklake_file_column_stats', 'ducklake_file_column_statistics')
UNION ALL
SELECT 'column', c.relname || '.' || a.attname, c.oid || ' ' || a.xmin
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = {CATALOG_SCHEMA} AND a.attnum > 0 AND NOT a.attisdropped
  AND c.relname IN ('ducklake_data_file', 'ducklake_delete_file', 'ducklake_name_mapping',
    'ducklake_schema_versions', 'ducklake_snapshot_changes', 'ducklake_sort_info',
    'ducklake_file_column_stats', 'ducklake_file_column_statistics', 'ducklake_schema',
    'ducklake_table_column_stats', 'ducklake_view_column_tag', 'ducklake_file_partition_value',
    'polynya_commits', '{INDEX_OF_SINKS}', 'polynya_changed_uploads', 'polynya_refused')"""


def lake() -> Statement[Lake]:
    """The lake as a whole: its options, its newest snapshot, and which columns its catalog has.

    Raises, when it runs:
        Misconfigured: DuckLake's tables exist, but have no snapshot.
    """
    return Statement(LAKE, {}, _lake)


def _lake(rows: Rows) -> Lake:
    options = {key: value for kind, key, value in rows if kind == "option"}
    newest = [(int(key), int(value)) for kind, key, value in rows if kind == "snapshot"]
    data_path = options.get("data_path") or ""
    if data_path and not data_path.endswith("/"):
        data_path += "/"  # as DuckLake does
    if not newest:
        raise Misconfigured("the PostgreSQL schema holds DuckLake's tables, but no snapshot")
    return Lake(
        # A lake without a version is refused with a sentence about versions.
        version=options.get("version") or "",
        data_path=data_path,
        encrypted=options.get("encrypted") == "true",
        snapshot_id=newest[0][0],
        layout=Layout(key for kind, key, _ in rows if kind == "column"),
        state=catalog_state(next((key for kind, key, _ in rows if kind == "state"), None)),
        file_bytes=next((int(key) for kind, key, _ in rows if kind == "bytes" and key), 0),
        definitions=hash(frozenset(tuple(row) for row in rows if row[0] == "column")),
        newest_rows=newest[0][1],
    )


def snapshot_exists(snapshot_id: int) -> Statement[bool]:
    """Whether the lake has this snapshot, and it has not expired."""
    sql = "SELECT 1 FROM ducklake_snapshot WHERE snapshot_id = :snapshot_id"
    return Statement(sql, {"snapshot_id": snapshot_id}, bool)


COMMITS = """
SELECT c.snapshot_id, c.position, c.client_snapshot_id,
  CASE WHEN c.snapshot_id >= :since THEN c.operation END,
  CASE WHEN c.snapshot_id >= :since THEN c.summary END
FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid) AND c.snapshot_id <= :snapshot_id
  AND (c.snapshot_id >= :since OR c.snapshot_id = ANY(CAST(:changes AS bigint[])))
ORDER BY c.snapshot_id, c.position"""

# As texts, and not sorted, because a table may have a commit for each second of a year. Mostly the
# rows are in the order in which they were written.
CHOSEN_IDS = """
SELECT string_agg(c.snapshot_id::text, ',') AS ids, string_agg(c.position::text, ',') AS positions,
  string_agg(c.client_snapshot_id::text, ',') AS chosen
FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid) AND c.snapshot_id <= :snapshot_id
  AND c.client_snapshot_id IS NOT NULL"""


def has_commits(lake: Lake) -> bool:
    """Whether the catalog has the table of commits."""
    return "polynya_commits.table_uuid" in lake.layout


def client_snapshots(
    lake: Lake, table_uuid: str, snapshot_id: int, since: int, changes: Iterable[int] = ()
) -> Statement[list[ClientSnapshot]]:
    """The commits to a table from one snapshot up to another, in order.

    Args:
        since: the first snapshot.
        changes: snapshots before it whose commits are read, without operation and summary.
    """
    if not has_commits(lake):
        return constant([])
    parameters = {"table_uuid": table_uuid, "snapshot_id": snapshot_id, "since": since}
    return select(ClientSnapshot, COMMITS, **parameters, changes=sorted(changes))


def chosen_ids(lake: Lake, table_uuid: str, snapshot_id: int) -> Statement[ChosenIds]:
    """The ids that clients have chosen for the snapshots of a table, up to a snapshot."""
    if not has_commits(lake):
        return constant(NO_CHOSEN_IDS)
    parameters = {"table_uuid": table_uuid, "snapshot_id": snapshot_id}
    return Statement(CHOSEN_IDS, parameters, lambda rows: _last_of_each(*map(_numbers, rows[0])))


def _numbers(text: str | None) -> "array[int]":
    return array("q", map(int, text.split(","))) if text else array("q")


def _last_of_each(ids: "array[int]", positions: "array[int]", chosen: "array[int]") -> ChosenIds:
    """The id at the last position of each snapshot."""
    if all(map(lt, ids, ids[1:])):
        return ChosenIds(ids, chosen)
    last = {
        id_: client_id for id_, _, client_id in sorted(zip(ids, positions, chosen, strict=True))
    }
    return ChosenIds(array("q", last), array("q", last.values()))


MOST_SINKS = 1000
"""The most sinks of a table, the newest ones: a job of Flink has a new id at each submission."""

# One step of the index for each sink, however many commits it has made.
SINK_COMMITS = f"""
WITH RECURSIVE sink(name) AS (
  SELECT (SELECT {SINK_OF} FROM {{of_table}} AND {SINK_OF} IS NOT NULL ORDER BY 1 LIMIT 1)
  UNION ALL
  SELECT (SELECT {SINK_OF} FROM {{of_table}} AND {SINK_OF} > sink.name ORDER BY 1 LIMIT 1)
  FROM sink WHERE sink.name IS NOT NULL),
newest AS (
  SELECT DISTINCT n.snapshot_id FROM sink CROSS JOIN LATERAL (
    SELECT c.snapshot_id FROM {{of_table}} AND {SINK_OF} = sink.name
      AND c.snapshot_id <= :snapshot_id
    ORDER BY c.snapshot_id DESC LIMIT 1) AS n
  ORDER BY n.snapshot_id DESC LIMIT {MOST_SINKS})
SELECT c.snapshot_id, c.position, c.client_snapshot_id, c.operation, c.summary
FROM {{of_table}} AND c.snapshot_id IN (SELECT newest.snapshot_id FROM newest)
ORDER BY c.snapshot_id, c.position""".format(
    of_table="polynya_commits AS c WHERE c.table_uuid = CAST(:table_uuid AS uuid)"
)


def has_sinks(lake: Lake) -> bool:
    """Whether the catalog has the index by which the commits of sinks are found."""
    return f"{INDEX_OF_SINKS}.snapshot_id" in lake.layout


def sink_commits(lake: Lake, table_uuid: str, snapshot_id: int) -> Statement[list[ClientSnapshot]]:
    """The newest commit of each sink to a table up to a snapshot, in order."""
    if not has_sinks(lake):
        return constant([])
    return select(ClientSnapshot, SINK_COMMITS, table_uuid=table_uuid, snapshot_id=snapshot_id)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Python and Iceberg have neither infinite times nor all years of PostgreSQL.
IS_TIME = "s.snapshot_time BETWEEN '1970-01-01' AND '9999-12-31'"

# A number is read ten times as fast as a timestamp.
# 0 is earlier than the snapshot before, and becomes its time.
MICROS = f"""CASE WHEN {IS_TIME}
  THEN (extract(epoch FROM s.snapshot_time) * 1000000)::bigint ELSE 0 END"""

# One character more than is accepted, so that a text which was cut is refused.
CHANGES_MADE = f"coalesce(left(c.changes_made, {MOST_CHARACTERS + 1}), '')"

# The snapshot before, and the ids of the files that were made since.
PREVIOUS = "coalesce(p.snapshot_id, s.snapshot_id - 1), p.next_file_id, s.next_file_id"
PREVIOUS_OF = """LEFT JOIN LATERAL (
  SELECT p.snapshot_id, p.next_file_id FROM ducklake_snapshot AS p
  WHERE p.snapshot_id < {0}.snapshot_id ORDER BY p.snapshot_id DESC LIMIT 1) AS p ON TRUE"""

# LIKE and the pattern are only a first filter: a name may contain the same characters.
# `rows.objects.changes_of` decides. A creation or a renaming contains the table's name, not its id.
# Never snapshot 0: it only makes the schema `main`, and PyIceberg takes id 0 for "the newest".
# Each part from its newest on, as far as it is needed: a lake may have millions of snapshots, and
# the index of their ids leads to the newest. A table has none before its own first.
SNAPSHOTS = f"""
WITH touched AS (
  SELECT begin_snapshot AS snapshot_id FROM ducklake_table WHERE table_id = :table_id
  UNION
  (SELECT snapshot_id FROM ducklake_snapshot_changes
  WHERE snapshot_id >= :since AND snapshot_id >= :first AND snapshot_id <= :snapshot_id
    AND changes_made LIKE '%:' || CAST(:table_id AS text) || '%'
    AND changes_made ~ (':' || CAST(:table_id AS text) || '(,|$)')
  ORDER BY snapshot_id DESC LIMIT :most){{or_committed}})
SELECT s.snapshot_id, {MICROS}, {CHANGES_MADE}, {PREVIOUS},
  EXISTS (SELECT FROM ducklake_table AS t
    WHERE t.table_id = :table_id AND t.begin_snapshot = s.snapshot_id), {{is_commit}}
FROM touched JOIN ducklake_snapshot AS s USING (snapshot_id)
LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
{PREVIOUS_OF.format("s")}
WHERE s.snapshot_id >= greatest(:since, 1) AND s.snapshot_id <= :snapshot_id
ORDER BY s.snapshot_id DESC LIMIT :most"""

# An Iceberg commit without any change is a snapshot of the table too.
COMMITS_OF = "polynya_commits AS p WHERE p.table_uuid = CAST(:table_uuid AS uuid)"
WITH_COMMITS = {
    "or_committed": f"""
  UNION
  (SELECT p.snapshot_id FROM {COMMITS_OF} AND p.snapshot_id BETWEEN :since AND :snapshot_id
  ORDER BY p.snapshot_id DESC LIMIT :most)""",
    "is_commit": f"EXISTS (SELECT FROM {COMMITS_OF} AND p.snapshot_id = s.snapshot_id)",
}
WITHOUT_COMMITS = {"or_committed": "", "is_commit": "FALSE"}


def snapshots(
    lake: Lake, table: Table, snapshot_id: int, since: int, limit: int | None
) -> Statement[tuple[list[Snapshot], int]]:
    """Snapshots from `since` up to `snapshot_id` that touched the table, oldest first.

    With a `limit` only the newest ones, and one more, the parent of the oldest. The result also has
    the id of the oldest snapshot that was read, or 0 if the list is complete.
    """
    most = None if limit is None else limit + 1

    def result(rows: Rows) -> tuple[list[Snapshot], int]:
        # Before the table's own first snapshot there is none to leave out.
        is_cut = most is not None and len(rows) == most and rows[-1][0] > table.begin_snapshot
        snapshots = [
            replace(_snapshot(*row[:6]), begins_name=row[6] and row[0] > table.begin_snapshot)
            for row in rows
            if row[6] or row[7] or changes_of(row[2], table.table_id)
        ]
        return snapshots[::-1], rows[-1][0] if is_cut else 0

    parameters: dict[str, Any] = {
        "table_id": table.table_id,
        "snapshot_id": snapshot_id,
        "since": since,
        "first": table.begin_snapshot,
        "most": most,
    }
    if not has_commits(lake):
        return Statement(SNAPSHOTS.format(**WITHOUT_COMMITS), parameters, result)
    parameters |= {"table_uuid": table.table_uuid}
    return Statement(SNAPSHOTS.format(**WITH_COMMITS), parameters, result)


def _snapshot(
    snapshot_id: int,
    micros: int,
    changes_made: str,
    previous_id: int,
    first_file_id: int | None,
    end_file_id: int | None,
) -> Snapshot:
    time = EPOCH + timedelta(microseconds=micros)
    # Without both numbers it is not known which files the snapshot has made.
    ids = (first_file_id or 0, end_file_id or 0) if first_file_id is not None else (0, 0)
    return Snapshot(snapshot_id, time, changes_made, previous_id, *ids)


MOST_OTHERS = 100

OTHERS = f"""
SELECT {CHANGES_MADE} FROM ducklake_snapshot_changes AS c
WHERE c.snapshot_id > :before AND c.snapshot_id <= :newest {{and_not}} LIMIT :most"""
NO_COMMIT = f"""AND NOT EXISTS (
  SELECT FROM {COMMITS_OF} AND p.snapshot_id > :before)"""


def changes_others_only(lake: Lake, table: Table, before: int, newest: int) -> Statement[bool]:
    """Whether the snapshots after `before` only changed rows of other tables; False: not known."""

    def result(rows: Rows) -> bool:
        # Without the row of each snapshot, or in a long text, the table may be changed.
        return len(rows) == newest - before and all(
            changes_rows_of_others(text, table.table_id) for (text,) in rows
        )

    has_table = has_commits(lake)
    parameters = {"before": before, "newest": newest, "most": MOST_OTHERS}
    return Statement(
        OTHERS.format(and_not=NO_COMMIT if has_table else ""),
        parameters | ({"table_uuid": table.table_uuid} if has_table else {}),
        result,
    )


PREVIOUS_SNAPSHOT = """
SELECT coalesce(max(snapshot_id), CAST(:since AS bigint) - 1) FROM ducklake_snapshot
WHERE snapshot_id < :since"""


def previous_snapshot(snapshot_id: int) -> Statement[int]:
    """The newest snapshot before another one that has not expired; one less if there is none."""
    return Statement(PREVIOUS_SNAPSHOT, {"since": snapshot_id}, lambda rows: int(rows[0][0]))


NEXT_SNAPSHOTS = f"""
SELECT DISTINCT s.snapshot_id, s.micros, {CHANGES_MADE}, {PREVIOUS}
FROM unnest(CAST(:snapshot_ids AS bigint[])) AS wanted(snapshot_id)
CROSS JOIN LATERAL (
  SELECT s.snapshot_id, {MICROS} AS micros, s.next_file_id FROM ducklake_snapshot AS s
  WHERE s.snapshot_id >= wanted.snapshot_id AND s.snapshot_id <= :newest
  ORDER BY s.snapshot_id LIMIT 1) AS s
LEFT JOIN ducklake_snapshot_changes AS c ON c.snapshot_id = s.snapshot_id
{PREVIOUS_OF.format("s")}"""


def next_snapshots(snapshot_ids: list[int], newest: int) -> Statement[list[Snapshot]]:
    """For each id the first snapshot from it on that has not expired, up to `newest`."""
    return select(_snapshot, NEXT_SNAPSHOTS, snapshot_ids=snapshot_ids, newest=newest)
