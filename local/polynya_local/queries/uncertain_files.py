"""Finds data files whose number of live rows the catalog does not know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pg8000.native import identifier
from polynya.ducklake.connection.catalog_connection import Statement, constant, select
from polynya.ducklake.faults import DATA_FILE_FAULTS, DELETE_FILE_FAULTS, any_of
from polynya.ducklake.queries.catalog import sql_for_version
from polynya.ducklake.queries.delete_rows import inlined_delete_names
from polynya.ducklake.rows.files import DeleteFile, InlinedDelete
from polynya.ducklake.rows.lifetimes import Inlined, is_visible
from polynya.ducklake.rows.listing import InlinedNames
from polynya.ducklake.rows.objects import Lake

IS_BROKEN_FILE, IS_BROKEN_DELETE = any_of(DATA_FILE_FAULTS), any_of(DELETE_FILE_FAULTS)


@dataclass(frozen=True, slots=True)
class UncertainFiles:
    """Data files whose number of live rows the catalog does not know."""

    begin_snapshot: int
    end_snapshot: int | None
    """The first snapshot at which the catalog knows it again; None: there is none."""
    files: int
    data_file_ids: tuple[int, ...]
    """The ids of the first ones."""

    def is_at(self, snapshot_id: int) -> bool:
        """Whether the live rows are uncertain at a snapshot."""
        return is_visible(self.begin_snapshot, self.end_snapshot, snapshot_id)


# A merged file has one row in the catalog and rows of several snapshots: until partial_max fewer
# rows are visible than it counts. Broken rows of the catalog count nothing, at any snapshot.
MERGED = f"""
SELECT f.table_id, f.data_file_id, f.begin_snapshot,
  CASE WHEN {IS_BROKEN_FILE} THEN f.end_snapshot
    ELSE least(f.end_snapshot, {{data_partial_max}}) END
FROM ducklake_data_file AS f
WHERE f.table_id = ANY(CAST(:table_ids AS bigint[]))
  AND ({{data_partial_max}} > f.begin_snapshot OR {IS_BROKEN_FILE})"""

# The same is true of the delete file of a second delete: DuckLake replaces the row of the first.
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

# The second condition leaves out empty ranges: the least of the ends may be before the begin.
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
        first_id: the first snapshot of interest.
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
    causes = [sql_for_version(lake, cause) for cause in CAUSES]
    for table, (file, position, begin) in deletes:
        columns = {"file": file, "position": position, "begin": begin, "table": table}
        quoted = {key: identifier(name) for key, name in columns.items()}
        causes += [cause.format(**quoted) for cause in (INLINED_TOO, INLINED_TWICE)]
    return "\nUNION ".join(causes)


@dataclass(frozen=True, slots=True)
class StoredDeletes:
    """A delete file, and the snapshot at which it ends."""

    end_snapshot: int | None
    """None: it has not ended."""
    file: DeleteFile

    def visible_at(self, snapshot_id: int) -> bool:
        """Whether a snapshot shows it."""
        return is_visible(self.file.begin_snapshot, self.end_snapshot, snapshot_id)


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

    sql = sql_for_version(lake, STORED_OF)
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
