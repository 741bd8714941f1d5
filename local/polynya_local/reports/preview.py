"""The preview of a table at a snapshot: some rows, the files that a filter leaves, and two counts.

`Answer` has the parts of a preview. A part is missing if it failed or took too long; a note says
why. `planned` lets PyIceberg ask the catalog which files an Iceberg client reads for a filter.
`IcebergDuckDB` and `NativeDuckDB` are the two sides that count: a client of the Iceberg endpoints,
and native DuckLake.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb import DuckDBPyConnection
from polynya.ducklake.queries.writers import table_column_stats
from polynya.runtime.namespaces import Namespace, parsed
from polynya.storage.aws import AwsSettings

from ..clients.duckdb import (
    ICEBERG,
    LAKE,
    attaching,
    connect,
    identifier,
    listing_namespaces,
    literal,
)
from .changed_rows import TableAt
from .generator import OpenedTable
from .native_duckdb import attach_lake, connect_to_s3, table_at
from .opened_table import TableHead
from .preview_sql import (
    PREFIX,
    Cell,
    Condition,
    operators_of,
    parse,
    shortened,
    sorted_by,
    written,
)
from .table_facts import table_facts


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a preview."""

    rows: int = 100
    columns: int = 100
    characters: int = 200
    """The longest text of a cell."""
    bytes: int = 1_000_000
    """All cells together."""
    download_rows: int = 100_000
    """A larger file is refused, not cut."""
    download_bytes: int = 20_000_000
    compared_bytes: int = 512_000_000
    """If the filter leaves more bytes of data files, the rows are not compared."""
    seconds: float = 8.0
    memory: str = "1GB"
    """DuckDB's `memory_limit`."""


@dataclass(frozen=True, slots=True)
class Question:
    """Some rows of a table at a snapshot."""

    namespace: Namespace
    table: str
    snapshot: int
    """DuckLake's."""
    conditions: tuple[Condition, ...]
    hidden: frozenset[str]
    """The dotted names of columns that Iceberg clients do not get."""
    bytes: int
    """All visible data files together."""
    sort: str = ""
    """The column by which rows are sorted; empty: as the files have them."""
    is_descending: bool = False
    first: int = 0
    """How many rows are on earlier pages."""


@dataclass(frozen=True, slots=True)
class Download:
    """All rows of a question as one file."""

    question: Question
    format: str
    """`csv` or `parquet`."""


@dataclass(frozen=True, slots=True)
class DownloadAnswer:
    """A file, if there was time to write it."""

    body: bytes | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """Why it is missing."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows: sorted, or as the files have them."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's, as its Iceberg extension has them."""
    rows: tuple[tuple[Cell, ...], ...]
    has_more: bool
    """More rows pass the filter."""
    columns_left_out: int


@dataclass(frozen=True, slots=True)
class Count:
    """All rows that pass the filter."""

    rows: int
    checksum: str
    """It does not depend on the order of the rows."""
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class Planned:
    """The files that an Iceberg client reads for the filter."""

    files: int
    """Data files of the lake."""
    bytes: int
    """Their size."""
    generated_files: int
    """Files of inlined rows."""
    delete_files: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a question has no answer: one of its values is wrong."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of an answer that arrived in time."""

    rows: Rows | None = None
    planned: Planned | None = None
    iceberg: Count | None = None
    native: Count | None = None
    native_skipping: Count | None = None
    """Native DuckLake's count when it skips files by its own statistics, if that differs from
    `native`: it then skips files that it should read."""
    notes: dict[str, str] = field(default_factory=dict)
    """Why a part is missing, by its name."""

    @property
    def agree(self) -> bool | None:
        """Whether both sides have the same rows; None: one of the counts is missing."""
        if self.iceberg is None or self.native is None:
            return None
        return self.iceberg == self.native


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column that a filter may use."""

    name: str
    type: str
    """DuckLake's."""
    operators: tuple[str, ...]
    written: str
    """How a value of it is written."""
    least: str | None
    """The least value in DuckLake's statistics of the table; None: they have none."""
    greatest: str | None
    may_be_null: bool | None
    """Whether a row may have had NULL, according to the statistics; None: they do not tell."""


@dataclass(frozen=True, slots=True)
class PreviewReport:
    """The preview of a table."""

    head: TableHead
    choices: tuple[ColumnChoice, ...]
    conditions: tuple[Condition, ...]
    sort: str
    is_descending: bool
    first: int
    """How many rows are on earlier pages."""
    files: int
    """Data files of the snapshot, before the filter."""
    bytes: int
    inlined_rows: int
    """In the catalog's database, in no file."""
    is_mirror: bool
    """Native DuckLake read a mirror of the catalog in PostgreSQL, not the catalog itself."""
    answer: Answer
    agree: bool | None
    """Whether native DuckLake has the same rows; None: not known."""
    limits: Limits


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a form: column, operator and value of each."""

    columns: Sequence[str] = ()
    operators: Sequence[str] = ()
    values: Sequence[str] = ()
    sort: str = ""
    is_descending: bool = False
    first: int = 0


@dataclass(frozen=True, slots=True)
class Preparation:
    """A valid question, before any rows are read."""

    head: TableHead
    question: Question
    choices: tuple[ColumnChoice, ...]
    files: int
    inlined_rows: int

    def report(self, answer: Answer, limits: Limits, *, is_mirror: bool) -> PreviewReport:
        """The report with an answer."""
        return PreviewReport(
            self.head,
            self.choices,
            self.question.conditions,
            self.question.sort,
            self.question.is_descending,
            self.question.first,
            self.files,
            self.question.bytes,
            self.inlined_rows,
            is_mirror,
            answer,
            answer.agree,
            limits,
        )


def preparation(table: OpenedTable, head: TableHead, lines: Lines) -> Preparation | None:
    """The question that a form asks of a table at a snapshot; None: clients do not get the table.

    Raises:
        BadRequest: the filter or the sort is not valid; with a sentence.
    """
    if not table.is_served:
        return None
    facts, hidden = table_facts(table), table.hidden_columns
    types = {column.name: column.type for column in facts.shown if not column.parents}
    question = Question(
        namespace=parsed(head.namespace),
        table=head.name,
        snapshot=table.snapshot_id,
        conditions=parse(lines.columns, lines.operators, lines.values, types, hidden),
        hidden=frozenset(hidden),
        bytes=sum(batch.bytes for batch in facts.batches),
        sort=sorted_by(lines.sort, types),
        is_descending=lines.is_descending,
        first=lines.first,
    )
    ids = {column.name: column.column_id for column in facts.shown if not column.parents}
    # After a column got a wider type, its statistics cover only new rows.
    wider = {c.column_id for c in facts.columns if c.is_past and c.column_id in ids.values()}
    begins = dict[int, int]()
    for fact in facts.columns:
        begin = begins.setdefault(fact.column_id, fact.begin_snapshot)
        begins[fact.column_id] = min(begin, fact.begin_snapshot)
    first = min(begins.values(), default=0)
    stats = table_column_stats(table.table_id).run(table.con)
    choices = []
    for name, type_ in types.items():
        has_bounds = "<" in operators_of(type_) and ids[name] not in wider
        bounds = stats.get(ids[name]) if has_bounds else None
        least, greatest = (bounds.min_value, bounds.max_value) if bounds else (None, None)
        least, greatest = (None if t is None else shortened(t) for t in (least, greatest))
        # The rows that are older than a column are not in its statistics.
        is_first = ids[name] not in wider and begins[ids[name]] == first
        may_be_null = stats[ids[name]].contains_null if is_first and ids[name] in stats else None
        operators = operators_of(type_)
        bounds_and_null = least, greatest, may_be_null
        choices.append(ColumnChoice(name, type_, operators, written(type_), *bounds_and_null))
    return Preparation(head, question, tuple(choices), facts.files, facts.inlined_rows)


if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression

MODES = ("server", "client")
"""PyIceberg's modes in the order of attempts: the catalog plans in one statement, or, if the table
needs manifests, PyIceberg reads these."""


def planned(
    where: Mapping[str, Any],
    name: tuple[str, ...],
    conditions: tuple[Condition, ...],
    values: list[Any],
) -> Planned:
    """The data files of the newest snapshot that a filter leaves, and their delete files.

    Args:
        where: PyIceberg's properties of the catalog; its warehouse is pinned to the snapshot.
        values: of the conditions, in Python's types; None for a condition without a value.

    Raises:
        Exception: any of PyIceberg's, for example for a value that it does not support.
    """
    from pyiceberg.catalog import load_catalog

    row_filter = _expression(conditions, values)
    failure: Exception | None = None
    for mode in MODES:
        try:
            catalog = load_catalog("preview", **{**where, "scan-planning-mode": mode})
            return _plan(catalog, name, row_filter)
        except Exception as error:
            failure = error
    assert failure is not None
    raise failure


def _plan(catalog: "Catalog", name: tuple[str, ...], row_filter: "BooleanExpression") -> Planned:
    table = catalog.load_table(name)
    tasks = [*table.scan(row_filter=row_filter).plan_files()]
    deletes = {file.file_path for task in tasks for file in task.delete_files}
    # Generated files are below the location of the metadata, the lake's own are elsewhere.
    own = [task for task in tasks if not task.file.file_path.startswith(f"{table.location()}/")]
    return Planned(
        files=len(own),
        bytes=sum(task.file.file_size_in_bytes for task in own),
        generated_files=len(tasks) - len(own),
        delete_files=len(deletes),
    )


def _expression(conditions: tuple[Condition, ...], values: list[Any]) -> "BooleanExpression":
    from pyiceberg import expressions

    kinds: dict[str, Callable[..., BooleanExpression]] = {
        "=": expressions.EqualTo,
        "≠": expressions.NotEqualTo,
        "<": expressions.LessThan,
        "≤": expressions.LessThanOrEqual,
        ">": expressions.GreaterThan,
        "≥": expressions.GreaterThanOrEqual,
        PREFIX: expressions.StartsWith,
        "is null": expressions.IsNull,
        "is not null": expressions.NotNull,
    }
    expression: BooleanExpression = expressions.AlwaysTrue()
    for condition, value in zip(conditions, values, strict=True):
        column = expressions.Reference(condition.column)
        arguments = (column,) if condition.value is None else (column, value)
        expression = expressions.And(expression, kinds[condition.operator](*arguments))
    return expression


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of both sides."""

    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    """The one that Iceberg clients use."""
    database: str = field(repr=False)
    """The URL of the catalog, which may hold a password."""
    metadata_schema: str
    data: AwsSettings
    """Where the data is, for native DuckLake."""
    token: str = field(default="", repr=False)
    """The caller's token for the catalog, which then gives keys for S3 with each table; empty: the
    catalog needs none, and S3 accepts any keys."""

    def pinned(self, snapshot_id: int) -> str:
        """The warehouse as of a snapshot of DuckLake."""
        return f"{self.warehouse}@{snapshot_id}"


class TimeIsOver(Exception):
    """A statement was interrupted."""


class NoName(Exception):
    """DuckDB cannot name the table; the message says why."""


AUTHORITY = "SSL_CERT_FILE"
"""OpenSSL's variable with the file of certificates to trust, which DuckDB does not read."""


def attach(con: DuckDBPyConnection, endpoints: Endpoints, snapshot_id: int, name: str) -> None:
    """Attach the Iceberg catalog as of a snapshot of DuckLake."""
    secret = ""
    if (authority := os.environ.get(AUTHORITY)) and endpoints.catalog_uri.startswith("https:"):
        con.execute(f"SET ca_cert_file = {literal(authority)}")
    if endpoints.token:
        secret, token = "caller", literal(endpoints.token)
        con.execute(f"CREATE OR REPLACE SECRET {secret} (TYPE iceberg, TOKEN {token})")
    con.execute(attaching(endpoints.catalog_uri, endpoints.pinned(snapshot_id), name, secret))


class IcebergDuckDB:
    """DuckDB with its extension iceberg."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.endpoints = endpoints
        self.con = connect(ICEBERG, endpoints.s3_endpoint)

    @contextmanager
    def attached(self, table: Question | TableAt, name: str = "ice") -> Iterator[str]:
        """Attach the catalog as of the snapshot; yields what follows FROM.

        Args:
            name: the one under which it is attached.

        Raises:
            NoName: DuckDB could read another table instead.
        """
        has_dots = any("." in level for level in table.namespace)
        if has_dots and len(table.namespace) > 1:
            raise NoName("DuckDB takes a dot in a level of a namespace for a dot between levels")
        attach(self.con, self.endpoints, table.snapshot, name)
        try:
            if has_dots:
                self.con.execute(listing_namespaces(name))
            yield f"{name}.{identifier('.'.join(table.namespace))}.{identifier(table.table)}"
        finally:
            self.con.execute(f"DETACH {name}")


class NativeDuckDB:
    """DuckDB with its extension ducklake, read-only."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self.con = connect_to_s3(endpoints.data, LAKE)

    @contextmanager
    def attached(self, table: Question | TableAt) -> Iterator[str]:
        """Attach the lake as it is now; yields what follows FROM."""
        attach_lake(self.con, self._endpoints.database, self._endpoints.metadata_schema)
        try:
            yield table_at(table.namespace, table.table, table.snapshot)
        finally:
            self.con.execute("DETACH lake")


def limit_memory(con: DuckDBPyConnection, memory: str) -> None:
    """Limit the memory of all later statements, which write no temporary files."""
    con.execute(f"SET memory_limit = {literal(memory)}")
    # What does not fit into memory is too large for a preview.
    con.execute("SET max_temp_directory_size = '0B'")


@contextmanager
def interrupt_after(con: DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what the block does with a connection if it takes longer.

    Raises:
        TimeIsOver: it was interrupted.
    """
    if seconds <= 0:
        raise TimeIsOver
    timer = threading.Timer(seconds, con.interrupt)
    timer.start()
    try:
        yield
    except duckdb.InterruptException:
        raise TimeIsOver from None
    finally:
        timer.cancel()


def query(
    con: DuckDBPyConnection, sql: str, parameters: list[str], seconds: float
) -> list[tuple[Any, ...]]:
    """The rows of a statement.

    Raises:
        TimeIsOver: it took longer; DuckDB has interrupted it.
        duckdb.Error: DuckDB reports another error.
    """
    with interrupt_after(con, seconds):
        return con.execute(sql, parameters).fetchall()
