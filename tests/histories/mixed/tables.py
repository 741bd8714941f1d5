"""What a mixed history begins with: the columns of its table, partitioning, and how it inlines."""

from dataclasses import dataclass
from random import Random

from .operations import NATIVE, PYICEBERG, Operation

TYPES = (
    *("TINYINT", "SMALLINT", "INTEGER", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "UINTEGER"),
    *("DECIMAL(9,2)", "DECIMAL(18,3)", "DECIMAL(38,5)", "VARCHAR", "VARCHAR", "BLOB", "BOOLEAN"),
    *("DATE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_MS", "UUID"),
    *("STRUCT(x INTEGER, y VARCHAR)", "STRUCT(x INTEGER, y VARCHAR)", "INTEGER[]", "DOUBLE[]"),
    # No lists with structs: PyIceberg reads or writes some as empty if they are NULL.
    *("MAP(VARCHAR, DOUBLE)", "STRUCT(x STRUCT(y INTEGER, z DATE), w VARCHAR)"),
)
INLINABLE = {
    "STRUCT(x STRUCT(y INTEGER, z DATE), w VARCHAR)": "STRUCT(x STRUCT(y INTEGER), w VARCHAR)"
}
"""What takes the place of a type that DuckLake inlines and cannot read (docs/ducklake.md)."""
HIDDEN = ("HUGEINT", "INTERVAL", "UBIGINT")
NAMES = ("a", "b", "c", "D é", "select", "o'k")
INLINING = ((10, 3), (10, 3), (3, 10), (10, 10), (0, 0), (10, 0))
"""How many rows the two native writers inline."""
CHUNKS = (2, 6, 1000)
"""How many files one manifest of ours has: with few, more is covered, and more is written."""

IDENTITIES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "VARCHAR", "BOOLEAN", "DATE")
CALENDAR = ("DATE", "TIMESTAMP")
BUCKETS = ("INTEGER", "BIGINT", "VARCHAR", "DATE")
# No truncated decimals of few digits: DuckDB's filters of negative numbers are INTERNAL errors.
OF_CLIENTS = {
    "INTEGER": ("truncate[3]", "bucket[3]"),
    "BIGINT": ("truncate[3]", "bucket[3]"),
    "DECIMAL(18,3)": ("truncate[100]", "bucket[3]"),
    "VARCHAR": ("truncate[1]", "bucket[2]"),
    "BLOB": ("identity", "bucket[2]"),
    "DOUBLE": ("identity",),
    "UUID": ("bucket[2]",),
    "DATE": ("day", "bucket[2]"),
    "TIME": ("identity",),
    "TIMESTAMP": ("day", "hour", "bucket[2]"),
    "TIMESTAMPTZ": ("day", "month", "identity", "bucket[2]"),
}
"""Transforms by which clients partition a column of each type; most of them DuckLake does not have.
"""


def quoted(name: str) -> str:
    """A name for SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Beginning:
    """The first operations of a history."""

    inlining: tuple[int, int]
    chunk_files: int
    operations: tuple[Operation, ...]
    version: str
    """The catalog's, while Iceberg clients commit."""


def beginning(rng: Random, version: str) -> Beginning:
    """A table, perhaps partitioned, perhaps created by a client or with a column that it hides."""
    kinds = rng.choices(TYPES, k=rng.randrange(1, 6))
    inlining = rng.choice(INLINING)
    kinds = [inlinable(kind, inlining) for kind in kinds]
    if rng.random() < 0.15:
        kinds.append(rng.choice(HIDDEN))
    columns = dict(zip(NAMES, kinds, strict=False))
    not_null = " NOT NULL" if rng.random() < 0.2 else ""
    body = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    made = [Operation(NATIVE[0], "create", (f"CREATE TABLE {{t}} (k BIGINT{not_null}, {body})",))]
    if rng.random() < 0.4:
        made += first_partitioning(rng, columns)
    if rng.random() < 0.08:  # Iceberg clients hardly write sorted tables
        made.append(Operation(NATIVE[0], "sort", sql=("ALTER TABLE {t} SET SORTED BY (k DESC)",)))
    if rng.random() < 0.3:
        option = f"CALL lake.set_option('data_inlining_row_limit', {inlining[0]})"
        made.append(Operation(NATIVE[0], "option", sql=(option,)))
    return Beginning(inlining, rng.choice(CHUNKS), tuple(made), version)


def inlinable(kind: str, inlining: tuple[int, int]) -> str:
    """A column's type, or what takes its place if a writer inlines."""
    return INLINABLE.get(kind, kind) if any(inlining) else kind


def first_partitioning(rng: Random, columns: dict[str, str]) -> list[Operation]:
    """Partitioning of a table without rows; buckets are possible only then."""
    able = partitionings({"k": "BIGINT", **columns}) + buckets({"k": "BIGINT", **columns})
    if rng.random() < 0.4 and (steps := of_clients(rng, {"k": "BIGINT", **columns})):
        return [Operation(PYICEBERG, "partition", steps=(("partition", *steps),))]
    if not able:
        return []
    native, steps = rng.choice(able)
    sql = f"ALTER TABLE {{t}} SET PARTITIONED BY ({native})"
    if rng.random() < 0.3:
        return [Operation(PYICEBERG, "partition", steps=(("partition", *steps),))]
    return [Operation(NATIVE[0], "partition", sql=(sql,))]


Partitioning = tuple[str, tuple[str, ...]]
"""Keys in SQL, and columns and transforms of Iceberg."""


def partitionings(columns: dict[str, str]) -> list[Partitioning]:
    """By which columns a table can be partitioned."""
    found: list[Partitioning] = []
    for name, kind in columns.items():
        word = quoted(name)
        if kind in IDENTITIES and name != "k":
            found += [(word, (name, "identity"))] * 2
        if kind in CALENDAR:
            found.append((f"year({word})", (name, "year")))
            found.append((f"year({word}), month({word})", (name, "month")))
    return found


def of_clients(rng: Random, columns: dict[str, str]) -> tuple[str, ...]:
    """One or two columns with transforms of Iceberg; PyIceberg writes one transform of a column."""
    able = [name for name, kind in columns.items() if kind in OF_CLIENTS]
    names = rng.sample(able, min(len(able), rng.choice((1, 1, 2))))
    return tuple(word for name in names for word in (name, rng.choice(OF_CLIENTS[columns[name]])))


def buckets(columns: dict[str, str]) -> list[Partitioning]:
    """By which columns an empty table can be partitioned in buckets."""
    return [
        (f"bucket(3, {quoted(name)})", (name, "bucket[3]"))
        for name, kind in columns.items()
        if kind in BUCKETS
    ]
