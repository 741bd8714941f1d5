"""Position delete files that clients wrote: each may name several data files.

https://iceberg.apache.org/spec/#position-delete-files
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..positions import of_numbers
from .sandbox import Unreadable, sandbox

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_POSITIONS = 10_000_000
"""Rows of delete files that are read for one commit, deleted before or not. The function `commits`
has memory and time for them (docs/performance.md)."""

# DuckDB reads as many rows as the row groups say.
ROWS = """
SELECT coalesce(sum(rows), 0), coalesce(bool_or(num_rows <> coalesce(rows, 0) OR fewest < 0), false)
FROM parquet_file_metadata($1) LEFT JOIN (
  SELECT file_name, sum(row_group_num_rows) AS rows, min(row_group_num_rows) AS fewest
  FROM parquet_metadata($1) WHERE column_id = 0 GROUP BY file_name) USING (file_name)"""

# Numbers instead of locations: DuckDB needs a third of the memory to find repeated rows.
LOCATIONS = """
CREATE TABLE locations AS SELECT file_path, row_number() OVER (ORDER BY file_path) - 1 AS number
FROM (SELECT DISTINCT file_path FROM read_parquet(?))"""

FAULTY = """
SELECT count(*) FROM read_parquet(?) WHERE file_path IS NULL OR pos IS NULL OR pos::BIGINT < 0"""

DELETED = """
CREATE TABLE deleted AS SELECT DISTINCT number, pos::BIGINT AS pos
FROM read_parquet(?) JOIN locations USING (file_path)"""

RANGES = """
SELECT file_path, number, count(*), max(pos) FROM deleted JOIN locations USING (number)
GROUP BY ALL ORDER BY number"""

# A data file whose first rows are deleted needs no list: a TRUNCATE of DuckDB deletes every row.
SCATTERED = """
SELECT pos FROM deleted WHERE number IN (SELECT unnest(?::BIGINT[])) ORDER BY number, pos"""


class TooManyPositions(ValueError):
    """The files delete more rows than one commit may."""


def client_positions(delete_files: Sequence[bytes]) -> dict[str, Sequence[int]]:
    """The deleted positions, ascending and unique, by the location of their data file.

    Raises:
        Unreadable: a file is no position delete file, or is damaged.
        TooManyPositions: together they have more than one commit may.
        OutOfTime: no time is left in the budget.
    """
    if not delete_files:
        return {}
    with sandbox(reads_file=True) as (con, path):
        names = []
        for number, body in enumerate(delete_files):
            name = path.with_name(f"{number}.parquet")
            name.write_bytes(body)
            names.append(str(name))
        [[count, is_inconsistent]] = con.execute(ROWS, [names]).fetchall()
        if is_inconsistent:
            raise Unreadable("it says another number of rows than its row groups")
        if count > MOST_POSITIONS:
            raise TooManyPositions(f"{MOST_POSITIONS:,}")
        [[faulty]] = con.execute(FAULTY, [names]).fetchall()
        if faulty:
            raise Unreadable("a location or a position is NULL, or a position is negative")
        for statement in (LOCATIONS, DELETED):
            con.execute(statement, [names])
        return _positions(con)


def _positions(con: "DuckDBPyConnection") -> dict[str, Sequence[int]]:
    found: dict[str, Sequence[int]] = {}
    scattered: list[tuple[str, int, int]] = []
    for location, number, count, last in con.execute(RANGES).fetchall():
        found[location] = range(count)
        if last != count - 1:
            scattered.append((location, number, count))
    numbers = [number for _, number, _ in scattered]
    rows = con.execute(SCATTERED, [numbers]).fetchnumpy()["pos"]
    start = 0
    for location, _, count in scattered:
        found[location] = of_numbers(rows[start : start + count])
        start += count
    return found
