"""The columns of a table: DuckLake's type and Iceberg's side by side."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from polynya.ducklake.rows.objects import Column, Tag
from polynya.iceberg.types import Field, List, Map, Primitive, Struct, Type
from polynya.mapping.properties import COMMENT
from polynya.virtual_files.contexts import TableContext


@dataclass(frozen=True, slots=True)
class Version:
    """The name and the type of a column from a snapshot on."""

    snapshot_id: int
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column at a snapshot; nested ones come after the column that they are in."""

    column_id: int
    """Also Iceberg's field id."""
    name: str
    path: str
    """The dotted name."""
    depth: int
    """0 at the top level."""
    type: str
    """DuckLake's."""
    is_nullable: bool
    default: str | None
    """The value in files that are older than the column; None: NULL."""
    comment: str
    iceberg_type: str
    """Empty: clients do not get the column."""
    is_required: bool
    """Iceberg clients may assume that no row has NULL."""
    hidden: str
    """Why clients do not get it."""
    versions: list[Version]
    """Its versions up to now, oldest first; empty: its name and type were never altered."""


def columns_at(table: TableContext, snapshot_id: int) -> list[ColumnLine]:
    """The columns that DuckLake has at a snapshot, in the order of the table."""
    history = table.history
    visible = [column for column in history.columns if column.visible_at(snapshot_id)]
    lines = _Lines(
        visible,
        history.columns,
        shown_fields(table.schemas.schema_at(snapshot_id).fields),
        table.schemas.hidden,
        comments(history.column_tags),
    )
    return list(lines.lines_below(None, "", 0))


def comments(tags: list[Tag]) -> dict[int, str]:
    """Comments by column_id."""
    return {tag.object_id: tag.value for tag in tags if tag.key == COMMENT and tag.value}


class _Lines:
    def __init__(
        self,
        visible: list[Column],
        all_versions: list[Column],
        fields: Mapping[int, tuple[str, bool]],
        hidden: Mapping[str, str],
        comments: Mapping[int, str],
    ) -> None:
        self._children: dict[int | None, list[Column]] = defaultdict(list)
        for column in visible:
            self._children[column.parent_column].append(column)
        self._all: dict[int, list[Column]] = defaultdict(list)
        for column in sorted(all_versions, key=lambda version: version.begin_snapshot):
            self._all[column.column_id].append(column)
        self._fields, self._hidden, self._comments = fields, hidden, comments

    def lines_below(self, parent: int | None, prefix: str, depth: int) -> Iterator[ColumnLine]:
        """The columns within a column, at all levels; a parent comes before its children."""
        # `pop`: a broken catalog may have a column within itself.
        for column in self._children.pop(parent, []):
            path = prefix + (column.column_name or "")
            yield self._line(column, path, depth)
            yield from self.lines_below(column.column_id, f"{path}.", depth + 1)

    def _line(self, column: Column, path: str, depth: int) -> ColumnLine:
        type_, is_required = self._fields.get(column.column_id, ("", False))
        return ColumnLine(
            column_id=column.column_id,
            name=column.column_name or "",
            path=path,
            depth=depth,
            type=column.column_type or "",
            is_nullable=column.nulls_allowed,
            default=column.initial_default,
            comment=self._comments.get(column.column_id, ""),
            iceberg_type=type_,
            is_required=is_required,
            hidden=self._reason(path) if not type_ else "",
            versions=self._versions(column),
        )

    def _reason(self, path: str) -> str:
        """Why clients do not get a column: its own reason, or that of a column around it."""
        parts = path.split(".")
        around = (".".join(parts[:number]) for number in range(len(parts), 0, -1))
        return next((self._hidden[name] for name in around if name in self._hidden), "")

    def _versions(self, column: Column) -> list[Version]:
        versions: list[Version] = []
        for row in self._all[column.column_id]:
            if row.begin_snapshot > column.begin_snapshot:
                break
            version = Version(row.begin_snapshot, row.column_name, row.column_type)
            if not versions or (versions[-1].name, versions[-1].type) != (
                version.name,
                version.type,
            ):
                versions.append(version)
        return versions if len(versions) > 1 else []


def alterations(columns: Iterable[Column], snapshot_id: int) -> list[str]:
    """What a snapshot changed in the columns of a table that existed before, in words.

    Args:
        columns: all versions of all columns.
    """
    columns = list(columns)
    ended = {column.column_id: column for column in columns if column.end_snapshot == snapshot_id}
    begun = {column.column_id: column for column in columns if column.begin_snapshot == snapshot_id}
    parents = {column.column_id: column for column in columns} | ended | begun
    words = []
    for column_id, column in (ended | begun).items():
        path = _path(column, parents)
        if column_id not in begun:
            words.append(f"dropped {path}")
        elif column_id not in ended:
            words.append(f"added {path} {column.column_type}")
        else:
            words += _altered(path, ended[column_id], column)
    return words


def _altered(path: str, before: Column, after: Column) -> Iterator[str]:
    """What differs in two versions of a column."""
    if before.column_name != after.column_name:
        yield f"renamed {before.column_name} to {path}"
    if before.column_type != after.column_type:
        yield f"{path} from {before.column_type} to {after.column_type}"
    if before.nulls_allowed != after.nulls_allowed and after.parent_column is None:
        yield f"{path} {'may be NULL' if after.nulls_allowed else 'is NOT NULL'}"
    if before.default_value != after.default_value:
        default = "no default" if after.default_value is None else f"default {after.default_value}"
        yield f"{path} has {default}"


def _path(column: Column, columns: Mapping[int, Column]) -> str:
    """The dotted name of a column."""
    names, ids = [column.column_name or ""], {column.column_id}
    while (parent := columns.get(column.parent_column or -1)) and parent.column_id not in ids:
        ids.add(parent.column_id)
        names.append(parent.column_name or "")
        column = parent
    return ".".join(reversed(names))


def shown_fields(fields: tuple[Field, ...]) -> dict[int, tuple[str, bool]]:
    """Iceberg's type of each field at every level, and whether it is required, by field id."""
    by_id: dict[int, tuple[str, bool]] = {}
    for field in fields:
        by_id[field.field_id] = type_name(field.type), field.required
        by_id |= _inner_fields(field.type)
    return by_id


def _inner_fields(type_: Type) -> dict[int, tuple[str, bool]]:
    match type_:
        case Struct(fields):
            return shown_fields(fields)
        case List(element_id, element):
            return {element_id: (type_name(element), False)} | _inner_fields(element)
        case Map(key_id, key, value_id, value):
            inner = _inner_fields(key) | _inner_fields(value)
            return {key_id: (type_name(key), True), value_id: (type_name(value), False)} | inner
    return {}


def type_name(type_: Type) -> str:
    """The name of a primitive type, or the kind of a nested one."""
    match type_:
        case Primitive(name):
            return name
        case Struct():
            return "struct"
        case List():
            return "list"
        case Map():
            return "map"
