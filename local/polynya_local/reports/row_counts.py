"""How many rows of a table are live at a snapshot: exactly, or not at all.

The catalog counts the rows of a file, and the deletes on it, as of the end of its history
(`queries.uncertain_files`). Where a past snapshot has others, the delete file, or one column of the
data file, tells from when to when each row exists.
"""

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pg8000.native import Connection
from polynya.ducklake.paths import file_location
from polynya.ducklake.queries import data_files_of
from polynya.ducklake.queries.history import State, TableHistory, unservable_reason
from polynya.ducklake.rows.files import DataFile, DeleteFile, InlinedDelete, snapshots_of_rows
from polynya.iceberg.deletion_vector import dated_vectors
from polynya.iceberg.parquet.generated_files import dated_positions, row_snapshots
from polynya.runtime.errors import PolynyaError
from polynya.storage.objects import ObjectReader

from ..queries.uncertain_files import (
    StoredDeletes,
    UncertainFiles,
    inlined_deletes_of,
    stored_deletes_of,
    uncertain_files,
)

MOST_FILES = 32
"""The most files of a table that are read to count its rows, because a visitor waits for them."""
MOST_BYTES = 8_000_000
"""The largest delete file that is read."""
MOST_ROWS = 1_000_000
"""The most rows and deletes of all these files together."""
MOST_HISTORIES = 1000
"""How many files' rows and deletes are kept in memory."""
READERS = {"parquet": dated_positions, "puffin": dated_vectors}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """What a table has at a snapshot; None: only its files tell, and they were not read."""

    rows: int | None
    """Live ones."""
    files: int
    bytes: int
    inlined: int
    """Rows that are in no file yet."""
    deleted: int | None
    """Rows of files that are deleted."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of a data file at a snapshot."""

    rows: int
    """Deleted ones included."""
    deleted: int


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The snapshots at which rows of a data file began and ended; both ascend."""

    births: Sequence[int]
    """Empty: all rows are there at every snapshot that shows the file."""
    deaths: Sequence[int]
    record_count: int

    def rows_at(self, snapshot_id: int) -> FileRows:
        """The rows at a snapshot that shows the file."""
        born = bisect_right(self.births, snapshot_id) if self.births else self.record_count
        return FileRows(born, bisect_right(self.deaths, snapshot_id))


class FileHistories:
    """Caches what was read from files, which never change under their names."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._cached: OrderedDict[str, object] = OrderedDict()

    def deletes(self, file: DeleteFile, location: str) -> dict[int | None, Sequence[int]]:
        """The positions in a delete file by the snapshot that deleted them."""
        positions = self._once(location, lambda: READERS[file.format](self._reader.read(location)))
        assert isinstance(positions, dict)
        return positions

    def births(self, file: DataFile, location: str) -> Sequence[int]:
        """The snapshot of each row of a merged data file."""

        def read(first: int, end: int) -> bytes:
            return self._reader.read_range(location, first, end)

        snapshot_ids = self._once(location, lambda: row_snapshots(read, file.file_size_bytes))
        assert isinstance(snapshot_ids, Sequence)
        return snapshot_ids

    def _once(self, location: str, read: Callable[[], object]) -> object:
        if location not in self._cached:
            self._cached[location] = read()
            if len(self._cached) > MOST_HISTORIES:
                self._cached.popitem(last=False)
        self._cached.move_to_end(location)
        return self._cached[location]


class RowCounts:
    """Counts the rows of one table at some of its snapshots, within one transaction."""

    def __init__(
        self,
        con: Connection,
        history: TableHistory,
        histories: FileHistories,
        snapshot_ids: Iterable[int],
    ) -> None:
        """`snapshot_ids` are those at which rows will be counted."""
        self._con, self._history, self._histories = con, history, histories
        self._snapshot_ids = sorted(snapshot_ids)
        self._cached: dict[int, FileHistory | None] = {}
        self._rows = self._reads = 0

    def counts(self, snapshot_id: int, state: State) -> Counts:
        """What the table has in its state at a snapshot."""
        data, inlined = state["data"], state["inlined"]
        file_rows = self._data_rows(snapshot_id, state)
        return Counts(
            rows=None if file_rows is None else file_rows.rows - file_rows.deleted + inlined.rows,
            files=data.files,
            bytes=data.bytes,
            inlined=inlined.rows,
            deleted=None if file_rows is None else file_rows.deleted,
        )

    def files(self, snapshot_id: int, ids: Sequence[int]) -> dict[int, FileRows | None]:
        """The rows of those files whose rows the catalog does not have.

        None: they were not read from the files either.
        """
        uncertain = self._uncertain_at(snapshot_id)
        if uncertain is None:
            return dict.fromkeys(ids)
        return {id_: self._file_rows(id_, snapshot_id) for id_ in uncertain.intersection(ids)}

    def is_certain(self, snapshot_id: int) -> bool:
        """Whether the catalog has the rows of all files at a snapshot."""
        return self._uncertain_at(snapshot_id) == set()

    def _data_rows(self, snapshot_id: int, state: State) -> FileRows | None:
        """The rows of all data files at a snapshot."""
        uncertain = self._uncertain_at(snapshot_id)
        if uncertain is None or unservable_reason(self._history.unservable, snapshot_id):
            return None
        rows, deleted = state["data"].rows, state["delete"].rows
        for id_ in uncertain:
            file_rows = self._file_rows(id_, snapshot_id)
            if file_rows is None:
                return None
            rows += file_rows.rows - self._files[id_].record_count
            deleted += file_rows.deleted - self._catalog_deletes(id_, snapshot_id)
        return FileRows(rows, deleted)

    def _uncertain_at(self, snapshot_id: int) -> set[int] | None:
        """The files whose rows the catalog does not have; None: too many to name them."""
        ranges = [range_ for range_ in self._ranges if range_.is_at(snapshot_id)]
        if any(range_.files > len(range_.data_file_ids) for range_ in ranges):
            return None
        return {id_ for range_ in ranges for id_ in range_.data_file_ids}

    def _file_rows(self, id_: int, snapshot_id: int) -> FileRows | None:
        history = self._file_history(id_)
        return None if history is None else history.rows_at(snapshot_id)

    def _file_history(self, id_: int) -> FileHistory | None:
        if id_ not in self._cached:
            self._cached[id_] = self._read(id_)
        return self._cached[id_]

    def _catalog_deletes(self, id_: int, snapshot_id: int) -> int:
        """How many rows the totals of the history count as deleted from a file."""
        stored = sum(
            deletes.file.delete_count
            for deletes in self._stored[id_]
            if deletes.visible_at(snapshot_id)
        )
        return stored + sum(delete.begin_snapshot <= snapshot_id for delete in self._inlined[id_])

    @cached_property
    def _ranges(self) -> list[UncertainFiles]:
        history, ids = self._history, self._snapshot_ids
        if not ids or not _may_be_uncertain(history):
            return []
        table_id, inlined = history.table.table_id, history.inlined
        query = uncertain_files(history.lake, table_id, inlined, ids[0], ids[-1], MOST_FILES)
        return query.run(self._con)

    @cached_property
    def _readable(self) -> list[int]:
        """The files that may be read."""
        ids = {
            id_ for range_ in self._ranges for id_ in range_.data_file_ids if self._is_shown(range_)
        }
        return sorted(ids)[:MOST_FILES]

    def _is_shown(self, range_: UncertainFiles) -> bool:
        return any(range_.is_at(snapshot_id) for snapshot_id in self._snapshot_ids)

    @cached_property
    def _files(self) -> dict[int, DataFile]:
        table_id = self._history.table.table_id
        files = data_files_of(self._history.lake, table_id, self._readable).run(self._con)
        # Without a begin_snapshot a file is never visible, and its rows are not counted.
        return {file.data_file_id: file for file in files if file.begin_snapshot is not None}

    @cached_property
    def _stored(self) -> dict[int, list[StoredDeletes]]:
        table_id = self._history.table.table_id
        stored = stored_deletes_of(self._history.lake, table_id, self._readable).run(self._con)
        return _group_by_file(stored, lambda deletes: deletes.file.data_file_id)

    @cached_property
    def _inlined(self) -> dict[int, list[InlinedDelete]]:
        inlined, table_id = self._history.inlined, self._history.table.table_id
        query = inlined_deletes_of(inlined, table_id, self._readable, MOST_ROWS)
        return _group_by_file(query.run(self._con), lambda delete: delete.data_file_id)

    def _read(self, id_: int) -> FileHistory | None:
        """What the data file and its delete files say; None: they are too large, or unreadable."""
        file = self._files.get(id_)
        if file is None or not _is_readable(file):
            return None
        if not all(map(_is_readable, self._shown_deletes(file))) or self._is_too_large(file):
            return None
        try:
            births = self._births(file)
            deaths = self._deaths(file, births)
        except (PolynyaError, ValueError):  # the files are missing, damaged, or cannot be reached
            return None
        return FileHistory(sorted(births), deaths, file.record_count)

    def _is_too_large(self, file: DataFile) -> bool:
        stored = self._shown_deletes(file)
        rows = self._rows + sum(delete_file.delete_count for delete_file in stored)
        rows += len(self._inlined[file.data_file_id])
        rows += file.record_count if self._has_later_rows(file) else 0
        reads = self._reads + len(stored) + self._has_later_rows(file)
        is_large = any(delete_file.file_size_bytes > MOST_BYTES for delete_file in stored)
        if is_large or rows > MOST_ROWS or reads > MOST_FILES:
            return True
        self._rows, self._reads = rows, reads
        return False

    def _has_later_rows(self, file: DataFile) -> bool:
        """Whether one of the snapshots does not show all rows of the file."""
        return any(
            file.begin_snapshot <= snapshot_id < (file.partial_max or 0)
            for snapshot_id in self._snapshot_ids
        )

    def _shown_deletes(self, file: DataFile) -> list[DeleteFile]:
        shown = self._stored[file.data_file_id]
        return [
            d.file
            for d in shown
            if any(d.visible_at(snapshot_id) for snapshot_id in self._snapshot_ids)
        ]

    def _births(self, file: DataFile) -> Sequence[int]:
        if not self._has_later_rows(file):
            return ()
        if file.partial_file_info:
            return snapshots_of_rows(file)
        return self._histories.births(file, self._location(file))

    def _deaths(self, file: DataFile, births: Sequence[int]) -> list[int]:
        """The snapshots that deleted rows of the file, ascending; each row counts once."""
        first: dict[int, int] = {}
        for position, snapshot_id in self._deletes(file):
            first[position] = min(snapshot_id, first.get(position, snapshot_id))
        if births:  # a row that is not there yet is not deleted yet
            if not first.keys() <= {*range(len(births))}:
                raise ValueError("a delete names a row that the file does not have")
            first = {position: max(death, births[position]) for position, death in first.items()}
        return sorted(first.values())

    def _deletes(self, file: DataFile) -> Iterator[tuple[int, int]]:
        for delete in self._inlined[file.data_file_id]:
            yield -1 if delete.position is None else delete.position, delete.begin_snapshot
        for stored in self._shown_deletes(file):
            by_snapshot = self._histories.deletes(stored, self._location(stored))
            for snapshot_id, positions in by_snapshot.items():
                for position in positions:
                    yield position, stored.begin_snapshot if snapshot_id is None else snapshot_id

    def _location(self, file: DataFile | DeleteFile) -> str:
        history = self._history
        return file_location(history.lake, history.schema, history.table, file)


def _is_readable(file: DataFile | DeleteFile) -> bool:
    """Whether the catalog says where a file is, how large, and of what format."""
    values = (file.path, file.path_is_relative, file.file_size_bytes)
    return None not in values and (isinstance(file, DataFile) or file.format in READERS)


def _may_be_uncertain(history: TableHistory) -> bool:
    """Whether any file of the table was merged, or has deletes."""
    kinds = {event.kind for event in history.events}
    return not kinds.isdisjoint(("delete", "partial", "partial_delete"))


def _group_by_file(records: Iterable[T], file_of: Callable[[T], int]) -> defaultdict[int, list[T]]:
    by_file: defaultdict[int, list[T]] = defaultdict(list)
    for record in records:
        by_file[file_of(record)].append(record)
    return by_file
