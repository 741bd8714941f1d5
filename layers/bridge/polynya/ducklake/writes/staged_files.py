"""Files of staged snapshots: rows of no table's state, so that DuckLake does not take them for
orphans.

`ducklake_delete_orphaned_files` spares what a row of ducklake_data_file or ducklake_delete_file
names, of a table that the catalog has. So each file has a row of ducklake_delete_file for a data
file that does not exist: no reader joins it to anything, DROP TABLE ends it, and the file goes when
that snapshot has expired.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from pg8000.native import Connection

NO_DATA_FILE = -1
"""The data_file_id of these rows: those of data files begin at 0."""


class StagedFile(NamedTuple):
    """A Parquet file that a client has written, and that is in no state of its table."""

    path: str
    """Relative to the table's directory."""
    file_size_bytes: int


# JSON, because pg8000 writes an array character by character.
ADD = f"""
INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id, path,
  path_is_relative, format, delete_count, file_size_bytes)
SELECT :first_id + row_number() OVER () - 1, :table_id, :snapshot_id, {NO_DATA_FILE}, f.path, true,
  'parquet', 0, f.size
FROM json_to_recordset(CAST(:files AS json)) AS f(path text, size bigint)
WHERE NOT EXISTS (SELECT FROM ducklake_delete_file AS d
  WHERE d.table_id = :table_id AND d.data_file_id = {NO_DATA_FILE} AND d.path = f.path)
AND NOT EXISTS (SELECT FROM ducklake_data_file AS d
  WHERE d.table_id = :table_id AND d.path = f.path AND d.path_is_relative)"""


def add(
    con: Connection, snapshot_id: int, table_id: int, first_id: int, files: Sequence[StagedFile]
) -> None:
    """Add the rows of files that have none yet, of any kind.

    Args:
        first_id: the first of the new ids, one for each file.
    """
    texts = json.dumps([{"path": f.path, "size": f.file_size_bytes} for f in files])
    con.run(ADD, snapshot_id=snapshot_id, table_id=table_id, first_id=first_id, files=texts)


REMOVE = f"""
DELETE FROM ducklake_delete_file WHERE table_id = :table_id AND data_file_id = {NO_DATA_FILE}"""

OF_PATHS = " AND path IN (SELECT json_array_elements_text(CAST(:paths AS json)))"


def remove(con: Connection, table_id: int, paths: Sequence[str] | None) -> None:
    """Remove the rows of files that become the table's own, or are no longer needed.

    Args:
        paths: relative to the table's directory; None: of all files.
    """
    if paths is None:
        con.run(REMOVE, table_id=table_id)
    else:
        con.run(REMOVE + OF_PATHS, table_id=table_id, paths=json.dumps(list(paths)))
