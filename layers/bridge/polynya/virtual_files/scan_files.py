"""The data files and delete files that a scan of one table reads, found without any manifest.

The files of inlined rows and of deletes are generated. `GeneratedFiles` is what a scan needs of
them; `ListedFiles` gives those that manifests list, for the delivery `materialize`, where the files
of every listed snapshot are in the bucket: it builds the missing ones, because a client needs their
sizes. `padded.PaddedFiles` names them before they are built, for `object-lambda`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.connection.catalog_connection import run_batched
from ..ducklake.history import state_at
from ..ducklake.rows.files import Condition, PlannedFile
from ..ducklake.rows.files import DataFile as CatalogFile
from ..iceberg import manifest
from ..iceberg.manifest import DataFile, FileContent
from ..mapping.manifests import fingerprint
from ..mapping.partitions import Partitions
from ..mapping.scan_tasks import may_hold
from ..mapping.schemas import Schemas
from .contexts import TableContext
from .deletes import Deletes, deletes_of
from .manifest_lists import Summary
from .manifests import TableManifests
from .names import Name


class GeneratedFiles(Protocol):
    """Names generated files in Iceberg's words, with the sizes by which clients open them."""

    @property
    def uses_manifest_names(self) -> bool:
        """Whether manifests give the files the same names."""
        ...

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows at a snapshot that may hold a row of the scan.

        Raises:
            Refused: they cannot be built exactly.
        """
        ...

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file, in order.

        Raises:
            Refused: one of them cannot be built exactly.
            ServiceUnavailable: building them takes longer than one request may; the next request
                continues.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScanFiles:
    """The files of one table."""

    con: Connection
    table: TableContext
    generated: GeneratedFiles
    check_added_file: Callable[[CatalogFile], None]
    """Raises Refused for a file that clients would read differently."""

    @property
    def schemas(self) -> Schemas:
        """The schemas of the table."""
        return self.table.schemas

    @property
    def partitions(self) -> Partitions:
        """The partition specs of the table."""
        return self.table.partitions

    @property
    def has_hive_partitions(self) -> bool:
        """Whether the value of a column is in the path of some files, and not in the files."""
        return any(self.table.history.partitioning.constants.values())

    def inlined_rows_renamed(self, snapshot_id: int) -> bool:
        """Whether files of inlined rows at a snapshot have other names than in manifests.

        A client that removes such a file from the manifests would not find it there, and Spark's
        copy-on-write would add the rows that are left without removing the others.
        """
        state = state_at(self.table.history.events, snapshot_id)
        return bool(state["inlined"].rows) and not self.generated.uses_manifest_names

    def fingerprint(self, snapshot_id: int) -> str:
        """Identify the data files that a snapshot shows: the same text for the same files only."""
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
        """Data files that may hold a row of the scan. Arguments: as `queries.planned_files`."""
        history = self.table.history
        [rows] = run_batched(
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
        return [*{row.file.data_file_id: row for row in rows}.values()]

    def data_files(self, files: Iterable[CatalogFile]) -> Iterator[manifest.DataFile]:
        """Data files in Iceberg's words.

        Raises:
            Refused: clients would read an added file differently.
        """
        has_row_ids = self.table.has_row_ids
        for file in files:
            if file.mapping_id is not None:
                self.check_added_file(file)
            location = self.table.location_of(file)
            yield manifest.DataFile(
                FileContent.DATA,
                location,
                file.record_count,
                file.file_size_bytes,
                first_row_id=file.row_id_start if has_row_ids else None,
            )

    def rows_files(self, snapshot_id: int, condition: Condition) -> list[manifest.DataFile]:
        """The files of inlined rows at a snapshot. Raises: as `GeneratedFiles.rows`."""
        return self.generated.rows(snapshot_id, condition)

    def delete_files(
        self, snapshot_id: int, files: Sequence[CatalogFile]
    ) -> dict[str, manifest.DataFile]:
        """The delete file of each of these data files that has one, by the data file's location.

        Raises: as `GeneratedFiles.deletes`.
        """
        if not self.have_deletes(snapshot_id):
            return {}
        deletes = deletes_of(self.con, self.table.history, snapshot_id, files)
        locations = [self.table.location_of(d.data_file) for d in deletes]
        return dict(zip(locations, self.generated.deletes(deletes), strict=True))


AT_ONCE = 50
"""Delete files that are built before the time is checked."""


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """Names the files of one table; implements `GeneratedFiles`."""

    table: TableContext
    manifests: TableManifests
    location: Callable[[Name], str]
    summaries: Callable[[Iterable[Name]], list[Summary]]
    check_time: Callable[[str, int, int], None]
    """Raises ServiceUnavailable if the request takes too long."""

    @property
    def uses_manifest_names(self) -> bool:
        """True."""
        return True

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows that may be selected: for each part and partition value."""
        manifests = self.table.names.rows_manifests(self.table.history.window(snapshot_id))
        return [
            file
            for manifest in manifests
            for file in self.manifests.rows_files(manifest)
            if may_hold(condition, manifest.spec, file.partition)
        ]

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file."""
        files: list[DataFile] = []
        for start in range(0, len(deletes), AT_ONCE):
            batch = deletes[start : start + AT_ONCE]
            summaries = self.summaries(map(self.table.deletes_name, batch))
            files += map(self._delete_file, batch, summaries)
            self.check_time("delete files", len(files), len(deletes))
        return files

    def _delete_file(self, deletes: Deletes, summary: Summary) -> DataFile:
        return DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=self.location(self.table.deletes_name(deletes)),
            record_count=summary["record_count"],
            file_size_in_bytes=summary["file_size_in_bytes"],
            referenced_data_file=self.table.location_of(deletes.data_file),
        )
