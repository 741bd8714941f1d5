"""Generated files as manifests list them, with their sizes: they are built if they are missing.

For the delivery `materialize`: the files of every snapshot that is listed are in the bucket.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...ducklake.rows.conditions import Condition
from ...iceberg.manifest import DataFile, FileContent
from ...translate.planning.inlined import may_hold
from ..content.deletes import Deletes
from ..content.manifests import TableManifests
from ..names import Name
from ..summarized_files import Summary
from ..table_context import TableContext

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
    def are_listed(self) -> bool:
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
        found: list[DataFile] = []
        for start in range(0, len(deletes), AT_ONCE):
            some = deletes[start : start + AT_ONCE]
            summaries = self.summaries(self.table.deletes_name(one) for one in some)
            found += map(self._delete_file, some, summaries)
            self.check_time("delete files", len(found), len(deletes))
        return found

    def _delete_file(self, deletes: Deletes, summary: Summary) -> DataFile:
        return DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=self.location(self.table.deletes_name(deletes)),
            record_count=summary["record_count"],
            file_size_in_bytes=summary["file_size_in_bytes"],
            referenced_data_file=self.table.location_of(deletes.data_file),
        )
