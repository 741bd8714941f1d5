"""How data files are changed for clients that would misread them as they are.

Such a file begins with the bytes of the data file and ends with a new footer (`new_footer`). Which
clients misread what is in docs/clients/.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from ..ducklake.rows.objects import Column
from ..iceberg.types import Field, Primitive
from .schemas import Schemas, born_at

DEFAULTS = frozenset(("clickhouse", "daft", "datafusion", "flink", "spark", "trino"))
"""They misread a default of columns that files lack: the files get these columns."""
HIDDEN_COLUMNS = frozenset(("polars", "pyiceberg", "spark", "trino"))
"""They fail over the type of a column that they need not read: the files lose these columns."""
UNSIGNED = frozenset(("spark",))
"""They fail over unsigned integers: the files have signed ones, where that is the same."""
ANNOTATED_JSON = frozenset(("polars",))
"""They read JSON as bytes: the files have strings."""
CONVERTED_TYPES = frozenset(("daft",))
"""They find no list and no map by the older converted type alone, which DuckDB 1.5 writes: the
files have logical types, too."""
MILLISECONDS = frozenset(("flink", "spark"))
"""They misread statistics in milliseconds: the files have no statistics of these columns."""
UNORDERED = frozenset(("spark",))
"""They compare UUIDs as signed numbers: files and manifests have no bounds of these columns."""
ANY = frozenset().union(
    DEFAULTS, HIDDEN_COLUMNS, UNSIGNED, ANNOTATED_JSON, CONVERTED_TYPES, MILLISECONDS, UNORDERED
)

UNSIGNED_TYPES = frozenset(("uint8", "uint16", "uint32"))
"""Parquet has them as signed integers of 32 bits with an annotation."""
UNREADABLE_TYPES = UNSIGNED_TYPES | frozenset(("geometry", "interval", "time", "uint64", "variant"))
"""Types over which a client fails although the column is hidden, or was dropped."""
GROUP_TYPES = frozenset(("list", "map"))
JSON_TYPES = frozenset(("json",))
MILLISECOND_TYPES = frozenset(("timestamp_ms",))
UNORDERED_TYPES = frozenset(("uuid",))


class TableChanges(NamedTuple):
    """The changes in all data files of a table; false if there are none."""

    left_out: tuple[int, ...] = ()
    """The columns of the top level that files lose, by column_id."""
    has_signed: bool = False
    """Integers are signed where the statistics of the file prove that this changes no value."""
    has_strings: bool = False
    """JSON is a string."""
    logical_types: int = 0
    """How many lists and maps there are, if they have logical types; otherwise 0."""
    without_statistics: tuple[int, ...] = ()
    """The columns of which files have no statistics, no page indexes and no Bloom filters."""
    without_bounds: tuple[int, ...] = ()
    """Those of them that have no bounds in manifests either, and no statistics in files of inlined
    rows."""

    def __bool__(self) -> bool:
        return any(self)


class Adaptation(NamedTuple):
    """The changes in one data file."""

    snapshot_id: int
    """The snapshot since which it has exactly this."""
    added: tuple[Field, ...]
    """Columns of the top level with their defaults, as they were when they were first shown so.
    The file gets those that it lacks."""
    changes: TableChanges


class ShownFile(NamedTuple):
    """Where clients find a data file, and how long it is there."""

    location: str
    size: int
    """In bytes."""


class _Shown(NamedTuple):
    snapshot_id: int
    field: Field
    born: int


class Adaptations:
    """The changes in data files at each snapshot of a table."""

    def __init__(
        self, schemas: Schemas, columns: Collection[Column], clients: Collection[str]
    ) -> None:
        """No query is sent yet.

        Args:
            columns: all versions of them.
            clients: those that are to read the table, in small letters.
        """
        self._shown = [*_shown_defaults(schemas, columns)] if DEFAULTS.intersection(clients) else []
        self._by_snapshot = [*_changes(schemas, columns, clients)]

    def adaptation_at(self, begin_snapshot: int, snapshot_id: int) -> Adaptation | None:
        """The changes in a data file of DuckLake; None: clients get the file itself.

        A column that is gone stays among the added ones: no client looks for it.

        Args:
            begin_snapshot: of the file. One of the snapshot that added a column may lack it.
            snapshot_id: as of which the file is read.
        """
        since, changes = self._begin_at(snapshot_id)
        fields: dict[int, Field] = {}
        for shown in self._shown:
            if begin_snapshot <= shown.born and shown.snapshot_id <= snapshot_id:
                fields[shown.field.field_id] = shown.field
                since = max(since, shown.snapshot_id)
        if not fields and not changes:
            return None
        return Adaptation(since, (*fields.values(),), changes)

    def fingerprint_parts(self, snapshot_id: int) -> tuple[object, ...]:
        """The changes at a snapshot, for a fingerprint; empty if there are none."""
        if not self.changed_at(snapshot_id):
            return ()
        return (bool(self._shown), *self.changes_at(snapshot_id))

    def described_at(self, snapshot_id: int) -> str:
        """The changes at a snapshot in words; empty if there are none."""
        changes = self.changes_at(snapshot_id)
        has_defaults = any(shown.snapshot_id <= snapshot_id for shown in self._shown)
        words = ["columns that a file lacks have their default"] if has_defaults else []
        words += [text for name, text in WORDS.items() if getattr(changes, name)]
        if {*changes.without_statistics} - {*changes.without_bounds}:
            words.append("times in milliseconds have no statistics")
        return "; ".join(words)

    def changes_at(self, snapshot_id: int) -> TableChanges:
        """The changes in all data files at a snapshot, besides added columns."""
        return self._begin_at(snapshot_id)[1]

    def _begin_at(self, snapshot_id: int) -> tuple[int, TableChanges]:
        """The changes at a snapshot, and the snapshot at which they began."""
        begun = (pair for pair in reversed(self._by_snapshot) if pair[0] <= snapshot_id)
        return next(begun, (0, NOTHING))

    @property
    def filled_in(self) -> frozenset[int]:
        """All columns with a default that files get if they lack them."""
        return frozenset(shown.field.field_id for shown in self._shown)

    def changed_at(self, snapshot_id: int) -> int:
        """The last snapshot, up to this one, at which any file may have changed; 0: none."""
        defaults = (shown.snapshot_id for shown in self._shown)
        ids = chain(defaults, (begin for begin, _ in self._by_snapshot))
        return max((id_ for id_ in ids if id_ <= snapshot_id), default=0)


NOTHING = TableChanges()

WORDS = {
    "left_out": "hidden and dropped columns are left out",
    "has_signed": "unsigned integers are signed where that changes no value",
    "has_strings": "JSON is a string",
    "logical_types": "lists and maps have logical types",
    "without_bounds": "UUIDs have no statistics and no bounds",
}
"""What files have otherwise, by the fields of `TableChanges`."""


def _shown_defaults(schemas: Schemas, columns: Iterable[Column]) -> Iterable[_Shown]:
    born = born_at(columns)
    shown: dict[int, tuple[str, object]] = {}
    for snapshot_id, schema in schemas.by_snapshot:
        for field in schema.fields:
            if isinstance(field.type, Primitive) and field.initial_default is not None:
                value = field.type.name, field.initial_default
                if shown.get(field.field_id) != value:
                    yield _Shown(snapshot_id, field, born[field.field_id])
                shown[field.field_id] = value


def _changes(
    schemas: Schemas, columns: Collection[Column], clients: Collection[str]
) -> Iterable[tuple[int, TableChanges]]:
    """What the types of the columns ask for, and the snapshot since which they do, ascending."""
    types_of = {
        name: types if readers.intersection(clients) else frozenset()
        for name, types, readers in (
            ("left_out", UNREADABLE_TYPES, HIDDEN_COLUMNS),
            ("has_signed", UNSIGNED_TYPES, UNSIGNED),
            ("has_strings", JSON_TYPES, ANNOTATED_JSON),
            ("logical_types", GROUP_TYPES, CONVERTED_TYPES),
            ("without_statistics", MILLISECOND_TYPES, MILLISECONDS),
            ("without_bounds", UNORDERED_TYPES, UNORDERED),
        )
    }
    types = frozenset().union(*types_of.values())
    met = [column for column in columns if column.column_type in types]
    if not met:
        return
    top_level = _top_levels(columns)
    schema_at = dict(schemas.by_snapshot)
    shown: set[int] = set()
    before = NOTHING
    for boundary in sorted(schema_at.keys() | {column.begin_snapshot for column in met}):
        if boundary in schema_at:
            shown = {field.field_id for field in schema_at[boundary].fields}
        ids_of = {
            name: {
                column.column_id
                for column in met  # a dropped one is in files, too
                if column.begin_snapshot <= boundary and column.column_type in types
            }
            for name, types in types_of.items()
        }
        changes = _changes_for(ids_of, shown, top_level)
        if changes != before:
            yield boundary, changes
            before = changes


def _changes_for(
    ids_of: Mapping[str, set[int]], shown: Collection[int], top_level: Mapping[int, int]
) -> TableChanges:
    """The changes of a table whose schema shows some columns of the top level.

    Args:
        ids_of: the columns, at every level, that ask for each change, by its name.
    """
    of_shown = {
        name: {id_ for id_ in ids if top_level[id_] in shown} for name, ids in ids_of.items()
    }
    hidden = {top_level[id_] for id_ in ids_of["left_out"]}.difference(shown)
    without_bounds = of_shown["without_bounds"]
    return TableChanges(
        left_out=(*sorted(hidden),),
        has_signed=bool(of_shown["has_signed"]),
        has_strings=bool(of_shown["has_strings"]),
        logical_types=len(ids_of["logical_types"]),
        without_statistics=(*sorted(of_shown["without_statistics"] | without_bounds),),
        without_bounds=(*sorted(without_bounds),),
    )


def _top_levels(columns: Iterable[Column]) -> Mapping[int, int]:
    """The column of the top level that each column is in, by column_id."""
    parents = {column.column_id: column.parent_column for column in columns}

    def top_level(column_id: int) -> int:
        # As many steps as there are columns, at most: a parent of itself is somebody's mistake.
        for _ in parents:
            parent = parents.get(column_id)
            if parent is None:
                break
            column_id = parent
        return column_id

    return {column_id: top_level(column_id) for column_id in parents}
