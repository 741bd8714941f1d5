"""What a commit will change in one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..ducklake.column_tree import ColumnNode
from ..ducklake.rows.partitions import PartitionColumn
from ..ducklake.writes.commits import CommitRow
from ..ducklake.writes.files import NewDataFile
from .removals import NOTHING, Removals


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that does not exist yet."""

    schema_id: int
    schema_name: str
    table_uuid: str
    table_name: str
    path: str
    """Relative to the directory of the schema."""
    columns: tuple[ColumnNode, ...]
    partition_keys: tuple[PartitionColumn, ...] = ()
    sort_keys: tuple[tuple[str, str, str], ...] = ()
    """Expression, direction and order of NULLs."""
    tags: Mapping[str, str] = field(default_factory=dict)


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
    """What the partition values of the added files belong to; of a new table it is not known."""
    removals: Removals = NOTHING
    ends_all: bool = False
    """All rows that the table has end first."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """New values of tags; None: the tag ends."""
