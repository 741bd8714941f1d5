"""Delete files and inlined deletes of a table."""

from collections.abc import Sequence
from typing import Any

from pg8000.native import identifier

from ..connection.catalog_connection import Rows, Statement, constant, select
from ..faults import DELETE_FILE_FAULTS, INLINED_DELETE_FAULT, SHARED_FILE, any_of, reason_of
from ..rows.files import DeleteFile, FileGroups, InlinedDelete
from ..rows.lifetimes import Inlined, UnservableRange
from ..rows.objects import Lake
from .catalog import VISIBLE, sql_for_version, sql_location

# A delete file often keeps end_snapshot NULL after its data file ended: the data file decides.
DELETE_FILES_AT = f"""
SELECT d.delete_file_id, d.data_file_id, d.begin_snapshot, d.path, d.path_is_relative,
  lower(d.format), {{delete_partial_max}}, coalesce(d.delete_count, 0), d.file_size_bytes
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND {VISIBLE.format("d")} AND {VISIBLE.format("f")}
  AND d.data_file_id BETWEEN :first_id AND :last_id AND {{is_selected}}
ORDER BY d.data_file_id, d.delete_file_id"""

IS_SELECTED = "f.data_file_id = ANY(CAST(:data_file_ids AS bigint[]))"
"""Only some of the files in the range."""


def delete_files_at(
    lake: Lake,
    table_id: int,
    snapshot_id: int,
    first_id: int,
    last_id: int,
    data_file_ids: Sequence[int] | None = None,
) -> Statement[list[DeleteFile]]:
    """Delete files of visible data files with an id in [first_id, last_id].

    There can be several for one data file.

    Args:
        data_file_ids: only those of these data files; None: of all in the range.
    """
    is_selected, ids = _selection(data_file_ids)
    sql = sql_for_version(lake, DELETE_FILES_AT, is_selected=is_selected)
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id, **ids}
    return select(DeleteFile, sql, **parameters, first_id=first_id, last_id=last_id)


def _selection(data_file_ids: Sequence[int] | None) -> tuple[str, dict[str, Any]]:
    """A condition on the data file `f`, and its parameters."""
    if data_file_ids is None:
        return "TRUE", {}
    return IS_SELECTED, {"data_file_ids": list(data_file_ids)}


UNSERVABLE_DELETES = f"""
SELECT DISTINCT d.begin_snapshot, least(d.end_snapshot, f.end_snapshot),
  {reason_of(DELETE_FILE_FAULTS)}
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND d.begin_snapshot IS NOT NULL AND {any_of(DELETE_FILE_FAULTS)}
ORDER BY 1, 2, 3"""


def unservable_deletes(table_id: int) -> Statement[list[UnservableRange]]:
    """The lifetimes of delete files whose snapshots cannot be served as they were, and why."""
    return select(UnservableRange, UNSERVABLE_DELETES, table_id=table_id)


# One row for each file and snapshot: a client may delete 100,000 rows at once, and pg8000 takes ten
# times as long for so many rows. The position of broken rows may be NULL.
INLINED_DELETES_AT = f"""
SELECT d.{{file_id}}, d.{{begin}},
  array_to_string(array_agg(DISTINCT d.{{position}}), ',', 'NULL')
FROM {{table}} AS d JOIN ducklake_data_file AS f ON f.data_file_id = d.{{file_id}}
WHERE d.{{begin}} <= :snapshot_id AND {VISIBLE.format("f")}
  AND f.data_file_id BETWEEN :first_id AND :last_id AND {{is_selected}}
GROUP BY 1, 2"""


def inlined_deletes_at(
    inlined: Inlined,
    table_id: int,
    snapshot_id: int,
    first_id: int,
    last_id: int,
    data_file_ids: Sequence[int] | None = None,
) -> Statement[list[InlinedDelete]]:
    """Inlined deletes of rows of the visible data files with an id in [first_id, last_id].

    Args:
        data_file_ids: only those of these data files; None: of all in the range.
    """
    if not inlined.delete_columns:
        return constant([])
    is_selected, ids = _selection(data_file_ids)
    sql = INLINED_DELETES_AT.format(
        **inlined_delete_names(inlined, table_id), is_selected=is_selected
    )
    parameters = {"snapshot_id": snapshot_id, "first_id": first_id, "last_id": last_id, **ids}
    return Statement(sql, parameters, _inlined_deletes)


def _inlined_deletes(rows: Rows) -> list[InlinedDelete]:
    deletes = [
        InlinedDelete(data_file_id, None if text == "NULL" else int(text), begin_snapshot)
        for data_file_id, begin_snapshot, texts in rows
        for text in texts.split(",")
    ]
    return sorted(deletes, key=_order)


def _order(row: InlinedDelete) -> tuple[int, bool, int, int]:
    # None cannot be compared with numbers; broken rows come last.
    return row.data_file_id, row.position is None, row.position or 0, row.begin_snapshot


UNSERVABLE_INLINED_DELETES = """
SELECT d.{begin} FROM {table} AS d
WHERE d.{begin} IS NOT NULL AND (d.{file_id} IS NULL OR d.{file_id} < 0)
ORDER BY 1 LIMIT 1"""


def unservable_inlined_deletes(inlined: Inlined, table_id: int) -> Statement[list[UnservableRange]]:
    """The ranges of snapshots with an inlined delete that names no data file."""
    if not inlined.delete_columns:
        return constant([])
    sql = UNSERVABLE_INLINED_DELETES.format(**inlined_delete_names(inlined, table_id))
    return select(lambda begin: UnservableRange(begin, None, INLINED_DELETE_FAULT), sql)


# Few tables have a file twice, and hashes show that without a sort. An array, because the planner
# expects few files with deletes if it has not counted them yet, and then compares each with all
# others.
SHARED_FILES = """
WITH hidden AS ({hidden}),
twice AS (
  SELECT hash FROM unnest(ARRAY(
    SELECT DISTINCT hashtextextended({location}, 0)
    FROM hidden JOIN ducklake_data_file AS f USING (data_file_id))) AS n(hash)
  JOIN (SELECT hashtextextended({location}, 0) AS hash FROM ducklake_data_file AS f
    WHERE f.table_id = :table_id) AS f USING (hash)
  GROUP BY 1 HAVING count(*) > 1),
file AS (
  SELECT f.data_file_id, f.begin_snapshot, f.end_snapshot, {location} AS location
  FROM ducklake_data_file AS f
  JOIN twice AS t ON t.hash = hashtextextended({location}, 0)
  WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL)
SELECT greatest(h.begin_snapshot, f.begin_snapshot, o.begin_snapshot),
  least(h.end_snapshot, f.end_snapshot, o.end_snapshot), min(f.location)
FROM file AS f JOIN file AS o ON o.location = f.location AND o.data_file_id <> f.data_file_id
JOIN hidden AS h ON h.data_file_id = f.data_file_id AND h.begin_snapshot IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2"""

# Deletes of a file, and its rows of later snapshots, are hidden from all files at its location.
HIDDEN = (
    """
  SELECT d.data_file_id, d.begin_snapshot, d.end_snapshot FROM ducklake_delete_file AS d
  WHERE d.table_id = :table_id""",
    """
  SELECT f.data_file_id, f.begin_snapshot, {data_partial_max} FROM ducklake_data_file AS f
  WHERE f.table_id = :table_id AND {data_partial_max} > f.begin_snapshot""",
)
HIDDEN_INLINED = """
  SELECT d.{file_id}, min(d.{begin}), NULL::bigint FROM {table} AS d GROUP BY 1"""


def unservable_shared_files(
    lake: Lake, inlined: Inlined, table_id: int, directory: str, groups: FileGroups
) -> Statement[list[UnservableRange]]:
    """The snapshots that show two data files with one location, one of them with hidden rows.

    Args:
        directory: of the table.
        groups: all data files of the table.
    """
    # Paths that DuckLake gives occur once; a program may register the same one again.
    location = sql_location("f") if groups.has_added else "f.path"
    hidden = [sql_for_version(lake, sql) for sql in HIDDEN[: 1 + groups.has_partial]]
    if inlined.delete_columns:
        hidden.append(HIDDEN_INLINED.format(**inlined_delete_names(inlined, table_id)))
    sql = SHARED_FILES.format(hidden="\n  UNION ALL".join(hidden), location=location)

    def ranges(rows: Rows) -> list[UnservableRange]:
        return [
            UnservableRange(begin, end, SHARED_FILE.format(location=path))
            for begin, end, path in rows
            if end is None or begin < end
        ]

    return Statement(sql, {"table_id": table_id, "directory": directory}, ranges)


def inlined_delete_names(inlined: Inlined, table_id: int) -> dict[str, str]:
    """The table of inlined deletes and its columns, as identifiers."""
    file_id, position, begin = map(identifier, inlined.delete_columns)
    table = inlined_delete_table(table_id)
    return {"table": table, "file_id": file_id, "position": position, "begin": begin}


def inlined_delete_table(table_id: int) -> str:
    """The name of the table of inlined deletes, as an identifier."""
    name: str = identifier(f"ducklake_inlined_delete_{table_id}")
    return name
