"""The connection to DuckLake's catalog, and statements as values.

The connection finds only PostgreSQL's own functions, operators and types. PostgreSQL chooses among
the functions of all schemas of the search path, regardless of their order: for a varchar,
`length(varchar)` in `public` wins over `pg_catalog.length(text)`, and runs with the rights of the
reader. So the path holds `pg_catalog` alone, and each table is sent with its schema.
https://wiki.postgresql.org/wiki/A_Guide_to_CVE-2018-1058

A `Statement` is SQL, parameters, and what the rows mean. It runs alone, or with others in one round
trip to the database.
"""

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from pg8000 import core
from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection, identifier, literal, to_statement

from ...runtime.metrics import observe_seconds

SEARCH_PATH = "pg_catalog, pg_temp"
"""Without `pg_temp` at its end, temporary tables would come first."""

UNSUPPORTED = {"08P01", "0A000"}
"""What poolers answer to start-up parameters that they do not pass on: protocol_violation
(PgBouncer, of all that it refuses) and feature_not_supported (RDS Proxy)."""

MOST_PREPARED = 64
"""How many statements a connection keeps prepared. One table takes about thirty; PostgreSQL keeps
some 100 kB for each."""


class Planning(Enum):
    """When PostgreSQL plans the statements of a connection, and with which settings."""

    EACH_TIME = auto()
    """For each execution, with the values of the parameters: no statement stays prepared."""
    AS_IT_DECIDES = auto()
    """Statements stay prepared. PostgreSQL plans the first executions, and then mostly keeps one
    plan."""
    ONCE = auto()
    """Once, without the values of parameters: for lakes in which a scan takes less time than a
    plan."""
    ONCE_BY_INDEX = auto()
    """Once, without values and as if scans were slow: for tables of few files in a large lake.
    Without the values PostgreSQL does not know how small these tables are."""

    @property
    def keeps(self) -> bool:
        """Whether statements stay prepared."""
        return self is not Planning.EACH_TIME


ONCE = {"plan_cache_mode": "force_generic_plan"}

SETTINGS: dict[Planning, dict[str, str]] = {
    Planning.ONCE: ONCE,
    # Such a plan expects many rows, and would otherwise start parallel workers.
    Planning.ONCE_BY_INDEX: ONCE
    | {"seq_page_cost": "1000", "max_parallel_workers_per_gather": "0"},
}
"""Without an entry: those of the connection."""

ID_OF_FILE = re.compile(
    r"""\b(?:\w+\.)?data_file_id(?=[ ]BETWEEN[ ]:first_id[ ]AND[ ]:last_id)
    | (?<=\bmax\()\w+\.data_file_id(?=\))""",
    re.VERBOSE,
)
"""Comparisons of ids for which a plan without values may scan the primary key, and so the files of
all tables. `numbered` writes them as expressions, for which that index cannot be used."""

READING = re.compile(r"\s*(SELECT|WITH)\b")
"""How statements begin that can be prepared although they have no parameters."""

# Strings and other identifiers are matched first, so that nothing within them is taken for a table.
TABLE = re.compile(
    r"""'[^']*'
    | \bto_regclass\('(?P<regclass>(?:ducklake|polynya)_\w+)'\)
    | (?P<before>\b(?:FROM|JOIN|INTO|UPDATE|COPY|LIKE
        |(?:CREATE|ALTER|LOCK)[ ]TABLE(?:[ ]IF[ ]NOT[ ]EXISTS)?
        |CREATE[ ]INDEX[ ]IF[ ]NOT[ ]EXISTS[ ]\w+[ ]ON|GRANT[ ](?:ALL|SELECT)[ ]ON)\s+)
      (?P<table>(?:ducklake|polynya)_\w+ | "[^"]*(?:""[^"]*)*") (?![\w.("])
    | "[^"]*" """,
    re.VERBOSE,
)


def qualified(sql: str, schema: str) -> str:
    """Put the schema before each table in a statement.

    Tables are the names that begin with `ducklake_` or `polynya_`, and the quoted names where a
    statement names tables.
    """

    def replace(match: re.Match[str]) -> str:
        if name := match["regclass"]:
            return f"to_regclass({literal(f'{identifier(schema)}.{name}')})"
        if match["table"] is None:
            return match[0]
        return f"{match['before']}{identifier(schema)}.{match['table']}"

    return TABLE.sub(replace, sql)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A statement with qualified names and numbered parameters."""

    text: str
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    """Gives the values of the parameters in their order."""

    name: bytes
    """The name of the prepared statement, made of its text and of how it is planned: no other
    statement has it, also if a pooler gives the connection to several clients."""


def set_local(name: str, value: str) -> str:
    """The statement that changes a setting until the end of the transaction.

    Args:
        value: its items are separated by ", " if it is a list.
    """
    return f"SET LOCAL {identifier(name)} = {', '.join(map(literal, value.split(', ')))}"


@lru_cache(maxsize=1024)
def numbered(sql: str, schema: str, by_index: bool = False) -> Numbered:
    """Qualify a statement and number its parameters.

    pg8000 parses each character in Python: 3 ms for the statements that open a table. A process
    sends the same few statements again and again; values are not kept.

    Args:
        by_index: it is planned `ONCE_BY_INDEX`.
    """
    if by_index:
        sql = ID_OF_FILE.sub(r"\g<0> + 0", sql)
    text, values = to_statement(qualified(sql, schema))
    name = f"polynya_{sha256(text.encode()).hexdigest()[:40]}{'_by_index' if by_index else ''}"
    return Numbered(text, values, name.encode() + core.NULL_BYTE)


class ConnectionLost(Exception):
    """The connection is gone, or cannot be made; `__cause__` is the error of the socket or
    pg8000."""


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Translate what pg8000 and sockets raise on a connection that is gone to `ConnectionLost`.

    Our own code may raise OSError too, which is not the fault of the database: so only calls of
    pg8000 and of sockets belong in this context. UnicodeError: the host's name is invalid.
    """
    try:
        yield
    except (InterfaceError, OSError, UnicodeError) as error:
        raise ConnectionLost(*error.args) from error


class CatalogConnection(Connection):  # type: ignore[misc]
    """A connection whose statements name DuckLake's tables without their schema.

    Its settings are start-up parameters, because SET pins the connection behind RDS Proxy. Poolers
    that know only some of them refuse the connection (PgBouncer), or leave them out without a word
    (PgBouncer with `ignore_startup_parameters`): then SET LOCAL sends them with each BEGIN, and
    statements outside of transactions are without them.
    """

    def __init__(
        self,
        metadata_schema: str,
        *,
        startup_params: dict[str, str],
        is_pooled: bool = False,
        **arguments: Any,
    ) -> None:
        """Connect.

        Args:
            startup_params: settings of the connection.
            is_pooled: send them in each transaction instead. This is also done if they do not take
                effect at the start, because a pooler leaves them out.
            arguments: those of pg8000.

        Raises:
            ConnectionLost: nothing answers, or TLS fails.
            DatabaseError: the database refuses.
        """
        settings = startup_params | {"search_path": SEARCH_PATH}
        with translate_connection_errors():
            # All poolers pass client_encoding on.
            at_start = {"client_encoding": "UTF8"} if is_pooled else settings
            super().__init__(**arguments, startup_params=at_start)
            if self._usock.family != socket.AF_UNIX:
                # As libpq does. pg8000 sends the data and the end of a COPY apart; without this,
                # the end waits for the ACK of the data, which the other side delays by 40 ms.
                self._usock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.metadata_schema = metadata_schema
        self.start(Planning.EACH_TIME, may_prepare=False)
        self._prepared: dict[bytes, None] = {}
        """The names of the prepared statements; the last one was used last."""
        self._in_transactions = ""
        """What each transaction begins with."""
        if is_pooled or not self._has(settings):
            self._in_transactions = "".join(f"; {set_local(*item)}" for item in settings.items())

    def start(self, planning: Planning, *, may_prepare: bool) -> None:
        """Set how the statements of the next transaction are planned.

        Args:
            may_prepare: statements may stay prepared: it is not behind a pooler.
        """
        self.planning, self.may_prepare = planning, may_prepare
        self._in_effect: dict[str, str] = {}  # those of `SETTINGS` that the transaction has

    @property
    def is_pooled(self) -> bool:
        """Whether the next transaction may be in another session of PostgreSQL."""
        return self._in_transactions != ""

    def _has(self, settings: Mapping[str, str]) -> bool:
        # The operator with its schema, because the search path may not be ours yet.
        names = ", ".join(map(literal, settings))
        sql = (
            "SELECT name, setting FROM pg_catalog.pg_settings "
            f"WHERE name OPERATOR(pg_catalog.=) ANY (ARRAY[{names}])"
        )
        return settings.items() <= dict(self.run(sql)).items()

    def run(self, sql: str, stream: Any = None, types: Any = None, **parameters: Any) -> Any:
        """Send one statement.

        Args:
            stream, types: those of pg8000.

        Raises:
            ConnectionLost: the connection is gone.
            DatabaseError: the database refuses the statement.
        """
        if sql.startswith("BEGIN"):
            # One message, and before anything that may wait. No SELECT: the transaction sees what
            # was committed before its first one.
            begin, semicolon, more = sql.partition("; ")
            self._in_effect = SETTINGS.get(self.planning, {})
            settings = "".join(f"; {set_local(*item)}" for item in self._in_effect.items())
            sql = f"{begin}{self._in_transactions}{settings}{semicolon}{more}"
        with observe_seconds("Database"), translate_connection_errors():
            # Without parameters pg8000 sends one message and waits once; with them it would wait
            # three times.
            is_numbered = bool(parameters) or (self.planning.keeps and READING.match(sql))
            if is_numbered and stream is None and types is None:
                return self._run_numbered(sql, parameters)
            return super().run(qualified(sql, self.metadata_schema), stream, types, **parameters)

    def _run_numbered(self, sql: str, parameters: Mapping[str, Any]) -> Any:
        """Do what pg8000's `run` does, in one round trip instead of three, and parse no SQL twice.

        https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY
        """
        planning = self.planning
        by_index = planning is Planning.ONCE_BY_INDEX
        statement = numbered(sql, self.metadata_schema, by_index)
        # `columns` and `row_count` of pg8000 read this attribute.
        context = self._context = core.Context(statement.text)
        name = statement.name if planning.keeps else core.NULL_BYTE
        self._send_settings()
        if name not in self._prepared:
            if planning.keeps:
                self._free(name)
            self.send_PARSE(name, statement.text, ())
        self._prepared.pop(name, None)  # after an error it may not be prepared
        self.send_DESCRIBE_STATEMENT(name)
        self.send_BIND(name, core.make_params(self.py_types, statement.values(parameters)))
        self.send_EXECUTE()
        core._write(self._sock, core.SYNC_MSG)
        core._flush(self._sock)
        # After an error PostgreSQL leaves out the other messages up to Sync, and is ready again.
        self.handle_messages(context)
        if planning.keeps:
            self._prepared[name] = None
        return context.rows

    def _send_settings(self) -> None:
        """Send the settings of the planning, in the same message, if the transaction has others.

        https://www.postgresql.org/docs/current/sql-prepare.html
        """
        settings = SETTINGS.get(self.planning, {})
        for name in {**self._in_effect, **settings}:
            if settings.get(name) != self._in_effect.get(name):
                reset = f"SET LOCAL {identifier(name)} = DEFAULT"
                sql = set_local(name, settings[name]) if name in settings else reset
                self.send_PARSE(core.NULL_BYTE, sql, ())
                self.send_BIND(core.NULL_BYTE, ())
                self.send_EXECUTE()
        self._in_effect = settings

    def _free(self, name: bytes) -> None:
        """Send Close for this name, and for the oldest ones beyond the limit."""
        surplus = list(self._prepared)[: max(0, 1 + len(self._prepared) - MOST_PREPARED)]
        # Parse refuses a name that is in use; Close refuses none.
        for closed in (*surplus, name):
            self._send_message(core.CLOSE, core.STATEMENT + closed)
            self._prepared.pop(closed, None)

    def close(self) -> None:
        """Close the connection.

        Raises:
            ConnectionLost: the connection was gone already.
        """
        with translate_connection_errors():
            super().close()

    def abandon(self) -> None:
        """Close the connection, whatever state it is in."""
        with suppress(DatabaseError, ConnectionLost):  # it is gone already
            self.close()


@contextmanager
def transaction(con: Connection, begin: str = "BEGIN") -> Iterator[None]:
    """Run the block in a transaction, which an error rolls back."""
    con.run(begin)
    try:
        yield
        con.run("COMMIT")
    except BaseException:
        # The error of the block says what is wrong; one of ROLLBACK would hide it.
        with suppress(DatabaseError, ConnectionLost):
            con.run("ROLLBACK")
        raise


GONE_STATEMENT = "26000"
"""invalid_sql_statement_name: a prepared statement is not there. A pooler has given the transaction
another connection."""


def connect_through_poolers(connect: Callable[[bool], CatalogConnection]) -> CatalogConnection:
    """Connect with start-up parameters, or if these are refused, without.

    Args:
        connect: makes a connection; the argument is its `is_pooled`.

    Raises:
        ConnectionLost, DatabaseError: as `CatalogConnection`.
    """
    try:
        return connect(False)
    except DatabaseError as error:
        if sqlstate(error) not in UNSUPPORTED:
            raise
    return connect(True)


def sqlstate(error: DatabaseError) -> str:
    """PostgreSQL's code for an error; empty if pg8000 has none.

    Also GONE_STATEMENT if a prepared statement cannot run because somebody has changed a table.
    """
    details = error.args[0] if error.args else None
    if not isinstance(details, dict):
        return ""
    # The code (0A000) is that of many errors, and the text has the language of the server.
    is_stale = details.get("R") == "RevalidateCachedQuery"
    state: str = GONE_STATEMENT if is_stale else details.get("C", "")
    return state


Result = TypeVar("Result")
Row = TypeVar("Row")

Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Statement(Generic[Result]):
    """One SELECT that has not been sent yet."""

    sql: str
    parameters: Mapping[str, Any]
    result: Callable[[Rows], Result]
    """Makes the result of the rows that the database returns."""

    def run(self, con: Connection) -> Result:
        """Send the statement alone.

        Raises:
            ConnectionLost: the connection is gone.
            DatabaseError: the database refuses the statement.
        """
        return self.result(con.run(self.sql, **self.parameters) if self.sql else [])


def select(row: Callable[..., Row], sql: str, **parameters: Any) -> Statement[list[Row]]:
    """A statement whose result is a list with one record for each row.

    Args:
        row: takes the columns of a row as positional arguments: mostly a dataclass.
    """
    return Statement(sql, parameters, lambda rows: [row(*columns) for columns in rows])


def constant(result: Result) -> Statement[Result]:
    """A statement that is never sent, because its result is known without the database."""
    return Statement("", {}, lambda rows: result)


def run_batched(con: Connection, *statements: Statement[Any]) -> list[Any]:
    """Send several statements in one round trip; return their results in order.

    Rows come back as JSON, so a statement may select numbers, texts, booleans and arrays of these.

    Raises:
        ValueError: two statements have different values for a parameter of the same name.
        ConnectionLost, DatabaseError: as `Statement.run`.
    """
    parameters: dict[str, Any] = {}
    selects = []
    for number, statement in enumerate(statements):
        if not statement.sql:
            continue
        selects.append(
            # JSON, because Python reads it three times as fast as pg8000 reads rows. As text,
            # because pg8000 would make dicts of JSON, and of two columns with one name keep one.
            f"SELECT {number}, (SELECT json_agg(row_to_json(q))::text FROM ({statement.sql}) AS q)"
        )
        for name, value in statement.parameters.items():
            if parameters.setdefault(name, value) != value:
                raise ValueError(f"two statements have different values for :{name}")
    texts = dict(con.run("\nUNION ALL ".join(selects), **parameters)) if selects else {}
    return [
        statement.result(_rows(texts.get(number))) for number, statement in enumerate(statements)
    ]


@contextmanager
def keeping_prepared(con: Connection) -> Iterator[None]:
    """Keep the statements of the block prepared, also in a large lake: for those whose plan depends
    neither on their values nor on how many files there are."""
    if not isinstance(con, CatalogConnection):
        yield
        return
    before = con.planning
    if con.may_prepare and not before.keeps:
        con.planning = Planning.AS_IT_DECIDES
    try:
        yield
    finally:
        con.planning = before


def plan_by_index(con: Connection, by_index: bool) -> None:
    """Plan statements about tables of few files in a large lake once, from now on; or not."""
    if isinstance(con, CatalogConnection) and con.may_prepare:
        con.planning = Planning.ONCE_BY_INDEX if by_index else Planning.EACH_TIME


def run_named(con: Connection, **statements: Statement[Any]) -> SimpleNamespace:
    """As `run_batched`; the results have the names of their statements."""
    results = run_batched(con, *statements.values())
    return SimpleNamespace(**dict(zip(statements, results, strict=True)))


def _rows(text: str | None) -> Rows:
    # Rows are objects, and a key may occur twice: the values in their order are the row.
    return json.loads(text, object_pairs_hook=lambda pairs: [v for _, v in pairs]) if text else []
