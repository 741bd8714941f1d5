"""The difference between a table's columns and the schema that a client asks for.

Fields are matched by their ids. Columns that clients do not see stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ducklake.column_tree import ColumnNode, NewColumn, column_ids
from ...iceberg.types import Field, Map, Primitive, Struct, Type
from ...rest.schemas import Schema, docs, field_of
from ...runtime.errors import BadRequest
from ...types.names import may_become
from .columns import (
    check_ids,
    check_names,
    check_new,
    check_not_reserved,
    check_order,
    check_schema,
    column_nodes,
    default_of,
    new_column_type,
    same_default,
)
from .table_plan import SchemaChange


def schema_change(
    columns: tuple[ColumnNode, ...],
    shown: Sequence[Field],
    comments: Mapping[int, str],
    requested: Schema,
    last_column_id: int,
    *,
    ends_all: bool = False,
    is_1_1: bool = False,
) -> SchemaChange:
    """The change from a table's columns to the schema that a client asks for.

    Args:
        columns: all columns, also those that clients do not see.
        shown: the fields that clients see.
        comments: as clients see them, by column_id.
        last_column_id: the greatest id that a column of the table ever had.
        ends_all: no row of the table stays: the commit ends all, or there are none.
        is_1_1: the catalog has version 1.1.

    Raises:
        BadRequest: DuckLake cannot make this change, or not exactly.
    """
    check_schema(requested)
    difference = _Difference(docs(requested.fields), last_column_id, ends_all, is_1_1)
    after = difference.level(columns, shown, list(map(field_of, requested.fields)), "", None)
    ids = list(column_ids(after))
    if len(ids) != len(set(ids)):
        raise BadRequest("two fields of the schema have the same id")
    dropped = tuple(id_ for id_ in column_ids(columns) if id_ not in ids)
    return SchemaChange(
        columns=after,
        added=tuple(difference.added),
        changed=tuple(difference.changed),
        dropped=dropped,
        comments=_comments(comments, difference.docs, set(ids), difference.shown),
        is_reshaped=bool(difference.added or dropped or difference.is_reshaped),
        widened_floats=tuple(difference.widened_floats),
    )


class _Difference:
    """Collects what differs, level by level."""

    def __init__(
        self, docs: Mapping[int, str], last_column_id: int, ends_all: bool, is_1_1: bool
    ) -> None:
        self.docs = docs
        self._is_1_1 = is_1_1
        self._ends_all = ends_all
        self._last_column_id = last_column_id
        self.added: list[NewColumn] = []
        self.changed: list[ColumnNode] = []
        self.widened_floats: list[int] = []
        self.is_reshaped = False
        """Whether a column that stays has another name or type."""
        self.shown: set[int] = set()
        """The ids of all fields that clients saw before the change and see after it."""

    def level(
        self,
        columns: Sequence[ColumnNode],
        shown: Sequence[Field],
        requested: Sequence[Field],
        above: str,
        parent: int | None,
    ) -> tuple[ColumnNode, ...]:
        """The columns of a struct, or of the table, after the change."""
        if not requested:
            raise BadRequest(f"{above[:-1] or 'a table'} needs at least one column")
        before = {f.field_id: f for f in shown}
        ids = [f.field_id for f in requested]
        check_order([id_ for id_ in before if id_ in ids], ids, above)
        remaining = {f.field_id: f for f in requested if f.field_id in before}
        after = [
            self._column(column, before[column.column_id], remaining[column.column_id], above)
            if column.column_id in remaining
            else column
            for column in columns
            if column.column_id in remaining or column.column_id not in before
        ]
        new = [f for f in requested if f.field_id not in before]
        after += self._new(new, above, parent)
        check_names((column.column_name for column in after), above)
        return tuple(after)

    def _new(
        self, fields: Sequence[Field], above: str, parent: int | None
    ) -> tuple[ColumnNode, ...]:
        for new in fields:
            check_new(new, above + new.name, self._last_column_id, ends_all=self._ends_all)
            if not above:
                check_not_reserved(new.name, is_1_1=self._is_1_1)
        nodes = column_nodes(fields, self.docs, above)
        check_ids(nodes)
        self.added += [NewColumn(node, parent, above + node.column_name) for node in nodes]
        return nodes

    def _column(self, column: ColumnNode, shown: Field, requested: Field, above: str) -> ColumnNode:
        """A column after the change, with its nested columns."""
        name = above + shown.name
        self.shown.add(column.column_id)
        if requested.required and not shown.required and not self._ends_all:
            raise BadRequest(
                f"the column {name} may have NULL in it; to make it required, use ALTER TABLE … "
                "ALTER COLUMN … SET NOT NULL in DuckDB, which checks the rows; DuckLake cannot "
                "check those of structs, lists and maps"
            )
        if not same_default(shown.initial_default, requested.initial_default):
            raise BadRequest(f"the initial default of {name} cannot change")
        if not above and requested.name != shown.name:
            check_not_reserved(requested.name, is_1_1=self._is_1_1)
        after = replace(
            column,
            column_name=requested.name,
            column_type=self._type(column, shown.type, requested.type, name),
            nulls_allowed=self._nulls_allowed(column, shown, requested, above),
            default_value=self._default(column, shown, requested, above),
        )
        if after != column:
            self.changed.append(after)
        # The tables of inlined rows have neither NOT NULL nor defaults: these do not matter here.
        shape = replace(column, column_name=after.column_name, column_type=after.column_type)
        self.is_reshaped |= shape != column
        children = self._children(column, shown.type, requested.type, name)
        return replace(after, children=children)

    def _nulls_allowed(
        self, column: ColumnNode, shown: Field, requested: Field, above: str
    ) -> bool:
        if requested.required and not shown.required and not above:
            return False
        # Only a client that has seen the column as required can make it optional: NOT NULL is shown
        # as optional while older rows may have NULL, and where DuckLake does not check it.
        return column.nulls_allowed or (shown.required and not requested.required)

    def _default(
        self, column: ColumnNode, shown: Field, requested: Field, above: str
    ) -> str | None:
        """The default of new rows: it stays if clients ask for the one that they see."""
        if same_default(shown.write_default, requested.write_default):
            return column.default_value
        if isinstance(requested.type, Primitive):
            stored = new_column_type(requested.type.name, requested.name)
            if requested.write_default is not None and stored != column.column_type:
                raise BadRequest(
                    f"the default of {above}{requested.name} is set in DuckDB, because the column "
                    f"has the type {column.column_type}"
                )
        return default_of(requested, requested.write_default, above)

    def _type(self, column: ColumnNode, shown: Type, requested: Type, name: str) -> str:
        """The type of a column: it stays if clients ask for the one that they see."""
        if type(shown) is not type(requested):
            raise BadRequest(
                f"the column {name} cannot change between a value, a struct and a list"
            )
        if not isinstance(shown, Primitive) or not isinstance(requested, Primitive):
            return column.column_type
        if shown == requested:
            return column.column_type
        if not may_become(shown.name, requested.name):
            raise BadRequest(
                f"the type of {name} cannot change from {shown.name} to {requested.name}: int may "
                "become long, float may become double, a decimal may get a greater precision"
            )
        if column.column_type == "float32":
            self.widened_floats.append(column.column_id)
        return new_column_type(requested.name, name)

    def _children(
        self, column: ColumnNode, shown: Type, requested: Type, name: str
    ) -> tuple[ColumnNode, ...]:
        match shown, requested:
            case Struct(fields), Struct(requested_fields):
                return self.level(
                    column.children, fields, requested_fields, f"{name}.", column.column_id
                )
            case Map(), Map():
                if shown.members[0] != requested.members[0]:
                    raise BadRequest(f"the key of the map {name} cannot change")
        pairs = list(zip(shown.members, requested.members, strict=True))
        if any(old.field_id != new.field_id for old, new in pairs):
            raise BadRequest(f"the elements of {name} cannot get other field ids")
        return tuple(
            self._column(child, old, new, f"{name}.")
            for child, (old, new) in zip(column.children, pairs, strict=True)
        )


def _comments(
    before: Mapping[int, str], after: Mapping[int, str], remaining: set[int], shown: set[int]
) -> dict[int, str | None]:
    """The comments that change; those of hidden and of dropped columns stay."""
    return {
        column_id: after.get(column_id)
        for column_id in sorted((before.keys() & shown) | after.keys())
        if column_id in remaining and before.get(column_id) != after.get(column_id)
    }
