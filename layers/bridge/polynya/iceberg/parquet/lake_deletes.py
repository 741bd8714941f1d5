"""Delete files as DuckLake's own writers write them: each is about one data file.

A file that replaces an older one says of each position at which snapshot it was deleted, so that
older snapshots and the change feed stay as they were.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..positions import numbers
from .files import SNAPSHOT_COLUMN
from .sandbox import Sandbox, literal, sandbox

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
    others: Sequence[tuple[int, int]] = ()
    """Positions that are in no file yet, ascending, with the snapshots that deleted them."""


class DeleteFileBytes(NamedTuple):
    """A delete file, and the number of positions in it."""

    body: bytes
    rows: int
    row_group_count: int

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
    new = numbers(deletes.positions)
    columns = _merged(new, deletes.snapshot_id, _with(_stored(box, deletes.stored), deletes.others))
    con.register("deleted", columns)
    select = f"SELECT {literal(deletes.data_file)} AS file_path, * FROM deleted"
    ids = ", ".join(f"{name}: {IDS[name]}" for name in ("file_path", *columns))
    copy = f"COPY ({select}) TO {literal(str(path))} (FORMAT parquet, FIELD_IDS {{{ids}}})"
    [[rows]] = con.execute(copy).fetchall()
    [[row_groups]] = con.execute(ROW_GROUPS, [str(path)]).fetchall()
    return DeleteFileBytes(path.read_bytes(), rows, row_groups)


def _merged(new: "NDArray[np.int64]", snapshot_id: int, stored: "Columns | None") -> Columns:
    """The columns of a delete file after the first one."""
    import numpy as np

    if stored is None:
        return {"pos": new}
    places = np.searchsorted(stored["pos"], new)
    return {
        "pos": np.insert(stored["pos"], places, new),
        SNAPSHOT_COLUMN: np.insert(stored[SNAPSHOT_COLUMN], places, snapshot_id),
    }


def _with(stored: "Columns | None", others: Sequence[tuple[int, int]]) -> "Columns | None":
    """Stored deletes, and others of earlier snapshots."""
    import numpy as np

    if not others:
        return stored
    more = np.array(others, np.int64)
    columns = {"pos": more[:, 0], SNAPSHOT_COLUMN: more[:, 1]}
    if stored is None:
        return columns
    both = {name: np.concatenate([stored[name], columns[name]]) for name in columns}
    # What is deleted twice was deleted first.
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
    file.write_bytes(stored.content)
    described = con.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)]).fetchall()
    has_snapshots = SNAPSHOT_COLUMN in {name for name, *_ in described}
    snapshot_id = SNAPSHOT_COLUMN if has_snapshots else int(stored.begin_snapshot)
    return con.execute(STORED.format(snapshot_id=snapshot_id), [str(file)]).fetchnumpy()
