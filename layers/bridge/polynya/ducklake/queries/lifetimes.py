"""The lifetimes of a table's rows in the catalog, summed by snapshot and by chunk of data files.

A lifetime is the range of snapshots at which one row is visible: a data file, a delete file or an
inlined row. One query of sums gives what changed at which snapshot, without a row for each file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pg8000.native import identifier, literal

from ..connection.catalog_connection import Statement, select
from ..faults import MAX_BYTES, MAX_ID, MAX_ROWS, number_or_zero
from ..rows.files import AssignedRowIds, ChunkSum, Event, FileGroup
from ..rows.lifetimes import NESTED_ZERO, Inlined, InlinedTable
from ..rows.objects import Lake, Window
from .catalog import sql_for_version
from .delete_rows import inlined_delete_names
from .file_columns import IS_AGAIN
from .new_rows import AND_NEW, NewRows

KINDS = ("data", "delete", "hidden", "inlined", "partial", "partial_delete")
"""`data`: data files; `delete`: delete files and inlined deletes; `hidden`: the deletes of each
data file together, as Iceberg has them; `inlined`: inlined rows; `partial`, `partial_delete`: data
files and delete files that hold rows, or deletes, of later snapshots."""


def _hash(start: str, *numbers: str) -> str:
    """SQL for a hash of whole numbers: a third of the time that hashing a row's text takes."""
    for number in numbers:
        start = f"hashint8extended(coalesce({number}, -1), {start})"
    return start


# Hash functions return NULL for NULL, and a sum ignores it: no argument may be NULL.
PATH_HASH = "hashtextextended(coalesce({0}.path, ''), coalesce({0}.path_is_relative::int, -1))"
DATA_HASH = _hash(
    PATH_HASH.format("f"),
    "f.data_file_id",
    "f.begin_snapshot",
    "f.record_count",
    "f.file_size_bytes",
    "{data_partial_max}",
)
DELETE_HASH = _hash(
    PATH_HASH.format("d"),
    "d.delete_file_id",
    "d.data_file_id",
    "d.begin_snapshot",
    "d.delete_count",
    "{delete_partial_max}",
)

LIFETIME = """lifetime(begin_snapshot, end_snapshot, kind, rows, bytes, hash,
  data_file_id, partition_id, mapping_id)"""
"""The columns that each of the following SELECTs has."""

DATA = f"""
SELECT f.begin_snapshot, f.end_snapshot, 'data', {number_or_zero("f.record_count", MAX_ROWS)},
  {number_or_zero("f.file_size_bytes", MAX_BYTES)}, {DATA_HASH},
  f.data_file_id, f.partition_id, {{mapping_id}}
FROM ducklake_data_file AS f WHERE f.table_id = :table_id{{and_new}}"""

# A delete is visible while its data file is: if a delete is older, which DuckLake never writes, it
# begins with the file.
BEGUN = "CASE WHEN {0} < f.begin_snapshot THEN f.begin_snapshot ELSE {0} END"

DELETE = f"""
SELECT {BEGUN.format("d.begin_snapshot")}, least(d.end_snapshot, f.end_snapshot), 'delete',
  {number_or_zero("d.delete_count", MAX_ROWS)}, {number_or_zero("d.file_size_bytes", MAX_BYTES)},
  {DELETE_HASH},
  f.data_file_id, f.partition_id, {{mapping_id}}
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id"""

# A partial file holds rows, or deletes, of snapshots up to partial_max: until then it is shown
# with another set of deletes at every snapshot.
PARTIAL = f"""
SELECT f.begin_snapshot, least(f.end_snapshot, {{data_partial_max}}), 'partial', 0, 0,
  {_hash("0", "f.data_file_id", "{data_partial_max}")},
  f.data_file_id, f.partition_id, {{mapping_id}}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND {{data_partial_max}} > f.begin_snapshot{{and_new}}"""

PARTIAL_DELETE = f"""
SELECT {BEGUN.format("d.begin_snapshot")},
  least(d.end_snapshot, f.end_snapshot, {{delete_partial_max}}),
  'partial_delete', 0, 0, {_hash("0", "d.delete_file_id", "{delete_partial_max}")},
  f.data_file_id, f.partition_id, {{mapping_id}}
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND {{delete_partial_max}} > d.begin_snapshot"""

AGAIN = f"""
SELECT version, f.end_snapshot, 'again', 0, 0, {DATA_HASH},
  f.data_file_id, f.partition_id, {{mapping_id}}
FROM ducklake_data_file AS f
CROSS JOIN (SELECT CAST(:base_id AS bigint) AS base_id, CAST(:snapshot_id AS bigint) AS version,
  CAST(:first_file_id AS bigint) AS first_file_id, CAST(:end_file_id AS bigint) AS end_file_id,
  CAST(:adds_rows AS boolean) AS adds_rows) AS w
WHERE f.table_id = :table_id AND {IS_AGAIN}"""

INLINED_DELETE = f"""
SELECT {BEGUN.format("d.{begin}")}, f.end_snapshot, 'delete', 1, 0,
  {_hash("1", "d.{file_id}", "d.{position}", "d.{begin}")},
  f.data_file_id, f.partition_id, {{mapping_id}}
FROM (SELECT DISTINCT {{file_id}}, {{position}}, {{begin}} FROM {{table}}) AS d
JOIN ducklake_data_file AS f ON f.data_file_id = d.{{file_id}}"""

# Iceberg has one delete file for each data file: another one from each snapshot on that changes the
# deletes. `rows` are its positions. A delete file of DuckLake often has no end: its data file has.
HIDDEN = f"""
SELECT snapshot_id, next_id, 'hidden', rows, 0, 0, NULL::bigint, NULL::bigint, NULL::bigint
FROM (
  SELECT e.snapshot_id, sum(sum(e.sign)) OVER w AS deletes,
    sum(sum(e.sign * d.rows)) OVER w AS rows,
    lead(e.snapshot_id, 1, f.end_snapshot) OVER w AS next_id
  FROM ({{deletes}}) AS d JOIN ducklake_data_file AS f USING (data_file_id)
  CROSS JOIN LATERAL (VALUES ({BEGUN.format("d.begin_snapshot")}, 1),
    (least(d.end_snapshot, f.end_snapshot), -1)) AS e(snapshot_id, sign)
  WHERE e.snapshot_id IS NOT NULL
    AND coalesce(least(d.end_snapshot, f.end_snapshot) > d.begin_snapshot, true)
  GROUP BY d.data_file_id, e.snapshot_id, f.end_snapshot
  WINDOW w AS (PARTITION BY d.data_file_id ORDER BY e.snapshot_id)) AS changed
WHERE deletes > 0"""

DELETE_FILES = f"""
SELECT d.data_file_id, d.begin_snapshot, d.end_snapshot,
  {number_or_zero("d.delete_count", MAX_ROWS)} AS rows
FROM ducklake_delete_file AS d WHERE d.table_id = :table_id"""

INLINED_DELETES = """
SELECT {file_id}, {begin}, NULL::bigint, count(*)
FROM (SELECT DISTINCT {file_id}, {position}, {begin} FROM {table}) AS d GROUP BY 1, 2"""

INLINED = """
SELECT r.{begin}, r.{end}, 'inlined', 1, 0,
  hashtextextended(ROW({name}, {values})::text, {has_negative_zero}), NULL, NULL, NULL
FROM {table} AS r"""

# A row with -0.0 has another hash, because its file was once written without the sign.
HAS_NEGATIVE_ZERO = {
    **dict.fromkeys(("real", "double precision"), "r.{} = 0 AND r.{}::text = '-0'"),
    "character varying": f"r.{{}} ~ {literal(NESTED_ZERO)}",
}
"""By the type of a column: the same as `rows.lifetimes.has_negative_zero`, in SQL."""

IS_LIFETIME = "(end_snapshot >= begin_snapshot OR end_snapshot IS NULL)"
"""A row that ended before it began was never visible: a delete of a file that was rewritten."""

# Lifetimes that began and ended together are summed first: what is left is as long as the history.
# Each kind by itself, because PostgreSQL uses several cores for one kind, not for their union.
SUMMED_UP = f"""
SELECT {{begin}}, {{end}}, kind, count(*) AS things, sum(rows) AS rows,
  sum(bytes) AS bytes, sum(hash) AS hash,
  sum(hashint8extended(hash, end_snapshot)) FILTER (WHERE end_snapshot IS NOT NULL) AS past
FROM ({{lifetime}}) AS {LIFETIME}
WHERE begin_snapshot <= :snapshot_id AND {IS_LIFETIME} GROUP BY 1, 2, 3"""
BY_SNAPSHOT = {"begin": "begin_snapshot", "end": "end_snapshot"}

# A long history has many data files. All that happened to them before the last begin before :since
# is one event (see `events`); to find this begin in a second pass takes less time than sums by
# millions of snapshots.
LAST_BEGIN = f"""
SELECT max(begin_snapshot) AS snapshot_id FROM ({{lifetime}}) AS {LIFETIME}
WHERE begin_snapshot < :since AND begin_snapshot <= :snapshot_id AND {IS_LIFETIME}"""
SINCE_LAST_BEGIN = {
    name: f"CASE WHEN {column} < (SELECT snapshot_id FROM last_begin) THEN 0 ELSE {column} END"
    f" AS {column}"
    for name, column in BY_SNAPSHOT.items()
}

# The sums of hashes are numeric: they may need more than 64 bits.
EVENTS = """
WITH last_begin AS MATERIALIZED ({last_begin}),
lifetime AS ({lifetimes}),
event AS (
  SELECT begin_snapshot AS snapshot_id, 1 AS sign, kind, things, rows, bytes, hash, 0 AS past
  FROM lifetime
  UNION ALL
  SELECT end_snapshot, -1, kind, things, rows, bytes, hash, past
  FROM lifetime WHERE end_snapshot <= :snapshot_id),
last AS (
  SELECT kind, max(snapshot_id) AS last_id FROM event WHERE snapshot_id < :since GROUP BY kind)
SELECT CASE WHEN snapshot_id < last_id AND kind <> 'inlined' THEN 0 ELSE snapshot_id END,
  kind, sign, sum(things)::bigint, sum(rows)::bigint, sum(bytes)::bigint, sum(hash), sum(past)
FROM event LEFT JOIN last USING (kind)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""


# A flushed file has the lowest of its ids, which an earlier snapshot may have given, and the others
# need not follow it. Ids from 10^18 on are those of rows that one transaction inserted and updated,
# and were never given.
FILE_ROW_IDS = f"""
SELECT f.begin_snapshot, CASE WHEN {{data_partial_max}} IS NULL THEN i.first END AS first,
  i.first + {number_or_zero("f.record_count", MAX_ROWS)} AS past,
  f.row_id_start IS NULL OR {{data_partial_max}} IS NOT NULL AS is_unnamed
FROM ducklake_data_file AS f CROSS JOIN LATERAL (
  SELECT CASE WHEN f.row_id_start BETWEEN 0 AND {MAX_ID} THEN f.row_id_start END AS first) AS i
WHERE f.table_id = :table_id"""

INLINED_ROW_IDS = f"""
SELECT r.{{begin}}, NULL::bigint, max(r.{{row_id}}) + 1, false
FROM {{table}} AS r WHERE r.{{row_id}} BETWEEN 0 AND {MAX_ID} GROUP BY 1"""

ROW_IDS = """
SELECT begin_snapshot, min(first), coalesce(max(past), 0), bool_or(is_unnamed)
FROM ({ids}) AS ids WHERE begin_snapshot IS NOT NULL GROUP BY 1 ORDER BY 1"""


# A cut is at an id whose multiplicative hash (Knuth) is divisible: this depends on the id alone, so
# cuts stay where they are when files are added or removed. After the last coarse cut, where files
# are added, the cuts are finer. Below 2^31 the product stays within 64 bits; its low bits are left
# out, because they depend on the low bits of the id alone.
NUMBER = "(f.data_file_id % 2147483648 * 2654435761 / 65536)"

CUTS = f"""
WITH visible AS (
  SELECT f.data_file_id, {NUMBER} % :coarse = 0 AS is_coarse FROM ducklake_data_file AS f
  WHERE f.table_id = :table_id AND f.begin_snapshot <= :snapshot_id
    AND (f.end_snapshot > :snapshot_id OR f.end_snapshot IS NULL)
    AND ({NUMBER} % :coarse = 0 OR {NUMBER} % :fine = 0))
SELECT data_file_id FROM visible
WHERE is_coarse OR data_file_id > coalesce(
  (SELECT max(data_file_id) FROM visible WHERE is_coarse), 0)
ORDER BY data_file_id"""


def chunk_starts(table_id: int, snapshot_id: int, coarse: int, fine: int) -> Statement[list[int]]:
    """The data_file_ids at which chunks begin, without the first chunk, which begins at 0.

    They depend on the data files that are visible at the snapshot, and on nothing else. Between two
    starts are `coarse` files on average, and `fine` files at the end, where files are added.
    """
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id}
    return select(int, CUTS, **parameters, coarse=coarse, fine=fine)


def spans(starts: Sequence[int], last_id: int) -> list[tuple[int, int]]:
    """The first and the last data_file_id of each chunk.

    Args:
        starts: where the chunks begin, ascending.
        last_id: where the last one ends.
    """
    return list(zip(starts, [*(start - 1 for start in starts[1:]), last_id], strict=True))


# Without OFFSET 0 PostgreSQL expects as many chunks as files, and sorts them on disk.
OF_CHUNKS = f"""
SELECT kind, place, partition_id, mapping_id, end_snapshot, max(begin_snapshot) AS begun,
  count(*) AS things, sum(hash) AS hash
FROM (SELECT *, width_bucket(data_file_id, CAST(:starts AS bigint[])) AS place
  FROM ({{lifetime}}) AS {LIFETIME} WHERE begin_snapshot <= :snapshot_id
    AND {IS_LIFETIME} AND data_file_id BETWEEN :first_id AND :last_id OFFSET 0) AS placed
GROUP BY 1, 2, 3, 4, 5"""

# Changes within the window are listed as changes of its last snapshot.
CHUNKS = """
WITH summed AS (
  SELECT *, CASE WHEN end_snapshot <= :snapshot_id THEN end_snapshot END AS ended
  FROM ({lifetimes}) AS every),
version AS (
  SELECT kind, place, max(greatest(begun, ended)) AS changed_at FROM summed GROUP BY 1, 2),
since AS (
  SELECT kind, place,
    CASE WHEN changed_at > :base_id THEN :snapshot_id ELSE changed_at END AS version,
    CASE WHEN changed_at > :base_id THEN :base_id ELSE changed_at - 1 END AS base_id
  FROM version)
SELECT kind, place, version, partition_id, mapping_id,
  coalesce(sum(things) FILTER (WHERE ended IS NULL), 0)::bigint,
  coalesce(sum(hash) FILTER (WHERE ended IS NULL), 0),
  coalesce(sum(hash) FILTER (WHERE ended > base_id), 0)
FROM summed JOIN since USING (kind, place)
WHERE ended IS NULL OR ended > base_id
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 4, 5"""


@dataclass(frozen=True, slots=True)
class TableLifetimes:
    """The lifetimes of the files and inlined rows of one table."""

    lake: Lake
    table_id: int
    inlined: Inlined
    has_partial: bool
    """Some data files hold rows of snapshots later than their own."""

    def events(
        self, snapshot_id: int, since: int, new: NewRows | None = None
    ) -> Statement[list[Event]]:
        """The table's history up to `snapshot_id` as sums, in one aggregate query.

        Events before `since` are summed into one at snapshot 0, except the last event of each kind.
        Inlined rows keep all events, because their files depend on earlier ones too.

        Args:
            new: only the events of these data files; None: those of all.
        """
        data_files, *lifetimes = self._file_lifetimes(new=new)
        lifetimes += [self._delete_lifetimes(), *_inlined_row_lifetimes(self.inlined)]
        sums = [
            SUMMED_UP.format(lifetime=data_files, **SINCE_LAST_BEGIN),
            *(SUMMED_UP.format(lifetime=lifetime, **BY_SNAPSHOT) for lifetime in lifetimes),
        ]
        sql = EVENTS.format(
            last_begin=LAST_BEGIN.format(lifetime=data_files), lifetimes=_union(sums)
        )
        parameters = {"table_id": self.table_id, "snapshot_id": snapshot_id, "since": since}
        return select(Event, sql, **parameters, **(new.parameters if new else {}))

    def chunks(self, window: Window, starts: list[int], last_id: int) -> Statement[list[ChunkSum]]:
        """The visible rows at a snapshot, by the chunk of their data file, in one aggregate query.

        Args:
            window: of the snapshot.
            starts: the data_file_ids at which the chunks begin, ascending.
            last_id: where the last one ends.
        """
        spans_of_chunks = spans(starts, last_id)

        def chunk_sum(
            kind: str,
            place: int,
            version: int,
            partition_id: int | None,
            mapping_id: int | None,
            files: int,
            visible: Any,
            ended: Any,
        ) -> ChunkSum:
            return ChunkSum(
                kind=kind,
                first_id=spans_of_chunks[place - 1][0],
                last_id=spans_of_chunks[place - 1][1],
                version=version,
                group=FileGroup(partition_id, mapping_id),
                files=files,
                hash=int(visible),
                ended=int(ended),
            )

        return select(
            chunk_sum,
            CHUNKS.format(
                lifetimes=_union(
                    OF_CHUNKS.format(lifetime=lifetime) for lifetime in self._file_lifetimes(AGAIN)
                )
            ),
            table_id=self.table_id,
            snapshot_id=window.snapshot_id,
            base_id=window.base_id,
            first_file_id=window.first_file_id,
            end_file_id=window.end_file_id,
            adds_rows=window.adds_rows,
            starts=starts,
            first_id=starts[0],
            last_id=last_id,
        )

    def row_ids(self) -> Statement[list[AssignedRowIds]]:
        """The row ids of all snapshots, also of later ones."""
        ids = [sql_for_version(self.lake, FILE_ROW_IDS)]
        for table in self.inlined.tables:
            row_id, begin, _ = map(identifier, table.system_columns)
            name = identifier(table.table_name)
            ids.append(INLINED_ROW_IDS.format(table=name, row_id=row_id, begin=begin))
        sql = ROW_IDS.format(ids=_union(ids))
        return select(AssignedRowIds, sql, table_id=self.table_id)

    def _file_lifetimes(self, *more: str, new: NewRows | None = None) -> list[str]:
        """SELECTs of the lifetimes of data files and of the deletes on them, and `more` of them."""
        partial = [PARTIAL] if self.has_partial or new else []
        kinds = [DATA, DELETE, PARTIAL_DELETE, *partial, *more]
        and_new = AND_NEW.format("f") if new else ""
        lifetimes = [sql_for_version(self.lake, sql, and_new=and_new) for sql in kinds]
        if self.inlined.delete_columns:
            names = inlined_delete_names(self.inlined, self.table_id)
            lifetimes.append(sql_for_version(self.lake, INLINED_DELETE, **names))
        return lifetimes

    def _delete_lifetimes(self) -> str:
        deletes = [DELETE_FILES]
        if self.inlined.delete_columns:
            deletes.append(
                INLINED_DELETES.format(**inlined_delete_names(self.inlined, self.table_id))
            )
        return HIDDEN.format(deletes=_union(deletes))


def _union(selects: Iterable[str]) -> str:
    return "\nUNION ALL".join(selects)


def _inlined_row_lifetimes(inlined: Inlined) -> list[str]:
    lifetimes = []
    for table in inlined.tables:
        row_id, begin, end = map(identifier, table.system_columns)
        # end_snapshot is set later, and must not change the hash of a row that was visible before.
        user_columns = map(identifier, table.user_columns)
        lifetimes.append(
            INLINED.format(
                table=identifier(table.table_name),
                begin=begin,
                end=end,
                values=", ".join(f"r.{name}" for name in (row_id, begin, *user_columns)),
                name=literal(table.table_name),
                has_negative_zero=_has_negative_zero(table),
            )
        )
    return lifetimes


def _has_negative_zero(table: InlinedTable) -> str:
    """SQL: 1 if a row has -0.0, otherwise 0."""
    columns = zip(table.user_columns, table.user_types, strict=True)
    tests = [
        HAS_NEGATIVE_ZERO[type_].replace("{}", identifier(name))
        for name, type_ in columns
        if type_ in HAS_NEGATIVE_ZERO
    ]
    return f"coalesce({' OR '.join(tests)}, false)::int" if tests else "0"
