"""Conditions on a table under which clients have faults.

A condition takes the facts of a table, and returns the columns and the number of files that meet
it; None: nothing does. `client_faults.toml` names these functions; those without the parameter
`facts` return a condition.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from polynya.ducklake.rows.objects import PartitionColumn
from polynya.mapping.partitions import EPOCHS, FINEST
from polynya.types.names import INTEGERS

from .table_facts import ColumnFact, DefaultFact, TableFacts

UNSIGNED = frozenset(("uint8", "uint16", "uint32", "uint64"))
CAST_INSIDE = frozenset(("int8", "int16", "uint8", "uint16", "uint32", "struct"))
"""PyIceberg casts these types inside a list or a map."""

URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]*")
"""A location that needs no encoding."""


@dataclass(frozen=True, slots=True)
class Match:
    """What meets a condition."""

    columns: tuple[str, ...] = ()
    files: int = 0


Condition: TypeAlias = Callable[[TableFacts], Match | None]


def shown(*types: str) -> Condition:
    """Columns of these types that clients see."""
    return lambda facts: _match_columns(c for c in facts.shown if c.type in types)


def stored(*types: str) -> Condition:
    """Columns of these types in the files that clients get, whether clients see them or not."""
    return lambda facts: _match_columns(_stored(facts, types))


def _stored(facts: TableFacts, types: Collection[str]) -> Iterator[ColumnFact]:
    for column in facts.columns:
        is_left_out = {*column.parents, column.column_id}.intersection(facts.changes.left_out)
        if column.type in types and column.files and not is_left_out:
            yield column


def unsigned_32(facts: TableFacts) -> Match | None:
    """Unsigned integers of 32 bits that clients see, unless signed ones take their place in files.

    That is so if `has_signed` and no file may have 2147483648 or more.
    """
    return _match_columns(_unsigned(facts, (c for c in facts.shown if c.type == "uint32")))


def large_unsigned(facts: TableFacts) -> Match | None:
    """Unsigned integers of 32 bits that clients see, where a file may have 2147483648 or more."""
    columns = (column for column in facts.shown if column.type == "uint32")
    return _match_columns(c for c in columns if facts.may_be_from_2_31(c.column_id))


def _unsigned(facts: TableFacts, columns: Iterable[ColumnFact]) -> Iterator[ColumnFact]:
    for column in columns:
        is_larger = column.type == "uint64" or (
            column.type == "uint32" and facts.may_be_from_2_31(column.column_id)
        )
        if is_larger or not facts.changes.has_signed:
            yield column


def millisecond_statistics(facts: TableFacts) -> Match | None:
    """Timestamps that files hold in milliseconds, unless their statistics are left out."""
    columns = _stored(facts, ("timestamp_ms",))
    return _match_columns(c for c in columns if c.column_id not in facts.changes.without_statistics)


def promoted_floats(facts: TableFacts) -> Match | None:
    """Columns that files hold as FLOAT and that are DOUBLE now, unless their statistics are left
    out."""
    now = {c.column_id for c in facts.shown if c.type == "float64"} - facts.promoted_floats
    return _match_columns(
        c for c in _stored(facts, ("float32",)) if c.is_past and c.column_id in now
    )


def converted_groups(facts: TableFacts) -> Match | None:
    """Lists and maps in files, unless clients get all of them with logical types."""
    return None if facts.changes.logical_types else stored("list", "map")(facts)


def annotated_json(facts: TableFacts) -> Match | None:
    """JSON that clients see, unless they get it as a string in all files."""
    return None if facts.changes.has_strings else shown("json")(facts)


def unordered_bounds(facts: TableFacts) -> Match | None:
    """UUIDs that clients see, unless their bounds are left out."""
    uuids = (column for column in facts.shown if column.type == "uuid")
    return _match_columns(c for c in uuids if c.column_id not in facts.changes.without_bounds)


def nested_uuids(facts: TableFacts) -> Match | None:
    """UUIDs in lists, maps and structs that clients see."""
    return _match_columns(c for c in facts.shown if c.type == "uuid" and c.parents)


def nested_that_is_cast(facts: TableFacts) -> Match | None:
    """Lists and maps that hold types that PyIceberg casts."""
    # Clients get smaller integers without an annotation in all files.
    types = {"struct", "uint32"} if facts.changes.has_signed else CAST_INSIDE
    inside = {parent for c in facts.shown if c.type in types for parent in c.parents}
    return _match_columns(
        c for c in facts.shown if c.type in ("list", "map") and c.column_id in inside
    )


def defaults(facts: TableFacts) -> Match | None:
    """Columns with a default that files lack."""
    return _lacking(facts.defaults)


def deletion_vectors(facts: TableFacts) -> Match | None:
    """Files with deleted rows in a table of format version 3."""
    return Match((), facts.vectors) if facts.vectors else None


def added_files(facts: TableFacts) -> Match | None:
    """Added files, unless clients get them with field ids."""
    are_same = facts.added_files and not facts.adapts_added
    return Match((), facts.added_files) if are_same else None


def added(*types: str) -> Condition:
    """Top-level columns of these types, if the table has `added_files`."""

    def condition(facts: TableFacts) -> Match | None:
        if not added_files(facts):
            return None
        met = _match_columns(c for c in facts.shown if c.type in types and not c.parents)
        return met and Match(met.columns, facts.added_files)

    return condition


def defaults_in_paths(facts: TableFacts) -> Match | None:
    """Columns with a default that are in the paths of added files, if these are `added_files`."""
    if not added_files(facts):
        return None
    columns = facts.history.columns
    ids = {column.column_id for column in columns if column.initial_default is not None}
    ids &= facts.partition_ids
    met = _match_columns(column for column in facts.shown if column.column_id in ids)
    return met and Match(met.columns, facts.added_files)


def changed_structs(facts: TableFacts) -> Match | None:
    """Structs that got fields after a visible file was written."""
    structs = {c.column_id: c for c in facts.shown if c.type == "struct"}
    files = _files_by_column(facts.columns)
    fields = {c.column_id: c.parents[-1] for c in facts.columns if c.parents}
    now = {column.column_id for column in facts.shown}
    changed: dict[int, int] = {}
    for field, parent in fields.items():
        if parent in structs and field in now:
            changed[parent] = max(files[parent] - files[field], changed.get(parent, 0))
    names = tuple(structs[struct].name for struct, number in changed.items() if number > 0)
    return Match(names, max(changed.values())) if names else None


def missing_columns(facts: TableFacts) -> Match | None:
    """Top-level columns that visible files lack, unless they are filled in for clients."""
    return _missing(facts, (column for column in facts.shown if not column.parents))


def missing_structs(facts: TableFacts) -> Match | None:
    """Structs among `missing_columns`."""
    return _missing(facts, (c for c in facts.shown if c.type == "struct" and not c.parents))


def _missing(facts: TableFacts, columns: Iterable[ColumnFact]) -> Match | None:
    files = _files_by_column(facts.columns)
    lacking = {
        column.name: facts.files - files[column.column_id]
        for column in columns
        if column.column_id not in facts.filled_in and files[column.column_id] < facts.files
    }
    return Match((*lacking,), max(lacking.values())) if lacking else None


def _files_by_column(columns: Iterable[ColumnFact]) -> dict[int, int]:
    """How many files hold a column, in any of its versions."""
    counts: dict[int, int] = {}
    for column in columns:
        counts[column.column_id] = counts.get(column.column_id, 0) + column.files
    return counts


def read_by_rows(facts: TableFacts) -> Match | None:
    """Columns of types that Spark cannot read row by row, in a table that it reads so."""
    decimals = (d for d in facts.defaults if d.type.startswith("decimal"))
    of_files = stored("timestamp_ms")(facts) or facts.added_files
    is_nested = any(column.parents for column in facts.shown)
    if not (is_nested or _promoted(facts) or _lacking(decimals) or of_files):
        return None
    unsigned = _unsigned(facts, _stored(facts, UNSIGNED))
    return _match_columns(chain(unsigned, _stored(facts, ("interval", "time", "timetz"))))


def _promoted(facts: TableFacts) -> Match | None:
    """Integers that visible files hold in another type than the current one."""
    now = {c.column_id: c for c in facts.shown}
    return _match_columns(
        c
        for c in facts.columns
        if c.is_past
        and c.files
        and c.column_id in now
        and c.type in INTEGERS
        and now[c.column_id].type != c.type
    )


def other_specs(facts: TableFacts) -> Match | None:
    """Partition columns, and the files whose partitioning differs from that of new ones."""
    current = facts.history.partitioning.current

    def keys(partition_id: int | None) -> list[PartitionColumn]:
        return [*facts.partition_keys.get(partition_id, ())]

    # Files of clients may have a partitioning of their own with the same keys.
    batches = [batch for batch in facts.batches if keys(batch.partition_id) != keys(current)]
    met = _partitioned_by(facts, {current, *(batch.partition_id for batch in batches)})
    return Match(met.columns, sum(b.files for b in batches)) if batches and met else None


def inlined_partitions(facts: TableFacts) -> Match | None:
    """Partition columns of a table with inlined rows."""
    current = facts.history.partitioning.current
    return _partitioned_by(facts, {current}) if facts.inlined_rows else None


def partitions_with_deletes(facts: TableFacts) -> Match | None:
    """Columns by whose values files are partitioned, if files have deleted rows."""
    ids = {key.column_id for key in _keys(facts) if key.transform == "identity"}
    met = _match_columns(column for column in facts.shown if column.column_id in ids)
    return Match(met.columns, facts.deleted) if met and facts.deleted else None


def reused_names(facts: TableFacts) -> Match | None:
    """Columns that replaced one of the same name and another type, which visible files hold."""
    now = {c.name: c for c in facts.shown if not c.parents}
    return _match_columns(
        c
        for c in facts.columns
        if c.is_past
        and c.files
        and not c.parents
        and c.name in now
        and now[c.name].column_id != c.column_id
        and now[c.name].type != c.type
    )


def default_of(type_: str) -> Condition:
    """Columns of a type with a default that files lack."""
    return lambda facts: _lacking(d for d in facts.defaults if d.type == type_)


def awkward_name(facts: TableFacts) -> Match | None:
    """A name or a location that cannot be a part of a URI as it is, for example with a space."""
    history = facts.history
    names = (*history.schema.namespace, history.table.table_name, facts.location)
    return None if all(map(URI.fullmatch, names)) else Match((), facts.files)


def named_with(*characters: str) -> Condition:
    """A table with one of these characters in its own name."""
    return lambda facts: _match_name(facts, facts.history.table.table_name, characters)


def namespace_contains(*characters: str) -> Condition:
    """A table in a namespace whose name, with dots between its levels, has such a character."""
    return lambda facts: _match_name(facts, ".".join(facts.history.schema.namespace), characters)


def _match_name(facts: TableFacts, name: str, characters: Collection[str]) -> Match | None:
    return Match((), facts.files) if any(c in name for c in characters) else None


def dotted_level(facts: TableFacts) -> Match | None:
    """A dot in the name of a level, if the version of DuckLake has nested namespaces."""
    # DuckLake 1.0 has no schemas within schemas.
    is_dotted = any("." in level for level in facts.history.schema.namespace)
    return Match((), facts.files) if is_dotted and facts.history.lake.is_1_1 else None


def text_partitions(facts: TableFacts) -> Match | None:
    """Text columns by which files are partitioned, including those in the paths of added files."""
    ids = facts.partition_ids
    return _match_columns(c for c in facts.shown if c.column_id in ids and c.type == "varchar")


def time_partitions(facts: TableFacts) -> Match | None:
    """Columns partitioned by year, month, day or hour that may have a value before 1970."""
    ids = {key.column_id for key in _keys(facts) if key.transform in {*FINEST, *EPOCHS}}
    return _match_columns(
        column
        for column in facts.shown
        if column.column_id in ids and facts.may_be_before_1970(column.column_id)
    )


def _keys(facts: TableFacts) -> Iterator[PartitionColumn]:
    """The keys of all partitionings that the table has or had."""
    return chain.from_iterable(facts.partition_keys.values())


def _partitioned_by(facts: TableFacts, specs: set[int | None]) -> Match | None:
    ids = {key.column_id for spec in specs for key in facts.partition_keys.get(spec, ())}
    return _match_columns(column for column in facts.shown if column.column_id in ids)


def _match_columns(columns: Iterable[ColumnFact]) -> Match | None:
    files: dict[str, int] = {}
    for column in columns:
        files[column.name] = files.get(column.name, 0) + column.files
    return Match(tuple(files), max(files.values())) if files else None


def _lacking(defaults: Iterable[DefaultFact]) -> Match | None:
    files = {default.name: default.files for default in defaults}
    return Match(tuple(files), max(files.values())) if files else None
