"""What may happen next: strategies for events that are valid for a model in its current state.

Two faults of DuckLake itself are excluded, because they end a history early (docs/ducklake.md):
texts with quotes inside a struct, and buckets by the key, which all filters use.
"""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from polynya_local.clients.duckdb import literal

from . import events
from .events import Event
from .model import SCALARS, TEXTS, Column, Model, Table
from .predicates import COMPARISONS, TESTS, Predicate

NAMES = ("one", "two", "three x")
COLUMN_NAMES = ("a", "b", "c", "D é", "select")
FIELD_NAMES = ("x", "y", "z")
IDENTITIES = ("TINYINT", "INTEGER", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "DECIMAL(6,2)")
BUCKETS = ("TINYINT", "INTEGER", "BIGINT", "VARCHAR", "DATE")
CALENDAR = ("DATE", "TIMESTAMP")
KINDS = (*SCALARS, "VARCHAR", "STRUCT", "STRUCT", "INTEGER[]")
UNQUOTED = tuple(text for text in TEXTS if not set(text) & set("'\""))
INLINING = ((10, 0), (3, 10), (0, 10), (0, 3))
"""DATA_INLINING_ROW_LIMIT of the two writers."""
# Other types meet faults of clients: test_filters.py
FILTERED = ("INTEGER", "BIGINT", "SMALLINT", "TINYINT", "VARCHAR")

Draw = Callable[[st.SearchStrategy], Any]


def some_of(names: tuple[str, ...], least: int, most: int) -> st.SearchStrategy:
    return st.lists(st.sampled_from(names), min_size=least, max_size=most, unique=True)


# Columns and values


@st.composite
def columns(draw: Draw, model: Model, name: str) -> Column:
    column = Column(model.number(), name, draw(st.sampled_from(KINDS)))
    if column.type == "STRUCT":
        column.fields = [draw(fields(model, name)) for name in draw(some_of(FIELD_NAMES, 1, 2))]
    return column


@st.composite
def fields(draw: Draw, model: Model, name: str) -> Column:
    return Column(model.number(), name, draw(st.sampled_from(("INTEGER", "VARCHAR"))))


def values(column: Column, inside: bool = False) -> st.SearchStrategy:
    """Possible values of a column: NULL, or something that `events.fitting` converts."""
    if column.type == "STRUCT":
        some = st.tuples(*(values(part, inside=True) for part in column.fields))
    elif column.type == "INTEGER[]":
        some = st.lists(st.sampled_from((1, 2, None)), max_size=3).map(tuple)
    elif column.type == "VARCHAR" and inside:
        some = st.sampled_from(UNQUOTED)
    else:
        some = st.sampled_from(SCALARS[column.type].values)
    return st.one_of(some, some, some, st.none())


def tables(model: Model) -> st.SearchStrategy:
    return st.sampled_from(sorted(model.tables))


# Rows


@st.composite
def insertions(draw: Draw, model: Model) -> Event:
    """Few rows, which are inlined, or more than the limit; with all columns or some."""
    name = draw(tables(model))
    table = model.tables[name]
    given = [table.key, *(c for c in table.columns[1:] if draw(st.integers(0, 5)) < 5)]
    number = draw(st.sampled_from((1, 2, 3, 12, 15, 30, 0)))
    some = st.tuples(*(values(column) for column in given[1:]))
    patterns = draw(st.lists(some, min_size=1, max_size=4))
    rows = [(model.number(), *patterns[n % len(patterns)]) for n in range(number)]
    if rows and draw(st.integers(0, 9)) == 9:
        rows[0] = (draw(st.sampled_from((None, 1, rows[0][0] - 3))), *rows[0][1:])
    return events.Insert(name, tuple(column.name for column in given), tuple(rows))


@st.composite
def choices(draw: Draw, table: Table) -> events.Rows:
    """Some of the rows, by their keys."""
    keys = sorted({row[table.key.id] for row in table.rows} - {None})
    kind = draw(st.sampled_from(("keys", "keys", "modulo", "modulo", "all")))
    if keys and kind == "keys":
        some = st.lists(st.sampled_from(keys), min_size=1, max_size=12, unique=True)
        return events.Rows(keys=tuple(draw(some)))
    if kind == "all" and draw(st.booleans()):
        return events.Rows()
    modulo = draw(st.sampled_from((2, 3, 5)))
    return events.Rows(modulo=(modulo, draw(st.integers(0, modulo - 1))))


@st.composite
def deletions(draw: Draw, model: Model) -> Event:
    name = draw(tables(model))
    if draw(st.integers(0, 9)) == 9:
        return events.Truncate(name)
    return events.Delete(name, draw(choices(model.tables[name])))


@st.composite
def updates(draw: Draw, model: Model) -> Event:
    name = draw(tables(model))
    column, value = draw(new_values(model, model.tables[name]))
    return events.Update(name, draw(choices(model.tables[name])), column, value)


@st.composite
def new_values(draw: Draw, model: Model, table: Table) -> tuple[str, Any]:
    """A column other than the key, and its new value."""
    column = draw(st.sampled_from(table.columns[1:] or table.columns))
    value = model.number() if column is table.key else draw(values(column))
    return column.name, value


@st.composite
def merges(draw: Draw, model: Model) -> Event:
    name = draw(tables(model))
    table = model.tables[name]
    keys = sorted({row[table.key.id] for row in table.rows} - {None})
    known = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)) if keys else []
    column, value = draw(new_values(model, table))
    if draw(st.integers(0, 2)) == 2:
        column, value = None, None
    inserts = draw(st.booleans())
    return events.Merge(name, (*known, model.number()), column, value, inserts)


def writes(model: Model) -> st.SearchStrategy:
    return st.one_of(insertions(model), deletions(model), updates(model), merges(model))


@st.composite
def transactions(draw: Draw, model: Model) -> Event:
    """Up to four events at once, or none of them."""
    ahead, happened = copy.deepcopy(model), []
    for number in range(draw(st.integers(2, 4))):
        able = [writes(ahead), writes(ahead), additions(ahead), evolutions(ahead), layouts(ahead)]
        event = draw(st.one_of(*able, *([] if number else [table_changes(ahead)])))
        event.apply(ahead)
        happened.append(event)
    model.numbers = ahead.numbers
    ending = draw(st.sampled_from(("COMMIT",) * 5 + ("ROLLBACK",)))
    return events.Together(tuple(happened), ending)


# Tables


@st.composite
def creations(draw: Draw, model: Model, name: str | None = None) -> Event:
    """A new table, or one that replaces `name`."""
    key = Column(model.number(), "k", draw(st.sampled_from(("INTEGER", "BIGINT"))))
    others = [draw(columns(model, other)) for other in draw(some_of(COLUMN_NAMES, 1, 3))]
    free = [name for name in NAMES if name not in model.tables]
    chosen = name or draw(st.sampled_from(free))
    return events.Create(chosen, (key, *others), model.number(), name is not None)


@st.composite
def table_changes(draw: Draw, model: Model) -> Event:
    """A table is created, dropped or renamed; at least one remains."""
    free = [name for name in NAMES if name not in model.tables]
    name = draw(tables(model))
    able = [creations(model, name)]
    if free:
        able = [
            creations(model),
            st.builds(events.RenameTable, st.just(name), st.sampled_from(free)),
            *able,
        ]
    if len(model.tables) > 1:
        able.append(st.just(events.Drop(name)))
    return draw(st.one_of(able))


# Columns


@st.composite
def additions(draw: Draw, model: Model) -> Event:
    """ADD COLUMN, with a default or without."""
    name = draw(tables(model))
    free = unused(model.tables[name].columns, COLUMN_NAMES)
    if not free:
        return events.DropColumn(name, model.tables[name].columns[-1].name)
    column = draw(columns(model, draw(st.sampled_from(free))))
    if column.type in SCALARS and column.type != "BOOLEAN" and draw(st.booleans()):
        column.default = draw(st.sampled_from(SCALARS[column.type].values))
    return events.AddColumn(name, column)


@st.composite
def evolutions(draw: Draw, model: Model) -> Event:
    name = draw(tables(model))
    table = model.tables[name]
    free = unused(table.columns, COLUMN_NAMES)
    others = [column.name for column in table.columns[1:]]
    promoted = [
        (c, to) for c in table.columns if c.type in SCALARS for to in SCALARS[c.type].becomes
    ]
    defaulted = [c for c in table.columns[1:] if c.type in SCALARS and c.type != "BOOLEAN"]
    structs = [column for column in table.columns if column.type == "STRUCT"]
    able: list[st.SearchStrategy] = [additions(model)]
    if free:
        any_name = st.sampled_from([column.name for column in table.columns])
        able.append(st.builds(events.RenameColumn, st.just(name), any_name, st.sampled_from(free)))
    if others:
        able.append(st.builds(events.DropColumn, st.just(name), st.sampled_from(others)))
    if promoted:
        able.append(
            st.sampled_from(promoted).map(lambda one: events.Promote(name, one[0].name, one[1]))
        )
    if defaulted:
        able.append(
            st.sampled_from(defaulted).flatmap(
                lambda c: st.builds(events.SetDefault, st.just(name), st.just(c.name), values(c))
            )
        )
    if structs:
        able.append(struct_changes(model, name, structs))
    return draw(st.one_of(able))


@st.composite
def struct_changes(draw: Draw, model: Model, name: str, structs: list[Column]) -> Event:
    struct = draw(st.sampled_from(structs))
    old = draw(st.sampled_from(struct.fields)).name
    able: list[tuple[str | None, Column | None]] = []
    if free := unused(struct.fields, FIELD_NAMES):
        new = draw(fields(model, draw(st.sampled_from(free))))
        able = [(None, new), (old, new)]
    if len(struct.fields) > 1:
        able.append((old, None))
    return events.ChangeStruct(name, struct.name, *draw(st.sampled_from(able)))


def unused(taken: list[Column], names: tuple[str, ...]) -> list[str]:
    known = {column.name.lower() for column in taken}
    return [name for name in names if name.lower() not in known]


# Layout and maintenance


@st.composite
def layouts(draw: Draw, model: Model) -> Event:
    """Partitioning and sorting."""
    name = draw(tables(model))
    able = model.tables[name].columns
    kinds = {
        "SET PARTITIONED BY ({0})": [c for c in able if c.type in IDENTITIES],
        "SET PARTITIONED BY (bucket(3, {0}))": [c for c in able[1:] if c.type in BUCKETS],
        "SET PARTITIONED BY (year({0}))": [c for c in able if c.type in CALENDAR],
        "SET PARTITIONED BY (year({0}), month({0}))": [c for c in able if c.type in CALENDAR],
        "SET SORTED BY ({0} DESC)": [c for c in able if c.type in IDENTITIES],
    }
    words = [*(one for one, columns in kinds.items() if columns)]
    chosen = draw(st.sampled_from([*words, "RESET PARTITIONED BY", "RESET SORTED BY"]))
    columns = [draw(st.sampled_from(kinds[chosen])).name] if chosen in kinds else []
    if chosen == "SET PARTITIONED BY ({0})" and draw(st.booleans()):
        second = [c.name for c in kinds[chosen] if c.name not in columns]
        if second:
            chosen, columns = (
                "SET PARTITIONED BY ({0}, {1})",
                [*columns, draw(st.sampled_from(second))],
            )
    return events.Alter(name, chosen, tuple(columns))


def rearrangements(model: Model) -> st.SearchStrategy:
    return st.one_of(layouts(model), table_changes(model))


@st.composite
def flushes(draw: Draw, model: Model) -> Event:
    name = draw(st.one_of(st.none(), st.none(), tables(model)))
    only = "" if name is None else f", table_name => {literal(name)}"
    return events.Statement(f"CALL ducklake_flush_inlined_data('lake'{only})")


def upkeep(model: Model) -> st.SearchStrategy:
    statements = (
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
        "CALL ducklake_rewrite_data_files('lake')",
        "CHECKPOINT lake",
    )
    kept = st.sampled_from(statements).map(events.Statement)
    past = [n for n in model.snapshots[:-1] if n > 0]
    if not past:
        return kept
    some = st.lists(st.sampled_from(past), min_size=1, max_size=len(past), unique=True)
    expired = some.map(lambda gone: events.Expire(tuple(sorted(gone))))
    return st.one_of(kept, kept, kept, expired)


def switches(model: Model) -> st.SearchStrategy:
    """From then on small writes are inlined, or are not."""
    limits = st.sampled_from((0, 3, 10, 1000))
    return limits.map(
        lambda n: events.Statement(f"CALL lake.set_option('data_inlining_row_limit', {n})")
    )


@st.composite
def predicates(draw: Draw, model: Model) -> Predicate:
    name = draw(tables(model))
    table = model.tables[name]
    column = draw(st.sampled_from([c for c in table.columns if c.type in FILTERED]))
    words = draw(st.sampled_from([*COMPARISONS, *TESTS]))
    if words in TESTS:
        return Predicate(name, column.name, words)
    there = {row[column.id] for row in table.rows} - {None}
    value = draw(st.sampled_from(sorted(there | set(SCALARS[column.type].values))))
    return Predicate(name, column.name, words, value)
