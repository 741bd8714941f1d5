"""Delete files: DuckLake's own, those of Iceberg clients, and copies with Iceberg's field ids.

`lake_delete_files` writes them as DuckLake's own writers do: each is about one data file.

`client_positions` reads position delete files of clients, each of which may name several data
files. https://iceberg.apache.org/spec/#position-delete-files

`delete_copy` changes ten bytes of a stored file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...runtime.isolation import isolated
from ..deletion_vector import numbers, positions_of_array
from ..sandbox import Sandbox, Unreadable, literal, sandbox
from .footer_limits import checked
from .generated_files import SNAPSHOT_COLUMN, replace_field_ids
from .thrift import varint as length_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IDS = {"file_path": 2147483646, "pos": 2147483645, SNAPSHOT_COLUMN: 2147483539}
"""DuckLake's field ids; Iceberg has others in delete files."""

STORED = f"""
SELECT pos::BIGINT AS pos, {{snapshot_id}}::BIGINT AS {SNAPSHOT_COLUMN} FROM read_parquet(?)"""

ROW_GROUPS = "SELECT num_row_groups FROM parquet_file_metadata(?)"

Columns: TypeAlias = "dict[str, NDArray[np.int64]]"


@dataclass(frozen=True, slots=True)
class StoredDeletes:
    """A delete file that is replaced."""

    content: bytes | Sequence[int]
    """A Parquet file, or the positions of a deletion vector."""
    begin_snapshot: int
    """The snapshot that deleted the positions, if the file does not have it for each one."""


@dataclass(frozen=True, slots=True)
class LakeDeletes:
    """The content of a new delete file of one data file."""

    data_file: str
    """Its location, as DuckLake spells it."""
    positions: Sequence[int]
    """Deleted at `snapshot_id`, ascending; none of them was deleted before."""
    snapshot_id: int
    stored: StoredDeletes | None
    dated: Sequence[tuple[int, int]] = ()
    """Positions that are in no file yet, ascending, with the snapshots that deleted them."""


class DeleteFileBytes(NamedTuple):
    """A delete file, and the number of positions in it."""

    body: bytes
    rows: int
    row_group_count: int

    @property
    def footer_size(self) -> int:
        """The length of the footer in bytes, which is before the magic at the end."""
        return int.from_bytes(self.body[-8:-4], "little")


@isolated
def lake_delete_files(deletes: Sequence[LakeDeletes]) -> list[DeleteFileBytes]:
    """Write a Parquet file for each data file.

    Raises:
        Unreadable: a stored file is no delete file, or is damaged.
    """
    with sandbox(reads_file=True) as box:
        return [_delete_file(box, of_file) for of_file in deletes]


def _delete_file(box: Sandbox, deletes: LakeDeletes) -> DeleteFileBytes:
    con, path = box
    new = numbers(deletes.positions)
    columns = _merged(
        new, deletes.snapshot_id, _merge_dated(_stored(box, deletes.stored), deletes.dated)
    )
    con.register("deleted", columns)
    select = f"SELECT {literal(deletes.data_file)} AS file_path, * FROM deleted"
    ids = ", ".join(f"{name}: {IDS[name]}" for name in ("file_path", *columns))
    copy = f"COPY ({select}) TO {literal(str(path))} (FORMAT parquet, FIELD_IDS {{{ids}}})"
    [[rows]] = con.execute(copy).fetchall()
    [[row_groups]] = con.execute(ROW_GROUPS, [str(path)]).fetchall()
    return DeleteFileBytes(path.read_bytes(), rows, row_groups)


def _merged(new: "NDArray[np.int64]", snapshot_id: int, stored: "Columns | None") -> Columns:
    """Merge new positions into the stored ones: the columns `pos` and, if needed, the snapshot."""
    import numpy as np

    if stored is None:
        return {"pos": new}
    # With the snapshot of each position, older snapshots and the change feed do not change.
    places = np.searchsorted(stored["pos"], new)
    return {
        "pos": np.insert(stored["pos"], places, new),
        SNAPSHOT_COLUMN: np.insert(stored[SNAPSHOT_COLUMN], places, snapshot_id),
    }


def _merge_dated(stored: "Columns | None", dated: Sequence[tuple[int, int]]) -> "Columns | None":
    """Merge stored deletes with deletes of earlier snapshots that are in no file yet."""
    import numpy as np

    if not dated:
        return stored
    more = np.array(dated, np.int64)
    columns = {"pos": more[:, 0], SNAPSHOT_COLUMN: more[:, 1]}
    if stored is None:
        return columns
    both = {name: np.concatenate([stored[name], columns[name]]) for name in columns}
    # Of two deletes of one row the earlier one counts.
    order = np.lexsort((both[SNAPSHOT_COLUMN], both["pos"]))
    _, first = np.unique(both["pos"][order], return_index=True)
    return {name: values[order][first] for name, values in both.items()}


def _stored(box: Sandbox, stored: StoredDeletes | None) -> "Columns | None":
    """The columns of a stored file, whose positions ascend."""
    import numpy as np

    if stored is None:
        return None
    if not isinstance(stored.content, bytes):
        positions = numbers(stored.content)
        snapshots = np.full(len(positions), stored.begin_snapshot, np.int64)
        return {"pos": positions, SNAPSHOT_COLUMN: snapshots}
    con, path = box
    file = path.with_name("stored.parquet")
    file.write_bytes(checked(stored.content))
    described = con.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)]).fetchall()
    has_snapshots = SNAPSHOT_COLUMN in {name for name, *_ in described}
    snapshot_id = SNAPSHOT_COLUMN if has_snapshots else int(stored.begin_snapshot)
    return con.execute(STORED.format(snapshot_id=snapshot_id), [str(file)]).fetchnumpy()


if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_POSITIONS = 10_000_000
"""Rows of delete files that are read for one commit, deleted before or not. The function `commits`
has memory and time for them (docs/performance.md)."""

LONGEST_LOCATION = 4096
"""In bytes; a key of S3 has up to 1,024."""
MOST_LOCATION_BYTES = 4 << 30
"""The locations of all rows, one by one: a dictionary holds each once, and DuckDB compares each."""
MOST_LOCATIONS = 200_000
"""Data files whose rows are deleted; as many as a commit may have entries in manifests."""

# DuckDB reads as many rows as the row groups have.
ROWS = """
SELECT coalesce(sum(rows), 0), coalesce(bool_or(num_rows <> coalesce(rows, 0) OR fewest < 0), false)
FROM parquet_file_metadata($1) LEFT JOIN (
  SELECT file_name, sum(row_group_num_rows) AS rows, min(row_group_num_rows) AS fewest
  FROM parquet_metadata($1) WHERE column_id = 0 GROUP BY file_name) USING (file_name)"""

# It ends at the first one: any work on ten thousand texts of a megabyte takes seconds.
TOO_LONG = f"""
SELECT 1 FROM read_parquet(?) WHERE strlen(file_path) > {LONGEST_LOCATION} LIMIT 1"""

LENGTH = "SELECT coalesce(sum(strlen(file_path)), 0) FROM read_parquet(?)"

# An estimate that takes little memory, and is never wrong by half.
ABOUT = "SELECT approx_count_distinct(file_path) FROM read_parquet(?)"

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


@isolated
def client_positions(delete_files: Sequence[bytes]) -> dict[str, Sequence[int]]:
    """The deleted positions, ascending and unique, by the location of their data file.

    Raises:
        Unreadable: a file is no position delete file, or is damaged.
        TooManyPositions: they exceed a limit of a commit together; the message says which.
        OutOfTime: no time is left in the budget.
    """
    if not delete_files:
        return {}
    with sandbox(reads_file=True) as (con, path):
        names = []
        for number, body in enumerate(delete_files):
            name = path.with_name(f"{number}.parquet")
            name.write_bytes(checked(body))
            names.append(str(name))
        [[count, is_inconsistent]] = con.execute(ROWS, [names]).fetchall()
        if is_inconsistent:
            raise Unreadable("its number of rows differs from that of its row groups")
        if count > MOST_POSITIONS:
            raise TooManyPositions(f"{MOST_POSITIONS:,} deleted rows")
        if con.execute(TOO_LONG, [names]).fetchall():
            raise Unreadable(f"a location has more than {LONGEST_LOCATION:,} bytes")
        [[length]] = con.execute(LENGTH, [names]).fetchall()
        if length > MOST_LOCATION_BYTES:
            raise TooManyPositions(f"{MOST_LOCATION_BYTES >> 30} GB of locations")
        [[locations]] = con.execute(ABOUT, [names]).fetchall()
        if locations > 2 * MOST_LOCATIONS:
            raise _too_many_locations()
        [[faulty]] = con.execute(FAULTY, [names]).fetchall()
        if faulty:
            raise Unreadable("a location or a position is NULL, or a position is negative")
        [[locations]] = con.execute(LOCATIONS, [names]).fetchall()
        if locations > MOST_LOCATIONS:
            raise _too_many_locations()
        con.execute(DELETED, [names])
        return _positions(con)


def _too_many_locations() -> TooManyPositions:
    return TooManyPositions(f"{MOST_LOCATIONS:,} data files with deleted rows")


def _positions(con: "DuckDBPyConnection") -> dict[str, Sequence[int]]:
    positions: dict[str, Sequence[int]] = {}
    scattered: list[tuple[str, int, int]] = []
    for location, number, count, last in con.execute(RANGES).fetchall():
        positions[location] = range(count)
        if last != count - 1:
            scattered.append((location, number, count))
    numbers = [number for _, number, _ in scattered]
    rows = con.execute(SCATTERED, [numbers]).fetchnumpy()["pos"]
    start = 0
    for location, _, count in scattered:
        positions[location] = positions_of_array(rows[start : start + count])
        start += count
    return positions


FOOTER_TAIL = 8
"""Bytes after the footer: its length (little-endian) and the magic `PAR1`."""


# DuckLake writes the ids of Iceberg's `_file` and `_pos`; Java refuses a position delete file
# without its own two. As varints of Parquet's compact Thrift footer all four have five bytes, so
# that the copy has exactly the size of the stored file.
OWN_IDS = {2147483646: 2147483546, 2147483645: 2147483545}


def delete_copy(stored: bytes, data_file: str) -> bytes | None:
    """Copy a stored delete file with Iceberg's field ids, for the data file at a location.

    None if the file does not have the expected pattern, or its deletes name another location (the
    lake was moved), which Iceberg compares byte by byte. Then the caller writes a new file.
    """
    length = int.from_bytes(stored[-FOOTER_TAIL:-4], "little")
    start = len(stored) - FOOTER_TAIL - length
    if stored[-4:] != b"PAR1" or start < 4:
        return None
    footer = stored[start:]
    # For each row group the footer has the column's name once, in addition to the schema, and the
    # smallest and the largest path twice each: all are the same path.
    row_groups = footer.count(b"file_path") - 1
    path = data_file.encode()
    if footer.count(length_of(len(path)) + path) != 4 * row_groups or row_groups < 1:
        return None
    copy = replace_field_ids(footer, OWN_IDS)
    return None if copy is None else stored[:start] + copy
