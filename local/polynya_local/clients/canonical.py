"""Rows as text that does not depend on the client, so that the rows of two can be compared.

A client may give `int` for DuckLake's `TINYINT`, or a UUID as 16 bytes. DuckDB casts each value to
DuckLake's type and writes it as text: no value passes through a Python `datetime`, whose range
lacks dates before Christ and infinity.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from duckdb import DuckDBPyConnection
from duckdb.sqltypes import DuckDBPyType as Type

from .duckdb import connect, identifier, literal

if TYPE_CHECKING:
    import pyarrow as pa

FLOATS = {"FLOAT", "DOUBLE"}
QUOTED = {"VARCHAR", "BLOB"}
ZONED = "WITH TIME ZONE"
# Types that no Iceberg type equals; on both sides the value is compared as this.
COMPARED_AS = {
    "HUGEINT": ("CAST({} AS DOUBLE)", "DOUBLE"),  # DuckLake itself writes DOUBLE into Parquet
    "UHUGEINT": ("CAST({} AS DOUBLE)", "DOUBLE"),
    # Parquet keeps no offset
    "TIME WITH TIME ZONE": ("CAST({} AT TIME ZONE 'UTC' AS TIME)", "TIME"),
    "GEOMETRY": ("ST_AsWKB({})", "BLOB"),
    "JSON": ("CAST({} AS VARCHAR)", "VARCHAR"),
    "VARIANT": ("CAST({} AS VARCHAR)", "VARCHAR"),
}
EXAMPLES = 5

Columns = dict[str, Type]
Row = tuple[str | None, ...]
Path = tuple[str, ...]
Hidden = Collection[str]
"""Dotted names of fields that are left out."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """The rows of a table as text."""

    columns: tuple[str, ...]
    rows: Counter[Row]  # a multiset: how often each row occurs


def columns_of(con: DuckDBPyConnection, source: str) -> Columns:
    """The names and types of a FROM clause."""
    relation = con.sql(f"SELECT * FROM {source}")
    return dict(zip(relation.columns, relation.types, strict=True))


def canonical(
    con: DuckDBPyConnection, source: str, native: Columns, hidden: Hidden = ()
) -> Canonical:
    """Read `source` with every value as text in its `native` type, without `hidden` columns."""
    columns = columns_of(con, source)
    expected = [name for name in native if name not in hidden]
    if missing_or_surplus(expected, columns, hidden):
        return Canonical(tuple(sorted(name for name in columns if name not in hidden)), Counter())
    texts = [
        text(identifier(name), native[name], columns[name], (name,), hidden) for name in expected
    ]
    query = f"SELECT {', '.join(texts)} FROM {source}"
    return Canonical(tuple(expected), Counter(con.execute(query).fetchall()))


def from_arrow(table: "pa.Table", native: Columns, hidden: Hidden = ()) -> Canonical:
    """A client's rows as text; `native` has DuckLake's types."""
    with _duckdb().cursor() as con:
        con.register("client", table)
        return canonical(con, "client", native, hidden)


@cache
def _duckdb() -> DuckDBPyConnection:
    """The DuckDB of all comparisons: another one takes 10 ms to start."""
    return connect()


def missing_or_surplus(
    expected: Collection[str], actual: Collection[str], hidden: Hidden = ()
) -> set[str]:
    """The names that only one of the two has; a `hidden` one does not count as surplus."""
    return set(expected) ^ {name for name in actual if name not in hidden}


def text(value: str, native: Type, actual: Type, path: Path, hidden: Hidden = ()) -> str:
    """SQL that gives `value` as text.

    Args:
        value: SQL of a value of the type `actual`, which should equal one of the type `native`.
        path: the parts of its dotted name in Iceberg.
    """
    if native.id == actual.id and native.id in NESTED:
        return NESTED[native.id](value, native, actual, path, hidden)
    return _scalar(value, str(native), str(actual))


def _scalar(value: str, native: str, actual: str) -> str:
    if native in COMPARED_AS:
        sql, type_ = COMPARED_AS[native]
        if native == actual:
            value, actual = sql.format(value), type_
        native = type_
    if native == actual:
        return _written(value, native)
    as_it_is = f"{literal(actual + ' ')} || CAST({value} AS VARCHAR)"
    if native.startswith("TIMESTAMP") and (ZONED in native) != (ZONED in actual):
        return as_it_is  # an instant is not a local time, even if both have the same text in UTC
    # A cast that rounds or overflows could make different values equal: such a value is not cast.
    cast = f"TRY_CAST({value} AS {native})"
    same = f"TRY_CAST({cast} AS {actual}) IS NOT DISTINCT FROM {value}"
    return f"CASE WHEN {same} THEN {_written(cast, native)} ELSE {as_it_is} END"


def _written(value: str, native: str) -> str:
    words = f"CAST({value} AS VARCHAR)"
    if native in FLOATS:
        return f"CASE WHEN isnan({value}) THEN 'nan' ELSE {words} END"  # DuckDB also has `-nan`
    if native in QUOTED:
        return f"CAST(to_json({words}) AS VARCHAR)"  # 'NULL' differs from NULL; shows NUL bytes
    return words


def _struct(value: str, native: Type, actual: Type, path: Path, hidden: Hidden) -> str:
    fields = dict(_children(actual))
    parts = []
    for name, type in _children(native):
        if ".".join((*path, name)) in hidden:
            continue
        key = literal(name + ": ")
        if name not in fields:
            parts.append(f"{key} || 'no such field'")
            continue
        field = f"struct_extract({value}, {literal(name)})"
        words = text(field, type, fields[name], (*path, name), hidden)
        parts.append(f"{key} || coalesce({words}, 'NULL')")
    parts += [
        literal(f"surplus field {name}")
        for name in fields.keys() - dict(_children(native))
        if ".".join((*path, name)) not in hidden
    ]
    body = f"concat_ws(', ', {', '.join(parts)})" if parts else "''"
    return _unless_null(value, f"'{{' || {body} || '}}'")


def _list(value: str, native: Type, actual: Type, path: Path, hidden: Hidden) -> str:
    element = _parameter(path)
    [(_, mine)], [(_, theirs)] = _children(native), _children(actual)
    words = text(element, mine, theirs, (*path, "element"), hidden)
    texts = f"list_transform({value}, lambda {element}: coalesce({words}, 'NULL'))"
    return _unless_null(value, f"'[' || array_to_string({texts}, ', ') || ']'")


def _map(value: str, native: Type, actual: Type, path: Path, hidden: Hidden) -> str:
    entry = _parameter(path)
    kinds = zip(_children(native), _children(actual), strict=True)
    key, item = (
        text(f"{entry}.{part}", mine[1], theirs[1], (*path, part), hidden)
        for part, (mine, theirs) in zip(("key", "value"), kinds, strict=True)
    )
    pair = f"{key} || '=' || coalesce({item}, 'NULL')"
    texts = f"list_transform(map_entries({value}), lambda {entry}: {pair})"
    # Sorted: equal maps may have their entries in different orders.
    return _unless_null(value, f"'{{' || array_to_string(list_sort({texts}), ', ') || '}}'")


NESTED = {"struct": _struct, "list": _list, "map": _map}


def _children(type_: Type) -> list[tuple[str, Type]]:
    """The names and types of the parts of a nested type."""
    children: list[Any] = type_.children
    return children


def _parameter(path: Path) -> str:
    return f"e{len(path)}"  # one name per depth: lambdas are nested


def _unless_null(value: str, words: str) -> str:
    return f"CASE WHEN {value} IS NOT NULL THEN {words} END"


def difference(native: Canonical, client: Canonical) -> list[str]:
    """How a client's rows differ from DuckLake's, in lines; empty: they are equal."""
    if set(native.columns) != set(client.columns):
        lost = sorted(set(native.columns) - set(client.columns))
        more = sorted(set(client.columns) - set(native.columns))
        return [f"columns missing: {lost}, surplus: {more}"]
    missing, surplus = native.rows - client.rows, client.rows - native.rows
    if not missing and not surplus:
        return []
    report = [f"{missing.total()} rows missing, {surplus.total()} rows surplus"]
    report += _examples(native.columns, missing, surplus)
    return report


def _examples(
    columns: tuple[str, ...], missing: Counter[Row], surplus: Counter[Row]
) -> Iterator[str]:
    unpaired = list(surplus)
    for row in list(missing)[:EXAMPLES]:
        twin = max(unpaired, key=lambda other: _alike(row, other), default=None)
        if twin is None or 2 * _alike(row, twin) < len(columns):
            yield f"missing {missing[row]}x: {_shown(columns, row)}"
            continue
        unpaired.remove(twin)
        changes = [
            f"{name} is {_cut(theirs)}, not {_cut(mine)}"
            for name, mine, theirs in zip(columns, row, twin, strict=True)
            if mine != theirs
        ]
        yield f"{'; '.join(changes)} in {_shown(columns, row)}"
    for row in unpaired[:EXAMPLES]:
        yield f"surplus {surplus[row]}x: {_shown(columns, row)}"


def _alike(row: Row, other: Row) -> int:
    return sum(mine == theirs for mine, theirs in zip(row, other, strict=True))


def _shown(columns: tuple[str, ...], row: Row) -> str:
    return _cut(", ".join(f"{n}={_cut(v)}" for n, v in zip(columns, row, strict=True)), 300)


def _cut(value: str | None, length: int = 80) -> str:
    words = "NULL" if value is None else value
    return words if len(words) <= length else f"{words[:length]}… ({len(words)} characters)"
