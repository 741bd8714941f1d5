"""How data files are changed for clients that would misread them as they are.

Such a file begins with the bytes of the data file and ends with a new footer (`new_footer`). Which
clients misread what is in docs/clients/.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeVar

from ..ducklake.rows.files import DataFile
from ..ducklake.rows.objects import Column
from ..iceberg.parquet.new_footer import Named
from ..iceberg.table_metadata import LAST_UPDATED, ROW_ID
from ..iceberg.types import AddedField, Field, List, Map, Primitive, Struct, Type, primitives
from .hidden_columns import Hidden
from .name_mappings import Mappings, Path
from .partitions import texts_in_path
from .schemas import Schemas, born_at

T = TypeVar("T")

DEFAULTS = frozenset(("clickhouse", "daft", "datafusion", "flink", "spark", "trino"))
"""They misread a default of columns that files lack: the files get these columns."""
FILTERED_DEFAULTS = DEFAULTS | {"pyiceberg"}
"""They, or their conditions, misread it: PyIceberg compares a date or a time with the text."""
FIELD_DEFAULTS = FILTERED_DEFAULTS | {"duckdb", "sail"}
"""They misread a default of a field of a struct, or conditions on it find it where the struct is
NULL: the files get these fields."""
WITHOUT_COLUMNS = frozenset(("daft",))
"""They apply neither conditions nor deletes to a file that has none of the columns that they read:
the files get all columns that they lack, with NULL."""
BY_SNAPSHOT = frozenset(("clickhouse",))
"""They look for the columns that the table had at the snapshot of a file's entry: that is the
snapshot since which the file has its columns."""
HIDDEN_COLUMNS = frozenset(("polars", "pyiceberg", "spark", "trino"))
"""They fail over the type of a column that they need not read: the files lose these columns."""
HIDDEN_MILLISECONDS = frozenset(("datafusion",))
"""The same with columns in milliseconds, which are hidden if somebody has named the client."""
UNSIGNED = frozenset(("spark",))
"""They fail over unsigned integers: the files have signed ones, where that is the same."""
ANNOTATED_JSON = frozenset(("polars",))
"""They read JSON as bytes: the files have strings."""
CONVERTED_TYPES = frozenset(("daft",))
"""They find no list and no map by the older converted type alone, which DuckDB 1.5 writes: the
files have logical types, too."""
MILLISECONDS = frozenset(("flink", "spark"))
"""They misread statistics in milliseconds: the files have no statistics of these columns."""
PROMOTED_FLOATS = frozenset(("trino",))
"""They fail over statistics of FLOAT in a column that is DOUBLE: the files have none there."""
UNORDERED = frozenset(("spark",))
"""They compare UUIDs as signed numbers: files and manifests have no bounds of these columns."""
MISREAD_ADDED_FILES = DEFAULTS | {"duckdb", "polars", "pyiceberg"}
"""They misread files that somebody has added, read them row by row, fail over the type of a column
that the table lacks, or take a default for a NULL in the path: these files get field ids, the
table's names, and the columns whose values are in their paths, and lose all others."""
CAST_INTEGERS = frozenset(("pyiceberg",))
"""They cast small integers in lists and maps, and a NULL list becomes empty then: the files have
plain integers. Structs in them are cast, too: the files get no such list or map with NULL."""
LINEAGE = frozenset((ROW_ID, LAST_UPDATED))
"""The field ids of the columns in which DuckLake's own files keep the ids of moved rows, and when
these were updated."""
ANY = frozenset().union(
    *(
        FIELD_DEFAULTS,
        WITHOUT_COLUMNS,
        HIDDEN_COLUMNS,
        HIDDEN_MILLISECONDS,
        UNSIGNED,
        ANNOTATED_JSON,
        CONVERTED_TYPES,
        MILLISECONDS,
        PROMOTED_FLOATS,
    ),
    *(UNORDERED, MISREAD_ADDED_FILES, CAST_INTEGERS),
)

SMALL_TYPES = frozenset(("int8", "int16", "uint8", "uint16"))
UNSIGNED_TYPES = frozenset(("uint8", "uint16", "uint32"))
"""Parquet has them as signed integers of 32 bits with an annotation."""
UNREADABLE_TYPES = UNSIGNED_TYPES | frozenset(
    ("geometry", "interval", "time", "timetz", "uint64", "variant")
)
"""Types over which a client fails although the column is hidden, or was dropped."""
GROUP_TYPES = frozenset(("list", "map"))
JSON_TYPES = frozenset(("json",))
MILLISECOND_TYPES = frozenset(("timestamp_ms",))
UNORDERED_TYPES = frozenset(("uuid",))
FLOAT, DOUBLE = "float32", "float64"


class TableChanges(NamedTuple):
    """The changes in all data files of a table; false if there are none."""

    left_out: tuple[int, ...] = ()
    """The columns of the top level that files lose, by column_id."""
    has_signed: bool = False
    """Integers of up to 32 bits have no annotation where the statistics of the file prove that this
    changes no value."""
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

    @property
    def rows_changes(self) -> tuple[object, ...]:
        """The changes in files of inlined rows, for a fingerprint; empty if there are none."""
        return (*self.without_bounds, *(("logical types",) if self.logical_types else ()))


class Adaptation(NamedTuple):
    """The changes in one data file."""

    snapshot_id: int
    """The snapshot since which it has exactly this."""
    added: tuple[AddedField, ...]
    """Columns with their defaults, or with NULL, as they were when they were first shown so; and
    those that are in the path of the file, with the texts there. The file gets those that it
    lacks."""
    changes: TableChanges
    names: Mapping[Path, Named] | None = None
    """The ids and names of all columns of a file that somebody has added, by their paths in it."""
    in_path: Mapping[int, str] = {}
    """The texts that its path has for columns, by column_id."""
    has_plain_milliseconds: bool = False
    """Columns in milliseconds have no statistics in it."""
    doubles: tuple[int, ...] = ()
    """The columns that have no statistics in it if they are FLOAT there, by column_id."""
    shown_ids: frozenset[int] | None = None
    """The columns of the top level that the file keeps, and its bytes show; None: no column is
    hidden from the caller."""


class ShownFile(NamedTuple):
    """Where clients find a data file, and how long it is there."""

    location: str
    size: int
    """In bytes."""
    since: int
    """The snapshot since which it is there."""


NEVER = -1
"""Before all snapshots."""


class _Shown(NamedTuple):
    snapshot_id: int
    field_id: int
    added: AddedField | None
    """None: the column is shown without a default from this snapshot on."""
    born: int
    """The last snapshot whose files may lack it, unless somebody has added them."""

    @property
    def has_default(self) -> bool:
        return self.added is None or self.added.field.initial_default is not None


class AddedFiles(NamedTuple):
    """What is known of the files that somebody has added."""

    mappings: Mappings
    in_path: Mapping[int | None, Mapping[int, str]]
    """As `Partitions.in_path`."""

    def lack(self, column_id: int) -> bool:
        """Whether there may be one without a column."""
        return any(
            column_id not in paths.values() and column_id not in self.in_path.get(mapping_id, {})
            for mapping_id, paths in self.mappings.paths.items()
        )


NO_ADDED_FILES = AddedFiles(Mappings({}), {})


class Adaptations:
    """The changes in data files at each snapshot of a table."""

    def __init__(
        self,
        schemas: Schemas,
        columns: Collection[Column],
        clients: Collection[str],
        added_files: AddedFiles = NO_ADDED_FILES,
        hidden: Hidden | None = None,
    ) -> None:
        """No query is sent yet.

        Args:
            columns: all versions of them.
            clients: those that are to read the table, in small letters.
            hidden: columns that no file may have, which are in neither `schemas` nor `columns`.
        """
        self._hidden = hidden
        self._shown_ids = [*_shown_ids_by_snapshot(schemas)] if hidden else []
        self._shown = [*_shown_columns(schemas, columns, clients, added_files)]
        self._by_snapshot = [*_changes(schemas, columns, clients)]
        has_defaults = any(shown.has_default for shown in self._shown)
        self.tells_since = has_defaults and bool(BY_SNAPSHOT.intersection(clients))
        """Whether the entry of a file names the snapshot since which it has its columns."""
        self._columns, self._added_files = columns, added_files
        ids = {id_ for names in added_files.in_path.values() for id_ in names}
        self._in_path = {id_: [*_forms_of(id_, schemas)] for id_ in ids}
        """The forms of the columns that are in paths, by column_id."""
        self._misreads_added = bool(MISREAD_ADDED_FILES.intersection(clients))
        # Their types may be others than those of the table.
        leaves_out = HIDDEN_COLUMNS.intersection(clients)
        self._left_out = _left_out(schemas, columns, added_files) if leaves_out else {}
        # Most mappings share it.
        self._all_left_out = [*{id(of): of for of in self._left_out.values()}.values()]
        self._signed = bool((UNSIGNED | CAST_INTEGERS).intersection(clients))
        self._milliseconds = bool(MILLISECONDS.intersection(clients))
        doubles = _doubles(columns) if PROMOTED_FLOATS.intersection(clients) else {}
        floats = {column.column_id for column in columns if column.column_type == FLOAT}
        self._promoted = {id_: begin for id_, begin in doubles.items() if id_ in floats}
        # Of what somebody has added only the file itself says whether it has FLOAT.
        stored = set(chain.from_iterable(of.values() for of in added_files.mappings.paths.values()))
        self._doubles = {id_: begin for id_, begin in doubles.items() if id_ in stored}
        self._names = lru_cache(maxsize=1024)(self._names_at)
        self._of_own = lru_cache(maxsize=1024)(self._own_adaptation)
        # Files of the snapshot that added a column may lack it, or have it in its former type.
        borns = {shown.born for shown in self._shown} | {*self._promoted.values()}
        self._borns = [*sorted(borns), math.inf]

    def __eq__(self, other: object) -> bool:
        """Whether files get the same changes."""
        return isinstance(other, Adaptations) and self._key == other._key

    __hash__ = None  # type: ignore[assignment]

    @property
    def _key(self) -> tuple[object, ...]:
        own = self._milliseconds, self._doubles, self._left_out, self._signed
        of_added = (self._added_files, *own) if self.adapts_added else ()
        changes = self._shown, self._by_snapshot, self.tells_since, self._promoted
        return *changes, of_added, self._hidden, self._shown_ids

    @property
    def are_some(self) -> bool:
        """Whether any file is changed."""
        changes = self._shown or self._by_snapshot or self._promoted
        return bool(changes or self.adapts_added or self._hidden)

    @property
    def last_changed(self) -> float:
        """The last snapshot whose files may be changed; infinity: those of all may be."""
        is_any = self._by_snapshot or self._added_files.mappings.paths or self._hidden
        return math.inf if is_any else max(self._borns[:-1], default=NEVER)

    @property
    def adapts_added(self) -> bool:
        """Whether files that somebody has added are changed."""
        return bool(self._added_files.mappings.paths) and bool(
            self._misreads_added
            or self._shown
            or self._by_snapshot
            or self._doubles
            or self._hidden
        )

    def adaptation_at(self, file: DataFile, snapshot_id: int) -> Adaptation | None:
        """The changes in a data file; None: clients get the file itself.

        A column that is gone stays among the added ones: no client looks for it.

        Args:
            snapshot_id: as of which the file is read.
        """
        adaptation = self._adaptation_at(file, snapshot_id)
        if self._hidden is None:
            return adaptation
        adaptation = adaptation or Adaptation(0, (), NOTHING)
        since, shown_ids = self._shown_ids_at(snapshot_id)
        since = max(since, adaptation.snapshot_id, file.begin_snapshot)
        if file.mapping_id is None:
            shown_ids |= LINEAGE
        return adaptation._replace(snapshot_id=since, shown_ids=shown_ids)

    def _shown_ids_at(self, snapshot_id: int) -> tuple[int, frozenset[int]]:
        """The columns that files keep at a snapshot, and the snapshot since which they do."""
        return _last(self._shown_ids, snapshot_id, frozenset())

    def _adaptation_at(self, file: DataFile, snapshot_id: int) -> Adaptation | None:
        mapping_id = file.mapping_id
        if mapping_id is None:
            place = bisect_left(self._borns, file.begin_snapshot)
            return self._of_own(self._borns[place], snapshot_id)
        if not self.adapts_added:
            return None
        stored = self._added_files.mappings.paths.get(mapping_id, {}).values()
        lacking = (shown for shown in self._shown if shown.field_id not in stored)
        since, fields, changes = self._changed(lacking, snapshot_id)
        since = max(since, file.begin_snapshot)
        in_path = texts_in_path(file.path, self._added_files.in_path.get(mapping_id, {}))
        for column_id, text in in_path.items():
            if of_path := self._field_in_path(column_id, text, snapshot_id):
                begin, fields[column_id] = of_path
                since = max(since, begin)
        begin, left_out = _last(self._left_out.get(mapping_id, ()), snapshot_id, ())
        since = max(since, begin)
        changes = changes._replace(
            left_out=(*sorted({*changes.left_out, *left_out}),),
            has_signed=changes.has_signed or self._signed,
        )
        names = self._names(mapping_id, file.begin_snapshot)
        doubles = _begun(self._doubles, snapshot_id)
        doubles = {id_: begin for id_, begin in doubles.items() if id_ in stored}
        since = max([since, *doubles.values()])
        own = (names, in_path, self._milliseconds, (*sorted(doubles),))
        return Adaptation(since, (*fields.values(),), changes, *own)

    def _own_adaptation(self, first_born: float, snapshot_id: int) -> Adaptation | None:
        """The changes in DuckLake's own files that may lack the columns from a snapshot on."""
        lacking = (shown for shown in self._shown if shown.born >= first_born)
        since, fields, changes = self._changed(lacking, snapshot_id)
        promoted = _begun(self._promoted, snapshot_id)
        promoted = {id_: begin for id_, begin in promoted.items() if begin >= first_born}
        if not (fields or changes or promoted):
            return None
        since = max([since, *promoted.values()])
        return Adaptation(since, (*fields.values(),), changes, doubles=(*sorted(promoted),))

    def _changed(
        self, lacking: Iterable[_Shown], snapshot_id: int
    ) -> tuple[int, dict[int, AddedField], TableChanges]:
        """The snapshot since which a file is changed so, its new columns by id, and the rest."""
        since, changes = self._begin_at(snapshot_id)
        fields: dict[int, AddedField] = {}
        for shown in lacking:
            if shown.snapshot_id <= snapshot_id:
                fields.pop(shown.field_id, None)
                if shown.added is not None:
                    fields[shown.field_id] = shown.added
                since = max(since, shown.snapshot_id)
        return since, fields, changes

    def _field_in_path(
        self, column_id: int, text: str, snapshot_id: int
    ) -> tuple[int, AddedField] | None:
        """A column whose value is in paths, and the snapshot since which it has its type; None: the
        table does not show it."""
        forms = [form for form in self._in_path.get(column_id, ()) if form[0] <= snapshot_id]
        if not forms:
            return None
        begin, name, type_ = forms[-1]
        return begin, AddedField(Field(column_id, name, type_, text))

    def _names_at(self, mapping_id: int, snapshot_id: int) -> Mapping[Path, Named]:
        mappings = self._added_files.mappings
        names = {c.column_id: c.column_name for c in self._columns if c.visible_at(snapshot_id)}
        paths = {**mappings.unnamed, **mappings.paths.get(mapping_id, {})}
        return {path: Named(id_, names.get(id_, path[-1])) for path, id_ in paths.items()}

    def fingerprint_parts(self, snapshot_id: int) -> tuple[object, ...]:
        """The changes at a snapshot, for a fingerprint; empty if there are none."""
        doubles = sorted(_begun(self._doubles, snapshot_id))
        added: tuple[object, ...] = ()
        if self.adapts_added:
            left_out = {_last(of, snapshot_id, ()) for of in self._all_left_out}
            added = "added files", self._signed, *sorted(left_out), "doubles", *doubles
        if self._hidden is not None:
            added = (*added, "hidden", *self._hidden, sorted(self._shown_ids_at(snapshot_id)[1]))
        if not self.changed_at(snapshot_id):
            return added
        since = ("since",) if self.tells_since else ()
        has_defaults, has_nulls = self._added_at(snapshot_id)
        nulls = ("NULL",) if has_nulls else ()
        promoted = self.promoted_floats_at(snapshot_id)
        floats = ("FLOAT", *sorted(promoted)) if promoted else ()
        return (has_defaults, *self.changes_at(snapshot_id), *added, *since, *nulls, *floats)

    def described_at(self, snapshot_id: int) -> str:
        """The changes at a snapshot in words; empty if there are none."""
        changes = self.changes_at(snapshot_id)
        has_defaults, has_nulls = self._added_at(snapshot_id)
        words = ["columns that a file lacks have their default"] if has_defaults else []
        words += ["columns that a file lacks are in it, with NULL"] if has_nulls else []
        words += [text for name, text in WORDS.items() if getattr(changes, name)]
        if {*changes.without_statistics} - {*changes.without_bounds}:
            words.append("times in milliseconds have no statistics")
        if self.promoted_floats_at(snapshot_id):
            words.append("columns that became DOUBLE have no statistics where they are FLOAT")
        if self.adapts_added:
            words.append("files that were added have field ids and the columns in their paths")
        if self._hidden:
            words.append("columns that you may not see are left out")
        return "; ".join(words)

    def _added_at(self, snapshot_id: int) -> tuple[bool, bool]:
        """Whether files get columns with a default, and columns with NULL."""
        kinds = {of.has_default for of in self._shown if of.snapshot_id <= snapshot_id}
        return True in kinds, False in kinds

    def changes_at(self, snapshot_id: int) -> TableChanges:
        """The changes in all data files at a snapshot, besides added columns."""
        return self._begin_at(snapshot_id)[1]

    def _begin_at(self, snapshot_id: int) -> tuple[int, TableChanges]:
        """The changes at a snapshot, and the snapshot at which they began."""
        return _last(self._by_snapshot, snapshot_id, NOTHING)

    def promoted_floats_at(self, snapshot_id: int) -> frozenset[int]:
        """The columns without statistics in files that have them as FLOAT, by column_id."""
        return frozenset(_begun(self._promoted, snapshot_id))

    @property
    def filled_in(self) -> frozenset[int]:
        """All columns that files get if they lack them."""
        return frozenset(shown.field_id for shown in self._shown)

    def changed_at(self, snapshot_id: int) -> int:
        """The last snapshot, up to this one, at which any file may have changed; 0: none."""
        defaults = (shown.snapshot_id for shown in self._shown)
        begins = (begin for begin, _ in (*self._by_snapshot, *self._shown_ids))
        ids = chain(defaults, begins, self._promoted.values())
        if self.adapts_added:
            of_paths = (begin for forms in self._in_path.values() for begin, *_ in forms)
            left_out = (begin for of in self._all_left_out for begin, _ in of)
            ids = chain(ids, of_paths, left_out, self._doubles.values())
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


def _shown_columns(
    schemas: Schemas,
    columns: Iterable[Column],
    clients: Collection[str],
    added_files: AddedFiles,
) -> Iterator[_Shown]:
    born = born_at(columns)
    first, _ = schemas.by_snapshot[0]
    shown: dict[int, object] = {}

    def is_added(column: AddedField) -> bool:
        if column.field.initial_default is None:
            id_ = column.field.field_id
            return born[id_] > first or added_files.lack(id_)
        readers = FILTERED_DEFAULTS if column.parent is None else FIELD_DEFAULTS
        return bool(readers.intersection(clients))

    for snapshot_id, schema in schemas.by_snapshot:
        may_be_added = [*_with_default(schema.fields), *_with_null(schema.fields, clients)]
        for added in filter(is_added, may_be_added):
            field = added.field
            id_, value = field.field_id, (repr(field.type), field.initial_default)
            if shown.get(id_) != value:
                is_first = field.initial_default is None and born[id_] == first
                yield _Shown(snapshot_id, id_, added, NEVER if is_first else born[id_])
            shown[id_] = value
        # DuckDB 1.5.5 drops the default of a struct's field when the field is renamed.
        still = {added.field.field_id for added in may_be_added}
        for id_ in (shown.keys() - still).intersection(primitives(schema.fields)):
            yield _Shown(snapshot_id, id_, None, born[id_])
            del shown[id_]


def _shown_ids_by_snapshot(schemas: Schemas) -> Iterator[tuple[int, frozenset[int]]]:
    """The columns of the top level, and the snapshot since which they are these, ascending."""
    return _without_repeats(
        (snapshot_id, frozenset(field.field_id for field in schema.fields))
        for snapshot_id, schema in schemas.by_snapshot
    )


def _left_out(
    schemas: Schemas, columns: Iterable[Column], added_files: AddedFiles
) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
    """The columns of the top level that added files have and the table does not show, and the
    snapshot since which it does not, ascending, by mapping_id. A mapping whose columns are always
    shown is absent."""
    shown_ids = [*_shown_ids_by_snapshot(schemas)]
    top_level = frozenset(c.column_id for c in columns if c.parent_column is None)
    by_ids: dict[frozenset[int], list[tuple[int, tuple[int, ...]]]] = {}
    by_mapping = {}
    for mapping_id, paths in added_files.mappings.paths.items():
        ids = top_level.intersection(paths.values())
        if ids not in by_ids:
            of_ids = ((begin, (*sorted(ids - shown),)) for begin, shown in shown_ids)
            by_ids[ids] = [*_without_repeats(of_ids, ())]
        if by_ids[ids]:
            by_mapping[mapping_id] = by_ids[ids]
    return by_mapping


def _without_repeats(
    states: Iterable[tuple[int, T]], before: T | None = None
) -> Iterator[tuple[int, T]]:
    """Those states, with the snapshots at which they begin, that differ from the one before."""
    for begin, state in states:
        if state != before:
            yield begin, state
        before = state


def _last(states: Sequence[tuple[int, T]], snapshot_id: int, before_all: T) -> tuple[int, T]:
    """The state at a snapshot, and the snapshot at which it begins."""
    begun = (pair for pair in reversed(states) if pair[0] <= snapshot_id)
    return next(begun, (0, before_all))


def _forms_of(column_id: int, schemas: Schemas) -> Iterator[tuple[int, str, Primitive]]:
    """The types that a column has had for clients, its first name, and the snapshot since which it
    has each."""
    name, type_ = "", None
    for begin, schema in schemas.by_snapshot:
        for field in schema.fields:
            if field.field_id != column_id or not isinstance(field.type, Primitive):
                continue
            if field.type != type_:
                name, type_ = name or field.name, field.type
                yield begin, name, field.type


def _doubles(columns: Iterable[Column]) -> dict[int, int]:
    """The columns that are or were DOUBLE, and the snapshot since which each has been, by
    column_id."""
    begins: dict[int, int] = {}
    for column in columns:
        if column.column_type == DOUBLE:
            begin = begins.get(column.column_id, column.begin_snapshot)
            begins[column.column_id] = min(begin, column.begin_snapshot)
    return begins


def _begun(begins: Mapping[int, int], snapshot_id: int) -> dict[int, int]:
    return {id_: begin for id_, begin in begins.items() if begin <= snapshot_id}


def _with_default(
    fields: Iterable[Field], parent: int | None = None, depth: int = 0
) -> Iterator[AddedField]:
    """The columns with a default that are in no list and no map: how often there is one in a row is
    not known without the row."""
    for field in fields:
        if isinstance(field.type, Primitive) and field.initial_default is not None:
            yield AddedField(field, parent, depth)
        if isinstance(field.type, Struct):
            yield from _with_default(field.type.fields, field.field_id, depth + 1)


def _with_null(fields: Iterable[Field], clients: Collection[str]) -> Iterator[AddedField]:
    """The columns of the top level that are NULL in files which lack them."""
    if not WITHOUT_COLUMNS.intersection(clients):
        return
    for field in fields:
        may_be_null = field.initial_default is None and not field.required
        if may_be_null and _is_read_as_null(field.type, clients):
            yield AddedField(field)


def _is_read_as_null(type_: Type, clients: Collection[str], is_in_group: bool = False) -> bool:
    """Whether all clients that know the type read NULL where a file says so."""
    is_cast = is_in_group and isinstance(type_, Struct) and CAST_INTEGERS.intersection(clients)
    if is_cast or type_ == Primitive("variant"):  # of which these clients read no table
        return False
    is_in_group = is_in_group or isinstance(type_, List | Map)
    return all(_is_read_as_null(member.type, clients, is_in_group) for member in type_.members)


def _changes(
    schemas: Schemas, columns: Collection[Column], clients: Collection[str]
) -> Iterable[tuple[int, TableChanges]]:
    """What the types of the columns ask for, and the snapshot since which they do, ascending."""
    types_of = {
        name: types if readers.intersection(clients) else frozenset()
        for name, types, readers in (
            ("has_signed", UNSIGNED_TYPES, UNSIGNED),
            ("has_strings", JSON_TYPES, ANNOTATED_JSON),
            ("logical_types", GROUP_TYPES, CONVERTED_TYPES),
            ("without_statistics", MILLISECOND_TYPES, MILLISECONDS),
            ("without_bounds", UNORDERED_TYPES, UNORDERED),
        )
    }
    unreadable = (UNREADABLE_TYPES, HIDDEN_COLUMNS), (MILLISECOND_TYPES, HIDDEN_MILLISECONDS)
    types_of["left_out"] = frozenset().union(*(t for t, who in unreadable if who & {*clients}))
    types = frozenset().union(*types_of.values())
    cast = (
        _ids_in_groups(columns, SMALL_TYPES) if CAST_INTEGERS.intersection(clients) else frozenset()
    )
    met = [c for c in columns if c.column_type in types or c.column_id in cast]
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
        ids_of["has_signed"] |= {c.column_id for c in met if c.begin_snapshot <= boundary} & cast
        changes = _changes_for(ids_of, shown, top_level)
        if changes != before:
            yield boundary, changes
            before = changes


def _ids_in_groups(columns: Collection[Column], types: Collection[str]) -> frozenset[int]:
    """The columns of some types that are in a list or a map."""
    parents = {column.column_id: column.parent_column for column in columns}
    groups = {column.column_id for column in columns if column.column_type in GROUP_TYPES}
    return frozenset(
        column.column_id
        for column in columns
        if column.column_type in types
        and groups.intersection(parents_of(column.column_id, parents))
    )


def parents_of(column_id: int, parents: Mapping[int, int | None]) -> Iterator[int]:
    """The columns that a column is in, the innermost first."""
    # As many steps as there are columns, at most: a parent of itself is somebody's mistake.
    for _ in parents:
        parent = parents.get(column_id)
        if parent is None:
            return
        yield parent
        column_id = parent


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
    return {column_id: [column_id, *parents_of(column_id, parents)][-1] for column_id in parents}
