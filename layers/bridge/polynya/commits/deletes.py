"""The rows that a commit ends, in DuckLake's terms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...ducklake import queries
from ...ducklake.rows.data_files import LiveFile
from ...errors import CommitFailed, NoSuchKey
from ...files.names import Name
from ...iceberg.avro.written import WrittenFile
from ...storage.objects.reader import ObjectReader
from ...translate.commits.net_change import NetChange
from ...translate.commits.new_deletes import (
    check_positions,
    new_positions,
    too_many_to_inline,
)
from ...translate.commits.paths import normalised
from ...translate.write_locations import behind_access_point, data_path
from ..delete_files.planned import (
    MOST_DELETE_FILES,
    LargeDelete,
    flushed_deletes,
    large_deletes,
)
from .client_deletes import ClientDeletes, Positions, too_much
from .table_state import TableState

Key = tuple[bool, int]
"""Whether the commit adds a data file, and its index or its id."""


@dataclass(frozen=True, slots=True)
class Removals:
    """What ends in one table."""

    files: Sequence[int] = ()
    """Ids of data files that end."""
    positions: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """By the id of a data file that stays: rows that are not deleted yet."""
    of_added: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The same by the index of a file that the commit adds."""
    rows: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The ids of inlined rows, by their PostgreSQL table."""
    large: Sequence[LargeDelete] = ()
    """Of other data files so many rows that they get delete files; and deletes of data files that
    end, which are in PostgreSQL yet."""


NOTHING = Removals()


@dataclass(frozen=True, slots=True)
class RemovalFinder:
    """Finds what a commit to one table ends."""

    state: TableState
    reader: ObjectReader
    is_materialized: bool = True
    """Whether virtual files are real objects, so that uploads beside them are where they say."""

    def find(self, net: NetChange, *, ends_all: bool = False) -> Removals:
        """What ends with this change.

        Args:
            ends_all: all rows end, without a removal of each file.

        Raises:
            CommitFailed: a file that is removed, or whose rows are deleted, is not in the table.
            BadRequest: DuckLake cannot represent the deletes.
        """
        state = self.state
        if ends_all:
            return Removals(large=flushed_deletes(state))
        if not (net.removed or net.added_deletes or net.removed_deletes):
            return NOTHING
        location = f"{data_path(state.location, state.table.table_uuid)}/"
        beside = (state.location, f"{state.document.location}/")
        version = state.document.format_version
        deletes = ClientDeletes(self.reader, location, beside, version, self._behind())
        positions = deletes.positions(net.added_deletes)
        added = {normalised(file.file_path): n for n, file in enumerate(net.added)}
        of_added = {added[path]: positions.pop(path) for path in added if path in positions}
        for number, found in of_added.items():
            check_positions(found, net.added[number].record_count)
        removed = [normalised(file.file_path) for file in net.removed]
        rows = self._inlined_rows(removed, positions)
        live = self._live({*removed, *positions} - rows.keys())
        ended = [live[path].data_file_id for path in removed if path in live]
        replaced = self._replaced(net.removed_deletes)
        whole, partly = self._deleted(live, positions, set(ended), replaced)
        large = self._large(live.values(), partly, of_added)
        files = [*ended, *whole]
        large += flushed_deletes(state, files)
        return Removals(files, partly, of_added, _by_table(rows.values()), large)

    def _behind(self) -> tuple[str, str]:
        """The directory of the virtual files, and where uploads to it are."""
        directory = f"{self.state.document.location}/"
        if self.is_materialized:
            return directory, directory
        return directory, behind_access_point(directory, self.state.lake.lake.data_path)

    def _large(
        self,
        live: Iterable[LiveFile],
        positions: dict[int, Sequence[int]],
        of_added: dict[int, Sequence[int]],
    ) -> list[LargeDelete]:
        """Take the deletes out that get delete files."""
        deleted: dict[Key, Sequence[int]] = {(False, id_): p for id_, p in positions.items()}
        deleted |= {(True, n): found for n, found in of_added.items()}
        chosen = too_many_to_inline(deleted)
        if len(chosen) > MOST_DELETE_FILES:
            raise too_much(f"{MOST_DELETE_FILES:,} data files of which it deletes many rows")
        added = [LargeDelete(n, "", of_added.pop(n)) for is_added, n in chosen if is_added]
        stored = {id_: positions.pop(id_) for is_added, id_ in chosen if not is_added}
        return added + large_deletes(self.state, stored, live)

    def _inlined_rows(
        self, removed: Iterable[str], positions: Positions
    ) -> dict[str, set[tuple[str, int]]]:
        """The inlined rows that end, by the location of their virtual file."""
        found: dict[str, set[tuple[str, int]]] = {}
        is_removed = set(removed)
        at = self.state.head.sequence_number if self.state.head else -1
        for path in dict.fromkeys([*is_removed, *positions]):
            name = self._virtual(path)
            if name is None:
                continue
            is_rows = name.kind == "rows"
            ids = self.state.files.live_rows().inlined(name, at) if is_rows else None
            if ids is None:
                raise _gone()
            deleted = positions.get(path, ())
            check_positions(deleted, len(ids))
            found[path] = set(ids if path in is_removed else [ids[n] for n in deleted])
        return found

    def _live(self, paths: Iterable[str]) -> dict[str, LiveFile]:
        """The live data files at these locations; each must be one."""
        wanted = set(paths)
        if not wanted:
            return {}
        directory = normalised(self.state.location)
        relative = [p.removeprefix(directory) for p in wanted if p.startswith(directory)]
        rows = queries.live_files(self.state.table.table_id, relative, [*wanted])
        found = {
            normalised(directory + file.path if file.path_is_relative else file.path): file
            for file in rows.run(self.state.lake.con)
        }
        if found.keys() != wanted:
            raise _gone()
        return found

    def _replaced(self, removed: Iterable[WrittenFile]) -> set[int]:
        """The data files whose virtual delete files the commit removes."""
        names = [self._virtual(file.file_path) for file in removed]
        return {name.numbers[0] for name in names if name is not None and name.kind == "deletes"}

    def _deleted(
        self,
        live: Mapping[str, LiveFile],
        positions: Positions,
        ended: set[int],
        replaced: set[int],
    ) -> tuple[list[int], dict[int, Sequence[int]]]:
        """Data files of which no row remains, and the newly deleted rows of others."""
        by_id = {
            file.data_file_id: (file, positions.get(path, ()))
            for path, file in live.items()
            if file.data_file_id not in ended
        }
        before = self.state.files.live_rows().deleted((by_id.keys() | replaced) - ended)
        for id_ in replaced - ended - by_id.keys():
            # Nothing replaces its deletes.
            new_positions((), before.get(id_, ()), 1, is_replaced=True)
        whole, partly = [], {}
        for id_, (file, after) in sorted(by_id.items()):
            known = before.get(id_, ())
            new = new_positions(after, known, file.record_count, is_replaced=id_ in replaced)
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


def _by_table(groups: Iterable[Iterable[tuple[str, int]]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for table, row_id in sorted({one for group in groups for one in group}):
        found[table].append(row_id)
    return dict(found)


def _gone() -> CommitFailed:
    return CommitFailed(
        "the commit removes a file, or deletes rows of one, that is not in the table any more; "
        "load the table again"
    )
