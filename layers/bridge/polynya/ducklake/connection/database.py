"""Transactions on the PostgreSQL database of a DuckLake."""

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, Protocol, TypeVar

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, identifier

from ...runtime import budget
from ...runtime.errors import (
    BadRequest,
    CommitStateUnknown,
    ConcurrentCommit,
    Misconfigured,
    PolynyaError,
    ServiceUnavailable,
)
from . import url as sockets
from .catalog_connection import (
    GONE_STATEMENT,
    CatalogConnection,
    ConnectionLost,
    Planning,
    connect_through_poolers,
    sqlstate,
    translate_connection_errors,
)
from .pool import ConnectionPool
from .url import connection_arguments, limit_tls

GONE_TABLE = "42P01"
"""undefined_table. DuckLake drops an empty inlined table at a flush, between two statements."""

GONE_COLUMN = "42703"
"""undefined_column. The migration to 1.1 renames the columns of inlined tables meanwhile."""

COLUMN = re.compile(r'\b[a-z]\w*\.([a-z_]\w*)|"([a-z_]\w*)"')
"""A column's name in PostgreSQL's text of GONE_COLUMN."""

TOO_LONG = {"57014", "55P03"}
"""query_canceled: the statement took longer than `statement_timeout`; lock_not_available: it has
waited for longer than `lock_timeout`, which a role can have."""


class Retry(Enum):
    """Whether a statement may succeed if it is tried again."""

    AT_ONCE = auto()
    LATER = auto()
    NEVER = auto()


RETRIES = {
    "08": Retry.AT_ONCE,  # connection exceptions
    "08P01": Retry.NEVER,  # protocol violation: also PgBouncer's code for all that it refuses
    GONE_STATEMENT: Retry.AT_ONCE,
    "25P03": Retry.AT_ONCE,  # the transaction was idle for too long
    "25P04": Retry.LATER,  # transaction_timeout
    "40": Retry.AT_ONCE,  # conflict with recovery on a standby, deadlock
    "53": Retry.LATER,  # insufficient resources: disk, memory
    "53300": Retry.AT_ONCE,  # too many connections
    "55000": Retry.LATER,  # the database accepts no connections now
    "55006": Retry.LATER,  # a command has exclusive use of the database
    "55P03": Retry.LATER,  # lock_timeout
    "57": Retry.AT_ONCE,  # shutdown, crash, start-up, a session that was idle for too long
    "57014": Retry.LATER,  # the statement took too long
    "57P04": Retry.NEVER,  # the database was dropped
    "58000": Retry.LATER,  # an error of the system, or of its storage (58030)
    "58030": Retry.LATER,
    "72000": Retry.AT_ONCE,  # snapshot too old
}
"""By SQLSTATE, or by its class (the first two characters). All others: never."""

POOLER_IS_FULL = ("no more connections allowed", "query_wait_timeout")
"""PgBouncer's messages with 08P01 for states that pass by themselves."""

REFUSED = {"28P01", "28000"}
"""A wrong or expired password, and a role that may not log in (a bad IAM token)."""

NO_GRANT = "42501"

MAY_NOT_WRITE = {NO_GRANT, "0A000", "25006"}
"""A standby refuses READ WRITE with feature_not_supported; a transaction that is made read-only
otherwise refuses what it writes."""

NO_SUCH_CHARACTER = "22021"
"""Invalid bytes: a NUL in a parameter, or text in the catalog that is not UTF-8."""

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""All statements of the transaction see the same catalog, whatever is committed meanwhile."""

ALONE = ""
"""No BEGIN: one statement that reads, which is a transaction by itself; it waits only once."""

BEGIN_WRITE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"

# LOCK takes no snapshot, so the transaction sees all that was committed while it waited. VACUUM,
# ANALYZE and DDL need the same mode; statements that read or write rows do not wait.
LOCK_QUEUE = "LOCK TABLE polynya_commits IN SHARE UPDATE EXCLUSIVE MODE"

BEGIN_COMMIT = f"{BEGIN_WRITE}; {LOCK_QUEUE}"
"""BEGIN_WRITE for a commit of a client: one at a time in a lake, in the order in which they came.

Without the queue, all that wait for the id of the next snapshot fail when one gets it.
"""

COMMITS_TAKE_TOO_LONG = "other commits to the lake take too long"

OWNER = """
SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c
WHERE c.oid = to_regclass('polynya_commits')"""

GRACE_SECONDS = 3
"""How much longer than the time limit of a statement its answer is waited for. PostgreSQL cancels
the statement and says why, which takes a while on a busy machine; if the wait ends first, it looks
as if the server was lost."""

OVERTAKEN = {"23505", "40001", "40P01", GONE_COLUMN, GONE_STATEMENT}
"""unique_violation (another writer claimed the snapshot's id), serialization_failure, deadlock; the
catalog was migrated; and nothing was written, because of a pooler."""

TEXT_FORMS = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
"""With these PostgreSQL writes the text forms that DuckLake writes and pg8000 reads. Fingerprints
are made of text forms, so everything that makes virtual files needs the same ones."""


class CredentialsProvider(Protocol):
    """The role and password of a connection, if the URL does not hold them."""

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        """The role and its password."""

    def invalidate(self) -> None:
        """Forget what was returned last, because the database refused it."""


class Database:
    """Transactions on one DuckLake catalog, each over a connection of a pool.

    Threads may have transactions at the same time. Within one, another thread may use its
    connection while no other one does (`prefetch`).
    """

    def __init__(
        self,
        url: str,
        metadata_schema: str,
        timeout_seconds: float = 12,
        credentials_provider: CredentialsProvider | None = None,
        pool: ConnectionPool | None = None,
        breaker: budget.CircuitBreaker | None = None,
    ) -> None:
        """Parse the URL; the connection is opened when it is needed.

        Args:
            timeout_seconds: how long one statement may take in PostgreSQL; a wait for its answer
                may take GRACE_SECONDS more. All of them together have the budget of the request.
            credentials_provider: gives the role and the password each time a connection is opened.
            pool: shared with other catalogs of the same URL, time limit and credentials; None: one
                of this catalog alone.
            breaker: refuses transactions while the database is too slow; None: none is refused.

        Raises:
            Misconfigured: `url` is no PostgreSQL URL. The message never holds the URL.
        """
        self._longest_wait = timeout_seconds + GRACE_SECONDS
        self._arguments = connection_arguments(url) | {
            "application_name": "polynya",
            "startup_params": {
                # Also if the role may write.
                "default_transaction_read_only": "on",
                "statement_timeout": str(round(timeout_seconds * 1000)),
                # Compiling the sums of lifetimes takes seconds; running them, half of one.
                "jit": "off",
                **TEXT_FORMS,
            },
        }
        if isinstance(context := self._arguments.get("ssl_context"), ssl.SSLContext):
            limit_tls(context, self._longest_wait)
        self._metadata_schema = metadata_schema
        self._credentials_provider = credentials_provider
        self._pool = pool or ConnectionPool()
        self._breaker = breaker
        self.before_commit: Callable[[Connection], None] | None = None
        """Called at the end of each transaction that writes; what it raises prevents COMMIT."""
        self._prepares, self._may_prepare = False, True
        self._begin_commit = BEGIN_COMMIT
        self._is_pooled = False
        self._timeout_seconds = timeout_seconds
        self._committing = Lock()

    def keep_prepared(self, prepares: bool) -> None:
        """Keep the statements of the next transactions prepared, or not.

        Behind a pooler that gives each transaction another connection none stays prepared: one
        statement fails, and its transaction has to be repeated as if the connection was lost.
        """
        self._prepares = prepares and self._may_prepare

    @contextmanager
    def transaction(self, begin: str = BEGIN) -> Iterator[Connection]:
        """One REPEATABLE READ transaction.

        Operations that read are decorated with `retried`; those that write are attempts of
        `WritableCatalog.commit`.

        Args:
            begin: BEGIN, ALONE, BEGIN_WRITE or BEGIN_COMMIT.

        Raises:
            ServiceUnavailable: the database does not answer.
            Misconfigured: a table may not be read or written, or does not exist.
            ConcurrentCommit: another writer of the lake was faster; nothing is written.
            CommitStateUnknown: the connection was lost at COMMIT.
        """
        if self._breaker is not None and self._breaker.is_open:
            raise ServiceUnavailable(
                "the catalog database of this lake has not answered in time, and is asked again "
                "soon"
            )
        started = time.monotonic()
        try:
            with self._turn(begin), self._transaction(begin) as con:
                yield con
        except _Away as error:
            self._count_failure(time.monotonic() - started)
            raise error.failure from None
        except BaseException:
            self._count_failure(None)
            raise
        self._count_failure(None)

    def _count_failure(self, seconds: float | None) -> None:
        """Report to the breaker how long the database did not answer; None: it did answer."""
        if self._breaker is not None and seconds is not None:
            self._breaker.record_failure(seconds)
        elif self._breaker is not None:
            self._breaker.record_success()

    @contextmanager
    def _turn(self, begin: str) -> Iterator[None]:
        """Let one thread at a time commit: one that waited in PostgreSQL would hold a connection,
        and PostgreSQL plans the statements of each connection again.

        Raises:
            ConcurrentCommit: the commits that came before have taken too long.
        """
        if begin != BEGIN_COMMIT:
            yield
            return
        longest_wait = min(self._timeout_seconds, budget.seconds_left())
        if not self._committing.acquire(timeout=longest_wait):
            raise ConcurrentCommit(COMMITS_TAKE_TOO_LONG)
        try:
            yield
        finally:
            self._committing.release()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        """As `transaction`; raises _Away if the database does not answer."""
        writes, is_ending = begin not in {BEGIN, ALONE}, False
        connection: CatalogConnection | None = None
        try:
            connection = self._pool.take() or connect_through_poolers(self._connect)
            self._is_pooled = connection.is_pooled
            connection.metadata_schema = self._metadata_schema
            # Behind a pooler a statement has its settings from a BEGIN.
            begin = begin or (BEGIN if connection.is_pooled else ALONE)
            may_prepare = self._may_prepare and not connection.is_pooled
            connection.start(self._planning(begin, may_prepare), may_prepare=may_prepare)
            if begin != ALONE:
                self._begin(connection, begin)
            yield connection
            if writes and self.before_commit is not None:
                self.before_commit(connection)
            is_ending = writes
            if begin != ALONE:
                connection.run("COMMIT")
        except ConnectionLost as error:
            _abandon(connection)
            if is_ending:
                raise _lost_at_commit() from None
            # pg8000 has no class of its own for a server without TLS, only this text.
            if error.args == ("Server refuses SSL",):
                raise Misconfigured(
                    "the catalog database offers no TLS; DATABASE_URL may say sslmode=disable"
                ) from None
            failure: PolynyaError = ServiceUnavailable(
                "the catalog database does not answer; try again"
            )
            # The socket also fails when the time limit of the request has passed; then there is no
            # time for another try.
            failure.is_transient = budget.seconds_left() > 0
            raise _Away(failure) from None
        except DatabaseError as error:
            if is_ending and sqlstate(error) not in OVERTAKEN:
                # Also an administrator's shutdown while the answer to COMMIT was on its way.
                _abandon(connection)
                raise _lost_at_commit() from None
            if sqlstate(error) == GONE_STATEMENT:
                self._may_prepare = self._prepares = False
                _abandon(connection)
            else:
                self._roll_back(connection)
            if writes and (failure_of_write := _failure_of_write(sqlstate(error), text_of(error))):
                raise failure_of_write from None
            failure = self._failure(error)
            if isinstance(failure, ServiceUnavailable):
                raise _Away(failure) from None
            raise failure from None
        # Our own error, raised between two statements: the connection is as it was.
        except PolynyaError:
            self._roll_back(connection)
            raise
        except BaseException:
            # A response may still arrive, and the next statement would take it for its own.
            _abandon(connection)
            raise
        self._pool.give_back(connection)

    def _planning(self, begin: str, may_prepare: bool) -> Planning:
        if not (self._prepares and may_prepare):
            return Planning.EACH_TIME
        # Settings need a BEGIN.
        return Planning.AS_IT_DECIDES if begin == ALONE else Planning.ONCE

    def _roll_back(self, connection: CatalogConnection | None) -> None:
        """End a transaction that has changed nothing, and give its connection back."""
        if connection is None:
            return
        try:
            connection.run("ROLLBACK")
        except (DatabaseError, ConnectionLost):
            connection.abandon()
        else:
            self._pool.give_back(connection)

    def _begin(self, con: Connection, begin: str) -> None:
        """Begin a transaction.

        Raises:
            ConcurrentCommit: the commits that came before have taken too long.
            Misconfigured: there is no table polynya_commits.
            DatabaseError, ConnectionLost: as `CatalogConnection.run`.
        """
        if begin != BEGIN_COMMIT:
            con.run(begin)
            return
        try:
            con.run(self._begin_commit)
        except DatabaseError as error:
            if sqlstate(error) in TOO_LONG:
                raise ConcurrentCommit(COMMITS_TAKE_TOO_LONG) from None
            if sqlstate(error) == GONE_TABLE:
                raise Misconfigured(
                    "the catalog has no table polynya_commits, without which clients cannot write: "
                    "run `polynya writes --setup`"
                ) from None
            if sqlstate(error) != NO_GRANT or self._begin_commit != BEGIN_COMMIT:
                raise
            # The role has the rights of the owner only after SET ROLE, which takes no snapshot
            # either.
            con.run("ROLLBACK")
            [[owner]] = con.run(OWNER)
            self._begin_commit = f"{BEGIN_WRITE}; SET LOCAL ROLE {identifier(owner)}; {LOCK_QUEUE}"
            con.run(self._begin_commit)

    def close(self) -> None:
        """Close the connections; the next transaction opens a new one."""
        self._pool.close()

    def _connect(self, is_pooled: bool) -> CatalogConnection:
        """Open a connection.

        Raises:
            ConnectionLost: nothing answers, or the host has no such name.
            DatabaseError: the database refuses.
            Misconfigured: TLS fails.
        """
        arguments = self._arguments | self._credentials()
        sock: socket.socket | None = None
        try:
            with translate_connection_errors():
                sock = sockets.connect(arguments, self._longest_wait)
            # pg8000 refuses a socket together with the address of one.
            arguments.pop("unix_sock", None)
            return CatalogConnection(
                self._metadata_schema,
                **arguments,
                sock=sock,
                # Once a pooler was found, every connection is made for it.
                is_pooled=is_pooled or self._is_pooled,
            )
        except BaseException as error:
            if sock is not None:
                sock.close()
            if isinstance(error.__cause__, ssl.SSLError):
                raise Misconfigured(_tls_failure(error.__cause__)) from None
            raise

    def _credentials(self) -> dict[str, Any]:
        if self._credentials_provider is None:
            return {}
        arguments = self._arguments
        host, port = arguments.get("host", ""), arguments.get("port", 0)
        user, password = self._credentials_provider(host, port, arguments["user"])
        return {"user": user, "password": password}

    def _failure(self, error: DatabaseError) -> PolynyaError:
        """The error for the client: never the database's own text, which may hold row values."""
        state = sqlstate(error)
        provider = self._credentials_provider
        if state in REFUSED and provider is not None:
            provider.invalidate()
            failure: PolynyaError = ServiceUnavailable(
                "the catalog database refuses the role or its password, even the newest one in the "
                "secret; while it is being rotated, try again"
            )
            # The next try asks the provider again, and gets a password that was rotated meanwhile.
            failure.is_transient = True
            return failure
        retry = _retry(state, text_of(error))
        if retry is Retry.NEVER:
            failure = _failure_of_state(state, text_of(error), self._metadata_schema)
        else:
            failure = ServiceUnavailable(
                f"the catalog database is busy or restarting (SQLSTATE {state}); try again"
            )
        failure.is_transient = retry is Retry.AT_ONCE or state in (GONE_TABLE, GONE_COLUMN)
        return failure


class _Away(Exception):
    """The database did not answer; with the error for the client."""

    def __init__(self, failure: PolynyaError) -> None:
        super().__init__()
        self.failure = failure


def _abandon(connection: CatalogConnection | None) -> None:
    if connection is not None:
        connection.abandon()


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def retried(operation: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Run an operation a second time if it failed for a reason that may have passed.

    The connection was lost, or a table was dropped, or its columns were renamed, between two
    statements of a transaction. The operation must have no effect but its result.
    """

    @wraps(operation)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return operation(*args, **kwargs)
        except PolynyaError as error:
            if not error.is_transient:
                raise
        return operation(*args, **kwargs)

    return run


def _retry(state: str, message: str) -> Retry:
    if state == "08P01" and message.startswith(POOLER_IS_FULL):
        return Retry.LATER
    return RETRIES.get(state, RETRIES.get(state[:2], Retry.NEVER))


def _failure_of_state(state: str, message: str, metadata_schema: str) -> PolynyaError:
    """The error of a failure that another try does not change."""
    if state == NO_SUCH_CHARACTER:
        if message.endswith("0x00"):
            return BadRequest("a name holds a character that no name in PostgreSQL can hold")
        return Misconfigured(
            "the catalog database holds text that is not UTF-8; DuckLake writes nothing else"
        )
    if state == GONE_TABLE and (table := gone_table(message)) != "ducklake_metadata":
        return Misconfigured(
            f"the PostgreSQL schema {metadata_schema!r} lacks the table {table}, which DuckLake "
            "makes: restore it, or set METADATA_SCHEMA to the schema of the lake"
        )
    if state == GONE_TABLE:
        return Misconfigured(
            f"no DuckLake catalog in the PostgreSQL schema {metadata_schema!r}: set "
            "METADATA_SCHEMA to the schema that holds ducklake_metadata"
        )
    if state == GONE_COLUMN:
        return Misconfigured(_lacks_column(message))
    if state == NO_GRANT:
        return Misconfigured(
            "the database role may not read all of DuckLake's tables: GRANT USAGE ON SCHEMA …, "
            "GRANT SELECT ON ALL TABLES IN SCHEMA …, and for inlined tables to come ALTER "
            "DEFAULT PRIVILEGES FOR ROLE <writer> IN SCHEMA … GRANT SELECT ON TABLES TO "
            "<this role>"
        )
    if state.startswith("28") or state == "3D000":
        return Misconfigured("the catalog database refuses this role, password or database")
    return Misconfigured(f"the catalog database answered with SQLSTATE {state}")


def gone_table(message: str) -> str:
    """The table that PostgreSQL's text of GONE_TABLE names, in any language."""
    table: str = (re.findall(r"\b(?:ducklake|polynya)_\w+", message) or ["ducklake_metadata"])[-1]
    return table


def _lacks_column(message: str) -> str:
    # In every language the text has the name as the statement has it, after an alias or in quotes.
    name = COLUMN.search(message)
    column = f"the column {name[1] or name[2]}" if name else "a column"
    return (
        f"the catalog lacks {column}, which DuckLake's tables have: attach the lake once with "
        "DuckDB if it is older, or add the column if another program has made the lake"
    )


def _failure_of_write(state: str, message: str) -> PolynyaError | None:
    """The error of a transaction that writes; None where it is the same as for a reader."""
    if state == GONE_COLUMN:
        # Another try succeeds if a migration has just renamed it.
        return ConcurrentCommit(f"nothing was written: {_lacks_column(message)}")
    if state in OVERTAKEN:
        return ConcurrentCommit("other writers of the lake were faster each time; try again")
    if state in MAY_NOT_WRITE:
        return Misconfigured(
            "the database role may not write to the catalog: it must be a member of the role that "
            "owns DuckLake's tables, on a server that is no standby; `polynya writes` says what is "
            "missing"
        )
    return None


def _lost_at_commit() -> CommitStateUnknown:
    """The error for an unknown outcome, which `writes.rows.has_committed` asks PostgreSQL for."""
    unknown = CommitStateUnknown("the connection to the catalog was lost at COMMIT")
    unknown.is_transient = True
    return unknown


def _tls_failure(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "the certificate of the catalog database is not accepted: "
            f"{error.verify_message.rstrip('.')}; sslrootcert in DATABASE_URL names the file with "
            "the certificates to trust"
        )
    return f"no TLS connection to the catalog database: {error.reason}"


def text_of(error: DatabaseError) -> str:
    """The database's own text, for our decisions only: it must not be shown."""
    details = error.args[0] if error.args else None
    return details.get("M", "") if isinstance(details, dict) else ""
