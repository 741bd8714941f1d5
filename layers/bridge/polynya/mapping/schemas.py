"""DuckLake's column rows as Iceberg schemas: nesting, field ids, defaults, hidden columns.

The field id is the column id, at every level. DuckLake versions columns one by one; Iceberg's
schemas are the distinct sets of columns that were visible together, in order of appearance.

For files that lack a column, readers must use its default, Iceberg's `initial-default`. A client
that ignores it reads NULL silently: Trino 476, Flink 2.1, Daft and ClickHouse do.
`unservable_defaults` finds the snapshots at which clients need it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

from ..ducklake.column_tree import MAX_FIELD_ID, column_fault, never_null
from ..ducklake.rows.files import FileGroup
from ..ducklake.rows.lifetimes import Lifetime, UnservableRange, is_visible
from ..ducklake.rows.objects import Column, IdentifierFields, MappedName
from ..iceberg.types import (
    Field,
    List,
    Map,
    Primitive,
    Struct,
    TableSchema,
    Type,
    primitives,
    type_names,
)
from ..runtime.errors import Misconfigured
from ..types.names import (
    DUCKLAKE,
    default_json,
    ducklake_type,
    equivalent,
    iceberg_type,
    is_ducklake_type,
    may_become,
)
from ..types.nested import NESTED

NO_FIELDS = TableSchema(0, ())

Withheld = Mapping[int, Sequence[UnservableRange]]
"""By column id: the snapshots at which a column is hidden although its type could be shown."""
NOTHING_WITHHELD: Withheld = {}


def check_hidden_types(names: Iterable[str]) -> None:
    """Check the setting HIDDEN_TYPES.

    Raises:
        Misconfigured: columns have no such type, so that it would hide nothing.
    """
    if unknown := sorted(name for name in names if not is_ducklake_type(name)):
        raise Misconfigured(
            f"HIDDEN_TYPES (--hide-type) names {', '.join(unknown)}, which are no types of "
            f"DuckLake: its types are decimal(p,s), {', '.join(sorted(DUCKLAKE))}"
        )


class Visibility(NamedTuple):
    """Which columns of a table are hidden, and whether the defaults of new rows are shown."""

    hidden_types: frozenset[str] = frozenset()
    """DuckLake types that are hidden although Iceberg has them."""
    withheld: Withheld | None = None
    """Columns that need Iceberg's format version 3; None: they are hidden at all snapshots."""
    converted: Withheld = NOTHING_WITHHELD
    """Other columns, whose values DuckLake converts."""
    misread: Withheld = NOTHING_WITHHELD
    """Columns that clients would misread which somebody has named."""
    shows_write_defaults: bool = False
    """Show the defaults of new rows, which needs format version 3."""

    @property
    def gaps(self) -> Iterator[UnservableRange]:
        """The snapshots at which some columns are hidden."""
        for withheld in (self.withheld or {}, self.converted, self.misread):
            yield from chain.from_iterable(withheld.values())


VERSION_2 = Visibility()
"""All that format version 2 can show."""


class Hidden(NamedTuple):
    """A column that is not shown."""

    reason: str
    is_by_setting: bool = False
    """It could be shown, but the setting HIDDEN_TYPES names its type, or the setting CLIENTS or the
    warehouse a client that would misread it."""


@dataclass(frozen=True, slots=True)
class Schemas:
    """All schemas of a table, and the snapshot at which each began."""

    by_snapshot: tuple[tuple[int, TableSchema], ...]
    """(first snapshot, schema), ascending; a schema that returns appears again, same id."""
    hidden: Mapping[str, str]
    """Hidden columns of all schemas: the path with dots, and why it is hidden."""
    unservable: tuple[UnservableRange, ...]
    """The snapshots with columns that are hidden, and not by a setting."""
    faults: tuple[UnservableRange, ...]
    """The snapshots at which the rows of the columns are broken."""
    last_column_id: int
    least_version: int = 2
    """The format version, if no column needs a later one."""

    def schema_at(self, snapshot_id: int) -> TableSchema:
        """The schema of the table as of a snapshot."""
        return self.begin_at(snapshot_id)[1]

    def begin_at(self, snapshot_id: int) -> tuple[int, TableSchema]:
        """The schema as of a snapshot, and the snapshot at which it began."""
        begun = [pair for pair in self.by_snapshot if pair[0] <= snapshot_id]
        return begun[-1] if begun else self.by_snapshot[0]

    def retyped_at(self, snapshot_id: int) -> int:
        """The last snapshot, up to this one, at which a shown column changed its type; 0 if none.

        Bounds are written in a column's type: bounds from before are not usable afterwards.
        """
        begin = 0
        for (_, before), (boundary, after) in pairwise(self.by_snapshot):
            old, new = primitives(before.fields), primitives(after.fields)
            if boundary <= snapshot_id and any(old[i] != new[i] for i in old.keys() & new.keys()):
                begin = boundary
        return begin

    def lifetimes(self, column_id: int) -> Iterator[Lifetime]:
        """The snapshots that show a column at the top level."""
        for lifetime, schema in self.spans():
            if any(field.field_id == column_id for field in schema.fields):
                yield lifetime

    def spans(self) -> Iterator[tuple[Lifetime, TableSchema]]:
        """The snapshots of each schema, in ascending order."""
        ends = [begin for begin, _ in self.by_snapshot[1:]]
        for (begin, schema), end in zip(self.by_snapshot, [*ends, None], strict=True):
            yield Lifetime(begin, end), schema

    def distinct(self) -> list[TableSchema]:
        """Each schema once, in the order of ids."""
        return list({schema.schema_id: schema for _, schema in self.by_snapshot}.values())

    @property
    def format_version(self) -> int:
        """3 if older files need a default for a column, or a column has a type of version 3."""
        schemas = self.distinct()
        if any(_has_default(schema.fields) for schema in schemas):
            return 3
        names = {name for schema in schemas for name in type_names(schema.fields)}
        return max([self.least_version, *(iceberg_type(name).format_version for name in names)])

    def without_defaults(self) -> "Schemas":
        """The same for clients that find the columns in all files, in an older format version."""
        by_snapshot = tuple(
            (begin, replace(schema, fields=tuple(map(_without_default, schema.fields))))
            for begin, schema in self.by_snapshot
        )
        return replace(self, by_snapshot=by_snapshot)

    def is_refused_at(self, snapshot_id: int, *, refuses_hidden: bool) -> bool:
        """Whether the columns of a snapshot are a reason to refuse the table.

        Args:
            refuses_hidden: the setting INEXACT_COLUMNS says so.
        """
        if not self.schema_at(snapshot_id).fields:
            return True
        return refuses_hidden and any(
            is_visible(gap.begin_snapshot, gap.end_snapshot, snapshot_id) for gap in self.unservable
        )

    @property
    def need_row_reader(self) -> bool:
        """Whether Java's vectorized reader fails on files of this table (Iceberg 1.11)."""
        types: dict[int, set[str]] = defaultdict(set)
        for schema in self.distinct():
            for field_id, name in primitives(schema.fields).items():
                types[field_id].add(name)
        # It cannot read as long what DuckDB wrote as INT_32, nor return the default of a decimal
        # for files that lack the column.
        promoted = any({"int", "long"} <= names for names in types.values())
        return promoted or any(_has_default(schema.fields, "decimal") for schema in self.distinct())


def schemas(
    columns: list[Column],
    table_begin: int,
    snapshot_id: int,
    visibility: Visibility = VERSION_2,
    *,
    least_version: int = 2,
    may_lack: Collection[int] | None = (),
    first_added_file: int | None = None,
    identifiers: Sequence[IdentifierFields] = (),
    required_later: Collection[int] = (),
) -> Schemas:
    """Every schema of a table up to a snapshot, from all versions of its columns.

    Args:
        columns: in the order of the table.
        table_begin: the snapshot that made the table.
        least_version: the format version of the table, if no column needs a later one.
        may_lack: the columns as old as the table that files of its first snapshot lack; None: some
            file may lack any column.
        first_added_file: the snapshot from which on added files may have NULL in any column.
        identifiers: the fields that identify a row.
        required_later: columns that were added as NOT NULL when all rows of the table ended.
    """
    boundaries = {table_begin, first_added_file or 0}
    for column in columns:
        boundaries |= {column.begin_snapshot, column.end_snapshot or 0}
    for gap in visibility.gaps:
        boundaries |= {gap.begin_snapshot, gap.end_snapshot or 0}
    for of in identifiers:
        boundaries |= {of.begin_snapshot, of.end_snapshot or 0}
    added_later = {
        column_id
        for column_id, born in born_at(columns).items()
        if born > table_begin or may_lack is None or column_id in may_lack
    }
    ids: dict[tuple[object, ...], int] = {}
    by_snapshot: list[tuple[int, TableSchema]] = []
    hidden: dict[str, str] = {}
    unservable: list[UnservableRange] = []
    faults: list[UnservableRange] = []
    begins = sorted(b for b in boundaries if table_begin <= b <= snapshot_id)
    for boundary, end in zip(begins, [*begins[1:], None], strict=True):
        # A snapshot's schema depends only on earlier snapshots, so that it never changes.
        versions = [column for column in columns if column.begin_snapshot <= boundary]
        visible = [column for column in versions if column.visible_at(boundary)]
        if fault := column_fault(visible):
            faults.append(UnservableRange(boundary, end, fault))
            continue
        is_checked = first_added_file is None or boundary < first_added_file
        required = never_null(versions, table_begin, required_later) if is_checked else frozenset()
        tree = _Tree(
            visible,
            _refusals(versions, visibility, boundary),
            added_later,
            required,
            shows_write_defaults=visibility.shows_write_defaults,
            # PyIceberg cannot load a table with some of them: only if a client asked for version 3.
            shows_every_default=least_version > 2,
        )
        fields = tree.fields()
        key = fields, _identifiers_at(identifiers, fields, boundary)
        schema_id = ids.setdefault(key, len(ids))
        if not by_snapshot or by_snapshot[-1][1].schema_id != schema_id:
            by_snapshot.append((boundary, TableSchema(schema_id, *key)))
        hidden |= {name: refusal.reason for name, refusal in tree.hidden.items()}
        inexact = [f"{name}: {h.reason}" for name, h in tree.hidden.items() if not h.is_by_setting]
        if inexact:
            unservable.append(
                UnservableRange(boundary, end, f"columns cannot be shown ({'; '.join(inexact)})")
            )
    column_ids = [column.column_id for column in columns if column.column_id is not None]
    return Schemas(
        by_snapshot=tuple(by_snapshot or [(table_begin, NO_FIELDS)]),
        hidden=hidden,
        unservable=tuple(unservable),
        faults=tuple(faults),
        last_column_id=max((i for i in column_ids if i <= MAX_FIELD_ID), default=0),
        least_version=least_version,
    )


def _without_default(field: Field) -> Field:
    type_ = field.type
    if isinstance(type_, Struct):
        type_ = Struct(tuple(map(_without_default, type_.fields)))
    return replace(field, type=type_, initial_default=None, write_default=None)


def born_at(columns: Iterable[Column]) -> dict[int, int]:
    """The snapshot that added each column, by column_id.

    Args:
        columns: all versions of them.
    """
    born: dict[int, int] = {}
    for column in columns:
        begin = column.begin_snapshot
        born[column.column_id] = min(begin, born.get(column.column_id, begin))
    return born


def oldest_defaults(columns: Iterable[Column], table_begin: int) -> dict[int, int]:
    """The columns with a default that are as old as the table, with the snapshot that made it.

    A file of that snapshot may lack one: it was written before somebody added the column in the
    same transaction, which DuckLake records like a column of CREATE TABLE.
    """
    return {
        column.column_id: table_begin
        for column in columns
        if column.initial_default is not None
        and column.begin_snapshot <= table_begin
        and column.column_type not in NESTED
    }


def may_identify(field: Field) -> bool:
    """Whether a column at the top level may be an identifier field.

    https://iceberg.apache.org/spec/#identifier-field-ids
    """
    is_exact = isinstance(field.type, Primitive) and field.type.name not in {"float", "double"}
    return field.required and is_exact


def _identifiers_at(
    identifiers: Iterable[IdentifierFields], fields: Iterable[Field], snapshot_id: int
) -> tuple[int, ...]:
    """The identifier fields at a snapshot: none if one of them is gone, or may be NULL."""
    usable = {field.field_id for field in fields if may_identify(field)}
    return next(
        (
            of.column_ids
            for of in identifiers
            if is_visible(of.begin_snapshot, of.end_snapshot, snapshot_id)
            and usable.issuperset(of.column_ids)
        ),
        (),
    )


def _withheld_at(withheld: Withheld, snapshot_id: int) -> dict[int, str]:
    return {
        column_id: gap.reason
        for column_id, gaps in withheld.items()
        for gap in reversed(gaps)
        if is_visible(gap.begin_snapshot, gap.end_snapshot, snapshot_id)
    }


IN_ADDED_FILES = (
    "files were added that have it, and DuckLake converts their values, such as microseconds or "
    "plain binary data, which Iceberg clients do not"
)


def withheld_in_added_files(
    columns: Iterable[Column], mapped_names: Iterable[MappedName], table_begin: int
) -> dict[int, list[UnservableRange]]:
    """Where columns that need format version 3 are hidden because added files may have them."""
    mapped_ids = {row.target_field_id for row in mapped_names}
    return {
        column.column_id: [UnservableRange(table_begin, None, IN_ADDED_FILES)]
        for column in columns
        if column.column_id in mapped_ids and ducklake_type(column.column_type).needs_version_3
    }


def needs_version_3(columns: Iterable[Column]) -> bool:
    """Whether a column has, or had, a type that only format version 3 can show."""
    types = {column.column_type for column in columns if column.column_type}
    return any(ducklake_type(name).needs_version_3 for name in types)


def _refusals(
    columns: Iterable[Column], visibility: Visibility, snapshot_id: int
) -> dict[int, Hidden]:
    """Why columns are not shown at a snapshot, by id."""
    shows_version_3 = visibility.withheld is not None
    withheld = _withheld_at(visibility.withheld or {}, snapshot_id)
    converted = _withheld_at(visibility.converted, snapshot_id)

    def shown_type(column_type: str) -> str | None:
        is_later = not shows_version_3 and ducklake_type(column_type).needs_version_3
        return None if is_later else equivalent(column_type)

    versions: dict[int, list[Column]] = defaultdict(list)
    for column in sorted(columns, key=lambda column: column.begin_snapshot):
        versions[column.column_id].append(column)
    reasons: dict[int, Hidden] = {}
    # One version with a fault hides the column at all later snapshots too: its files remain.
    for column_id, history in versions.items():
        types = [column.column_type for column in history]
        names = [name for name in types if name and name not in NESTED]
        for name in names:
            if name in visibility.hidden_types:
                reasons[column_id] = Hidden(
                    f"the setting HIDDEN_TYPES names {name}", is_by_setting=True
                )
            elif shown_type(name) is None:
                reasons[column_id] = Hidden(ducklake_type(name).reason)
            elif column_id in withheld:
                reasons[column_id] = Hidden(withheld[column_id])
            elif column_id in converted:
                reasons[column_id] = Hidden(converted[column_id])
        for before, after in pairwise(names):
            old, new = shown_type(before), shown_type(after)
            if old and new and not may_become(old, new):
                reasons[column_id] = Hidden(f"Iceberg cannot read {before} files as {after}")
    for column_id, reason in _withheld_at(visibility.misread, snapshot_id).items():
        reasons.setdefault(column_id, Hidden(reason, is_by_setting=True))
    return reasons


class _Tree:
    """The columns that are visible at one snapshot as nested fields, and those that are hidden."""

    def __init__(
        self,
        columns: Iterable[Column],
        refusals: Mapping[int, Hidden],
        added_later: Collection[int],
        required: Collection[int],
        *,
        shows_write_defaults: bool,
        shows_every_default: bool,
    ) -> None:
        """
        Args:
            added_later: the columns that are younger than some file, by column_id.
            shows_every_default: also those with which PyIceberg cannot load the table.
        """
        self._children: dict[int | None, list[Column]] = defaultdict(list)
        for column in columns:
            self._children[column.parent_column].append(column)
        self._refusals = refusals
        self._added_later = added_later
        self._required = required
        self._shows_write_defaults = shows_write_defaults
        self._shows_every_default = shows_every_default
        self.hidden: dict[str, Hidden] = {}

    def fields(self, parent: int | None = None, prefix: str = "") -> tuple[Field, ...]:
        fields = []
        for column in self._children[parent]:
            name = prefix + column.column_name
            type_ = self._type(column, name)
            if isinstance(type_, Hidden):
                self.hidden[name] = type_
                continue
            try:
                default = self._default(column, type_)
            except ValueError as error:
                self.hidden[name] = Hidden(f"its default {column.initial_default!r}: {error}")
                continue
            is_required = column.column_id in self._required
            own = column.column_id, column.column_name, type_, default, is_required
            fields.append(Field(*own, self._write_default(column, type_)))
        return tuple(fields)

    def _type(self, column: Column, name: str) -> Type | Hidden:
        """The Iceberg type, or the reason why there is none."""
        if reason := self._refusals.get(column.column_id):
            return reason
        if column.column_type not in NESTED:
            return Primitive(equivalent(column.column_type) or "")
        children = self._children[column.column_id]
        if column.column_type == "struct":
            fields = self.fields(column.column_id, name + ".")
            if fields:
                return Struct(fields)
            by_setting = all(self.hidden[f"{name}.{c.column_name}"].is_by_setting for c in children)
            return Hidden("none of its fields can be shown", by_setting)
        types = [self._type(child, f"{name}.{child.column_name}") for child in children]
        for child, type_ in zip(children, types, strict=True):
            if isinstance(type_, Hidden):
                return Hidden(f"{child.column_name}: {type_.reason}", type_.is_by_setting)
        shown = [type_ for type_ in types if not isinstance(type_, Hidden)]
        ids = [child.column_id for child in children]
        if column.column_type == "list":
            return List(ids[0], shown[0])
        return Map(ids[0], shown[0], ids[1], shown[1])

    def _default(self, column: Column, type_: Type) -> Any:
        if column.initial_default is None or column.column_id not in self._added_later:
            return None
        if not isinstance(type_, Primitive):
            raise ValueError("defaults of nested columns are not served")
        return self._default_json(type_.name, column.initial_default)

    def _write_default(self, column: Column, type_: Type) -> Any:
        """The default of new rows, if it is certain; a writer has to give the others a value."""
        is_shown = self._shows_write_defaults and column.parent_column is None
        if not is_shown or column.default_value is None or not isinstance(type_, Primitive):
            return None
        try:
            return self._default_json(type_.name, column.default_value)
        except ValueError:
            return None

    def _default_json(self, type_name: str, default: str) -> Any:
        if not (self._shows_every_default or iceberg_type(type_name).has_loadable_default):
            raise ValueError(f"PyIceberg cannot load a table with a default of {type_name}")
        return default_json(type_name, default)


def _has_default(fields: Iterable[Field], type_name: str = "") -> bool:
    """Whether a field has a default, of a type whose name begins with `type_name`."""
    return any(
        field.type.name.startswith(type_name) and field.initial_default is not None
        if isinstance(field.type, Primitive)
        else _has_default(field.type.members, type_name)
        for field in fields
    )


WAY_OUT = "DuckLake writes it into new files when all rows are updated"


class DefaultColumn(NamedTuple):
    """A column that is shown with a default."""

    column_id: int
    name: str
    """The path of the column, with dots."""
    born: int
    """The snapshot that added the column."""
    lifetimes: tuple[Lifetime, ...]
    """The snapshots that show it with its default."""


def default_columns(schemas: Schemas, columns: Iterable[Column]) -> list[DefaultColumn]:
    """The columns that some schema shows with a default."""
    born = born_at(columns)
    names: dict[int, str] = {}
    lifetimes: dict[int, list[Lifetime]] = {}
    for lifetime, schema in schemas.spans():
        for column_id, name in _default_fields(schema.fields):
            names[column_id] = name
            lifetimes.setdefault(column_id, []).append(lifetime)
    return [DefaultColumn(i, names[i], born[i], tuple(lifetimes[i])) for i in names]


def unservable_defaults(
    defaults: Iterable[DefaultColumn],
    lacking_files: Mapping[int, int | None],
    groups: Mapping[FileGroup, Lifetime],
    mapped_names: Iterable[MappedName],
) -> dict[str, list[UnservableRange]]:
    """The snapshots that show a file without a column that has a default, by the column's name.

    Args:
        lacking_files: by column, the end snapshot of the files that were written without it; None
            if some are visible now.
        groups: groups of data files; added files may lack a column that is older than they are.
    """
    mapped_ids: dict[int | None, set[int]] = {}
    for row in mapped_names:
        mapped_ids.setdefault(row.mapping_id, set()).add(row.target_field_id)
    ranges: dict[str, list[UnservableRange]] = {}
    for column in defaults:
        lacking = [
            group
            for key, group in groups.items()
            if key.mapping_id is not None
            and column.column_id not in mapped_ids.get(key.mapping_id, ())
        ]
        if column.column_id in lacking_files:
            lacking.append(Lifetime(column.born, lacking_files[column.column_id]))
        reason = f"files lack the column {column.name}, which has a default: {WAY_OUT}"
        both = [lifetime.intersection(shown) for lifetime in lacking for shown in column.lifetimes]
        ranges.setdefault(column.name, []).extend(
            UnservableRange(*lifetime, reason) for lifetime in both if lifetime
        )
    return ranges


def _default_fields(fields: Collection[Field], prefix: str = "") -> Iterator[tuple[int, str]]:
    for field in fields:
        yield from _default_fields(field.type.members, f"{prefix}{field.name}.")
        if field.initial_default is not None:
            yield field.field_id, prefix + field.name
