"""The files that a scan of one table reads, found without any manifest.

They have the names and the sizes that manifests give them. A client opens a file by its size, so
files of inlined rows and of deletes are built if nobody knows their size yet; but only those that
the answer names.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.connection.statements import run_batched
from ..ducklake.history import state_at
from ..ducklake.rows.conditions import Condition, PlannedFile
from ..ducklake.rows.data_files import DataFile
from ..iceberg import manifest
from ..iceberg.manifest import FileContent
from ..translate.columns.schemas import Schemas
from ..translate.fingerprints import fingerprint
from ..translate.manifests import delete_entry
from .content.deletes import Deletes, deletes_of
from .content.manifests import TableManifests
from .names import Name
from .summarized_files import Summary
from .table_context import TableContext

AT_ONCE = 50
"""Delete files that are built before the time is checked."""


@dataclass(frozen=True, slots=True)
class ScanFiles:
    """The files of one table."""

    con: Connection
    table: TableContext
    manifests: TableManifests
    location: Callable[[Name], str]
    summaries: Callable[[Iterable[Name]], list[Summary]]
    check_time: Callable[[str, int, int], None]
    """Raises ServiceUnavailable if the request takes too long."""

    @property
    def schemas(self) -> Schemas:
        """The schemas of the table."""
        return self.table.schemas

    @property
    def have_constants(self) -> bool:
        """Whether the value of a column is in the path of some files, and not in the files."""
        return any(self.table.history.partitioning.constants.values())

    def fingerprint(self, snapshot_id: int) -> str:
        """Of the data files that a snapshot shows: equal if and only if they are the same."""
        data = state_at(self.table.history.events, snapshot_id)["data"]
        return fingerprint(self.table.location, data.files, data.hash)

    def have_deletes(self, snapshot_id: int) -> bool:
        """Whether rows of some data files are hidden at a snapshot."""
        state = state_at(self.table.history.events, snapshot_id)
        return bool(state["hidden"].files or state["partial"].files)

    def find(
        self,
        snapshot_id: int,
        span: tuple[int, int],
        condition: Condition,
        page_files: int,
        pages: int,
    ) -> list[PlannedFile]:
        """Data files that may hold a row that is wanted. Arguments: as `queries.planned_files`."""
        history = self.table.history
        [found] = run_batched(
            self.con,
            queries.planned_files(
                history.lake,
                history.table.table_id,
                snapshot_id,
                span,
                condition,
                page_files,
                pages,
            ),
        )
        # Two rows of statistics give a file twice.
        return [*{one.file.data_file_id: one for one in found}.values()]

    def data_files(self, files: Iterable[DataFile]) -> Iterator[manifest.DataFile]:
        """Data files in Iceberg's words.

        Raises:
            Refused: clients would read an added file differently.
        """
        for file in files:
            if file.mapping_id is not None:
                self.manifests.check_added_file(file)
            location = self.table.location_of(file)
            yield manifest.DataFile(
                FileContent.DATA, location, file.record_count, file.file_size_bytes
            )

    def rows_files(self, snapshot_id: int) -> list[manifest.DataFile]:
        """The files of inlined rows at a snapshot.

        Raises:
            Refused: they cannot be built exactly.
        """
        state = state_at(self.table.history.events, snapshot_id)
        wanted = self.table.names.rows_manifests(snapshot_id, state)
        return [file for one in wanted for file in self.manifests.rows_files(one)]

    def delete_files(
        self, snapshot_id: int, files: Sequence[DataFile]
    ) -> dict[str, manifest.DataFile]:
        """The delete file of each of these data files that has one, by the data file's location.

        Raises:
            Refused: one of them cannot be built exactly.
            ServiceUnavailable: building them takes longer than one request may; the next request
                continues.
        """
        if not self.have_deletes(snapshot_id):
            return {}
        deletes = deletes_of(self.con, self.table.history, snapshot_id, files)
        found: dict[str, manifest.DataFile] = {}
        for start in range(0, len(deletes), AT_ONCE):
            some = deletes[start : start + AT_ONCE]
            for one, summary in zip(some, self._summaries(some), strict=True):
                data_file = self.table.location_of(one.data_file)
                found[data_file] = self._delete_file(one, data_file, summary, snapshot_id)
            self.check_time("delete files", len(found), len(deletes))
        return found

    def _summaries(self, deletes: Iterable[Deletes]) -> list[Summary]:
        return self.summaries(self.table.deletes_name(one) for one in deletes)

    def _delete_file(
        self, deletes: Deletes, data_file: str, summary: Summary, snapshot_id: int
    ) -> manifest.DataFile:
        return delete_entry(
            self.location(self.table.deletes_name(deletes)),
            data_file,
            (),
            summary["record_count"],
            summary["file_size_in_bytes"],
            deletes.changed_at,
            snapshot_id,
        ).data_file
