"""Queries for a table's data files, as reports and the page show them.

`overlap` tells how the bounds of a column overlap over all files, that is, whether pruning works.
Bounds that cannot be read with certainty are left out.

`file_batches` and `early_files` count the visible files by what decides whether a client reads
them correctly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pg8000.native import identifier
from polynya.ducklake.connection.catalog_connection import Rows, Statement, constant, select
from polynya.ducklake.faults import MAX_BYTES, number_or_zero
from polynya.ducklake.queries.catalog import VISIBLE, sql_for_version
from polynya.ducklake.queries.data_files import data_file_columns
from polynya.ducklake.queries.delete_rows import inlined_delete_names
from polynya.ducklake.queries.file_columns import READ, SQL_TYPES
from polynya.ducklake.rows.files import DataFile
from polynya.ducklake.rows.lifetimes import Inlined
from polynya.ducklake.rows.objects import Lake

from .partition_texts import partition_texts

ORDERS = {
    "newest": "f.begin_snapshot DESC, f.data_file_id DESC",
    "size": "f.file_size_bytes DESC, f.data_file_id",
    "smallest": "f.file_size_bytes, f.data_file_id",
    "rows": "f.record_count DESC, f.data_file_id",
}
"""How a page is sorted."""

VISIBLE_THEN = VISIBLE.replace(":snapshot_id", ":other_id").format("f")
CHOICES = {
    "all": VISIBLE.format("f"),
    "added": f"{VISIBLE.format('f')} AND NOT ({VISIBLE_THEN})",
}
"""Which files are listed: all of a snapshot, or those that another snapshot does not have."""


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """A page of data files."""

    files: list[DataFile]
    total: int
    """The files of all pages."""
    rows: int
    bytes: int
    most_rows: int
    most_bytes: int


LISTED_FILES = """
SELECT {columns}, count(*) OVER (), sum(f.record_count) OVER (), sum(f.file_size_bytes) OVER (),
  max(f.record_count) OVER (), max(f.file_size_bytes) OVER ()
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND {choice}
ORDER BY {order} LIMIT :most OFFSET :first"""


def listed_files(
    lake: Lake,
    table_id: int,
    snapshot_id: int,
    order: str,
    first: int,
    most: int,
    *,
    but_of: int | None = None,
) -> Statement[ListedFiles]:
    """A page of the files that are visible at a snapshot.

    Args:
        order: one of `ORDERS`.
        first: how many are on the pages before.
        most: how many are on this page.
        but_of: another snapshot, whose files are left out.
    """
    parameters: dict[str, Any] = {"table_id": table_id, "snapshot_id": snapshot_id}
    if but_of is not None:
        parameters["other_id"] = but_of
    sql = LISTED_FILES.format(
        columns=data_file_columns(lake),
        choice=CHOICES["all" if but_of is None else "added"],
        order=ORDERS[order],
    )
    return Statement(sql, {**parameters, "first": first, "most": most}, _listed_files)


def _listed_files(rows: Rows) -> ListedFiles:
    sums = [int(value or 0) for value in rows[0][-5:]] if rows else [0] * 5
    return ListedFiles([DataFile(*row[:-5]) for row in rows], *sums)


@dataclass(frozen=True, slots=True)
class SizeClass:
    """The files whose size has the same number of binary digits: [2^exponent, 2^(exponent+1))."""

    exponent: int
    files: int
    bytes: int


# The binary logarithm is the number of digits: a logarithm of numeric takes ten times as long.
SIZE_CLASSES = f"""
SELECT length(ltrim(greatest(f.file_size_bytes, 1)::bit(64)::text, '0')) - 1, count(*),
  sum({number_or_zero("f.file_size_bytes", MAX_BYTES)})
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND {VISIBLE.format("f")} GROUP BY 1 ORDER BY 1"""


def size_classes(table_id: int, snapshot_id: int) -> Statement[list[SizeClass]]:
    """How many data files have which size."""

    def row(exponent: int, files: int, size: Any) -> SizeClass:
        return SizeClass(exponent, files, int(size))

    return select(row, SIZE_CLASSES, table_id=table_id, snapshot_id=snapshot_id)


VALUES_OF = """
SELECT v.data_file_id, v.partition_key_index, v.partition_value
FROM ducklake_file_partition_value AS v
WHERE v.table_id = :table_id AND v.data_file_id = ANY(CAST(:ids AS bigint[]))
  AND v.partition_key_index IS NOT NULL"""


def values_of(table_id: int, ids: Sequence[int]) -> Statement[dict[int, dict[int, str | None]]]:
    """The partition values of these files as texts: by data_file_id, by partition_key_index."""
    return Statement(VALUES_OF, {"table_id": table_id, "ids": list(ids)}, _values_by_file)


def _values_by_file(rows: Rows) -> dict[int, dict[int, str | None]]:
    values: dict[int, dict[int, str | None]] = {}
    for data_file_id, key, text in rows:
        values.setdefault(data_file_id, {})[key] = text
    return values


LONGEST_BOUND = 200

STATS_OF = """
SELECT s.data_file_id, s.null_count, left(s.min_value, {longest}), left(s.max_value, {longest}),
  coalesce(NOT {min_is_exact} OR NOT {max_is_exact}, FALSE)
FROM {stats_table} AS s
WHERE s.table_id = :table_id AND s.column_id = :column_id
  AND s.data_file_id = ANY(CAST(:ids AS bigint[]))"""


def stats_of(
    lake: Lake, table_id: int, column_id: int, ids: Sequence[int]
) -> Statement[dict[int, tuple[int | None, str | None, str | None, bool]]]:
    """The null count and the bounds of a column by data_file_id, and whether a bound is inexact."""
    sql = sql_for_version(lake, STATS_OF, longest=LONGEST_BOUND)
    parameters = {"table_id": table_id, "column_id": column_id, "ids": list(ids)}
    return Statement(sql, parameters, lambda rows: {row[0]: (*row[1:],) for row in rows})


DELETED_IN = f"""
SELECT d.data_file_id, coalesce(sum(d.delete_count), 0) FROM ducklake_delete_file AS d
WHERE d.table_id = :table_id AND d.data_file_id = ANY(CAST(:ids AS bigint[]))
  AND {VISIBLE.format("d")} GROUP BY 1"""

DELETED_INLINED_IN = """
UNION ALL SELECT d.{file_id}, count(DISTINCT d.{position}) FROM {table} AS d
WHERE d.{begin} <= :snapshot_id AND d.{file_id} = ANY(CAST(:ids AS bigint[])) GROUP BY 1"""


def deleted_in(
    inlined: Inlined, table_id: int, snapshot_id: int, ids: Sequence[int]
) -> Statement[Mapping[int, int]]:
    """How many rows of these files are deleted at a snapshot, by data_file_id."""
    sql = DELETED_IN
    if inlined.delete_columns:
        sql += DELETED_INLINED_IN.format(**inlined_delete_names(inlined, table_id))

    def result(rows: Rows) -> Mapping[int, int]:
        counts: dict[int, int] = {}
        for data_file_id, number in rows:
            counts[data_file_id] = counts.get(data_file_id, 0) + int(number)
        return counts

    parameters = {"table_id": table_id, "snapshot_id": snapshot_id, "ids": list(ids)}
    return Statement(sql, parameters, result)


@dataclass(frozen=True, slots=True)
class BoundsSpan:
    """One file's bounds of a column, as places in the order of all bounds of the table."""

    data_file_id: int
    first: int
    last: int
    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class BoundsOverlap:
    """How the bounds of a column overlap."""

    spans: list[BoundsSpan]
    """Some of the files, in the order of their lower bounds."""
    files: int
    """The files that have bounds of the column."""
    places: int
    """How many different bounds there are."""
    mean_depth: float
    """How many files may hold the value that is the lower bound of a file, on average."""
    most_depth: int


# Bounds are placed by their rank among all bounds, so that a picture shows them for every type. At
# the same value lower bounds come first: files that share one value overlap.
OVERLAP = f"""
WITH bound AS (
  SELECT s.data_file_id, {{lower}} AS lower, {{upper}} AS upper,
    left(s.min_value, 100) AS lower_text, left(s.max_value, 100) AS upper_text
  FROM {{stats_table}} AS s JOIN ducklake_data_file AS f USING (data_file_id)
  WHERE s.table_id = :table_id AND s.column_id = :column_id AND {VISIBLE.format("f")}),
known AS (
  SELECT * FROM bound WHERE lower IS NOT NULL AND upper IS NOT NULL AND lower <= upper),
endpoint AS (
  SELECT data_file_id, lower AS value, 1 AS delta FROM known
  UNION ALL SELECT data_file_id, upper, -1 FROM known),
placed AS (
  SELECT data_file_id, delta, dense_rank() OVER (ORDER BY value) AS place,
    sum(delta) OVER (ORDER BY value, delta DESC, data_file_id ROWS UNBOUNDED PRECEDING) AS open
  FROM endpoint),
span AS (
  SELECT data_file_id, min(place) AS first, max(place) AS last,
    max(open) FILTER (WHERE delta = 1) AS depth
  FROM placed GROUP BY data_file_id),
numbered AS (
  SELECT data_file_id, first, last, row_number() OVER (ORDER BY first, last, data_file_id) AS n,
    count(*) OVER () AS files, max(last) OVER () AS places, avg(depth) OVER () AS mean_depth,
    max(depth) OVER () AS most_depth
  FROM span)
SELECT n.data_file_id, n.first, n.last, k.lower_text, k.upper_text,
  n.files, n.places, n.mean_depth, n.most_depth
FROM numbered AS n JOIN known AS k USING (data_file_id)
WHERE (n.n - 1) % greatest(1, (n.files + :most - 1) / :most) = 0
ORDER BY n.n"""

NO_OVERLAP = BoundsOverlap([], 0, 0, 0.0, 0)


def overlap(
    lake: Lake, table_id: int, column_id: int, form: str, snapshot_id: int, most: int
) -> Statement[BoundsOverlap]:
    """The overlap of a column's bounds.

    Args:
        form: how the texts are compared, one of `types.names.FORMS`.
        most: how many files are named, evenly chosen.
    """
    lower, upper = _value(form, "s.min_value"), _value(form, "s.max_value")
    sql = sql_for_version(lake, OVERLAP, lower=lower, upper=upper)
    parameters: dict[str, Any] = {"table_id": table_id, "column_id": column_id}
    return Statement(sql, {**parameters, "snapshot_id": snapshot_id, "most": most}, _overlap)


def _value(form: str, text: str) -> str:
    value = READ[form].replace("@", text)
    # The order of bytes: the database may sort texts by the rules of a language.
    return value if form in SQL_TYPES else f'({value}) COLLATE "C"'


def _overlap(rows: Rows) -> BoundsOverlap:
    if not rows:
        return NO_OVERLAP
    files, places, mean, most = rows[0][5:]
    spans = [BoundsSpan(*row[:5]) for row in rows]
    return BoundsOverlap(spans, files, places, float(mean), int(most))


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Visible data files of a table with the same origin."""

    begin_snapshot: int
    """The newest of the given changes that is not after them."""
    partition_id: int | None
    mapping_id: int | None
    """None, except for files that ducklake_add_data_files added."""
    files: int
    bytes: int


FILE_BATCHES = f"""
SELECT (CAST(:edges AS bigint[]))[width_bucket(f.begin_snapshot, CAST(:edges AS bigint[]))],
  f.partition_id, {{mapping_id}}, count(*),
  coalesce(sum({number_or_zero("f.file_size_bytes", MAX_BYTES)}), 0)::bigint
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND {VISIBLE.format("f")}
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""


def file_batches(
    lake: Lake, table_id: int, snapshot_id: int, changes: Iterable[int]
) -> Statement[list[FileBatch]]:
    """The data files that are visible at a snapshot, by when they were written.

    Args:
        changes: snapshots; files between the same two of them are in one batch.
    """
    edges = sorted({0, *changes})
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id, "edges": edges}
    return select(FileBatch, sql_for_version(lake, FILE_BATCHES), **parameters)


EARLY_FILES = f"""
SELECT c.column_id, count(DISTINCT f.data_file_id)
FROM unnest(CAST(:column_ids AS bigint[]), CAST(:borns AS bigint[])) AS c(column_id, born)
JOIN ducklake_data_file AS f ON f.table_id = :table_id AND f.begin_snapshot < c.born
  AND {{mapping_id}} IS NULL AND {VISIBLE.format("f")}
JOIN {{stats_table}} AS s ON s.table_id = :table_id AND s.data_file_id = f.data_file_id
  AND s.column_id = c.column_id
GROUP BY 1"""


def early_files(
    lake: Lake, table_id: int, snapshot_id: int, borns: Mapping[int, int]
) -> Statement[dict[int, int]]:
    """How many visible files are older than a column and nevertheless have it, by column_id.

    A merge has rewritten them since. Files that somebody has added are not counted.

    Args:
        borns: the snapshot that added each column, by column_id.
    """
    if not borns:
        return constant({})
    return Statement(
        sql_for_version(lake, EARLY_FILES),
        {
            "column_ids": list(borns),
            "borns": list(borns.values()),
            "table_id": table_id,
            "snapshot_id": snapshot_id,
        },
        lambda rows: {row[0]: row[1] for row in rows},
    )


@dataclass(frozen=True, slots=True)
class MergeableFiles:
    """Live files of a table with the same columns and partition."""

    layout: int
    """How many times the columns had changed before the files were written."""
    partition_id: int | None
    partition: str
    """Its values as a text."""
    files: int
    bytes: int


# Only files without deletes are merged.
MERGEABLE = """
SELECT width_bucket(f.begin_snapshot, CAST(:layouts AS bigint[])), f.partition_id,
  coalesce(p.partition, ''), count(*), sum(f.file_size_bytes)
FROM ducklake_data_file AS f LEFT JOIN {partitions} AS p USING (data_file_id)
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND f.file_size_bytes < :target
  AND f.begin_snapshot IS NOT NULL
  AND NOT EXISTS (SELECT FROM ducklake_delete_file AS d
    WHERE d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL){inlined}
GROUP BY 1, 2, 3"""

NOT_INLINED = """
  AND NOT EXISTS (SELECT FROM {table} AS i WHERE i.{file_id} = f.data_file_id)"""


def mergeable_files(
    inlined: Inlined, table_id: int, keys: int, target: int, layouts: list[int]
) -> Statement[list[MergeableFiles]]:
    """The live files without deletes that are smaller than a size, by layout and partition.

    Args:
        keys: how many partition keys there are, see `partition_keys`.
        layouts: the snapshots that changed the columns, ascending.
    """
    names = inlined_delete_names(inlined, table_id) if inlined.delete_columns else {}
    but_inlined = NOT_INLINED.format(**names) if names else ""
    sql = MERGEABLE.format(partitions=partition_texts(keys), inlined=but_inlined)

    def row(layout: int, partition_id: int | None, values: str, files: int, size: Any) -> Any:
        return MergeableFiles(layout, partition_id, values, files, int(size))

    return select(row, sql, table_id=table_id, target=target, layouts=layouts)


@dataclass(frozen=True, slots=True)
class FileWithDeletes:
    """A live data file with deleted rows."""

    begin_snapshot: int
    partition_id: int | None
    partition: str
    """Its values as a text."""
    rows: int
    """Deleted ones included."""
    bytes: int
    deleted: int
    delete_files: int
    inlined: int
    """The deleted rows that are recorded in the catalog's database, not in a file."""


SHARES = """
SELECT f.begin_snapshot, f.partition_id, coalesce(p.partition, ''), f.record_count,
  coalesce(f.file_size_bytes, 0),
  least(f.record_count, coalesce(d.rows, 0)::bigint + {inlined_rows}),
  coalesce(d.files, 0), {inlined_rows}
FROM ducklake_data_file AS f
LEFT JOIN (SELECT data_file_id, sum(delete_count) AS rows, count(*) AS files
  FROM ducklake_delete_file WHERE table_id = :table_id AND end_snapshot IS NULL GROUP BY 1) AS d
  USING (data_file_id)
LEFT JOIN {partitions} AS p USING (data_file_id){inlined}
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND f.record_count > 0
  AND f.begin_snapshot IS NOT NULL
  AND (d.rows > 0{or_inlined})"""

INLINED_SHARES = {
    "inlined_rows": "coalesce(i.rows, 0)",
    "inlined": """
LEFT JOIN (SELECT n.{file_id} AS data_file_id, count(DISTINCT n.{position}) AS rows
  FROM {table} AS n GROUP BY 1) AS i USING (data_file_id)""",
    "or_inlined": " OR i.rows > 0",
}


def deleted_shares(inlined: Inlined, table_id: int, keys: int) -> Statement[list[FileWithDeletes]]:
    """The live files with deleted rows, as of the newest snapshot.

    Args:
        keys: how many partition keys there are, see `partition_keys`.
    """
    parts = {"inlined_rows": "0", "inlined": "", "or_inlined": ""}
    if inlined.delete_columns:
        names = inlined_delete_names(inlined, table_id)
        parts = {key: part.format(**names) for key, part in INLINED_SHARES.items()}

    sql = SHARES.format(partitions=partition_texts(keys), **parts)
    return select(FileWithDeletes, sql, table_id=table_id)


HAS_ENDED = "EXISTS (SELECT FROM {table} WHERE {end} IS NOT NULL)"


def has_ended_rows(inlined: Inlined) -> Statement[bool]:
    """Whether rows that were deleted or updated are still inlined."""
    if not inlined.tables:
        return constant(False)
    exists = (
        HAS_ENDED.format(table=identifier(t.table_name), end=identifier(t.system_columns[2]))
        for t in inlined.tables
    )
    return Statement(f"SELECT {' OR '.join(exists)}", {}, lambda rows: bool(rows[0][0]))


@dataclass(frozen=True, slots=True)
class Expirable:
    """What an expiry of snapshots would remove."""

    snapshots: int
    files: int
    bytes: int


# The newest snapshot never expires.
EXPIRABLE = """
WITH kept AS (SELECT min(snapshot_id) AS first_id FROM ducklake_snapshot
  WHERE snapshot_time >= CAST(:before AS timestamptz)
    OR snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)),
gone AS (
  SELECT file_size_bytes FROM ducklake_data_file, kept WHERE end_snapshot <= first_id
  UNION ALL
  SELECT d.file_size_bytes FROM ducklake_delete_file AS d
  JOIN ducklake_data_file AS f USING (data_file_id), kept
  WHERE least(d.end_snapshot, f.end_snapshot) <= first_id)
SELECT (SELECT count(*) FROM ducklake_snapshot, kept WHERE snapshot_id < first_id),
  (SELECT count(*) FROM gone), (SELECT coalesce(sum(file_size_bytes), 0) FROM gone)"""


def expirable(before: datetime) -> Statement[Expirable]:
    """The snapshots before a time, and the files that no later snapshot shows."""

    def result(rows: Rows) -> Expirable:
        return Expirable(*map(int, rows[0]))

    return Statement(EXPIRABLE, {"before": before.isoformat()}, result)


SCHEDULED = """
SELECT count(*) FROM ducklake_files_scheduled_for_deletion
WHERE schedule_start < CAST(:before AS timestamptz)"""


def scheduled_files(before: datetime) -> Statement[int]:
    """How many files have waited for their deletion since before a time."""
    return Statement(SCHEDULED, {"before": before.isoformat()}, lambda rows: int(rows[0][0]))


HAS_FILE_WITHOUT = f"""EXISTS (SELECT FROM ducklake_data_file AS f
    LEFT JOIN {{{{stats_table}}}} AS s ON s.table_id = :table_id AND s.column_id = :column_id
      AND s.data_file_id = f.data_file_id
    WHERE f.table_id = :table_id AND {VISIBLE.format("f")} AND coalesce({{}}, FALSE) IS FALSE
      AND coalesce(s.null_count < f.record_count, TRUE))"""
"""SQL: whether a file with values of a column lacks statistics that prove a condition for all."""

IS_BELOW_2_31 = """CASE WHEN s.max_value ~ '^[0-9]{{1,10}}$'
        THEN s.max_value::bigint < 2147483648 END"""
PERHAPS_LARGE = f"SELECT {HAS_FILE_WITHOUT.format(IS_BELOW_2_31)}"


def may_be_from_2_31(
    lake: Lake, table_id: int, column_id: int, snapshot_id: int
) -> Statement[bool]:
    """Whether files may have 2147483648 or more in a column of unsigned integers."""
    sql = sql_for_version(lake, PERHAPS_LARGE)
    parameters = {"table_id": table_id, "column_id": column_id, "snapshot_id": snapshot_id}
    return Statement(sql, parameters, lambda rows: bool(rows[0][0]))


# A text that begins with such a year; also "-infinity", no bound and no statistics are other texts.
SINCE_1970 = "~ '^(19[7-9][0-9]|[2-9][0-9][0-9][0-9])-'"

PERHAPS_EARLIER = f"""
SELECT {HAS_FILE_WITHOUT.format(f"s.min_value {SINCE_1970}")}
  OR (:inlined AND coalesce((SELECT s.min_value {SINCE_1970} FROM ducklake_table_column_stats AS s
    WHERE s.table_id = :table_id AND s.column_id = :column_id), FALSE) IS FALSE)"""


def may_be_before_1970(
    lake: Lake, table_id: int, column_id: int, snapshot_id: int, *, inlined: bool
) -> Statement[bool]:
    """Whether a column of dates or times may have one before 1970, as far as the bounds say.

    Args:
        inlined: the table has inlined rows, too.
    """
    sql = sql_for_version(lake, PERHAPS_EARLIER)
    parameters: dict[str, Any] = {"table_id": table_id, "column_id": column_id}
    parameters |= {"snapshot_id": snapshot_id, "inlined": inlined}
    return Statement(sql, parameters, lambda rows: bool(rows[0][0]))
