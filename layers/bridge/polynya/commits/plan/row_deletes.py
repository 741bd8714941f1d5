"""The rows that a commit ends, in DuckLake's terms, and the delete files that it will need.

Both are determined before the transaction that writes.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...ducklake import queries
from ...ducklake.faults import MAX_ID
from ...ducklake.paths import file_location, location, path_in_lake
from ...ducklake.rows.files import DataFile, InlinedDelete, LiveFile
from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.deletion_vector import difference
from ...iceberg.parquet.kept_rows import OldFile, Uncertain, kept_rows
from ...iceberg.sandbox import Unreadable
from ...mapping.properties import data_path, upload_location
from ...runtime.errors import BadRequest, CommitFailed, Misconfigured, NoSuchKey
from ...storage.objects import ObjectReader
from ...virtual_files.names import DELETES, Name
from ..client_locations import normalised, relative
from ..request.client_files import ClientDeletes, Positions, merge_positions, too_much
from .changed_files import NetChange, Rewrite
from .current_table import TableState
from .equality_deletes import hit_added_rows
from .table_plan import CANNOT_BE_MERGED, NOTHING, LargeDelete, Replaced, RowDeletes

MOST_DELETE_FILES = 1_000
"""Delete files that a commit writes: each is put into S3, and read by native readers."""


MOST_REWRITTEN_BYTES = 128 * 1024 * 1024
MOST_REWRITTEN_ROWS = 5_000_000
"""The most that is read for one commit that rewrites files whose rows stay: of the replaced files
and the new ones together (docs/developers/decisions/0022-copy-on-write-becomes-deletes.md)."""


def large_deletes(
    state: TableState, deleted: Mapping[int, Sequence[int]], files: Iterable[LiveFile]
) -> list[LargeDelete]:
    """The new delete files of live data files, with the delete files that they replace.

    Args:
        deleted: positions by data_file_id, of the data files that get delete files.
        files: these data files, and others.

    Raises:
        BadRequest: a delete file cannot be replaced exactly.
    """
    if not deleted:
        return []
    # A data file has one delete file at most: with two that are visible DuckLake reads rows twice.
    replaced = _replaced(state, deleted.keys())
    return [
        LargeDelete(
            data_file=file.data_file_id,
            location=_location(state, file),
            positions=deleted[file.data_file_id],
            replaces=replaced.get(file.data_file_id),
        )
        for file in files
        if file.data_file_id in deleted
    ]


def flushed_deletes(
    state: TableState, data_file_ids: Collection[int] | None = None
) -> list[LargeDelete]:
    """The inlined deletes of data files that a commit ends, which go into delete files first.

    Args:
        data_file_ids: the data files that end; None: all. Of very many with inlined deletes only
            some are flushed.

    Raises:
        BadRequest: a delete file cannot be replaced exactly.
    """
    if data_file_ids is not None and not data_file_ids:
        return []
    lake, con = state.lake.lake, state.lake.con
    ids = None if data_file_ids is None else list(data_file_ids)
    span = (min(ids), max(ids)) if ids else (0, MAX_ID)
    table_id, snapshot_id = state.table.table_id, lake.snapshot_id
    deletes = queries.inlined_deletes_at(
        state.files.history.inlined, table_id, snapshot_id, *span, ids
    )
    inlined: dict[int, list[InlinedDelete]] = defaultdict(list)
    for row in deletes.run(con):
        inlined[row.data_file_id].append(row)
    if not inlined:
        return []
    # DuckLake never ends a data file that has inlined deletes: the change feed of the commit would
    # repeat them. It ends one that has a delete file, and its flush writes such a delete file.
    flushed = {id_: inlined[id_] for id_ in sorted(inlined)[:MOST_DELETE_FILES]}
    replaced = _replaced(state, flushed)
    files = queries.data_files_at(lake, table_id, snapshot_id, min(flushed), max(flushed))
    return [
        LargeDelete(
            data_file=file.data_file_id,
            location=_location(state, file),
            replaces=replaced.get(file.data_file_id),
            flushed=flushed[file.data_file_id],
        )
        for file in files.run(con)
        if file.data_file_id in flushed
    ]


def _location(state: TableState, file: LiveFile | DataFile) -> str:
    return location((state.location, False), (file.path, file.path_is_relative))


def _replaced(state: TableState, data_file_ids: Iterable[int]) -> dict[int, Replaced]:
    ids, lake = list(data_file_ids), state.lake.lake
    delete_files = queries.delete_files_at(
        lake, state.table.table_id, lake.snapshot_id, min(ids), max(ids), ids
    )
    replaced: dict[int, Replaced] = {}
    for file in delete_files.run(state.lake.con):
        # A Puffin file with a vector for each snapshot is not replaced (docs/developers/commits.md,
        # "Catalogs of version 1.1").
        has_history = file.format != "parquet" and file.partial_max is not None
        if file.data_file_id in replaced or has_history:
            raise BadRequest(CANNOT_BE_MERGED)
        location = file_location(lake, state.schema, state.table, file)
        replaced[file.data_file_id] = Replaced(file, location, path_in_lake(location, lake))
    return replaced


def first_deletes(net: NetChange, deletes: ClientDeletes) -> RowDeletes:
    """The deletes of a commit that creates its table: rows of files that it adds.

    Raises:
        BadRequest: DuckLake cannot represent them.
    """
    if net.removed or net.removed_deletes:
        raise BadRequest("the first commit of a table removes files that it does not have")
    positions = deletes.positions(net.added_deletes)
    of_added = take_added_positions(net.added, positions)
    if positions:
        raise BadRequest("the first commit of a table deletes rows of files that it does not add")
    if hit_added_rows(net):
        raise BadRequest(
            "the first commit of a table deletes rows by key that it adds itself: create the table "
            "first"
        )
    return deletes_of_added(of_added)


def deletes_of_added(of_added: dict[int, Sequence[int]]) -> RowDeletes:
    """The deletes of a table that a commit creates.

    Args:
        of_added: positions by the index of a file that the commit adds.

    Raises:
        BadRequest: many rows of too many files are deleted.
    """
    chosen = too_many_to_inline(of_added)
    _check_number(chosen)
    return RowDeletes(
        large=[_new_file_delete(n, of_added.pop(n)) for n in chosen], of_added=of_added
    )


def take_added_positions(
    added: Sequence[WrittenFile], positions: Positions
) -> dict[int, Sequence[int]]:
    """Remove the positions in files that a commit adds; they are given by the index of the file.

    Raises:
        BadRequest: a file has no row at a position.
    """
    numbers = {normalised(file.file_path): n for n, file in enumerate(added)}
    of_added = {numbers[path]: positions.pop(path) for path in numbers if path in positions}
    for number, deleted in of_added.items():
        check_positions(deleted, added[number].record_count)
    return of_added


def _new_file_delete(number: int, positions: Sequence[int]) -> LargeDelete:
    return LargeDelete(number, "", positions)


def _check_number(delete_files: Sequence[object]) -> None:
    if len(delete_files) > MOST_DELETE_FILES:
        raise too_much(f"{MOST_DELETE_FILES:,} data files of which it deletes many rows")


Key = tuple[bool, int]
"""Whether the commit adds a data file, and its index or its id."""


@dataclass(frozen=True, slots=True)
class RemovalFinder:
    """Finds what a commit to one table ends."""

    state: TableState
    reader: ObjectReader
    is_materialized: bool = True
    """Whether virtual files are real objects: then uploads are where their locations say."""

    def find(self, net: NetChange, *, ends_all: bool = False) -> RowDeletes:
        """Find the files and rows that end with this change.

        Args:
            ends_all: all rows end, without a removal of each file.

        Raises:
            CommitFailed: a file that is removed, or whose rows are deleted, is not in the table.
            BadRequest: DuckLake cannot represent the deletes.
        """
        if ends_all:
            return RowDeletes(large=flushed_deletes(self.state))
        if not (net.removed or net.added_deletes or net.removed_deletes or net.lost):
            return NOTHING
        of_client = self._lake_positions(self.client_deletes.positions(net.added_deletes))
        positions = merge_positions([of_client, net.lost])
        of_added = take_added_positions(net.added, positions)
        removed = [normalised(file.file_path) for file in net.removed]
        rows = self._inlined_rows(removed, positions)
        live = self._live({*removed, *positions} - rows.keys())
        ended = [live[path].data_file_id for path in removed if path in live]
        replaced = self._replaced(net.removed_deletes)
        whole, partly = self._deleted(live, positions, set(ended), replaced)
        large = self._take_large(live.values(), partly, of_added)
        files = [*ended, *whole]
        large += flushed_deletes(self.state, files)
        return RowDeletes(files, partly, of_added, _row_ids_by_table(rows.values()), large)

    def _lake_positions(self, positions: Positions) -> Positions:
        """Positions by the locations of the files of the lake, not of those that clients read."""
        own = self.state.files.own_files(positions)
        parts = [
            {own[location].location if location in own else location: rows}
            for location, rows in positions.items()
        ]
        return merge_positions(parts) if own else positions

    @property
    def client_deletes(self) -> ClientDeletes:
        """Reads the delete files of the client."""
        document = self.state.document
        beside = (self.state.location, f"{document.location}/")
        version = document.format_version
        return ClientDeletes(self.reader, self.uploads, beside, version, self._upload_directories())

    @property
    def uploads(self) -> str:
        """The directory of the client's files, with a slash at its end."""
        return f"{data_path(self.state.location, self.state.table.table_uuid)}/"

    def as_deletes(self, net: NetChange, rewrites: Sequence[Rewrite]) -> NetChange:
        """The change in which rewritten data files stay and lose rows, instead of being replaced.

        The files that the client has written for the rows that stay belong to no table
        (docs/developers/decisions/0022-copy-on-write-becomes-deletes.md).

        Raises:
            CommitFailed: a file that is replaced is not in the table.
            Uncertain: it is not certain which rows stay, or it takes too long to find them.
        """
        added = {normalised(file.file_path) for r in rewrites for file in r.added}
        replaced = {normalised(file.file_path) for r in rewrites for file in r.replaced}
        read = [file for r in rewrites for file in (*r.replaced, *r.added)]
        if sum(file.file_size_in_bytes for file in read) > MOST_REWRITTEN_BYTES:
            raise Uncertain(f"it rewrites more than {MOST_REWRITTEN_BYTES >> 20} MB of them")
        if sum(file.record_count for file in read) > MOST_REWRITTEN_ROWS:
            raise Uncertain(f"it rewrites more than {MOST_REWRITTEN_ROWS:,} rows of them")
        lost: dict[str, Sequence[int]] = {}
        for rewrite in rewrites:
            lost |= self._lost(rewrite)
        return replace(
            net,
            added=[file for file in net.added if normalised(file.file_path) not in added],
            removed=[file for file in net.removed if normalised(file.file_path) not in replaced],
            lost=lost,
        )

    def _lost(self, rewrite: Rewrite) -> dict[str, Sequence[int]]:
        """The positions of all deleted rows, by the location of the replaced data file."""
        paths = [normalised(file.file_path) for file in rewrite.replaced]
        inlined = self._inlined_rows(paths, {})
        live = self._live(set(paths) - inlined.keys())
        before = self.state.files.live_rows().deleted(file.data_file_id for file in live.values())

        def replaced() -> Iterator[OldFile]:
            for path in paths:
                if path in inlined:
                    yield OldFile(self.state.files.body_at(path) or b"", ())
                else:
                    deleted = before.get(live[path].data_file_id, ())
                    yield OldFile(self.reader.read(_location(self.state, live[path])), deleted)

        document = self.state.document
        [fields] = [s.fields for s in document.schemas if s.schema_id == document.current_schema_id]
        try:
            staying = kept_rows([*replaced()], [*map(self._upload, rewrite.added)], fields)
        except (NoSuchKey, Misconfigured, Unreadable):
            raise Uncertain("one of these files cannot be read") from None
        counts = [file.record_count for file in rewrite.replaced]
        return {
            path: difference(range(count), positions)
            for path, count, positions in zip(paths, counts, staying, strict=True)
        }

    def _upload(self, file: WrittenFile) -> bytes:
        """A data file that the client has written."""
        relative(file.file_path, self.uploads, "a data file")
        size = file.file_size_in_bytes
        # One byte more, to see that the file ends there.
        body = self.reader.read_range(normalised(file.file_path), 0, size + 1)
        if len(body) != size:
            raise Unreadable("it is longer or shorter than the manifest says")
        return body

    def _upload_directories(self) -> tuple[str, str]:
        """The directory of the virtual files, and where uploads to it are."""
        directory = f"{self.state.document.location}/"
        if self.is_materialized:
            return directory, directory
        return directory, upload_location(directory, self.state.lake.lake.data_path)

    def _take_large(
        self,
        live: Iterable[LiveFile],
        positions: dict[int, Sequence[int]],
        of_added: dict[int, Sequence[int]],
    ) -> list[LargeDelete]:
        """Take the deletes that are too many to inline out of `positions`: for delete files."""
        deleted: dict[Key, Sequence[int]] = {(False, id_): p for id_, p in positions.items()}
        deleted |= {(True, n): p for n, p in of_added.items()}
        chosen = too_many_to_inline(deleted)
        _check_number(chosen)
        added = [_new_file_delete(n, of_added.pop(n)) for is_added, n in chosen if is_added]
        stored = {id_: positions.pop(id_) for is_added, id_ in chosen if not is_added}
        return added + large_deletes(self.state, stored, live)

    def _inlined_rows(
        self, removed: Iterable[str], positions: Positions
    ) -> dict[str, set[tuple[str, int]]]:
        """The inlined rows that end, by the location of their virtual file."""
        rows: dict[str, set[tuple[str, int]]] = {}
        is_removed = set(removed)
        snapshot_id = self.state.head.sequence_number if self.state.head else -1
        for path in dict.fromkeys([*is_removed, *positions]):
            name = self._virtual(path)
            if name is None:
                continue
            is_rows = name.kind == "rows"
            ids = self.state.files.live_rows().inlined(name, snapshot_id) if is_rows else None
            if ids is None:
                raise _gone()
            deleted = positions.get(path, ())
            check_positions(deleted, len(ids))
            rows[path] = set(ids if path in is_removed else [ids[n] for n in deleted])
        return rows

    def _live(self, paths: Iterable[str]) -> dict[str, LiveFile]:
        """The live data files at these locations; each must be one."""
        locations = set(paths)
        if not locations:
            return {}
        directory = normalised(self.state.location)
        rows = queries.live_files(self.state.table.table_id, directory, [*locations])
        files = {
            normalised(_location(self.state, file)): file for file in rows.run(self.state.lake.con)
        }
        if files.keys() != locations:
            raise _gone()
        return files

    def _replaced(self, removed: Iterable[WrittenFile]) -> set[int]:
        """The data files whose virtual delete files the commit removes."""
        names = [self._virtual(file.file_path) for file in removed]
        return {name.numbers[0] for name in names if name is not None and name.kind in DELETES}

    def _deleted(
        self,
        live: Mapping[str, LiveFile],
        positions: Positions,
        ended: set[int],
        replaced: set[int],
    ) -> tuple[list[int], dict[int, Sequence[int]]]:
        """The data files that lose all rows, and the newly deleted rows of others."""
        by_id = {
            file.data_file_id: (file, positions.get(path, ()))
            for path, file in live.items()
            if file.data_file_id not in ended
        }
        before = self.state.files.live_rows().deleted((by_id.keys() | replaced) - ended)
        for id_ in replaced - ended - by_id.keys():
            # Nothing replaces its deletes: its deleted rows, if it has any, would come back.
            new_positions((), before.get(id_, ()), 1, is_replaced=True)
        whole, partly = [], {}
        for id_, (file, after) in sorted(by_id.items()):
            new = new_positions(
                after, before.get(id_, ()), file.record_count, is_replaced=id_ in replaced
            )
            if new is None:
                whole.append(id_)
            elif new:
                partly[id_] = new
        return whole, partly

    def _virtual(self, location: str) -> Name | None:
        try:
            return self.state.files.name_at(location)
        except NoSuchKey:
            raise _gone() from None


def _row_ids_by_table(groups: Iterable[Iterable[tuple[str, int]]]) -> dict[str, list[int]]:
    row_ids: dict[str, list[int]] = defaultdict(list)
    for table, row_id in sorted({row for group in groups for row in group}):
        row_ids[table].append(row_id)
    return dict(row_ids)


def _gone() -> CommitFailed:
    return CommitFailed(
        "the commit removes a file, or deletes rows of one, that is not in the table any more; "
        "load the table again"
    )


MOST_INLINED = 100_000
"""Rows that one commit may delete as rows in PostgreSQL, which every reader of the table reads
until ducklake_flush_inlined_data writes them to files: with a million of them a native query took
1.3 s more, and our own files took longer than one request may."""

DataFileKey = TypeVar("DataFileKey")

UNDELETE = (
    "the commit brings deleted rows back, which DuckLake cannot do: read them as warehouse=lake@ID "
    "and append them"
)


def new_positions(
    after: Sequence[int], before: Sequence[int], record_count: int, *, is_replaced: bool
) -> Sequence[int] | None:
    """The positions that a commit deletes, ascending; None: all rows of the file are deleted then.

    Args:
        after: the positions in the client's new delete files of the data file, ascending.
        before: the positions that are deleted already, ascending.
        record_count: the rows of the data file.
        is_replaced: the commit removes the delete file that has the positions of `before`.

    Raises:
        BadRequest: a position is outside of the file, or deleted rows come back.
    """
    check_positions(after, record_count)
    if len(after) == record_count:
        return None
    if is_replaced and difference(before, after):
        raise BadRequest(UNDELETE)
    new = difference(after, before)
    return None if len(new) + len(before) == record_count else new


def check_positions(positions: Sequence[int], record_count: int) -> None:
    """Check that a file has rows at ascending positions.

    Raises:
        BadRequest: it has not.
    """
    if positions and not 0 <= positions[0] <= positions[-1] < record_count:
        raise BadRequest(
            f"a delete file of the commit deletes row {positions[-1]} of a data file that has "
            f"{record_count} rows"
        )


def too_many_to_inline(deleted: Mapping[DataFileKey, Sequence[int]]) -> list[DataFileKey]:
    """The data files that lose more rows in a commit than PostgreSQL should keep.

    Those with the most deleted rows come first, until the others together have few: so there are as
    few delete files as possible, and only large ones.

    Args:
        deleted: the new positions of each data file.
    """
    left = sum(map(len, deleted.values()))
    chosen = []
    for key in sorted(deleted, key=lambda key: len(deleted[key]), reverse=True):
        if left <= MOST_INLINED:
            break
        chosen.append(key)
        left -= len(deleted[key])
    return chosen
