"""The files of a scan that are generated: those of inlined rows and of deletes."""

from collections.abc import Sequence
from typing import Protocol

from ...ducklake.rows.conditions import Condition
from ...iceberg.manifest import DataFile
from ..content.deletes import Deletes


class GeneratedFiles(Protocol):
    """Names generated files in Iceberg's words, with the sizes by which clients open them."""

    @property
    def are_listed(self) -> bool:
        """Whether manifests give the files the same names."""
        ...

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows at a snapshot that may hold a row that is wanted.

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
