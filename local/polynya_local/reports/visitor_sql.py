"""A visitor's SQL: which statements are allowed, and the DuckDB that runs them.

The SQL runs in a DuckDB of its own, which is a client of the Iceberg endpoints. Native DuckLake
would show more, but its DuckDB holds the credentials of the data, and `postgres_query` and
`__ducklake_metadata_lake` give access to the whole database of the catalog. This one holds no
secret but the caller's own token, if the endpoints need one. `locked` restricts it before it gets
the text: no files but those of the lake, no other hosts, no extensions, no settings. `checked`
accepts one SELECT that reads tables, by its syntax tree. This excludes the functions that remain,
such as `set_iceberg_table_properties`, which would write through a server that permits it.
"""

import csv
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection, DuckDBPyRelation, Statement, StatementType
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.runtime.namespaces import parsed

from ..clients.duckdb import ICEBERG, confine, connect, identifier, listed_schemas
from ..queries.lake_entries import entries
from .changes import SnapshotReport, snapshot_of
from .generator import Generator, served_lake
from .preview import Endpoints, Limits, Rows, attach, limit_memory

LAKE = "lake"
"""The name by which the lake is attached."""
LONGEST = 10_000
"""The most characters of a text."""
TABLE_FUNCTIONS = frozenset(("generate_series", "json_each", "json_tree", "range", "unnest"))
"""The allowed table functions: they read nothing but their arguments."""
REFUSED_FUNCTIONS = frozenset(("current_setting", "getenv", "write_log"))
"""Scalar functions that reveal something about the server, or write."""
SYSTEM_TABLES = ("duckdb_", "pg_", "pragma_", "sqlite_")
"""Prefixes of DuckDB's system views; a table of the lake with such a name needs its schema."""


@dataclass(frozen=True, slots=True)
class SqlQuestion:
    """A text, and the state of the lake that it reads."""

    text: str
    snapshot: int
    """DuckLake's."""
    directories: tuple[str, ...]
    """Where the lake's files are, generated ones too: `s3://bucket/prefix/`."""


@dataclass(frozen=True, slots=True)
class SqlDownload:
    """All rows of a question as one file; a `DownloadAnswer` has it."""

    question: SqlQuestion
    format: str
    """`csv` or `parquet`."""


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """The parts that arrived in time."""

    rows: Rows | None = None
    seconds: float | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """Why a part is missing, by its name."""


@dataclass(frozen=True, slots=True)
class SqlReport:
    """A text and its rows, at a snapshot of the lake."""

    query: str
    """Empty: nothing was asked yet."""
    newest: int
    """The lake's newest snapshot."""
    snapshot: SnapshotReport
    """The one that is read."""
    tables: tuple[str, ...]
    """The first tables of the lake, as SQL names them."""
    limits: Limits
    answer: SqlAnswer | None = None
    """None: it is not there yet, or nothing was asked."""


class NoSelect(Exception):
    """The text is not one SELECT that reads tables; the message says why."""


@contextmanager
def locked(
    endpoints: Endpoints, question: SqlQuestion, limits: Limits, folder: str
) -> Iterator[DuckDBPyConnection]:
    """A DuckDB with the lake attached, and with no access to anything else.

    Args:
        folder: where a download is written.
    """
    with closing(connect(ICEBERG, endpoints.s3_endpoint)) as con:
        attach(con, endpoints, question.snapshot, LAKE)
        try:
            con.execute(f"USE {LAKE}")
        except duckdb.Error:  # a lake may have no schema `main`, or not for this caller
            with suppress(duckdb.Error):
                [(schema,), *_] = con.execute(listed_schemas(LAKE)).fetchall() or [("",)]
                con.execute(f"USE {LAKE}.{identifier(schema)}")
        limit_memory(con, limits.memory)
        con.execute("SET python_enable_replacements = false")  # variables of this process
        confine(con, (), (*question.directories, f"{folder}/"))
        yield con


def checked(con: DuckDBPyConnection, text: str) -> Statement:
    """The statement in a text.

    Raises:
        NoSelect: the text is not one SELECT, or it may not run.
    """
    [(words,)] = con.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    tree = json.loads(words)
    if tree["error"]:
        is_other = tree["error_type"] == "not implemented"
        raise NoSelect("only a SELECT is run" if is_other else tree["error_message"])
    statements = con.extract_statements(text)
    if len(statements) != 1 or len(tree["statements"]) != 1:
        raise NoSelect("a query is one SELECT")
    if statements[0].type != StatementType.SELECT:
        raise NoSelect("only a SELECT is run")
    for node in _nodes(tree):
        if (reason := _refusal(node)) is not None:
            raise NoSelect(reason)
    return statements[0]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _refusal(node: dict[str, Any]) -> str | None:
    """Why a node of the syntax tree is not allowed; None: it is."""
    if node.get("type") == "TABLE_FUNCTION":
        name = str(node["function"]["function_name"]).lower()
        if name not in TABLE_FUNCTIONS:
            allowed = ", ".join(sorted(TABLE_FUNCTIONS))
            return f"a query may only read tables of the lake, not {name}(); it may call {allowed}"
    elif node.get("class") == "FUNCTION":
        name = str(node["function_name"]).lower()
        return f"a query may not call {name}()" if name in REFUSED_FUNCTIONS else None
    elif node.get("type") == "BASE_TABLE":
        catalog, schema, table = (
            str(node[part]).lower() for part in ("catalog_name", "schema_name", "table_name")
        )
        is_system = schema == "pg_catalog" or (not schema and table.startswith(SYSTEM_TABLES))
        # DuckDB joins the parts of an unknown name, and reads the result as a file's URL.
        is_file = "://" in f"{catalog}.{schema}.{table}"
        if catalog not in ("", LAKE) or is_system or is_file:
            return (
                f"a query may only read tables of the lake, and {table} is not one: write "
                "schema.table"
            )
    return None


def exact_columns(relation: DuckDBPyRelation) -> Iterator[str]:
    """A select list without types that a Parquet file does not hold exactly."""
    for number, (name, type_) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        # It would be written as DOUBLE; a value that is too large for the DECIMAL is an error.
        is_huge = str(type_) in ("HUGEINT", "UHUGEINT")
        value = f"CAST(#{number} AS DECIMAL(38, 0))" if is_huge else f"#{number}"
        yield f"{value} AS {identifier(name)}"


def rows_of_csv(path: Path) -> int:
    """The number of rows of a CSV file, without its header."""
    csv.field_size_limit(path.stat().st_size + 1)
    with path.open(newline="") as file:
        return sum(1 for _ in csv.reader(file)) - 1


MOST_TABLES = 200
"""The most names that are shown."""


def sql_report(
    generator: Generator, con: Connection, snapshot_id: int | None, text: str, limits: Limits
) -> tuple[SqlReport, tuple[str, ...]]:
    """A report without rows, and the directories of the lake's files.

    Args:
        snapshot_id: None for the newest.

    Raises:
        NoSuchTable: the lake has no such snapshot.
        Refused: the lake is not served.
    """
    lake = served_lake(con)
    shown = snapshot_of(con, lake, snapshot_id)
    schemas = queries.schemas_at(shown.snapshot_id).run(con)
    listed, _ = entries(shown.snapshot_id, schemas, "", None, "name", 0, MOST_TABLES).run(con)
    tables = [
        table_in_sql(entry.namespace, entry.name) for entry in listed if entry.kind == "table"
    ]
    report = SqlReport(text, lake.snapshot_id, shown, tuple(tables), limits)
    places = generator.virtual_location, lake.data_path
    return report, tuple(f"{place.rstrip('/')}/" for place in places)


PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def table_in_sql(namespace: str, name: str) -> str:
    """A table as a visitor writes it.

    Args:
        namespace: all of its levels, as people write them; DuckDB has one name for them.
    """
    return f"{_name_in_sql('.'.join(parsed(namespace)))}.{_name_in_sql(name)}"


def _name_in_sql(name: str) -> str:
    """A name, in quotes where it may need them."""
    is_plain = PLAIN.fullmatch(name) and duckdb.tokenize(name)[0][1] != duckdb.token_type.keyword
    return name if is_plain else identifier(name)
