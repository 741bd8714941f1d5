"""The position deletes of a table: delete files, inlined deletes, and rows of later snapshots."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.paths import file_location
from ..ducklake.queries.history import TableHistory
from ..ducklake.rows.files import DataFile, DeleteFile, InlinedDelete, rows_until
from ..iceberg.deletion_vector import deletion_vector_positions, puffin_file, union, vector_summary
from ..iceberg.parquet.delete_files import delete_copy
from ..iceberg.parquet.footer import row_count
from ..iceberg.parquet.generated_files import later_rows, position_deletes_bytes, positions
from ..runtime.errors import REMEDY, NoSuchKey, Refused
from ..storage.objects import ObjectReader
from .cached_files import FileKind, Summary, rewritten
from .contexts import TableContext
from .names import Name

POSITIONS = {"parquet": positions, "puffin": deletion_vector_positions}
"""The reader of the positions in a delete file, by its format."""


@dataclass(frozen=True, slots=True)
class Deletes:
    """Everything that hides rows of one data file at a snapshot."""

    snapshot_id: int
    data_file: DataFile
    stored: list[DeleteFile]
    inlined: list[InlinedDelete]
    is_copied: bool = True
    """Whether a stored delete file may be served as a copy."""

    @property
    def holds_later_rows(self) -> bool:
        """Whether the data file holds rows that were added after the snapshot."""
        return (self.data_file.partial_max or 0) > self.snapshot_id

    @property
    def is_one_file(self) -> bool:
        """Whether one stored delete file holds all of them."""
        # A partial delete file also has deletes of later snapshots.
        whole = [file for file in self.stored if (file.partial_max or 0) <= self.snapshot_id]
        is_single = len(self.stored) == 1 and not self.inlined
        return bool(whole) and is_single and not self.holds_later_rows

    @property
    def most_positions(self) -> int:
        """The most rows that may be deleted: all rows, if some are of later snapshots."""
        if self.holds_later_rows:
            return self.data_file.record_count
        delete_count = sum(file.delete_count for file in self.stored) + len(self.inlined)
        return min(delete_count, self.data_file.record_count)

    @property
    def changed_at(self) -> int:
        """The newest snapshot, up to `snapshot_id`, that changed the deletes."""
        stored = [max(file.begin_snapshot, file.partial_max or 0) for file in self.stored]
        inlined = [row.begin_snapshot for row in self.inlined]
        # Clients do not apply deletes that are older than their data file, but DuckLake does.
        own = [self.data_file.partial_max or 0, self.data_file.begin_snapshot]
        # `partial_max` may be a later snapshot.
        return min(self.snapshot_id, max(stored + inlined + own))


def deletes_at(
    con: Connection,
    history: TableHistory,
    snapshot_id: int,
    data_file_ids: tuple[int, int],
) -> list[Deletes]:
    """The deletes of every data file that has any.

    Args:
        data_file_ids: the first and the last id of the files, both included.
    """
    lake, table_id = history.lake, history.table.table_id
    files = queries.data_files_at(lake, table_id, snapshot_id, *data_file_ids).run(con)
    return _deletes(con, history, snapshot_id, data_file_ids, files)


def deletes_of(
    con: Connection, history: TableHistory, snapshot_id: int, files: Sequence[DataFile]
) -> list[Deletes]:
    """The deletes of these data files; files without any are absent.

    Args:
        files: visible at the snapshot.
    """
    ids = [file.data_file_id for file in files]
    return _deletes(con, history, snapshot_id, (min(ids), max(ids)), files, ids) if ids else []


def _deletes(
    con: Connection,
    history: TableHistory,
    snapshot_id: int,
    span: tuple[int, int],
    files: Iterable[DataFile],
    data_file_ids: Sequence[int] | None = None,
) -> list[Deletes]:
    selection = (history.table.table_id, snapshot_id, *span, data_file_ids)
    stored: dict[int, list[DeleteFile]] = defaultdict(list)
    for file in queries.delete_files_at(history.lake, *selection).run(con):
        stored[file.data_file_id].append(file)
    inlined: dict[int, list[InlinedDelete]] = defaultdict(list)
    for row in queries.inlined_deletes_at(history.inlined, *selection).run(con):
        inlined[row.data_file_id].append(row)
    candidates = [
        Deletes(snapshot_id, file, stored[file.data_file_id], inlined[file.data_file_id])
        for file in files
        # `data_files_at` has those that end at this snapshot too.
        if file.end_snapshot is None or file.end_snapshot > snapshot_id
    ]
    return [d for d in candidates if d.stored or d.inlined or d.holds_later_rows]


def deletes_bytes(
    deletes: Deletes, history: TableHistory, files: ObjectReader, data_location: str
) -> bytes:
    """The position delete file of one data file, in Iceberg's form, as Parquet.

    Args:
        data_location: where clients find the data file.

    Raises:
        Refused: a delete file is missing or damaged, or deletes name rows that the data file does
            not have.
    """
    deleted, bodies = _deleted(deletes, history, files)
    if (
        deletes.is_copied
        and deletes.is_one_file
        and (copy := delete_copy(bodies[0], data_location)) is not None
    ):
        return copy
    return position_deletes_bytes(data_location, deleted)


def vector_bytes(
    deletes: Deletes, history: TableHistory, files: ObjectReader, data_location: str
) -> bytes:
    """The deletes of one data file as a vector in a Puffin file.

    Args, Raises: as `deletes_bytes`.
    """
    return puffin_file(data_location, deleted_positions(deletes, history, files))


def deleted_positions(
    deletes: Deletes, history: TableHistory, files: ObjectReader
) -> Sequence[int]:
    """The positions of the deleted rows of one data file. Raises: as `deletes_bytes`."""
    return _deleted(deletes, history, files)[0]


def _deleted(
    deletes: Deletes, history: TableHistory, files: ObjectReader
) -> tuple[Sequence[int], list[bytes]]:
    """The deleted positions, ascending, and the bodies of the stored delete files."""
    parts, bodies = _parts(deletes, history, files)
    # A data file may have several delete files; Iceberg's readers get their union.
    deleted = union(parts)
    _check(deleted, deletes, history)
    return deleted, bodies


def repeated_positions(deletes: Deletes, history: TableHistory, files: ObjectReader) -> int:
    """How many rows of a data file are deleted more than once. Raises: as `deletes_bytes`."""
    parts, _ = _parts(replace(deletes, inlined=[]), history, files)
    positions = Counter(row.position for row in deletes.inlined)
    positions += Counter(position for part in parts for position in set(part))
    return sum(times > 1 for times in positions.values())


def _parts(
    deletes: Deletes, history: TableHistory, files: ObjectReader
) -> tuple[list[Collection[int]], list[bytes]]:
    """The inlined positions and those of each file, and the bodies of the stored delete files."""
    parts: list[Collection[int]] = [
        # -1 is no position, so that `_check` refuses a broken row.
        [-1 if row.position is None else row.position for row in deletes.inlined]
    ]
    bodies = []
    for file in deletes.stored:
        location = _location(history, file)
        with refuse_unreadable(history, f"the delete file {location}"):
            bodies.append(files.read(location))
            parts.append(_positions(file, bodies[-1], deletes.snapshot_id))
    if deletes.holds_later_rows:
        data_location = _location(history, deletes.data_file)
        with refuse_unreadable(history, f"the merged data file {data_location}"):
            parts.append(_later_rows(deletes, partial(files.read_range, data_location)))
    return parts, bodies


def _location(history: TableHistory, file: DataFile | DeleteFile) -> str:
    return file_location(history.lake, history.schema, history.table, file)


@contextmanager
def refuse_unreadable(history: TableHistory, what: str) -> Iterator[None]:
    """Refuse the table if a file of the lake cannot be read within the block.

    Args:
        what: the file, for the error's message.

    Raises:
        Refused: the file is missing, or is not what the catalog says.
    """
    try:
        yield
    except NoSuchKey:
        problem = "is not there: restore it"
    except ValueError:
        problem = "is damaged, or no such file: restore it"
    else:
        return
    raise Refused(f"the table {history.full_name} is not served: {what} {problem} from a backup")


def _positions(file: DeleteFile, body: bytes, snapshot_id: int) -> Sequence[int]:
    is_partial = (file.partial_max or 0) > snapshot_id
    return POSITIONS[file.format](body, snapshot_id if is_partial else None)


def _check(positions: Sequence[int], deletes: Deletes, history: TableHistory) -> None:
    """Refuse positions, in ascending order, that no row of the data file has.

    Raises:
        Refused: there is such a position, with which clients would fail in different ways.
    """
    if positions and not 0 <= positions[0] <= positions[-1] < deletes.data_file.record_count:
        raise Refused(
            f"the table {history.full_name} is not served at snapshot {deletes.snapshot_id}: a "
            f"delete of the data file {deletes.data_file.data_file_id} names a row that it does "
            f"not have{REMEDY}"
        )


def _later_rows(deletes: Deletes, read_range: Callable[[int, int], bytes]) -> Collection[int]:
    """The positions of rows in a merged or flushed file that were added after the snapshot."""
    file = deletes.data_file
    if file.partial_file_info:
        return range(rows_until(file, deletes.snapshot_id), file.record_count)
    return later_rows(read_range, file.file_size_bytes, deletes.snapshot_id)


def _summary(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body), "record_count": row_count(body)}


class DeleteFiles(FileKind):
    """The position deletes of data files, one file for each."""

    kind = "deletes"
    summary: "ClassVar[staticmethod[[bytes], Summary]]" = staticmethod(_summary)

    def name(self, deletes: Deletes) -> Name:
        """The name of the position deletes of a data file."""
        rows = (deletes.stored, deletes.inlined)
        file, changed_at = deletes.data_file, deletes.changed_at
        names = self.table.names
        return names.deletes(self.kind, file, changed_at, *rows, deletes.snapshot_id)

    def build(self, name: Name) -> bytes:
        """The file of this name. Raises: as `deletes_bytes`."""
        data_file_id, snapshot_id = name.numbers
        span = (data_file_id, data_file_id)
        for deletes in deletes_at(self.table.con, self.table.history, snapshot_id, span):
            if name == self.name(deletes):
                return self.body(deletes)
        raise rewritten()

    def body(self, deletes: Deletes) -> bytes:
        """The bytes of the file of these deletes. Raises: as `deletes_bytes`."""
        # As of the snapshot in the name.
        deletes = replace(deletes, snapshot_id=self.name(deletes).snapshot_id)
        data_location = self.table.shown_file(deletes.data_file, deletes.snapshot_id).location
        reader = self.table.context.object_reader
        if self.table.hidden_ids:
            # A copy of a stored file would have all that is in it.
            deletes = replace(deletes, is_copied=False)
        return self._bytes(deletes, self.table.history, reader, data_location)

    _bytes = staticmethod(deletes_bytes)


class DeletionVectors(DeleteFiles):
    """The position deletes of data files in tables of format version 3: one vector for each."""

    kind = "vector"
    summary = staticmethod(vector_summary)

    _bytes = staticmethod(vector_bytes)


def listed_kind(table: TableContext) -> type[DeleteFiles]:
    """The delete files that the manifests of a table name."""
    return DeletionVectors if table.has_vectors else DeleteFiles
