"""The lake and its objects: schemas, tables, columns, views, snapshots, rights, versions."""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from ...runtime.errors import Refused
from ...runtime.namespaces import Namespace, dotted
from .files import FileGroup
from .lifetimes import INLINED_COLUMNS, Lifetime, is_visible

VIEW_VERSION = "polynya.view-version"
"""The key of the tag with the view version that an Iceberg client gave with a view's text."""


STAGED = "polynya.staged-snapshot."
"""The prefix of the key of a tag with a client's snapshot that is not in the branch main; the rest
of the key is the snapshot's id."""

IDENTIFIER_FIELDS = "polynya.identifier-fields"
"""The key of the tag with the ids of the columns that identify a row, with commas between them."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A row of ducklake_schema."""

    schema_id: int
    schema_name: str
    path: str
    path_is_relative: bool
    parents: Namespace = ()
    """The names of the schemas that it is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All of its levels."""
        return (*self.parents, self.schema_name)

    @property
    def full_name(self) -> str:
        """Its name for people."""
        return dotted(*self.namespace)

    def name_of(self, name: str) -> str:
        """The full name of a table or a view in it, for people."""
        return dotted(*self.namespace, name)


@dataclass(frozen=True, slots=True)
class Table:
    """A row of ducklake_table."""

    table_id: int
    table_uuid: str
    begin_snapshot: int
    """When the table began, not its newest name: the smallest of all rows with this table_id."""
    end_snapshot: int | None
    schema_id: int
    table_name: str
    path: str
    path_is_relative: bool


@dataclass(frozen=True, slots=True)
class View:
    """A row of ducklake_view."""

    view_id: int
    view_uuid: str
    begin_snapshot: int
    """When this text and name began: a view that is altered or renamed has several rows."""
    begin_time: datetime | None
    """When that snapshot was made; None if it has expired."""
    view_name: str
    dialect: str
    sql: str


@dataclass(frozen=True, slots=True)
class ViewText:
    """The text of a view since a snapshot."""

    begin_snapshot: int
    begin_time: datetime | None
    """When that snapshot was made; None if it has expired."""
    sql: str
    client_version: str | None
    """The view version, as JSON, of the Iceberg client that has written this text."""


@dataclass(frozen=True, slots=True)
class NameNow:
    """The newest name of a table or a view."""

    kind: str
    """`table` or `view`."""
    object_id: int
    schema_id: int
    schema_name: str
    name: str
    parents: Namespace = ()
    """The names of the schemas that its schema is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All levels of its schema."""
        return (*self.parents, self.schema_name)


@dataclass(frozen=True, slots=True)
class Tag:
    """A row of ducklake_tag or ducklake_column_tag."""

    object_id: int
    """The table or view; in a column tag the column."""
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class IdentifierFields:
    """The columns that identify a row according to clients, at a range of snapshots."""

    begin_snapshot: int
    end_snapshot: int | None
    column_ids: tuple[int, ...]


MARK_OF_1_1 = "ducklake_data_file.row_group_count"
"""A column that catalogs of version 1.1 have, and older ones do not."""

ADDED = (
    *(MARK_OF_1_1, "ducklake_delete_file.row_group_count"),
    *("ducklake_file_column_stats.min_is_exact", "ducklake_file_column_stats.max_is_exact"),
    *("ducklake_table_column_stats.min_is_exact", "ducklake_table_column_stats.max_is_exact"),
)
"""The columns of 1.1 that commits fill, as `table.column`."""

PREFIX = "_ducklake_"
"""The prefix of the system columns of inlined rows since 1.1; no user's column has it there."""

POSTGRES_COLUMNS = frozenset({"ctid", "cmin", "cmax", "xmin", "xmax", "tableoid"})
"""Columns of each table in PostgreSQL."""


def is_reserved(column_name: str, *, is_1_1: bool) -> bool:
    """Whether a table of inlined rows cannot have a user's column of this name.

    With such a column at the top level, `set_option('data_inlining_row_limit', …)` would fail for
    the whole lake, or each INSERT of few rows.

    Args:
        is_1_1: the catalog has version 1.1.
    """
    # PostgreSQL's names too, because DuckLake compares all names without letter case.
    folded = column_name.casefold()
    # 1.0 itself reserves two names with the prefix; with any other, the migration to 1.1 stops.
    return (
        folded.startswith(PREFIX)
        or folded in POSTGRES_COLUMNS
        or (not is_1_1 and folded in INLINED_COLUMNS)
    )


class Layout(frozenset[str]):
    """The columns, as `table.column`, of the tables whose columns differ between catalog versions.

    The columns count, not the version: 1.1-dev1 may have any of the additions.
    https://ducklake.select/docs/stable/duckdb/maintenance/upgrading
    """

    __slots__ = ()

    @property
    def is_1_1(self) -> bool:
        """Whether DuckLake treats the catalog as one of version 1.1.

        The migration renames the system columns of inlined tables before it adds a column.
        """
        return MARK_OF_1_1 in self

    @property
    def inlined_columns(self) -> tuple[str, ...]:
        """The system columns of a new table of inlined rows."""
        return tuple(PREFIX * self.is_1_1 + name for name in INLINED_COLUMNS)

    def lacks(self, table: str, column: str) -> bool:
        """Whether a column is one of those that this catalog does not have."""
        name = f"{table}.{column}"
        return name in ADDED and name not in self

    def rows(
        self, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        """The columns of a table that this catalog has, and the rows without the others."""
        places = [n for n, name in enumerate(names) if not self.lacks(table, name)]
        if len(places) == len(names):
            return names, rows
        if len(places) < 2:  # `itemgetter` returns no tuple for one item
            return [names[n] for n in places], [[row[n] for n in places] for row in rows]
        return [names[n] for n in places], [*map(itemgetter(*places), rows)]


ALL = Layout(ADDED)
"""The layout of the newest version."""


SMALL_BYTES = 8 * 1024 * 1024
"""Some 70,000 columns of files, which PostgreSQL scans in 8 ms."""

LARGE_BYTES = 16 * 1024 * 1024
"""Some 140,000 columns of files, whose metadata files take one to three seconds to make."""

MOST_TRANSACTIONS = 1000


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The transactions whose rows a transaction sees: PostgreSQL's `pg_snapshot`.

    Only a transaction that writes has an id. All that see the same state see the same rows.
    https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT
    """

    server: str
    """When the server was started, and when it last recovered from a crash: it may give ids again
    after one."""
    xmin: int
    """All transactions with lower ids had ended."""
    xmax: int
    """No transaction with this id or a higher one had ended."""
    running: frozenset[int] = frozenset()
    """The ids between the two that had not ended."""
    is_committed: bool = field(default=True, compare=False)
    """False: the transaction sees its own rows, under the id before `xmax` (it has no savepoints),
    and may still be rolled back."""

    def includes(self, other: "CatalogState") -> bool:
        """Whether this state shows all rows that another one shows."""
        if self.server != other.server or self.xmax < other.xmax:
            return False
        return all(id_ >= other.xmax or id_ in other.running for id_ in self.running)

    def transactions_since(self, earlier: "CatalogState") -> list[str] | None:
        """The ids of all transactions whose rows an earlier state does not show.

        They have 32 bits, as `xmin` of a row. None: they are too many, or not known.
        """
        is_known = earlier.server == self.server and earlier.is_committed
        if not is_known or not 0 <= self.xmax - earlier.xmin <= MOST_TRANSACTIONS:
            return None
        return [str(number % 2**32) for number in range(earlier.xmin, self.xmax)]

    def ended_since(self, earlier: "CatalogState") -> set[int] | None:
        """The ids of the transactions that have ended since an earlier state; None: not known."""
        if earlier.server != self.server or not 0 <= self.xmax - earlier.xmax <= MOST_TRANSACTIONS:
            return None
        return {*earlier.running, *range(earlier.xmax, self.xmax)} - self.running


@dataclass(frozen=True, slots=True)
class Lake:
    """The lake as a whole: options, newest snapshot, layout of the metadata tables."""

    version: str
    data_path: str
    encrypted: bool
    snapshot_id: int
    layout: Layout
    state: CatalogState | None = field(default=None, compare=False, repr=False)
    """The transactions whose rows are visible; None: not known."""
    file_bytes: int = field(default=0, compare=False, repr=False)
    """The size of the rows about data files and their columns, in bytes."""
    definitions: int = field(default=0, compare=False, repr=False)
    """A hash of the columns, and of the transactions that defined them: ALTER TABLE changes the
    content of rows without writing them."""
    newest_rows: int = 1
    """How many rows have the newest snapshot_id."""

    @property
    def is_small(self) -> bool:
        """Whether a scan of all files takes PostgreSQL no longer than the plan of a statement."""
        return self.file_bytes < SMALL_BYTES

    @property
    def is_large(self) -> bool:
        """Whether the first plan of a table may take longer than clients wait for an object."""
        return self.file_bytes >= LARGE_BYTES

    @property
    def is_1_1(self) -> bool:
        """Whether DuckLake treats the catalog as one of version 1.1."""
        return self.layout.is_1_1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of ducklake_snapshot, with its row of ducklake_snapshot_changes."""

    snapshot_id: int
    snapshot_time: datetime
    changes_made: str
    previous_id: int
    """The snapshot before it that has not expired, of any table; one less if there is none."""
    first_file_id: int
    end_file_id: int
    """The files that were made after the previous snapshot have ids in [first, end)."""
    begins_name: bool = False
    """Since this snapshot, a table that existed before has another name or schema."""


@dataclass(frozen=True, slots=True)
class Window:
    """The snapshots whose changes one listed snapshot shows: after `base_id`, up to `snapshot_id`.

    They are more than one if snapshots in between have expired.
    """

    base_id: int
    snapshot_id: int
    first_file_id: int = 0
    end_file_id: int = 0
    """The files that were made in the window have ids in [first, end)."""
    adds_rows: bool = False
    """Files that were there before may hold rows that were added in the window."""

    @property
    def has_gap(self) -> bool:
        """Whether it also shows changes of snapshots that have expired."""
        return self.base_id < self.snapshot_id - 1


def own_changes(snapshot_id: int) -> Window:
    """The window of a snapshot that shows its own changes only."""
    return Window(snapshot_id - 1, snapshot_id)


def no_changes(snapshot_id: int) -> Window:
    """The state at a snapshot, as later ones show it."""
    return Window(snapshot_id, snapshot_id)


@dataclass(frozen=True, slots=True)
class Column:
    """A row of ducklake_column: one version of a column."""

    column_id: int
    begin_snapshot: int
    end_snapshot: int | None
    column_name: str
    column_type: str
    initial_default: str | None
    parent_column: int | None
    nulls_allowed: bool = True
    """False is certain only at the top level: DuckLake writes it for nested columns too."""
    default_value: str | None = None
    """The text of the value in new rows; None: there is none, or it is an expression."""

    def visible_at(self, snapshot_id: int) -> bool:
        """Whether this version of the column is visible at a snapshot."""
        return is_visible(self.begin_snapshot, self.end_snapshot, snapshot_id)


@dataclass(frozen=True, slots=True)
class MappedName:
    """A row of ducklake_name_mapping: a column in the files that were added with the mapping."""

    mapping_id: int
    column_id: int
    """An ordinal within the mapping, to which `parent_column` refers; no column of the table."""
    source_name: str
    target_field_id: int
    parent_column: int | None
    is_partition: bool | None
    """Its value is in the path of the files (`part=1/…`), not in the files."""


class NewName(NamedTuple):
    """A row of ducklake_name_mapping of a mapping that has no id yet; otherwise as `MappedName`."""

    column_id: int
    source_name: str
    target_field_id: int
    parent_column: int | None = None
    is_partition: bool = False


@dataclass(frozen=True, slots=True)
class SortKey:
    """A row of ducklake_sort_expression."""

    expression: str
    sort_direction: str
    null_order: str


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
    constants: Mapping[int | None, Mapping[int, str]]
    """Columns whose values are in the paths of the files, and their names there, by mapping_id."""
    groups: Mapping[FileGroup, Lifetime]
    """From the begin of a group's first file to the end of its last; ordered by oldest file."""
    current: int | None
    """The partition_id of new files."""
    begins: Sequence[int] = ()
    """The snapshots that changed the partitioning."""
    mapped: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The columns that added files have, in the file or in its path, by mapping_id."""

    @property
    def first_added_file(self) -> int | None:
        """The snapshot of the first file that somebody has added as it was; None: there is none.

        DuckLake does not look for NULL in such a file.
        """
        begins = (
            lifetime.begin_snapshot
            for group, lifetime in self.groups.items()
            if group.mapping_id is not None
        )
        return min(begins, default=None)


@dataclass(frozen=True, slots=True)
class ClientSnapshot:
    """An Iceberg snapshot as a client committed it: a row of `polynya_commits`.

    DuckLake has no place for the snapshot id that a client chose: ducklake_expire_snapshots deletes
    the row of ducklake_snapshot_changes, also that of a table's current snapshot.
    """

    snapshot_id: int
    """DuckLake's snapshot."""
    position: int
    """One commit may add several Iceberg snapshots; the last one is the state of the table."""
    client_snapshot_id: int | None
    """The id that the client chose; None: the commit added no Iceberg snapshot."""
    operation: str | None
    """None in snapshots that are not listed."""
    summary: str | None
    """The client's summary as a JSON object, without `operation`."""


class ChosenIds(NamedTuple):
    """The ids that clients chose for the snapshots of a table; a commit has that of its last one.

    Two arrays of 64 bits, because a table may have millions of commits.
    """

    snapshot_ids: "array[int]"
    """DuckLake's, ascending."""
    client_snapshot_ids: "array[int]"


NO_CHOSEN_IDS = ChosenIds(array("q"), array("q"))


@dataclass(frozen=True, slots=True)
class WriterRights:
    """What a database role needs for commits, and whether it has it, by PostgreSQL's own tables."""

    role: str
    owner: str
    """The owner of DuckLake's tables."""
    may_be_owner: bool
    """Whether the role may create tables as the owner."""
    version: str
    """The version of the catalog."""
    commits_owner: str | None
    """The owner of the table `polynya_commits`; None: there is no such table."""
    readers: list[str]
    """Roles with a grant to read DuckLake's snapshots, and none to read `polynya_commits`."""


# Two quotes within a name end one match and begin the next, so that each text has only one reading.
QUOTED = re.compile('"[^"]*(?:"|$)')

ADDING = frozenset({"inserted_into_table", "inlined_insert"})
DELETING = frozenset({"deleted_from_table", "inlined_delete"})
REWRITING = frozenset(
    {"inline_flush", "flushed_inlined", "merge_adjacent", "compacted_table", "rewrite_delete"}
)
"""The types of changes that add rows, delete rows, and move rows to other files."""

ID = "([0-9]{1,18})"
"""An id in `changes_made`. Python refuses numbers of thousands of digits, and PostgreSQL numbers of
twenty."""

MOST_CHARACTERS = 1_000_000
"""The longest text that is read: about 40,000 changes."""


def quoted(*names: str) -> str:
    """Names as the value of a change: those of a schema and a table, for `created_table`."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def changes_of(changes_made: str, table_id: int) -> frozenset[str]:
    """The types of the changes that name this table by its id, in time linear in the text.

    `changes_made` is a comma list of `type:value`; a value is an id or quoted names, in which a
    quote is written `""`.
    https://ducklake.select/docs/stable/specification/tables/ducklake_snapshot_changes

    Raises:
        Refused: the text is too long.
    """
    if len(changes_made) > MOST_CHARACTERS:
        raise Refused(
            f"a snapshot that changed this table lists more than {MOST_CHARACTERS:,} characters of "
            "changes; ducklake_expire_snapshots removes it"
        )
    if '"' in changes_made:
        changes_made = QUOTED.sub('"', changes_made)  # no id has a quote
    changes = (change.partition(":") for change in changes_made.split(","))
    return frozenset(kind for kind, _, value in changes if value == str(table_id))


CHANGE_OF_ROWS = re.compile(rf"(?:{'|'.join(sorted(ADDING | DELETING | REWRITING))}):{ID}")


def tables_with_other_rows(changes_made: str) -> set[int] | None:
    """The tables whose rows a snapshot changed; None: it changed something else too."""
    if len(changes_made) > MOST_CHARACTERS:
        return None
    changes = [*map(CHANGE_OF_ROWS.fullmatch, changes_made.split(","))]
    return None if None in changes else {int(change[1]) for change in changes if change}


def changes_rows_of_others(changes_made: str, table_id: int) -> bool:
    """Whether a snapshot changed rows of other tables, and nothing else."""
    tables = tables_with_other_rows(changes_made)
    return tables is not None and table_id not in tables


WRITABLE_VERSIONS = ("1.0", "1.1-dev1", "1.1")
"""The versions of DuckLake's catalog that Polynya can write to."""

VERSIONS = f"{', '.join(WRITABLE_VERSIONS[:-1])} and {WRITABLE_VERSIONS[-1]}"
"""The versions, for messages."""
