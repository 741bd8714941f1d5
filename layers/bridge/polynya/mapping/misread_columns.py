"""Columns that some clients misread whatever the footer says: hidden if one of these is named.

They are hidden for clients that are named one by one (`settings.chosen`), not for clients in
general. docs/clients/ has the faults of each client. `adaptations` has the faults for which a new
footer makes up.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import Column
from ..types.numbers import precision_and_scale
from .adaptations import DEFAULTS, parents_of
from .schemas import Withheld, born_at

OF_VERSION_3 = frozenset(("clickhouse", "datafusion", "flink", "polars", "pyiceberg", "trino"))
"""These clients know neither geometries nor variants."""
TYPES: Mapping[str, frozenset[str]] = {
    "blob": frozenset(("flink",)),
    "geometry": OF_VERSION_3 | {"spark"},
    "time": frozenset(("clickhouse", "flink", "spark")),
    "timestamp_ms": frozenset(("datafusion",)),
    "timestamp_ns": frozenset(("flink", "sail", "spark", "trino")),
    "timestamptz_ns": frozenset(("duckdb", "flink", "sail", "spark", "trino")),
    "uuid": frozenset(("daft",)),
    "variant": OF_VERSION_3 | {"daft", "sail"},
}
"""The clients that misread columns of a type, or cannot read a table that has one."""
IN_FILES: Mapping[str, frozenset[str]] = {
    "geometry": frozenset(("polars", "trino")),
    "interval": frozenset(("polars", "spark")),
    "time": frozenset(("spark",)),
    "timestamp_ms": frozenset(("datafusion",)),
    "timetz": frozenset(("spark",)),
    "uint64": frozenset(("spark",)),
    "variant": frozenset(("polars", "pyiceberg", "trino")),
}
"""The clients that cannot read files with columns of a type, even if they need not read them. Files
lose hidden columns of the top level, but no fields (`adaptations`)."""
NESTED: Mapping[str, frozenset[str]] = {"uuid": frozenset(("pyiceberg",))}
"""The clients that fail over columns of a type in a list, a map or a struct: PyArrow makes no empty
table of them."""
UNSIGNED_32 = frozenset(("flink", "pyiceberg", "spark", "trino"))
"""These misread 2147483648 and more in files, or cannot read them."""
SCALES = frozenset(("datafusion", "flink", "polars", "pyiceberg", "trino"))
"""These misread decimals of added files that have fewer digits after the point than the column, or
the bounds in these files, or cannot read them."""
CAST = frozenset(("pyiceberg",))
"""These read a NULL as empty if they cast the items of the list or map."""
CAST_TYPES = frozenset(("struct", "uint32"))
"""The types that they cast; smaller integers are adapted."""
MISSING_STRUCTS = frozenset(("duckdb", "pyiceberg"))
"""These find the default of a field where a file lacks its whole struct, which is NULL there."""
YOUNGER_FIELDS = frozenset(("datafusion",))
"""These cannot read files in which a struct has fewer fields than in the table; fields with a
default are in all files."""
PARTITIONS = frozenset(("daft",))
"""These take a condition on a partition column as fulfilled in files of other partitionings,
too."""
VECTORS = frozenset(("clickhouse", "daft", "trino"))
"""These know no deletion vectors, which tables of format version 3 have for deleted rows."""
NULL_DEFAULTS = VECTORS | {"flink"}
"""These read NULL for a default whatever the schema."""
PARTITION_NAMES = frozenset(("sail",))
"""These misread partitions by a column whose name is not plain ASCII."""
TIME_PARTITIONS = frozenset(("clickhouse", "duckdb"))
"""These misread partitions by the years, months, days or hours of times before 1970."""
TIME_TRANSFORMS = frozenset(("year", "month", "day", "hour"))
PLAIN_NAME = re.compile("[!-$&-~ ]*")
GROUPS = frozenset(("list", "map"))


def misreads_partitions(clients: Collection[str], fields: Iterable[tuple[str, str]]) -> bool:
    """Whether a client misreads partitions by these columns and transforms.

    Args:
        clients: those that somebody has named.
        fields: pairs of a name and a transform.
    """
    fields = [*fields]
    who = PARTITIONS if fields else frozenset()
    if not all(PLAIN_NAME.fullmatch(name) for name, _ in fields):
        who |= PARTITION_NAMES
    if any(transform in TIME_TRANSFORMS for _, transform in fields):
        who |= TIME_PARTITIONS
    return bool(who.intersection(clients))


def lacks_vectors(clients: Collection[str]) -> bool:
    """Whether a client knows no deletion vectors.

    The deletes of a table are then position deletes, also in format version 3. It has no defaults,
    because files have the columns, and so no version 3 because of them.

    Args:
        clients: those that somebody has named.
    """
    return bool(VECTORS.intersection(clients)) and NULL_DEFAULTS.issuperset(clients)


class FilesWith(NamedTuple):
    """Data files that may have values in a column which clients misread."""

    column_id: int
    begin_snapshot: int
    end_snapshot: int | None
    """None: some are visible now."""


def may_be_large(
    columns: Iterable[Column], clients: Collection[str], in_added_files: Collection[int]
) -> dict[int, bool]:
    """The ids of columns that are hidden where files have a UINTEGER of 2147483648 or more.

    Args:
        in_added_files: the columns that these have.

    Returns:
        True: only added files may have a UINTEGER there.
    """
    if not UNSIGNED_32.intersection(clients):
        return {}
    types = {(column.column_id, column.column_type) for column in columns}
    wide = {id_: True for id_, type_ in sorted(types) if type_ == "int64" and id_ in in_added_files}
    return wide | {id_: False for id_, type_ in sorted(types) if type_ == "uint32"}


def scales(
    columns: Iterable[Column], clients: Collection[str], in_added_files: Collection[int]
) -> dict[int, int]:
    """The digits after the point of the decimals of which it matters how many added files have, by
    column_id.

    Args:
        in_added_files: the columns that these have.
    """
    if not in_added_files or not SCALES.intersection(clients):
        return {}
    decimals = {column.column_id: precision_and_scale(column.column_type) for column in columns}
    return {id_: of[1] for id_, of in sorted(decimals.items()) if of and id_ in in_added_files}


def misread(
    columns: Collection[Column],
    clients: Collection[str],
    large: Iterable[tuple[int, int, int | None]],
    rescaled: Iterable[tuple[int, int, int | None]] = (),
    in_added_files: Collection[Collection[int]] = (),
) -> Withheld:
    """Where columns are hidden, and why, by column_id.

    Args:
        columns: all versions of them.
        clients: those that somebody has named.
        large: as `queries.files_from_2_31`, of the columns that `may_be_large` gives.
        rescaled: as `queries.added_files_of_other_scale`, of those that `scales` gives.
        in_added_files: the columns that these have, by id, for each of their mappings; an empty
            set if files that were registered may lack any.
    """
    gaps: dict[int, list[UnservableRange]] = defaultdict(list)

    def hide(column_id: int, begin: int, end: int | None, who: Iterable[str], why: str) -> None:
        named = ", ".join(sorted(set(who).intersection(clients)))
        gaps[column_id].append(UnservableRange(begin, end, f"{named} would misread it: {why}"))

    parents = {column.column_id: column.parent_column for column in columns}
    types = {column.column_id: column.column_type for column in columns}
    born = born_at(columns)
    first = min(born.values(), default=0)
    for column in columns:
        begin = column.begin_snapshot
        if (who := TYPES.get(column.column_type, frozenset())).intersection(clients):
            hide(column.column_id, begin, None, who, f"a {column.column_type.upper()}")
        above = [*parents_of(column.column_id, parents)]
        in_files = IN_FILES.get(column.column_type, frozenset())
        if above and in_files.intersection(clients):
            why = f"a {column.column_type.upper()} is in it"
            hide(above[-1], begin, None, in_files, why)
        nested = NESTED.get(column.column_type, frozenset())
        if above and nested.intersection(clients):
            hide(column.column_id, begin, None, nested, "an empty result would fail")
        groups = [id_ for id_ in above if types.get(id_) in GROUPS]
        if CAST.intersection(clients) and column.column_type in CAST_TYPES:
            for group in groups:
                hide(group, begin, None, CAST, "a NULL of it would be empty")
        has_default = column.initial_default is not None
        if has_default and groups and DEFAULTS.intersection(clients):
            hide(column.column_id, begin, None, DEFAULTS, "its default in a list or a map is NULL")
        is_later = bool(above) and born[column.column_id] > born.get(above[0], first)
        if is_later and not has_default and YOUNGER_FIELDS.intersection(clients):
            hide(above[-1], begin, None, YOUNGER_FIELDS, "files lack a field of it")
        are_lacked = any(
            born.get(id_, first) > first or any(id_ not in ids for ids in in_added_files)
            for id_ in above
        )
        if has_default and are_lacked and MISSING_STRUCTS.intersection(clients):
            why = "its default would be found where the struct is NULL"
            hide(column.column_id, begin, None, MISSING_STRUCTS, why)
    for column_id, first, last in _merged(large):
        hide(
            column_id, first, last, UNSIGNED_32, "a file may have a UINTEGER of 2147483648 or more"
        )
    for column_id, first, last in _merged(rescaled):
        hide(column_id, first, last, SCALES, "an added file has a DECIMAL of another scale")
    return gaps


def _merged(files: Iterable[tuple[int, int, int | None]]) -> Iterable[FilesWith]:
    """Ranges of each column, ascending, as few as possible."""
    merged: list[FilesWith] = []
    for column_id, begin, end in files:
        if merged and merged[-1].column_id == column_id:
            last = merged[-1].end_snapshot
            if last is None or begin <= last:
                is_longer = last is not None and (end is None or end > last)
                merged[-1] = merged[-1]._replace(end_snapshot=end if is_longer else last)
                continue
        merged.append(FilesWith(column_id, begin, end))
    return merged
