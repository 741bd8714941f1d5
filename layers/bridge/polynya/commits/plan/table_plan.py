"""What a commit will change in one table, which may be a new one.

The job `ingest` makes plans too. Its package has no pydantic: nothing here may import `rest`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...ducklake.column_tree import ColumnNode, NewColumn
from ...ducklake.rows.files import DeleteFile, InlinedDelete
from ...ducklake.rows.objects import PartitionColumn
from ...ducklake.writes.new_files import NewDataFile, NewDeleteFile
from ...ducklake.writes.new_snapshot import CommitRow
from ...ducklake.writes.staged_files import StagedFile
from ...iceberg.manifest import PartitionField
from ...mapping.partitions import ClientSpecs
from ...runtime.namespaces import Namespace

Keys = tuple[tuple[str, str, str], ...]
"""Expression, direction and order of NULLs of each key."""


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that does not exist yet."""

    schema_id: int
    namespace: Namespace
    """All levels of the schema's name."""
    table_uuid: str
    table_name: str
    path: str
    columns: tuple[ColumnNode, ...]
    partition_keys: tuple[PartitionColumn, ...] = ()
    partition_fields: tuple[PartitionField, ...] = ()
    """The spec as the client gave it; without keys DuckLake does not have it."""
    sort_keys: Keys = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    path_is_relative: bool = True
    """To the directory of the schema."""
    last_column_id: int = 0
    """The greatest id that a column ever had, if it is greater than those of the columns: files may
    have it."""
    left_behind: str = ""
    """Names of what it does not take over from the table that is registered."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What changes in the columns of a table."""

    columns: tuple[ColumnNode, ...]
    """All columns after the change."""
    added: tuple[NewColumn, ...] = ()
    changed: tuple[ColumnNode, ...] = ()
    """Columns with their new names, types and NOT NULL; nested ones have entries of their own."""
    dropped: tuple[int, ...] = ()
    """Ids, those of nested columns included."""
    comments: Mapping[int, str | None] = field(default_factory=dict)
    """New comments by column_id; None: the comment ends."""
    is_reshaped: bool = False
    """Whether names, types or the number of columns change."""
    widened_floats: tuple[int, ...] = ()
    """The columns that were float32, and are float64."""

    @property
    def is_empty(self) -> bool:
        """Whether the table has this schema already."""
        return not (self.added or self.changed or self.dropped or self.comments)


@dataclass(frozen=True, slots=True)
class Alteration:
    """What changes in an existing table beside its rows and its tags."""

    schema: SchemaChange | None = None
    partition_keys: tuple[PartitionColumn, ...] | None = None
    """None: unchanged; empty: not partitioned any more, for DuckLake."""
    partition_fields: tuple[PartitionField, ...] | None = None
    """The new spec as the client gave it; None: unchanged."""
    former_specs: ClientSpecs = field(default_factory=dict)
    """The specs that clients gave before."""
    sort_keys: Keys | None = None
    """None: unchanged; empty: not sorted any more."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        changes = (self.schema, self.partition_keys, self.partition_fields, self.sort_keys)
        return all(change is None for change in changes)


UNALTERED = Alteration()


@dataclass(frozen=True, slots=True)
class Replaced:
    """A delete file whose deletes will be in a new one too."""

    file: DeleteFile
    location: str
    path: tuple[str, bool]
    """The path in the catalog, and whether it is relative to the lake's data path."""


@dataclass(frozen=True, slots=True)
class LargeDelete:
    """The deletes in the new delete file of a data file that no file had before."""

    data_file: int
    """Its id, or the index of a file that the commit adds."""
    location: str
    """Where the data file is; empty if the commit adds it."""
    positions: Sequence[int] = ()
    """Ascending; rows that the commit deletes, too many to inline them."""
    replaces: Replaced | None = None
    flushed: Sequence[InlinedDelete] = ()
    """Deletes that PostgreSQL has, ascending by position: the data file ends with this commit."""

    @property
    def is_added(self) -> bool:
        """Whether the commit adds the data file."""
        return not self.location


CANNOT_BE_MERGED = (
    "the commit deletes many rows of a data file whose delete files cannot be merged: CALL "
    "ducklake_rewrite_data_files in DuckDB and delete again, or let the client rewrite the files "
    "(write.delete.mode=copy-on-write)"
)


@dataclass(frozen=True, slots=True)
class RowDeletes:
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
    """Deletes that go into delete files: of data files that lose too many rows to inline them, and
    those in PostgreSQL of data files that end."""


NOTHING = RowDeletes()


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """What changes in the files of the snapshots that are not of main."""

    added: Sequence[StagedFile] = ()
    removed: Sequence[str] | None = ()
    """The paths of those that are no longer staged; None: all of the table."""


NO_STAGED_FILES = StagedFiles()


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The changes of one table, determined before the transaction that makes them."""

    table_uuid: str
    table: NewTable | int
    """A table that is created, or the id of one that exists."""
    columns: tuple[ColumnNode, ...]
    """The columns of the table after the commit."""
    commits: Sequence[CommitRow] = ()
    location: str = ""
    """The directory of the table, with a slash at its end."""
    added: Sequence[NewDataFile] = ()
    partition_id: int | None = None
    """The partitioning that the values of the added files belong to; a new one has no id yet."""
    deletes: RowDeletes = NOTHING
    delete_files: Sequence[NewDeleteFile] = ()
    """Those for the large deletes of `deletes`, in order, once they are in S3."""
    ends_all: bool = False
    """All rows that the table has end first."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """New values of tags; None: the tag ends."""
    alteration: Alteration = UNALTERED
    staged_files: StagedFiles = NO_STAGED_FILES

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write: the table is as the commit wants it."""
        has_rows = self.added or self.ends_all or self.deletes != NOTHING
        is_altered = self.tags or not self.alteration.is_empty
        is_listed = any(row.client_snapshot_id is not None for row in self.commits)
        return isinstance(self.table, int) and not (has_rows or is_altered or is_listed)

    @property
    def only_adds_files(self) -> bool:
        """Whether the plan only adds data files with field ids to a table that exists."""
        changes_more = self.ends_all or self.tags or not self.alteration.is_empty
        return (
            isinstance(self.table, int)
            and self.deletes == NOTHING
            and not changes_more
            and not any(file.names for file in self.added)
        )

    def location_of(self, file: NewDataFile) -> str:
        """Where an added file is."""
        return self.location + file.path if file.path_is_relative else file.path
