"""Position delete files that clients wrote: each may name several data files.

https://iceberg.apache.org/spec/#position-delete-files
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .sandbox import Unreadable, sandbox

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_POSITIONS = 1_000_000
"""Positions of one commit that become rows in PostgreSQL: 3 s to insert a million, and then 1.3 s
for each native query of the table until ducklake_flush_inlined_data has written them to a file."""

MOST_ROWS = 10_000_000
"""Rows of delete files that are read for one commit. Those that delete a data file from its first
row up to some row need no memory here: a TRUNCATE of DuckDB deletes every row."""

ROWS = "SELECT coalesce(sum(num_rows), 0) FROM parquet_file_metadata(?)"

DELETED = """
CREATE TABLE deleted AS SELECT DISTINCT file_path, pos::BIGINT AS pos FROM read_parquet(?)"""

RANGES = """
SELECT file_path, count(pos), count(*), min(pos), max(pos) FROM deleted
GROUP BY file_path ORDER BY file_path"""

POSITIONS = """
SELECT file_path, list(pos ORDER BY pos) FROM deleted
WHERE file_path IN (SELECT unnest(?::VARCHAR[])) GROUP BY file_path"""


class TooManyPositions(ValueError):
    """The files delete more rows than one commit may."""


def client_positions(delete_files: Sequence[bytes]) -> dict[str, Sequence[int]]:
    """The deleted positions, ascending and unique, by the location of their data file.

    Raises:
        Unreadable: a file is no position delete file, or is damaged.
        TooManyPositions: together they have more than one commit may.
    """
    if not delete_files:
        return {}
    with sandbox(reads_file=True) as (con, path):
        names = []
        for number, body in enumerate(delete_files):
            name = path.with_name(f"{number}.parquet")
            name.write_bytes(body)
            names.append(str(name))
        [[count]] = con.execute(ROWS, [names]).fetchall()
        if count > MOST_ROWS:
            raise TooManyPositions(f"{MOST_ROWS:,}")
        con.execute(DELETED, [names])
        return _positions(con)


def _positions(con: "DuckDBPyConnection") -> dict[str, Sequence[int]]:
    found: dict[str, Sequence[int]] = {}
    scattered = 0
    for location, count, rows, low, high in con.execute(RANGES).fetchall():
        if location is None or count != rows or low < 0:
            raise Unreadable("a position is NULL or negative")
        found[location] = range(count)
        if high != count - 1:
            scattered += count
            found[location] = ()
    if scattered > MOST_POSITIONS:
        raise TooManyPositions(f"{MOST_POSITIONS:,}")
    others = [location for location, positions in found.items() if not positions]
    return found | dict(con.execute(POSITIONS, [others]).fetchall())
