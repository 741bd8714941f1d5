"""Iceberg's schemas as DuckLake's columns; refusals of what DuckLake cannot have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count, pairwise
from typing import Any

from ...ducklake.column_tree import MAX_DEPTH, MAX_FIELD_ID, ColumnNode, column_ids
from ...ducklake.rows.objects import is_reserved
from ...iceberg.types import Field, List, Map, Primitive, Struct, Type
from ...mapping.schemas import may_identify
from ...rest.schemas import Schema, field_of
from ...runtime.errors import BadRequest
from ...types.names import ICEBERG, default_text, ducklake_type, iceberg_type
from ...types.nested import LIST, MAP, STRUCT


def check_schema(schema: Schema) -> None:
    """Check a whole schema.

    Raises:
        BadRequest: DuckLake cannot have it.
    """
    fields = {field.id: field_of(field) for field in schema.fields}
    for field_id in schema.identifier_field_ids:
        if field_id not in fields or not may_identify(fields[field_id]):
            raise BadRequest(
                f"the field {field_id} cannot be an identifier field: it must be a required column "
                "at the top level that is no float, double, struct, list or map"
            )


def identifiers_text(field_ids: Iterable[int]) -> str | None:
    """The value of the tag with the identifier fields; None if there are none."""
    return ",".join(map(str, sorted(set(field_ids)))) or None


def check_new(field: Field, name: str, last_column_id: int, *, ends_all: bool) -> None:
    """Check a field that the table does not have yet.

    Args:
        name: dotted.
        last_column_id: the greatest id that a column of the table ever had.
        ends_all: no existing row stays.

    Raises:
        BadRequest: its id is taken, or existing rows would need a value.
    """
    if field.field_id <= last_column_id:
        raise BadRequest(
            f"the column {name} has the field id {field.field_id}, which is taken: new ids "
            f"are greater than {last_column_id}"
        )
    if field.required and not ends_all:
        raise BadRequest(
            f"the new column {name} is required, and existing rows have NULL in it: add it "
            "as optional; a default is added in DuckDB"
        )


def same_default(before: Any, after: Any) -> bool:
    """Whether two defaults in JSON are the same value: each client spells times in its own way."""
    if before == after or not (isinstance(before, str) and isinstance(after, str)):
        return bool(before == after)
    try:
        is_same = datetime.fromisoformat(before) == datetime.fromisoformat(after)
    except ValueError:
        return False
    # datetime cuts nanoseconds off.
    return is_same and _nanosecond_digits(before) == _nanosecond_digits(after)


def _nanosecond_digits(text: str) -> str:
    digits = re.search(r"\.[0-9]{6}([0-9]+)", text)
    return digits[1].rstrip("0") if digits else ""


def check_order(before: Sequence[int], after: Sequence[int], above: str) -> None:
    """Refuse fields that are not in the order of their ids.

    Raises:
        BadRequest: fields were moved, or a new one is before others.
    """
    # DuckLake writes inlined rows by position, and each of its ALTER statements puts the column
    # back into the order of ids.
    if list(after[: len(before)]) != list(before):
        raise BadRequest(
            f"DuckLake cannot move columns{f' within {above[:-1]}' if above else ''}, nor insert "
            "one before others: add it at the end, without FIRST or AFTER"
        )


def check_not_reserved(name: str, *, is_1_1: bool) -> None:
    """Refuse a name for a column at the top level that native DuckLake reserves.

    Raises:
        BadRequest: DuckLake or PostgreSQL has a column of this name in tables of inlined rows.
    """
    if is_reserved(name, is_1_1=is_1_1):
        raise BadRequest(
            f"DuckLake reserves the column name {name} for its tables of inlined rows: use another "
            "name"
        )


def check_names(names: Iterable[str], above: str) -> None:
    """Refuse two columns of one name, also if clients do not see one of them.

    Args:
        above: the dotted name of the struct with a dot at its end; empty at the top level.

    Raises:
        BadRequest: the message names both.
    """
    spellings: dict[str, str] = {}
    for name in names:
        if not name or "\0" in name:
            raise BadRequest(f"a column of {above[:-1] or 'the table'} has no usable name")
        if name.casefold() in spellings:
            raise BadRequest(
                f"the columns {above}{spellings[name.casefold()]} and {above}{name} have the same "
                "name for DuckLake, which does not distinguish letter case; one of them may be "
                "hidden (see the table property polynya.hidden-columns)"
            )
        spellings[name.casefold()] = name


def new_column_type(name: str, column: str) -> str:
    """The DuckLake type of an Iceberg primitive type.

    Args:
        column: its name, for the message.

    Raises:
        BadRequest: DuckLake has no such type.
    """
    column_type = iceberg_type(name).ducklake
    if name.startswith(("geometry(", "geography")):
        raise BadRequest(
            f"the column {column} has the type {name}: DuckLake has no geography, and no "
            "coordinate reference system but OGC:CRS84; use geometry, or keep the bytes as binary"
        )
    if name.startswith("fixed"):
        raise BadRequest(
            f"the column {column} has the type {name}: DuckLake's blob has no fixed length, and "
            "clients do not read it as fixed; use binary, or uuid for 16 bytes"
        )
    if not column_type:
        have_one = [name for name, type_ in ICEBERG.items() if type_.ducklake]
        raise BadRequest(
            f"the column {column} has the type {name}, which has no exact form in DuckLake; "
            f"these have one: {', '.join(have_one)}, decimal, struct, list, map"
        )
    return column_type


def check_version(
    columns: Iterable[ColumnNode], format_version: int, above: str = "", *, is_1_1: bool
) -> None:
    """Check new columns of types, or with defaults, that need format version 3.

    Args:
        format_version: of the table.
        above: the dotted name of the column that has these, with a dot at its end.
        is_1_1: the catalog has version 1.1.

    Raises:
        BadRequest: the table has version 2, or DuckLake cannot write the type there.
    """
    for column in columns:
        name, column_type = above + column.column_name, column.column_type
        if has_default(column) and format_version < 3:
            raise BadRequest(
                f"the column {name} has a default, which needs format version 3: set the table's "
                "property format-version to 3"
            )
        if ducklake_type(column_type).needs_version_3 and format_version < 3:
            raise BadRequest(
                f"the column {name} has the type {column_type}, which needs format version 3: set "
                "the table's property format-version to 3"
            )
        if column_type == "timestamptz_ns" and not is_1_1:
            raise BadRequest(
                f"the column {name} has the type timestamptz_ns, which DuckLake has since version "
                "1.1: migrate the lake (ATTACH with AUTOMATIC_MIGRATION), or use timestamptz"
            )
        if column_type == "variant" and above:
            raise BadRequest(
                f"the column {name} is a variant within another column, which DuckDB 1.5 cannot "
                "write: make it a column of its own"
            )
        check_version(column.children, format_version, f"{name}.", is_1_1=is_1_1)


def has_default(column: ColumnNode) -> bool:
    """Whether a column has a default for new rows, or a new column one for older files."""
    return column.initial_default is not None or column.default_value is not None


def column_nodes(
    fields: Sequence[Field], docs: Mapping[int, str], above: str = "", depth: int = 0
) -> tuple[ColumnNode, ...]:
    """The columns of fields, under the ids of the fields.

    Args:
        docs: comments by field id.

    Raises:
        BadRequest: DuckLake cannot have such columns.
    """
    if depth > MAX_DEPTH:
        raise BadRequest(f"{above} is nested more than {MAX_DEPTH} levels deep")
    check_names((field.name for field in fields), above)
    return tuple(
        ColumnNode(
            field.field_id,
            field.name,
            _type(field.type, above + field.name),
            # As native DuckLake writes it: it has NOT NULL at the top level only.
            bool(above) or not field.required,
            children=_children(field.type, docs, f"{above}{field.name}.", depth + 1),
            comment=docs.get(field.field_id),
            initial_default=default_of(field, field.initial_default, above),
            default_value=default_of(field, field.write_default, above),
        )
        for field in fields
    )


def default_of(field: Field, value: Any, above: str = "") -> str | None:
    """DuckLake's text of a default of a field; None if there is none.

    Args:
        value: one of the field's defaults in JSON.
        above: the dotted name of the column that has the field, with a dot at its end.

    Raises:
        BadRequest: DuckLake has no such default.
    """
    if value is None:
        return None
    if above or not isinstance(field.type, Primitive):
        raise BadRequest(
            f"DuckLake has defaults of whole columns with a simple type only, not of {above}"
            f"{field.name}"
        )
    try:
        return default_text(field.type.name, value)
    except ValueError as error:
        raise BadRequest(f"the default of {field.name} has no exact form: {error}") from None


def _type(type_: Type, name: str) -> str:
    match type_:
        case Primitive(primitive):
            return new_column_type(primitive, name)
        case Struct():
            return STRUCT
        case List():
            return LIST
        case Map():
            return MAP


def _children(
    type_: Type, docs: Mapping[int, str], above: str, depth: int
) -> tuple[ColumnNode, ...]:
    if type_ == Struct(()):
        raise BadRequest(f"the struct {above[:-1]} has no fields")
    return () if isinstance(type_, Primitive) else column_nodes(type_.members, docs, above, depth)


def numbered(columns: Sequence[ColumnNode], first_id: int = 1) -> tuple[ColumnNode, ...]:
    """The columns with new ids, depth first, as DuckLake numbers them."""
    ids = count(first_id)

    def visit(columns: Iterable[ColumnNode]) -> Iterator[ColumnNode]:
        for column in columns:
            column_id = next(ids)
            yield replace(column, column_id=column_id, children=tuple(visit(column.children)))

    return tuple(visit(columns))


def check_ids(columns: Sequence[ColumnNode]) -> None:
    """Check the ids of a table that a client creates with ids of its own.

    Raises:
        BadRequest: an id is used twice, is reserved, or siblings are not in the order of their ids,
            which is the order that DuckLake writes inlined rows in.
    """
    ids = list(column_ids(columns))
    if len(ids) != len(set(ids)) or not all(0 < id_ <= MAX_FIELD_ID for id_ in ids):
        raise BadRequest("the field ids of a schema must be different positive numbers")
    _check_order(columns)


def _check_order(columns: Sequence[ColumnNode]) -> None:
    for column, following in pairwise(columns):
        if column.column_id > following.column_id:
            raise BadRequest(
                f"the column {following.column_name} has a smaller id than {column.column_name} "
                "before it; use the ids that the answer to the creation has assigned"
            )
    for column in columns:
        _check_order(column.children)
