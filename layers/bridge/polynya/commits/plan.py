"""What a commit will change in one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...ducklake.column_tree import ColumnNode
from ...ducklake.rows.partitions import PartitionColumn
from ...ducklake.writes.commits import CommitRow
from ...ducklake.writes.delete_files import NewDeleteFile
from ...ducklake.writes.files import NewDataFile
from ...namespaces import Namespace
from ...translate.commits.schema.change import SchemaChange
from ...translate.commits.schema.sorting import Keys
from .removals import NOTHING, Removals


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that does not exist yet."""

    schema_id: int
    namespace: Namespace
    """All levels of the schema's name."""
    table_uuid: str
    table_name: str
    path: str
    """Relative to the directory of the schema."""
    columns: tuple[ColumnNode, ...]
    partition_keys: tuple[PartitionColumn, ...] = ()
    sort_keys: Keys = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alteration:
    """What changes in an existing table beside its rows and its tags."""

    schema: SchemaChange | None = None
    partition_keys: tuple[PartitionColumn, ...] | None = None
    """None: unchanged; empty: not partitioned any more."""
    sort_keys: Keys | None = None
    """None: unchanged; empty: not sorted any more."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return self.schema is None and self.partition_keys is None and self.sort_keys is None


UNALTERED = Alteration()


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The changes of one table, found out before the transaction that makes them."""

    table_uuid: str
    table: NewTable | int
    """A table that is created, or the id of one that exists."""
    columns: tuple[ColumnNode, ...]
    """Of the table, after the commit."""
    commits: Sequence[CommitRow]
    location: str = ""
    """The directory of the table, with a slash at its end."""
    added: Sequence[NewDataFile] = ()
    partition_id: int | None = None
    """What the partition values of the added files belong to; of a new partitioning it is not known
    yet."""
    removals: Removals = NOTHING
    delete_files: Sequence[NewDeleteFile] = ()
    """Of the large deletes of `removals`, in order, once they are in S3."""
    ends_all: bool = False
    """All rows that the table has end first."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """New values of tags; None: the tag ends."""
    alteration: Alteration = UNALTERED

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write: the table is as the commit wants it."""
        has_rows = self.added or self.ends_all or self.removals != NOTHING
        is_altered = self.tags or not self.alteration.is_empty
        is_listed = any(row.client_snapshot_id is not None for row in self.commits)
        return isinstance(self.table, int) and not (has_rows or is_altered or is_listed)
