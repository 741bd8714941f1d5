"""Delete files as DuckLake's own writers write them: each is about one data file.

A file that replaces an older one says of each position at which snapshot it was deleted, so that
older snapshots and the change feed stay as they were.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..positions import numbers
from .files import SNAPSHOT_COLUMN
from .sandbox import Sandbox, literal, sandbox

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

IDS = {"file_path": 2147483646, "pos": 2147483645, SNAPSHOT_COLUMN: 2147483539}
"""DuckLake's field ids; Iceberg has others in delete files."""

FIRST = "SELECT {data_file} AS file_path, pos FROM new"

MERGED = f"""
SELECT {{data_file}} AS file_path, pos, {SNAPSHOT_COLUMN} FROM (
  SELECT pos, {{snapshot_id}}::BIGINT AS {SNAPSHOT_COLUMN} FROM new
  UNION ALL SELECT pos, {SNAPSHOT_COLUMN} FROM earlier)
ORDER BY pos"""

EARLIER = f"""
CREATE OR REPLACE VIEW earlier AS
SELECT pos::BIGINT AS pos, {{snapshot_id}}::BIGINT AS {SNAPSHOT_COLUMN} FROM {{source}}"""


@dataclass(frozen=True, slots=True)
class StoredDeletes:
    """A delete file that is replaced."""

    content: bytes | Sequence[int]
    """A Parquet file, or the positions of a deletion vector."""
    begin_snapshot: int
    """When they were deleted, if the file does not say it of each position."""


@dataclass(frozen=True, slots=True)
class LakeDeletes:
    """What a delete file will say."""

    data_file: str
    """Its location, as DuckLake spells it."""
    positions: Sequence[int]
    """Deleted at `snapshot_id`, ascending; none of them was deleted before."""
    snapshot_id: int
    stored: StoredDeletes | None


class DeleteFileBytes(NamedTuple):
    """A delete file, and the number of positions in it."""

    body: bytes
    rows: int

    @property
    def footer_size(self) -> int:
        """The length of the footer in bytes, which stands before the magic at the end."""
        return int.from_bytes(self.body[-8:-4], "little")


def lake_delete_files(deletes: Iterable[LakeDeletes]) -> Iterator[DeleteFileBytes]:
    """A Parquet file for each.

    Raises:
        Unreadable: a stored file is no delete file, or is damaged.
    """
    with sandbox(reads_file=True) as box:
        for one in deletes:
            yield _delete_file(box, one)


def _delete_file(box: Sandbox, deletes: LakeDeletes) -> DeleteFileBytes:
    con, path = box
    con.register("new", {"pos": numbers(deletes.positions)})
    select, ids = FIRST, {name: id_ for name, id_ in IDS.items() if name != SNAPSHOT_COLUMN}
    if deletes.stored is not None:
        _show_stored(box, deletes.stored)
        select, ids = MERGED, IDS
    sql = select.format(data_file=literal(deletes.data_file), snapshot_id=int(deletes.snapshot_id))
    fields = ", ".join(f"{name}: {id_}" for name, id_ in ids.items())
    copy = f"COPY ({sql}) TO {literal(str(path))} (FORMAT parquet, FIELD_IDS {{{fields}}})"
    [[rows]] = con.execute(copy).fetchall()
    return DeleteFileBytes(path.read_bytes(), rows)


def _show_stored(box: Sandbox, stored: StoredDeletes) -> None:
    """Make a stored file the view `earlier`."""
    con, path = box
    snapshot_id: object = int(stored.begin_snapshot)
    if isinstance(stored.content, bytes):
        file = path.with_name("stored.parquet")
        file.write_bytes(stored.content)
        source = f"read_parquet({literal(str(file))})"
        if SNAPSHOT_COLUMN in _columns(con, source):
            snapshot_id = SNAPSHOT_COLUMN
    else:
        con.register("vector", {"pos": numbers(stored.content)})
        source = "vector"
    con.execute(EARLIER.format(snapshot_id=snapshot_id, source=source))


def _columns(con: "DuckDBPyConnection", source: str) -> set[str]:
    return {row[0] for row in con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
