"""The known faults of clients: a table of rules, measured by `make matrix` and tests/engines.

docs/clients.md describes them all; a test compares the clients and the remedies.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from . import conditions
from .conditions import Condition, any_of
from .snippets import CLIENTS
from .table_facts import TableFacts

WRONG, FAILS, RARE = "wrong rows", "fails", "in rare cases"
"""The client gives other rows than DuckLake, without a word; or it reports an error; or it does one
of these for values or files that few tables have, and that the catalog does not show."""

HIDE_UINT32 = "polynya serve --hide-type uint32"
HIDE_TIME = "polynya serve --hide-type time"
HIDE_JSON = "polynya serve --hide-type json"
UPDATE = "Update all rows in DuckLake, which writes the default into new files"
UPDATE_OR_REFUSE = f"{UPDATE}; COLUMN_DEFAULTS=refuse refuses the table until then"
OTHER_CLIENT = "Read the table with DuckDB"
REWRITE = "Write the rows into a new table, without these columns"
WRITE_ANEW = "Write the rows into a new table, whose files DuckLake writes"
IN_MILLISECONDS = (
    "misses rows if a condition compares {columns}, which {files} hold in milliseconds"
)
ADDED_MILLISECONDS = (
    "misses rows if a condition compares {columns} and one of the {files} that somebody has added "
    "holds milliseconds"
)
NO_IN = "Ask for one value after the other, with = and OR"
NO_CONDITION = "Read without this condition, and apply it afterwards"


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault of a client, and the tables that have it."""

    client: str
    kind: str
    condition: Condition
    sentence: str
    """With `{columns}` and `{files}`."""
    remedy: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a client has with this table."""

    client: str
    version: str
    kind: str
    sentence: str
    remedy: str
    columns: tuple[str, ...]
    files: int


RULES = (
    Rule(
        "DuckDB",
        RARE,
        conditions.shown("blob"),
        "misses rows if a condition asks for one value of {columns} that is not printable ASCII, "
        "as native DuckLake does",
        NO_CONDITION,
    ),
    Rule(
        "DuckDB",
        RARE,
        conditions.time_partitions,
        "misses rows from before 1970 if a condition asks for a time of {columns} within their "
        "month or day, by which the table is partitioned",
        NO_CONDITION,
    ),
    Rule(
        "DuckDB",
        WRONG,
        conditions.dotted_level,
        "takes the dot in the name of the namespace for one between two levels, and reads the "
        "table of that namespace if there is one, until it has listed all namespaces",
        "Read the table with PyIceberg or Spark",
    ),
    Rule(
        "PyIceberg",
        WRONG,
        conditions.shown("uint32"),
        "misses rows if a condition compares {columns} with 2147483648 or more, because it reads "
        "unsigned integers of 32 bits as signed ones",
        HIDE_UINT32,
    ),
    Rule(
        "PyIceberg",
        RARE,
        conditions.shown("float32"),
        "finds none or all of the rows if a condition compares {columns} with infinity",
        NO_CONDITION,
    ),
    Rule(
        "PyIceberg",
        WRONG,
        conditions.nested_that_is_cast,
        "reads a NULL in {columns} as an empty list or map",
        OTHER_CLIENT,
    ),
    Rule(
        "PyIceberg",
        FAILS,
        conditions.stored("variant"),
        "cannot read the table: {files} with the VARIANT column {columns}, although the column is "
        "hidden",
        f"{OTHER_CLIENT}, or: {REWRITE}",
    ),
    Rule(
        "PyIceberg",
        RARE,
        conditions.added_structs,
        "cannot read an added file in which {columns} has a field that the table lacks; {files} of "
        "the table are added",
        WRITE_ANEW,
    ),
    Rule(
        "Spark",
        WRONG,
        conditions.defaults,
        "finds no rows by a condition on the default of {columns} in {files} that lack the column; "
        "reading without the condition is right",
        UPDATE,
    ),
    Rule(
        "Spark",
        FAILS,
        conditions.shown("time"),
        "cannot read the table, because {columns} is a TIME",
        HIDE_TIME,
    ),
    Rule(
        "Spark",
        FAILS,
        conditions.shown("uint32"),
        "cannot read {columns}, an unsigned integer of 32 bits",
        HIDE_UINT32,
    ),
    Rule(
        "Spark",
        FAILS,
        conditions.read_by_rows,
        "cannot read {files} with {columns}, whether hidden or not: it reads them row by row, "
        "because of a promoted integer, a decimal default, a TIMESTAMP_MS or added files, and "
        "knows neither unsigned integers nor TIME then",
        OTHER_CLIENT,
    ),
    Rule(
        "Spark",
        WRONG,
        conditions.stored("timestamp_ms"),
        IN_MILLISECONDS,
        NO_CONDITION,
    ),
    Rule(
        "Spark",
        RARE,
        conditions.added_timestamps,
        ADDED_MILLISECONDS,
        NO_CONDITION,
    ),
    Rule(
        "Spark",
        WRONG,
        conditions.shown("uuid"),
        "may miss rows if a condition asks for one value of {columns}, for example for "
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        NO_CONDITION,
    ),
    Rule(
        "Spark",
        RARE,
        conditions.text_partitions,
        "reports a NullPointerException for a condition with IN on {columns} if a partition is "
        "NULL, unless the server plans its scans",
        NO_IN,
    ),
    Rule(
        "Spark",
        RARE,
        conditions.shown("float32"),
        "finds no rows if a condition asks for FLOAT's greatest number in {columns} and the server "
        "plans its scans",
        NO_CONDITION,
    ),
    Rule(
        "Polars",
        FAILS,
        conditions.shown("json"),
        "cannot read the table, because {columns} is JSON",
        HIDE_JSON,
    ),
    Rule(
        "Polars",
        FAILS,
        conditions.stored("geometry", "variant"),
        "cannot read {files} with the GEOMETRY or VARIANT column {columns}, although the column is "
        "hidden",
        f"{OTHER_CLIENT}, or: {REWRITE}",
    ),
    Rule(
        "Polars",
        FAILS,
        conditions.stored("interval"),
        "cannot read {files} with the INTERVAL column {columns}, although the column is hidden",
        f"{OTHER_CLIENT}, or: {REWRITE}",
    ),
    Rule(
        "Daft",
        FAILS,
        conditions.stored("list", "map"),
        "cannot read {files} with the list or map {columns}",
        OTHER_CLIENT,
    ),
    Rule(
        "Daft",
        FAILS,
        conditions.added_files,
        "refuses files that somebody has added as they were, without field ids; {files} of the "
        "table are added",
        WRITE_ANEW,
    ),
    Rule(
        "Daft",
        WRONG,
        conditions.defaults,
        "reads NULL for the default of {columns} in {files}",
        UPDATE_OR_REFUSE,
    ),
    Rule(
        "Daft",
        WRONG,
        conditions.other_specs,
        "ignores a condition on {columns} in {files} partitioned in another way than new ones, or "
        "reports that the column is not found",
        NO_CONDITION,
    ),
    Rule(
        "Daft",
        WRONG,
        conditions.inlined_partitions,
        "may ignore a condition on {columns} for rows that are inlined",
        NO_CONDITION,
    ),
    Rule(
        "Daft",
        FAILS,
        conditions.shown("uuid"),
        "may fail to filter the table, because {columns} is a UUID",
        NO_CONDITION,
    ),
    Rule(
        "DataFusion",
        WRONG,
        conditions.added_nested,
        "reads NULL for {columns} in {files} that somebody has added as they were",
        WRITE_ANEW,
    ),
    Rule(
        "DataFusion",
        FAILS,
        conditions.changed_structs,
        "cannot read {files} from before the fields of {columns} changed",
        OTHER_CLIENT,
    ),
    Rule(
        "DataFusion",
        FAILS,
        conditions.default_of("uuid"),
        "cannot read the default of the UUID {columns} in {files}",
        UPDATE,
    ),
    Rule(
        "DataFusion",
        FAILS,
        conditions.stored("timestamp_ms"),
        "cannot read {files} with the TIMESTAMP_MS column {columns}",
        OTHER_CLIENT,
    ),
    Rule(
        "ClickHouse",
        WRONG,
        conditions.shown("struct", "list", "map"),
        "reads a NULL in {columns} as empty, or as a struct of NULLs",
        OTHER_CLIENT,
    ),
    Rule(
        "ClickHouse",
        WRONG,
        conditions.shown("time"),
        "reads the TIME {columns} as a number of microseconds",
        "Divide by 1,000,000 in ClickHouse",
    ),
    Rule(
        "ClickHouse",
        WRONG,
        conditions.defaults,
        "reads NULL for the default of {columns} in {files}",
        UPDATE_OR_REFUSE,
    ),
    Rule(
        "ClickHouse",
        RARE,
        conditions.shown("date"),
        "finds nothing by the condition that {columns} is 9999-12-31, and cannot read infinity or "
        "dates before the year -1",
        NO_CONDITION,
    ),
    Rule(
        "ClickHouse",
        RARE,
        conditions.time_partitions,
        "misses rows from before 1970 if a condition asks for one value of {columns}, by parts of "
        "which the table is partitioned",
        NO_CONDITION,
    ),
    Rule(
        "ClickHouse",
        FAILS,
        conditions.reused_names,
        "cannot filter by {columns}: {files} hold an older column of that name and another type",
        NO_CONDITION,
    ),
    Rule(
        "ClickHouse",
        FAILS,
        conditions.awkward_name,
        "cannot read the table, because its name or the location of its files cannot be a part of "
        "a URI as it is, for example because of a space",
        OTHER_CLIENT,
    ),
    Rule(
        "Trino",
        WRONG,
        conditions.defaults,
        "reads NULL for the default of {columns} in {files}, and conditions on it count wrongly",
        UPDATE_OR_REFUSE,
    ),
    Rule(
        "Trino",
        WRONG,
        conditions.shown("uint32"),
        "reads 2147483648 and more in {columns} as negative numbers",
        HIDE_UINT32,
    ),
    Rule(
        "Trino",
        RARE,
        conditions.shown("timestamptz"),
        "cannot read the table if a value of {columns} is infinity or -infinity",
        OTHER_CLIENT,
    ),
    Rule(
        "Trino",
        FAILS,
        conditions.stored("geometry", "variant"),
        "cannot read {files} with the GEOMETRY or VARIANT column {columns}, although the column is "
        "hidden",
        f"{OTHER_CLIENT}, or: {REWRITE}",
    ),
    Rule(
        "Trino",
        FAILS,
        conditions.named_with("$"),
        "cannot read the table, because it takes what follows a $ in a name for a metadata table",
        OTHER_CLIENT,
    ),
    Rule(
        "Trino",
        FAILS,
        conditions.in_namespace_with("."),
        "cannot read the table, because it takes a namespace with a dot for a nested one, and "
        "those are switched off",
        OTHER_CLIENT,
    ),
    Rule(
        "Flink",
        WRONG,
        conditions.defaults,
        "reads NULL for the default of {columns} in {files}",
        UPDATE_OR_REFUSE,
    ),
    Rule(
        "Flink",
        WRONG,
        conditions.shown("time"),
        "reads {columns} in milliseconds, without what is finer",
        OTHER_CLIENT,
    ),
    Rule(
        "Flink",
        WRONG,
        conditions.shown("uint32"),
        "reads 2147483648 and more in {columns} as negative numbers",
        HIDE_UINT32,
    ),
    Rule(
        "Flink",
        WRONG,
        conditions.stored("timestamp_ms"),
        IN_MILLISECONDS,
        NO_CONDITION,
    ),
    Rule(
        "Flink",
        RARE,
        conditions.added_timestamps,
        ADDED_MILLISECONDS,
        NO_CONDITION,
    ),
    Rule(
        "Flink",
        WRONG,
        conditions.shown("blob"),
        "finds no rows if a condition with IN asks for values of {columns}",
        NO_IN,
    ),
    Rule(
        "Flink",
        RARE,
        conditions.shown("float32"),
        "finds no rows if a condition asks for FLOAT's greatest number in {columns}",
        NO_CONDITION,
    ),
    Rule(
        "Flink",
        RARE,
        conditions.shown("date"),
        "cannot read the table if a value of {columns} is infinite or before the year 1",
        OTHER_CLIENT,
    ),
    Rule(
        "Flink",
        FAILS,
        conditions.in_namespace_with(".", "%"),
        "cannot read the table, because its namespace has a % or a dot in its name, or several "
        "levels",
        OTHER_CLIENT,
    ),
    Rule(
        "Flink",
        FAILS,
        conditions.named_with("$", "%"),
        "cannot read the table, because its name has a $ or a %",
        OTHER_CLIENT,
    ),
)
"""In the order of the clients; what is wrong without a word is not always first."""


def known_faults(facts: TableFacts) -> list[Fault]:
    """The faults that clients are known to have with a table."""
    versions = {client.name: client.version for client in CLIENTS}
    outcomes = [(rule, rule.condition(facts)) for rule in RULES]
    return [
        Fault(
            rule.client,
            versions[rule.client],
            rule.kind,
            rule.sentence.format(columns=any_of(met.columns), files=_files(met.files)),
            rule.remedy,
            met.columns,
            met.files,
        )
        for rule, met in outcomes
        if met is not None
    ]


def clients_by_kind(faults: Iterable[Fault]) -> dict[str, list[str]]:
    """The clients that have faults of each kind."""
    by_kind: dict[str, dict[str, None]] = {kind: {} for kind in (WRONG, FAILS, RARE)}
    for fault in faults:
        by_kind[fault.kind][fault.client] = None
    return {kind: list(clients) for kind, clients in by_kind.items()}


def _files(number: int) -> str:
    return "some files" if not number else "1 file" if number == 1 else f"{number:,} files"
