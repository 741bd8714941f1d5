"""What happened in a lake: files whose live rows are uncertain, inlined changes, snapshots.

`uncertain_files` finds data files of which the catalog does not know how many rows are live.

`changed_rows` sums up inlined rows and deletes of several tables at once; `changes` lists the
snapshots of the whole lake, newest first, with what their writers said of them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pg8000.native import Connection, identifier

from ..connection.catalog_connection import Statement, constant, select
from ..faults import DATA_FILE_FAULTS, DELETE_FILE_FAULTS, any_of
from ..rows.files import DataFile, DeleteFile, InlinedDelete
from ..rows.lifetimes import Inlined
from ..rows.listing import (
    Change,
    Changed,
    InlinedNames,
    LakeSize,
    StoredDeletes,
    UncertainFiles,
)
from ..rows.objects import Lake, quoted
from .catalog import CATALOG_SCHEMA, EPOCH, MICROS, has_commits, in_version
from .data_files import data_file_columns
from .deletes import inlined_delete_names

IS_BROKEN_FILE, IS_BROKEN_DELETE = any_of(DATA_FILE_FAULTS), any_of(DELETE_FILE_FAULTS)

# A merged file has one row in the catalog and rows of several snapshots: until partial_max fewer
# rows are visible than it counts. Broken rows of the catalog count nothing, at any snapshot.
MERGED = f"""
SELECT f.table_id, f.data_file_id, f.begin_snapshot,
  CASE WHEN {IS_BROKEN_FILE} THEN f.end_snapshot
    ELSE least(f.end_snapshot, {{data_partial_max}}) END
FROM ducklake_data_file AS f
WHERE f.table_id = ANY(CAST(:table_ids AS bigint[]))
  AND ({{data_partial_max}} > f.begin_snapshot OR {IS_BROKEN_FILE})"""

# So has the delete file of a second delete on a file: DuckLake replaces the row of the first.
DELETED_REPEATEDLY = f"""
SELECT f.table_id, f.data_file_id, d.begin_snapshot,
  CASE WHEN {IS_BROKEN_DELETE} THEN least(d.end_snapshot, f.end_snapshot)
    ELSE least(d.end_snapshot, f.end_snapshot, {{delete_partial_max}}) END
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = ANY(CAST(:table_ids AS bigint[]))
  AND ({{delete_partial_max}} > d.begin_snapshot OR {IS_BROKEN_DELETE})"""

# Several deletes on one file may name the same row, so that their counts do not add up.
TWO_DELETE_FILES = """
SELECT f.table_id, f.data_file_id, greatest(d.begin_snapshot, o.begin_snapshot),
  least(d.end_snapshot, o.end_snapshot, f.end_snapshot)
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
JOIN ducklake_delete_file AS o USING (data_file_id)
WHERE d.table_id = ANY(CAST(:table_ids AS bigint[])) AND o.delete_file_id > d.delete_file_id"""

INLINED_TOO = """
SELECT f.table_id, f.data_file_id, greatest(d.begin_snapshot, i.begin_snapshot),
  least(d.end_snapshot, f.end_snapshot)
FROM (SELECT n.{file} AS data_file_id, min(n.{begin}) AS begin_snapshot FROM {table} AS n
  GROUP BY 1) AS i
JOIN ducklake_delete_file AS d USING (data_file_id)
JOIN ducklake_data_file AS f USING (data_file_id)"""

INLINED_TWICE = """
SELECT f.table_id, f.data_file_id, i.begin_snapshot, f.end_snapshot
FROM (SELECT n.{file} AS data_file_id, min(n.{begin}) AS begin_snapshot FROM {table} AS n
  GROUP BY n.{file}, n.{position} HAVING count(DISTINCT n.{begin}) > 1) AS i
JOIN ducklake_data_file AS f USING (data_file_id)"""

CAUSES = (MERGED, DELETED_REPEATEDLY, TWO_DELETE_FILES)

# The second condition leaves out ranges of no snapshot: least() of the ends may lie before the
# begin.
UNCERTAIN = """
FROM ({causes}) AS u(table_id, data_file_id, begin_snapshot, end_snapshot)
WHERE u.begin_snapshot <= :last_id AND (u.end_snapshot IS NULL OR u.end_snapshot > :first_id)
  AND (u.end_snapshot IS NULL OR u.end_snapshot > u.begin_snapshot)"""

RANGES = """
SELECT begin_snapshot, end_snapshot, count(*),
  array_agg(data_file_id ORDER BY data_file_id) FILTER (WHERE place <= :most)
FROM (SELECT u.*, row_number() OVER (
    PARTITION BY u.begin_snapshot, u.end_snapshot ORDER BY u.data_file_id) AS place
  {uncertain}) AS placed
GROUP BY 1, 2 ORDER BY 1, 2"""


def uncertain_files(
    lake: Lake, table_id: int, inlined: Inlined, first_id: int, last_id: int, most: int
) -> Statement[list[UncertainFiles]]:
    """The files of a table whose live rows the catalog does not know, by the snapshots concerned.

    Args:
        first_id: the first snapshot that is asked about.
        last_id: the last one.
        most: how many files of each range are named.
    """
    table = f"ducklake_inlined_delete_{int(table_id)}"
    deletes = [(table, inlined.delete_columns)] if inlined.delete_columns else []

    def row(begin: int, end: int | None, files: int, ids: list[int]) -> UncertainFiles:
        return UncertainFiles(begin, end, int(files), tuple(ids))

    parameters = {"table_ids": [table_id], "first_id": first_id, "last_id": last_id}
    sql = RANGES.format(uncertain=UNCERTAIN.format(causes=_causes(lake, deletes)))
    return select(row, sql, **parameters, most=most)


TABLES = """
SELECT u.table_id, count(DISTINCT u.data_file_id) {uncertain} GROUP BY 1"""


def uncertain_tables(
    lake: Lake, table_ids: Sequence[int], names: Sequence[InlinedNames], snapshot_id: int
) -> Statement[dict[int, int]]:
    """How many files have live rows at a snapshot that the catalog does not know, by table_id.

    Args:
        names: the tables of inlined rows and deletes of these tables.
    """
    deletes = [(table.table_name, table.system_columns) for table in names if table.is_deletes]
    sql = TABLES.format(uncertain=UNCERTAIN.format(causes=_causes(lake, deletes)))
    ids = {"table_ids": list(table_ids), "first_id": snapshot_id, "last_id": snapshot_id}
    return Statement(sql, ids, lambda rows: {row[0]: int(row[1]) for row in rows})


def _causes(lake: Lake, deletes: Sequence[tuple[str, Sequence[str]]]) -> str:
    causes = [in_version(lake, cause) for cause in CAUSES]
    for table, (file, position, begin) in deletes:
        columns = {"file": file, "position": position, "begin": begin, "table": table}
        quoted = {key: identifier(name) for key, name in columns.items()}
        causes += [cause.format(**quoted) for cause in (INLINED_TOO, INLINED_TWICE)]
    return "\nUNION ".join(causes)


DATA_FILES_OF = """
SELECT {columns} FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.data_file_id = ANY(CAST(:ids AS bigint[]))
ORDER BY f.data_file_id"""


def data_files_of(lake: Lake, table_id: int, ids: Sequence[int]) -> Statement[list[DataFile]]:
    """The data files with these ids."""
    sql = DATA_FILES_OF.format(columns=data_file_columns(lake))
    return select(DataFile, sql, table_id=table_id, ids=list(ids))


STORED_OF = """
SELECT least(d.end_snapshot, f.end_snapshot), d.delete_file_id, d.data_file_id, d.begin_snapshot,
  d.path, d.path_is_relative, lower(d.format), {delete_partial_max}, coalesce(d.delete_count, 0),
  d.file_size_bytes
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND d.data_file_id = ANY(CAST(:ids AS bigint[]))
ORDER BY d.data_file_id, d.delete_file_id"""


def stored_deletes_of(
    lake: Lake, table_id: int, ids: Sequence[int]
) -> Statement[list[StoredDeletes]]:
    """The delete files of these data files, at any snapshot."""

    def row(end_snapshot: int | None, *file: Any) -> StoredDeletes:
        return StoredDeletes(end_snapshot, DeleteFile(*file))

    sql = in_version(lake, STORED_OF)
    return select(row, sql, table_id=table_id, ids=list(ids))


INLINED_OF = """
SELECT DISTINCT n.{file_id}, n.{position}, n.{begin} FROM {table} AS n
WHERE n.{file_id} = ANY(CAST(:ids AS bigint[])) AND n.{begin} IS NOT NULL
ORDER BY 1, 2, 3 LIMIT :most"""


def inlined_deletes_of(
    inlined: Inlined, table_id: int, ids: Sequence[int], most: int
) -> Statement[list[InlinedDelete]]:
    """The deletes of rows of these data files that PostgreSQL keeps, at any snapshot."""
    if not inlined.delete_columns:
        return constant([])
    sql = INLINED_OF.format(**inlined_delete_names(inlined, table_id))
    return select(InlinedDelete, sql, ids=list(ids), most=most)


# The tables of deletes are registered nowhere: they are found by their names.
INLINED_NAMES = f"""
SELECT w.table_id, c.relname::text, i.table_name IS NULL,
  (SELECT array_agg(attname::text ORDER BY attnum) FROM (
    SELECT attname, attnum FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum LIMIT 3) AS a)
FROM unnest(CAST(:table_ids AS bigint[])) AS w(table_id)
CROSS JOIN LATERAL (
  SELECT table_name::text FROM ducklake_inlined_data_tables AS d WHERE d.table_id = w.table_id
  UNION SELECT 'ducklake_inlined_delete_' || w.table_id) AS named(relname)
JOIN pg_class AS c ON c.relname = named.relname AND c.relnamespace = {CATALOG_SCHEMA}
LEFT JOIN ducklake_inlined_data_tables AS i
  ON i.table_id = w.table_id AND i.table_name = c.relname
ORDER BY 1, 2"""


def inlined_names(table_ids: Sequence[int]) -> Statement[list[InlinedNames]]:
    """Which PostgreSQL tables hold the inlined rows and deletes of these tables."""

    def row(table_id: int, name: str, is_deletes: bool, columns: list[str]) -> InlinedNames:
        first, second, third = columns
        return InlinedNames(table_id, name, is_deletes, (first, second, third))

    return select(row, INLINED_NAMES, table_ids=list(table_ids))


# A delete file often keeps end_snapshot NULL after its data file ended: the data file decides.
DELETE_FILES = """
SELECT d.table_id, 0 AS inlined, CASE WHEN l.is_live THEN d.delete_count ELSE 0 END AS deleted,
  d.begin_snapshot AS changed_at
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
CROSS JOIN LATERAL (
  SELECT least(d.end_snapshot, f.end_snapshot) IS NULL
    OR least(d.end_snapshot, f.end_snapshot) > :snapshot_id) AS l(is_live)
WHERE d.table_id = ANY(CAST(:table_ids AS bigint[])) AND d.begin_snapshot <= :snapshot_id"""

COLUMNS = """
SELECT c.table_id, 0, 0,
  CASE WHEN c.end_snapshot <= :snapshot_id THEN c.end_snapshot ELSE c.begin_snapshot END
FROM ducklake_column AS c
WHERE c.table_id = ANY(CAST(:table_ids AS bigint[])) AND c.begin_snapshot <= :snapshot_id"""

INLINED_ROWS = """
SELECT {table_id}, count(*) FILTER (WHERE r.{end} IS NULL OR r.{end} > :snapshot_id), 0,
  max(CASE WHEN r.{end} <= :snapshot_id THEN r.{end} ELSE r.{begin} END)
FROM {table} AS r WHERE r.{begin} <= :snapshot_id"""

INLINED_DELETES = """
SELECT {table_id}, 0, count(*), max(r.{begin})
FROM (SELECT DISTINCT d.{file}, d.{position}, d.{begin} FROM {table} AS d
  JOIN ducklake_data_file AS f ON f.data_file_id = d.{file}
  WHERE d.{begin} <= :snapshot_id
    AND (f.end_snapshot IS NULL OR f.end_snapshot > :snapshot_id)) AS r"""

CHANGED = """
SELECT table_id, sum(inlined), sum(deleted), coalesce(max(changed_at), 0) FROM ({parts}) AS part
GROUP BY table_id"""


def changed_rows(
    con: Connection, table_ids: Sequence[int], names: Sequence[InlinedNames], snapshot_id: int
) -> dict[int, Changed]:
    """Inlined rows, deletes and changed columns of these tables, by table_id.

    Args:
        names: the tables of their inlined rows and deletes.
    """
    parts = [DELETE_FILES, COLUMNS, *map(_inlined_part, names)]
    sql = CHANGED.format(parts="\nUNION ALL".join(parts))
    statement = select(_changed, sql, table_ids=list(table_ids), snapshot_id=snapshot_id)
    return {table.table_id: table for table in statement.run(con)}


def _inlined_part(names: InlinedNames) -> str:
    table = {"table_id": int(names.table_id), "table": identifier(names.table_name)}
    first, second, third = map(identifier, names.system_columns)
    if names.is_deletes:
        return INLINED_DELETES.format(file=first, position=second, begin=third, **table)
    return INLINED_ROWS.format(begin=second, end=third, **table)


def _changed(table_id: int, inlined: int, deleted: int, changed_at: int) -> Changed:
    return Changed(table_id, int(inlined), int(deleted), changed_at)


LONGEST_TEXT = 10_000
"""Characters of a text of the catalog that are read; a person reads less."""

CHANGES = f"""
SELECT s.snapshot_id, {MICROS},
  coalesce(left(c.changes_made, {{longest}}), ''),
  left({{author}}, {LONGEST_TEXT}), left({{commit_message}}, {LONGEST_TEXT})
FROM ducklake_snapshot AS s LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
WHERE {{condition}}
ORDER BY s.snapshot_id {{order}} LIMIT :most"""

MOST_CHANGES = 1_000_000
"""The longest `changes_made` that `changes_after` reads: about 40,000 changes."""


SINCE = "s.snapshot_time >= CAST(:since AS timestamptz)"
OF_AUTHOR = "{author} = :author"
OF_KINDS = "c.changes_made ~ :kinds"
# A name is in quotes there, with each quote doubled, so a text in quotes is found in names only.
OF_TABLE = "(c.changes_made ~ :ids OR position(CAST(:created AS text) IN c.changes_made) > 0)"


def changes(
    lake: Lake,
    snapshot_id: int,
    most: int,
    *,
    since: datetime | None = None,
    author: str | None = None,
    kinds: Sequence[str] = (),
    table: tuple[Sequence[int], Sequence[str]] | None = None,
) -> Statement[list[Change]]:
    """The newest snapshots up to this one.

    Args:
        since: of those alone that were made at this time or later.
        author: of these alone.
        kinds: of those alone that have a change of one of these types.
        table: of those alone that changed it: the ids of what had a name, and the last levels of
            the name.
    """
    conditions, parameters = ["s.snapshot_id <= :snapshot_id"], dict[str, Any]()
    if since is not None:
        conditions.append(SINCE)
        parameters["since"] = since.isoformat()
    if author is not None:
        conditions.append(in_version(lake, OF_AUTHOR))
        parameters["author"] = author
    if kinds:
        conditions.append(OF_KINDS)
        parameters["kinds"] = f"(^|,)({'|'.join(kinds)}):"
    if table is not None:
        ids, names = table
        conditions.append(OF_TABLE)
        parameters |= {"ids": f":({'|'.join(map(str, ids)) or 'none'})(,|$)"}
        parameters |= {"created": f"{'.' if len(names) == 1 else ':'}{quoted(*names)}"}
    sql = _sql(lake, " AND ".join(conditions))
    return select(_change, sql, snapshot_id=snapshot_id, most=most, **parameters)


AT_TIME = """
SELECT s.snapshot_id FROM ducklake_snapshot AS s
WHERE s.snapshot_time <= CAST(:time AS timestamptz)
ORDER BY s.snapshot_time DESC, s.snapshot_id DESC LIMIT 1"""


def snapshot_at_time(time: datetime) -> Statement[int | None]:
    """The newest snapshot at a time, as DuckLake's `AT (TIMESTAMP => …)` finds it; None: none."""
    return Statement(AT_TIME, {"time": time.isoformat()}, lambda rows: rows[0][0] if rows else None)


AUTHORS = f"""
SELECT DISTINCT left({{author}}, {LONGEST_TEXT}) FROM ducklake_snapshot_changes AS c
WHERE {{author}} <> '' ORDER BY 1 LIMIT :most"""


def authors(lake: Lake, most: int) -> Statement[list[str]]:
    """Who has committed, by name."""
    return select(str, in_version(lake, AUTHORS), most=most)


def changes_at(lake: Lake, snapshot_ids: list[int]) -> Statement[list[Change]]:
    """These snapshots, as far as they have not expired."""
    sql = _sql(lake, "s.snapshot_id = ANY(CAST(:snapshot_ids AS bigint[]))")
    return select(_change, sql, snapshot_ids=snapshot_ids, most=len(snapshot_ids))


def changes_after(lake: Lake, since: int, until: int, most: int) -> Statement[list[Change]]:
    """The oldest snapshots after one and up to another, with all that they changed."""
    condition = "s.snapshot_id > :since AND s.snapshot_id <= :until"
    sql = _sql(lake, condition, longest=MOST_CHANGES, order="ASC")
    return select(_change, sql, since=since, until=until, most=most)


SPANS = """
SELECT min(snapshot_id), max(snapshot_id), count(*) FROM (
  SELECT snapshot_id, snapshot_id = ANY(CAST(:left_out AS bigint[])) AS is_left_out,
    count(*) FILTER (WHERE snapshot_id = ANY(CAST(:left_out AS bigint[])))
      OVER (ORDER BY snapshot_id) AS place
  FROM ducklake_snapshot WHERE snapshot_id > :since AND snapshot_id <= :until) AS s
WHERE NOT is_left_out GROUP BY place ORDER BY 1"""


def spans(since: int, until: int, left_out: Sequence[int]) -> Statement[list[tuple[int, int, int]]]:
    """The first and the last snapshot of each span between some that are left out, and how many.

    All are after one snapshot, up to another, and have not expired.
    """

    def row(first: int, last: int, snapshots: int) -> tuple[int, int, int]:
        return first, last, snapshots

    return select(row, SPANS, since=since, until=until, left_out=list(left_out))


def _sql(lake: Lake, condition: str, longest: int = LONGEST_TEXT, order: str = "DESC") -> str:
    return in_version(lake, CHANGES, condition=condition, longest=str(longest), order=order)


def _change(
    snapshot_id: int, micros: int, changes_made: str, author: str | None, message: str | None
) -> Change:
    time = EPOCH + timedelta(microseconds=micros)
    return Change(snapshot_id, time, changes_made, author, message)


GROWTH = f"""
WITH numbered AS (
  SELECT s.snapshot_id, {MICROS} AS micros, row_number() OVER (ORDER BY s.snapshot_id) AS n,
    count(*) OVER () AS total
  FROM ducklake_snapshot AS s WHERE s.snapshot_id <= :snapshot_id),
picked AS (SELECT snapshot_id, micros FROM numbered
  WHERE n = total OR n = 1 OR n % greatest(1, total / :most) = 0),
changed AS (
  SELECT begin_snapshot AS snapshot_id, count(*) AS files, sum(file_size_bytes) AS bytes,
    sum(record_count) AS rows
  FROM ducklake_data_file GROUP BY 1
  UNION ALL SELECT end_snapshot, -count(*), -sum(file_size_bytes), -sum(record_count)
  FROM ducklake_data_file WHERE end_snapshot IS NOT NULL GROUP BY 1
  UNION ALL SELECT snapshot_id, 0, 0, 0 FROM picked),
summed AS (
  SELECT DISTINCT snapshot_id, sum(files) OVER w AS files, sum(bytes) OVER w AS bytes,
    sum(rows) OVER w AS rows FROM changed
  WINDOW w AS (ORDER BY snapshot_id))
SELECT snapshot_id, micros, rows, files, bytes FROM picked JOIN summed USING (snapshot_id)
ORDER BY 1"""


def growth(snapshot_id: int, most: int) -> Statement[list[LakeSize]]:
    """The size of the lake at about so many snapshots, up to this one, oldest first."""

    def row(snapshot_id: int, micros: int, *sums: Any) -> LakeSize:
        rows, files, size = (int(value or 0) for value in sums)
        return LakeSize(snapshot_id, EPOCH + timedelta(microseconds=micros), rows, files, size)

    return select(row, GROWTH, snapshot_id=snapshot_id, most=most)


CLIENTS = """
SELECT DISTINCT ON (c.snapshot_id) c.snapshot_id, coalesce(c.summary, ''), coalesce(c.principal, '')
FROM polynya_commits AS c WHERE c.snapshot_id = ANY(CAST(:snapshot_ids AS bigint[]))
ORDER BY c.snapshot_id, c.position"""


def clients_at(lake: Lake, snapshot_ids: Sequence[int]) -> Statement[dict[int, tuple[str, str]]]:
    """The summary and the principal of those snapshots that Iceberg clients committed."""
    if not has_commits(lake) or not snapshot_ids:
        return constant({})
    parameters = {"snapshot_ids": list(snapshot_ids)}
    return Statement(CLIENTS, parameters, lambda rows: {row[0]: (row[1], row[2]) for row in rows})
