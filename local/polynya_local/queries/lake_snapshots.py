"""The snapshots of a lake, newest first, with their authors and commit messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from polynya.ducklake.connection.catalog_connection import Statement, constant, select
from polynya.ducklake.queries.catalog import EPOCH, MICROS, has_commits, sql_for_version
from polynya.ducklake.queries.snapshot_changes import LONGEST_TEXT, select_changes
from polynya.ducklake.rows.listing import Change
from polynya.ducklake.rows.objects import Lake, quoted

SINCE = "s.snapshot_time >= CAST(:since AS timestamptz)"
OF_AUTHOR = "{author} = :author"
WORDS = "concat_ws(' ', {commit_message}, {author}, c.changes_made)"
OF_TEXT = f"(position(lower(:text) IN lower({WORDS})) > 0 OR c.changes_made ~ :ids)"
OF_KINDS = "c.changes_made ~ :kinds"
# A name is in quotes there, with each quote doubled, so a text in quotes is found in names only.
OF_TABLE = "(c.changes_made ~ :ids OR position(CAST(:created AS text) IN c.changes_made) > 0)"


def changes(
    lake: Lake,
    snapshot_id: int,
    most: int,
    *,
    after: int | None = None,
    since: datetime | None = None,
    author: str | None = None,
    kinds: Sequence[str] = (),
    table: tuple[Sequence[int], Sequence[str]] | None = None,
    search: tuple[str, Sequence[int]] | None = None,
) -> Statement[list[Change]]:
    """The newest snapshots up to this one.

    Args:
        after: only snapshots after this one.
        since: only those that were made at this time or later.
        author: only those of this author.
        kinds: only those that have a change of one of these types.
        table: only those that changed a table: the ids of what had its name, and the last levels of
            the name.
        search: only those that have this text in their message, their author or their changes, or
            that changed an object with one of these ids.
    """
    conditions, parameters = ["s.snapshot_id <= :snapshot_id"], dict[str, Any]()
    if after is not None:
        conditions.append("s.snapshot_id > :after")
        parameters["after"] = after
    if since is not None:
        conditions.append(SINCE)
        parameters["since"] = since.isoformat()
    if author is not None:
        conditions.append(sql_for_version(lake, OF_AUTHOR))
        parameters["author"] = author
    if search is not None:
        text, object_ids = search
        conditions.append(sql_for_version(lake, OF_TEXT))
        parameters |= {"text": text, "ids": _ids_pattern(object_ids)}
    if kinds:
        conditions.append(OF_KINDS)
        parameters["kinds"] = f"(^|,)({'|'.join(kinds)}):"
    if table is not None:
        ids, names = table
        conditions.append(OF_TABLE)
        parameters |= {"ids": _ids_pattern(ids)}
        parameters |= {"created": f"{'.' if len(names) == 1 else ':'}{quoted(*names)}"}
    parameters |= {"snapshot_id": snapshot_id, "most": most}
    return select_changes(lake, " AND ".join(conditions), **parameters)


def _ids_pattern(ids: Sequence[int]) -> str:
    """A pattern for `changes_made` with one of these ids."""
    return f":({'|'.join(map(str, ids)) or 'none'})(,|$)"


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
    """The authors of commits, by name."""
    return select(str, sql_for_version(lake, AUTHORS), most=most)


def changes_at(lake: Lake, snapshot_ids: list[int]) -> Statement[list[Change]]:
    """These snapshots, as far as they have not expired."""
    condition = "s.snapshot_id = ANY(CAST(:snapshot_ids AS bigint[]))"
    return select_changes(lake, condition, snapshot_ids=snapshot_ids, most=len(snapshot_ids))


SPANS = """
SELECT min(snapshot_id), max(snapshot_id), count(*) FROM (
  SELECT snapshot_id, snapshot_id = ANY(CAST(:left_out AS bigint[])) AS is_left_out,
    count(*) FILTER (WHERE snapshot_id = ANY(CAST(:left_out AS bigint[])))
      OVER (ORDER BY snapshot_id) AS place
  FROM ducklake_snapshot WHERE snapshot_id > :since AND snapshot_id <= :until) AS s
WHERE NOT is_left_out GROUP BY place ORDER BY 1"""


def spans(since: int, until: int, left_out: Sequence[int]) -> Statement[list[tuple[int, int, int]]]:
    """The spans of snapshots between those that are left out: the first, the last, and how many.

    They are after `since`, up to `until`, and have not expired.
    """

    def row(first: int, last: int, snapshots: int) -> tuple[int, int, int]:
        return first, last, snapshots

    return select(row, SPANS, since=since, until=until, left_out=list(left_out))


def _place(snapshot: str) -> str:
    """SQL for the number of picked snapshots before one: a file's change shows in the next one."""
    picked = "(SELECT array_agg(snapshot_id ORDER BY snapshot_id) FROM numbered)"
    return f"width_bucket(greatest({snapshot}, 0) - 1, {picked})"


@dataclass(frozen=True, slots=True)
class LakeSize:
    """The live data files of all tables at a snapshot."""

    snapshot_id: int
    time: datetime
    rows: int
    """Deleted ones included."""
    files: int
    bytes: int


# Spaced by their ids, which an index finds: a lake may have millions of snapshots.
GROWTH = f"""
WITH ends AS (
  SELECT min(snapshot_id) AS first, max(snapshot_id) AS last FROM ducklake_snapshot
  WHERE snapshot_id <= :snapshot_id),
picked AS (
  SELECT DISTINCT s.snapshot_id, {MICROS} AS micros
  FROM ends CROSS JOIN generate_series(0, :most) AS step CROSS JOIN LATERAL (
    SELECT p.snapshot_id, p.snapshot_time FROM ducklake_snapshot AS p
    WHERE p.snapshot_id <= CAST(
      ends.first + div((CAST(ends.last AS numeric) - ends.first) * step, :most) AS bigint)
    ORDER BY p.snapshot_id DESC LIMIT 1) AS s),
numbered AS (
  SELECT snapshot_id, micros, row_number() OVER (ORDER BY snapshot_id) - 1 AS place FROM picked),
changed AS (
  SELECT {_place("begin_snapshot")} AS place,
    count(*) AS files, sum(file_size_bytes) AS bytes, sum(record_count) AS rows
  FROM ducklake_data_file GROUP BY 1
  UNION ALL SELECT {_place("end_snapshot")}, -count(*), -sum(file_size_bytes), -sum(record_count)
  FROM ducklake_data_file WHERE end_snapshot IS NOT NULL GROUP BY 1)
SELECT n.snapshot_id, n.micros, sum(sum(c.rows)) OVER w, sum(sum(c.files)) OVER w,
  sum(sum(c.bytes)) OVER w
FROM numbered AS n LEFT JOIN changed AS c USING (place)
GROUP BY 1, 2 WINDOW w AS (ORDER BY n.snapshot_id) ORDER BY 1"""


def growth(snapshot_id: int, most: int) -> Statement[list[LakeSize]]:
    """The size of the lake at up to `most` + 1 snapshots, up to this one, oldest first."""

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


SCHEMA_VERSION = "SELECT schema_version FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"


def schema_version() -> Statement[int | None]:
    """The number that grows when a table is created, renamed, altered or dropped.

    None: the lake has no snapshot.
    """
    return Statement(SCHEMA_VERSION, {}, lambda rows: rows[0][0] if rows else None)
