"""The delete files of a commit, which are put into S3 before its rows are written.

If the commit fails, they stay there until ducklake_delete_orphaned_files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from ...ducklake.writes.new_files import NewDeleteFile
from ...iceberg.deletion_vector import dated_vectors, deletion_vector_positions
from ...iceberg.parquet.delete_files import (
    DeleteFileBytes,
    LakeDeletes,
    StoredDeletes,
    lake_delete_files,
)
from ...runtime.errors import BadRequest, ConcurrentCommit, NoSuchKey
from ...runtime.prefetch import map_in_parallel
from ...storage.object_store import ObjectStore
from ..plan.table_plan import CANNOT_BE_MERGED, LargeDelete, Replaced, TablePlan


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Where the lake's delete files are read from and written to."""

    objects: ObjectStore

    def uploaded(self, plan: TablePlan, snapshot_id: int) -> TablePlan:
        """The plan with delete files that fit the snapshot, all of which are in S3.

        Raises:
            ConcurrentCommit: a delete file that is to be replaced is gone.
            BadRequest: one of them cannot be replaced exactly.
            Misconfigured: this process may not write to the table's directory.
            ServiceUnavailable: S3 does not answer.
        """
        # Called before the claim, because other writers wait from then on, and again after it: a
        # file that replaces another one has the snapshot's id in its rows, and another writer may
        # have taken the expected id.
        large = plan.deletes.large
        fitting = {
            n: file
            for n, file in enumerate(plan.delete_files)
            if _fits(large[n], file, snapshot_id)
        }
        missing = [n for n in range(len(large)) if n not in fitting]
        if not missing:
            return plan
        written = self._written(plan, [large[n] for n in missing], snapshot_id)
        fitting |= dict(zip(missing, written, strict=True))
        return replace(plan, delete_files=[fitting[n] for n in range(len(large))])

    def _written(
        self, plan: TablePlan, large: Sequence[LargeDelete], snapshot_id: int
    ) -> list[NewDeleteFile]:
        stored = map_in_parallel(self._stored, [delete.replaces for delete in large])
        deletes = [
            LakeDeletes(
                _data_file(plan, delete),
                delete.positions,
                snapshot_id,
                before,
                [(row.position or 0, row.begin_snapshot) for row in delete.flushed],
            )
            for delete, before in zip(large, stored, strict=True)
        ]
        files = lake_delete_files(deletes)
        named = [(f"ducklake-{uuid4()}-delete.parquet", file) for file in files]
        map_in_parallel(
            lambda pair: self.objects.write(plan.location + pair[0], pair[1].body), named
        )
        return [
            _new(name, file, delete, snapshot_id)
            for (name, file), delete in zip(named, large, strict=True)
        ]

    def _stored(self, replaced: Replaced | None) -> StoredDeletes | None:
        """The content of a delete file that is replaced."""
        if replaced is None:
            return None
        try:
            body = self.objects.read(replaced.location)
        except NoSuchKey:
            raise ConcurrentCommit(
                "a delete file of the table was replaced; load it again"
            ) from None
        if replaced.file.format == "parquet":
            return StoredDeletes(body, replaced.file.begin_snapshot)
        if len(dated_vectors(body)) > 1:
            # A flush wrote it, although its row in the catalog does not show it (`partial_max` is
            # NULL).
            raise BadRequest(CANNOT_BE_MERGED)
        return StoredDeletes(deletion_vector_positions(body), replaced.file.begin_snapshot)


def _fits(large: LargeDelete, file: NewDeleteFile, snapshot_id: int) -> bool:
    """Whether a delete file, if it has deletes of this commit, dates them to this snapshot."""
    return not large.positions or file.partial_max in {None, snapshot_id}


def _data_file(plan: TablePlan, large: LargeDelete) -> str:
    """The location of the data file, as DuckLake spells it."""
    return plan.location_of(plan.added[large.data_file]) if large.is_added else large.location


def _new(name: str, file: DeleteFileBytes, large: LargeDelete, snapshot_id: int) -> NewDeleteFile:
    snapshots = {row.begin_snapshot for row in large.flushed}
    if large.positions:
        snapshots.add(snapshot_id)
    if large.replaces is not None:
        stored = large.replaces.file
        snapshots |= {stored.begin_snapshot, stored.partial_max or stored.begin_snapshot}
    first, last = min(snapshots), max(snapshots)
    return NewDeleteFile(
        path=name,
        delete_count=file.rows,
        file_size_bytes=len(file.body),
        footer_size=file.footer_size,
        row_group_count=file.row_group_count,
        first_snapshot=first,
        # Also if there is one snapshot only, as DuckLake's flush writes it.
        partial_max=last if large.flushed or large.replaces else None,
    )
