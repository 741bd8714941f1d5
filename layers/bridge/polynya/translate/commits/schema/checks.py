"""What DuckLake cannot have in a schema that a client asks for, whatever the table is."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ....errors import BadRequest
from ....iceberg.commits.schemas import Schema, required_within, with_write_default
from ....iceberg.types import Field

INLINED_COLUMNS = {"row_id", "begin_snapshot", "end_snapshot"}
"""Of tables of inlined rows in catalogs before 1.1; later ones have RESERVED_PREFIX."""

SYSTEM_COLUMNS = {"ctid", "cmin", "cmax", "xmin", "xmax", "tableoid"}
"""Of each table in PostgreSQL."""

RESERVED_PREFIX = "_ducklake_"
"""DuckLake 1.0 reserves two such names, 1.1 all of them, so that the migration to it stops."""


def check_schema(wanted: Schema) -> None:
    """Check a whole schema.

    Raises:
        BadRequest: it has what no schema of DuckLake has.
    """
    if wanted.identifier_field_ids:
        raise BadRequest("DuckLake has no identifier fields (primary keys)")
    for name in required_within(wanted.fields):
        raise BadRequest(f"DuckLake has NOT NULL for whole columns only, not within {name}")
    for name in with_write_default(wanted.fields):
        raise BadRequest(
            f"the default of {name} is set in DuckDB: ALTER TABLE … ALTER COLUMN … SET DEFAULT …"
        )


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


def same_default(one: Any, other: Any) -> bool:
    """Whether two defaults in JSON are the same value: clients spell times in their own way."""
    if one == other or not (isinstance(one, str) and isinstance(other, str)):
        return bool(one == other)
    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except ValueError:
        return False


def check_order(before: Sequence[int], wanted: Sequence[int], above: str) -> None:
    """Refuse another order of fields than that of ids.

    DuckLake writes inlined rows by position, and each of its ALTERs puts the column back in the
    place that follows from its id.

    Raises:
        BadRequest: fields were moved, or a new one is before others.
    """
    if list(wanted[: len(before)]) != list(before):
        raise BadRequest(
            f"DuckLake cannot move columns{f' within {above[:-1]}' if above else ''}, nor insert "
            "one before others: add it at the end, without FIRST or AFTER"
        )


def check_not_reserved(name: str, *, is_1_1: bool) -> None:
    """Refuse a name for a column at the top level that native DuckLake reserves.

    It could not inline rows of the table: `set_option('data_inlining_row_limit', …)` would fail for
    the whole lake, or each INSERT of few rows.

    Args:
        is_1_1: the catalog has version 1.1.

    Raises:
        BadRequest: DuckLake or PostgreSQL has a column of this name in tables of inlined rows.
    """
    # Both compare without letter case, DuckLake because it does so with all names.
    folded = name.casefold()
    reserved = SYSTEM_COLUMNS if is_1_1 else SYSTEM_COLUMNS | INLINED_COLUMNS
    if folded in reserved or folded.startswith(RESERVED_PREFIX):
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
    seen: dict[str, str] = {}
    for name in names:
        if not name or "\0" in name:
            raise BadRequest(f"a column of {above[:-1] or 'the table'} has no usable name")
        if name.casefold() in seen:
            raise BadRequest(
                f"the columns {above}{seen[name.casefold()]} and {above}{name} have the same name "
                "for DuckLake, which does not distinguish letter case; one of them may be hidden "
                "(see the table property polynya.hidden-columns)"
            )
        seen[name.casefold()] = name
