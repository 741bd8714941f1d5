"""How the files of a table are partitioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .data_files import FileGroup
from .lifetimes import Lifetime


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A row of ducklake_partition_column."""

    partition_key_index: int
    column_id: int
    transform: str


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the files of a table are partitioned, now and before."""

    columns: Mapping[int | None, Sequence[PartitionColumn]]
    """By partition_id."""
    column_types: Mapping[int, frozenset[str]]
    """Every type that a column ever had, by column_id."""
    constants: Mapping[int | None, Sequence[int]]
    """Columns whose values are in the paths of the files, by mapping_id."""
    groups: Mapping[FileGroup, Lifetime]
    """From the begin of a group's first file to the end of its last; ordered by oldest file."""
    current: int | None
    """The partition_id of new files."""
    begins: Sequence[int] = ()
    """The snapshots that changed the partitioning."""

    @property
    def first_added_file(self) -> int | None:
        """The snapshot of the first file that somebody has added as it was; None: there is none.

        DuckLake does not look for NULL in such a file.
        """
        begins = (
            one.begin_snapshot for of, one in self.groups.items() if of.mapping_id is not None
        )
        return min(begins, default=None)
