"""A catalog of any kind as a copy in PostgreSQL, which follows its changes.

The rows of each table are divided into ranges of an id, and only ranges whose rows have another
hash than those in the mirror are written again. All changes of the original that are copied at once
are in one transaction of PostgreSQL.

`changes` compares a state of the catalog with what the mirror has, `MirrorWriter` writes the
difference, and `Mirror` does both when a request needs the newest state.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import cast

import duckdb
from duckdb import DuckDBPyConnection
from pg8000.exceptions import Error as PostgresError
from pg8000.native import Connection
from polynya.ducklake.queries.catalog import INDEX_OF_SINKS, INDEXED_SINKS
from polynya.ducklake.queries.planned_files import INDEXED_VALUES
from polynya.runtime.errors import CommitStateUnknown, PolynyaError, ServiceUnavailable

from ..clients.duckdb import SECONDS_TO_STOP, confine, connect, identifier, interruptible
from ..processes.postgres import Database
from .catalog_source import Catalog, Digests, Fingerprint, Row, Staged, State, WritableState
from .catalog_writer import (
    NOT_RECORDED,
    RECORDING,
    SNAPSHOT_TABLES,
    TRIGGER,
    NotAnswered,
    new_tables,
    set_up_commits,
    write_back,
)
from .lake_files import is_locked
from .mirrored_tables import (
    COMMITS,
    KEYS,
    NO_ID,
    POSTGRES_TYPES,
    REFUSED,
    SCHEMA,
    SPAN,
    Renamed,
    Table,
    qualified,
)


def data_paths(catalog: Catalog) -> dict[str, str]:
    """The data path of each lake in a catalog's database, by its schema. A signal ends it.

    Raises:
        Misconfigured: something in it is not a table.
        duckdb.Error, sqlite3.Error, pg8000.exceptions.Error, OSError: it cannot be read.
    """
    con = connected(catalog)

    def read() -> dict[str, str]:
        with closing(con), catalog.attached(con) as state:
            return state.data_paths()

    return interruptible(con, read)


def connected(catalog: Catalog, temp_directory: str | None = None) -> DuckDBPyConnection:
    """A DuckDB that can read a catalog, and no other file."""
    con = connect()
    # Arrays of objects hold texts: DuckDB need not guess the type from the first values.
    con.execute("SET GLOBAL pandas_analyze_sample = 0")
    if temp_directory is not None:
        con.execute("SET temp_directory = ?", [temp_directory])
    if catalog.files:
        confine(con, catalog.files)
    return con


@dataclass(frozen=True, slots=True)
class Copied:
    """What the mirror has of a table."""

    table: Table
    digests: Digests


@dataclass(frozen=True, slots=True)
class Change:
    """What has to change in the mirror for a table."""

    table: Table
    is_new: bool
    """Whether the mirror has no such table, or one with other columns."""
    ranges: tuple[int, ...]
    """The ranges that differ."""
    staged: Staged
    """All rows of these ranges."""


def contents(state: State, schema: str, renamed: Renamed | None) -> dict[str, Copied]:
    """All tables of a lake, by their names.

    Args:
        schema: where they are.
        renamed: how locations are rewritten; None: they stay.
    """
    tables = state.tables(schema, renamed)
    return {table.name: Copied(table, state.digests(schema, table)) for table in tables}


def changes(
    state: State, schema: str, new: Mapping[str, Copied], old: Mapping[str, Copied]
) -> list[Change]:
    """The changes from `old` to `new`, which are the contents of the state.

    Raises:
        Misconfigured: PostgreSQL cannot hold a text of them.
    """
    staged = []
    for number, (name, copied) in enumerate(new.items()):
        before = old.get(name)
        is_new = before is None or before.table.shape != copied.table.shape
        digests = {} if before is None or is_new else before.digests
        ranges = _differing(digests, copied.digests)
        if ranges or is_new:
            rows = state.stage(schema, copied.table, None if is_new else ranges, f"staged_{number}")
            staged.append(Change(copied.table, is_new, ranges, rows))
    return staged


def _differing(old: Digests, new: Digests) -> tuple[int, ...]:
    return tuple(sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n)))


CREATE_REFUSED = f"""
CREATE TABLE {SCHEMA}.{REFUSED} (catalog_table text, number bigint, table_id bigint,
  begin_snapshot bigint, end_snapshot bigint, reason text)"""
REFUSE = f"""
INSERT INTO {SCHEMA}.{REFUSED}
  (catalog_table, number, table_id, begin_snapshot, end_snapshot, reason)
VALUES (:catalog_table, :number, :table_id, :begin_snapshot, :end_snapshot, :reason)"""
SERVE_AGAIN = f"DELETE FROM {SCHEMA}.{REFUSED} WHERE catalog_table = :catalog_table"


class MirrorWriter:
    """Writes to one PostgreSQL database that nothing else writes to."""

    def __init__(self, target: Database) -> None:
        """Connect to the database."""
        self._con: Connection = target.connect()
        for statement in (*RECORDING, NOT_RECORDED, CREATE_REFUSED):
            self._con.run(statement)

    def write(self, changes: Iterable[Change], gone: Iterable[str]) -> None:
        """Make the changes, and drop their staged rows.

        Args:
            gone: the tables that are dropped.

        Raises:
            pg8000.exceptions.Error: PostgreSQL does not accept them; then it has none of them.
        """
        changes = tuple(changes)
        with self._transaction():
            # Commits have created these tables in the original too, which may have dropped them.
            for name in sorted({*gone, *new_tables(self._con)}):
                self._con.run(f"DROP TABLE {qualified(SCHEMA, name)}")
                self._con.run(SERVE_AGAIN, catalog_table=name)
            for change in changes:
                self._write(change)
        for change in changes:
            change.staged.drop()

    def close(self) -> None:
        """Close the connection."""
        with suppress(PostgresError, OSError):  # it is gone already
            self._con.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # The savepoint gives the rows another transaction id than that of the commit: readers must
        # not take the snapshots for all that it has changed (`queries.changes_since`).
        self._con.run("BEGIN; SAVEPOINT copied")
        try:
            yield
            self._con.run("COMMIT")
        except BaseException:
            with suppress(PostgresError, OSError):
                self._con.run("ROLLBACK")
            raise

    def _write(self, change: Change) -> None:
        name = qualified(SCHEMA, change.table.name)
        if change.is_new:
            columns = (
                f"{identifier(c.name)} {POSTGRES_TYPES.get(c.type, c.type)}"
                for c in change.table.columns
            )
            self._con.run(f"DROP TABLE IF EXISTS {name}")
            self._con.run(f"CREATE TABLE {name} ({', '.join(columns)})")
            self._con.run(TRIGGER.format(table=name))
        else:
            self._con.run(f"DELETE FROM {name} WHERE {_ranges_condition(change)}")
        self._con.run(f"COPY {name} FROM STDIN", stream=change.staged.chunks())
        self._refuse(change)
        if change.is_new:
            self._index(change.table)

    def _refuse(self, change: Change) -> None:
        """Replace the refusals of the ranges of a change by those of its rows."""
        table = change.table.name
        if change.is_new:
            self._con.run(SERVE_AGAIN, catalog_table=table)
        elif change.ranges:
            numbers = ", ".join(map(str, change.ranges))
            self._con.run(f"{SERVE_AGAIN} AND number IN ({numbers})", catalog_table=table)
        for refusal in change.staged.refusals:
            self._con.run(REFUSE, catalog_table=table, **asdict(refusal))

    def _index(self, table: Table) -> None:
        """Indexes for the ranges of the mirror, and those that `polynya indexes` recommends."""
        if table.key not in KEYS:
            return
        name = qualified(SCHEMA, table.name)
        names = {column.name for column in table.columns}
        self._con.run(f"CREATE INDEX ON {name} ({identifier(table.key)})")
        if {"table_id", "data_file_id"} <= names:
            self._con.run(f"CREATE INDEX ON {name} (table_id, data_file_id)")
        if "partition_value" in names:
            self._con.run(f"CREATE INDEX ON {name} {INDEXED_VALUES}")
        if table.name == COMMITS:
            self._con.run(f"CREATE INDEX {INDEX_OF_SINKS} ON {name} {INDEXED_SINKS}")
        self._con.run(f"ANALYZE {name}")


def _ranges_condition(change: Change) -> str:
    key = change.table.key
    return "true" if key is None else " OR ".join(_range_condition(key, n) for n in change.ranges)


def _range_condition(key: str, number: int) -> str:
    id_ = identifier(key)
    if number == NO_ID:
        return f"{id_} IS NULL OR {id_} < 0"
    return f"{id_} BETWEEN {number * SPAN} AND {number * SPAN + SPAN - 1}"


logger = logging.getLogger(__name__)

TRIES = 5
"""How often reading is tried if the catalog changes meanwhile."""

SECONDS_TO_WAIT = 20.0
"""How long a request waits for changes; then it gets the state that was copied last."""


OUTCOMES = {True: "the commit took place", False: "the commit did not take place"}

SECONDS_TO_LOCK = 10.0
"""How long a commit waits for another process that has the original open."""


@dataclass(eq=False, slots=True)
class _Refresh:
    """One check for changes; requests that came before it began wait for it."""

    is_done: Event = field(default_factory=Event)
    began: float = 0.0


class Mirror:
    """The copy in one PostgreSQL database. Its methods may be called from several threads."""

    def __init__(
        self, catalog: Catalog, schema: str, target: Database, renamed: Renamed | None
    ) -> None:
        """Open the target; nothing is copied yet.

        Args:
            schema: where the original's tables are.
            renamed: how locations are rewritten; None: they stay.
        """
        self._catalog, self._schema, self._renamed = catalog, schema, renamed
        self._lock = Lock()
        self._copied: dict[str, Copied] = {}
        self._open: WritableState | None = None
        self._detach: Callable[[], None] = lambda: None
        self._fingerprint: Fingerprint | None = None
        self._as_of = datetime.now(UTC)
        self._stale = ""
        self._failure: ServiceUnavailable | None = None
        self._queue = Lock()
        self._under_way: _Refresh | None = None
        self._next: _Refresh | None = None
        # DuckDB's default for what does not fit into memory is the working directory.
        self._overflow = TemporaryDirectory(prefix="polynya-mirror-", ignore_cleanup_errors=True)
        self._con = connected(catalog, self._overflow.name)
        self._writer = MirrorWriter(target)

    @property
    def name(self) -> str:
        """The name of the original in messages."""
        return self._catalog.name

    def begin(self) -> None:
        """Copy all of it. A signal ends it; otherwise as `refresh`."""
        interruptible(self._con, self.refresh)

    def refresh(self) -> int:
        """Copy what has changed; returns the number of ranges of rows that were written.

        Raises:
            Misconfigured: PostgreSQL cannot hold a text of it, or something in it is not a table.
            duckdb.Error, OSError, sqlite3.Error, pg8000.exceptions.Error: the original cannot be
                read, or the mirror cannot be written. The mirror is unchanged.
        """
        with self._lock:
            # Taken before reading: the state is at least as new.
            as_of = datetime.now(UTC)
            fingerprint = self._catalog.fingerprint()
            if fingerprint == self._fingerprint:
                self._as_of = as_of
                return 0
            fingerprint, copied, differing = self._read(fingerprint)
            self._write(fingerprint, copied, differing, as_of)
            return sum(len(change.ranges) for change in differing)

    def refresh_if_possible(self) -> None:
        """Copy what has changed, or log once that the original cannot be read now.

        It returns when everything that was committed before is copied, or cannot be. It waits at
        most `SECONDS_TO_WAIT`, less the time that a check under way has taken already.
        """
        with self._queue:
            if self._next is None:
                self._next = _Refresh()
                if self._under_way is None:
                    # A daemon: a file system that does not answer must not keep the process alive.
                    Thread(target=self._run_queue, name="mirror", daemon=True).start()
            refresh, under_way = self._next, self._under_way
        since = time.monotonic() if under_way is None else under_way.began
        if not refresh.is_done.wait(max(0.0, since + SECONDS_TO_WAIT - time.monotonic())):
            self._log_stale(TimeoutError(f"reading it takes longer than {SECONDS_TO_WAIT:g} s"))

    def _run_queue(self) -> None:
        while True:
            with self._queue:
                self._under_way, self._next = self._next, None
                if self._under_way is None:
                    return
                refresh = self._under_way
                refresh.began = time.monotonic()
            try:
                self._refresh_or_log()
            finally:
                refresh.is_done.set()

    def _refresh_or_log(self) -> None:
        try:
            self.refresh()
        # On any error, requests get the state that was copied last, or `failure`.
        except Exception as error:
            self._log_stale(error)
        else:
            self._failure = None
            if self._stale:
                self._stale = ""
                logger.warning("%s can be read again", self._catalog.name)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the original against other writers for the block, and copy all of its changes first.

        What the block commits to the mirror must be written to the original by `write_back`.

        Raises:
            PolynyaError, duckdb.Error, sqlite3.Error, pg8000.exceptions.Error, OSError: another
                process has it open, or it cannot be read or written.
        """
        with self._lock, ExitStack() as stack:
            # All of it is compared: a lock cannot be held while the fingerprint is read.
            state = self._locked(stack)
            # No fingerprint: the next refresh compares with what the block has written.
            self._write(None, *self._compared(state), datetime.now(UTC))
            self._open, self._detach = state, stack.close
            try:
                yield
            finally:
                self._open = None

    def _locked(self, stack: ExitStack) -> WritableState:
        """The original, attached to write as soon as no other process has it open."""
        deadline = time.monotonic() + SECONDS_TO_LOCK
        while True:
            try:
                attached = self._catalog.attached(self._con, to_write=True)
                return cast(WritableState, stack.enter_context(attached))
            except (duckdb.Error, sqlite3.Error) as error:
                if not is_locked(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def write_back(self, con: Connection) -> None:
        """Write to the original what a transaction of the mirror has changed, and commit it there.

        Args:
            con: the transaction, right before COMMIT, within `writing`.

        Raises:
            ServiceUnavailable: the original cannot be written; it is unchanged.
            CommitStateUnknown: it is not known whether the original is changed.
        """
        state = self._open
        if state is None:
            raise ServiceUnavailable(f"{self._catalog.name} cannot be written again; try again")
        try:
            is_written = write_back(con, state, self._original_location)
        except NotAnswered as error:
            self._open = None
            cause = type(error.__cause__).__name__
            took_place = self._has_after_commit(error.rows)
            logger.warning(
                "COMMIT in %s has failed (%s), and %s", self.name, cause, OUTCOMES[took_place]
            )
            if not took_place:
                raise ServiceUnavailable(
                    f"{self.name} cannot be written now; the commit did not take place"
                ) from None
        except BaseException as error:
            # It has half of the commit, which the end of `writing` undoes.
            self._open = None
            if isinstance(error, duckdb.Error | sqlite3.Error | OSError):
                logger.warning("%s cannot be written: %s", self.name, type(error).__name__)
                raise ServiceUnavailable(
                    f"{self.name} cannot be written now; the commit did not take place"
                ) from None
            raise
        else:
            if is_written:
                self._open = None  # others may write to it now

    def _has_after_commit(self, rows: Mapping[str, Row]) -> bool:
        """Whether the original has the rows of a commit whose COMMIT has failed.

        Raises:
            CommitStateUnknown: it cannot be read.
        """
        try:
            # The connection that failed is not used again: the original is closed, and opened by
            # another DuckDB, because a fatal error makes this one useless.
            with suppress(duckdb.Error, sqlite3.Error, OSError):
                self._detach()
            with suppress(duckdb.Error):
                self._con.close()
            self._con = connected(self._catalog, self._overflow.name)
            with ExitStack() as stack:
                # Attached to write, so that SQLite rolls back a half-written commit.
                state = self._locked(stack)
                if rows.keys() == {*SNAPSHOT_TABLES}:
                    return all(state.has(self._schema, table, row) for table, row in rows.items())
        except (duckdb.Error, sqlite3.Error, OSError, PolynyaError) as error:
            logger.warning("%s cannot be read: %s", self.name, type(error).__name__)
        raise CommitStateUnknown(
            f"COMMIT in {self.name} has failed, and the file does not say whether the change took "
            "place: load the table, and see whether it has the change"
        )

    def set_up_commits(self) -> bool:
        """Create the table polynya_commits in the original if missing; returns whether it was.

        Raises: as `writing`.
        """
        with self.writing():
            assert self._open is not None
            return set_up_commits(self._open, self._copied)

    def _original_location(self, location: str) -> str:
        renamed = self._renamed
        if renamed is None or not renamed.old or not location.startswith(renamed.new):
            return location
        return renamed.absolute + location.removeprefix(renamed.new)

    def age(self) -> float:
        """The seconds since the original was last compared with the copy."""
        return (datetime.now(UTC) - self._as_of).total_seconds()

    def staleness(self) -> str:
        """Why an older state is shown than the newest, and its time; empty: the newest is shown."""
        return self._stale

    def failure(self) -> ServiceUnavailable | None:
        """The answer to clients while the original cannot be read for a reason that stays.

        None: they get the newest state; or an older one, until another process has closed the file,
        or a database answers again.
        """
        return self._failure

    def row_count(self, table: str) -> int:
        """The number of rows of `ducklake_<table>` in the mirror."""
        copied = self._copied.get(f"ducklake_{table}")
        return sum(count for count, *_ in copied.digests.values()) if copied else 0

    def close(self) -> None:
        """Stop what is under way, and close all connections."""
        deadline = time.monotonic() + SECONDS_TO_STOP
        while not self._lock.acquire(timeout=0.05):
            if time.monotonic() > deadline:
                self._overflow.cleanup()
                return  # it ends with the process
            # The thread that holds the lock is in a statement, which this interrupts.
            self._con.interrupt()
            self._catalog.interrupt()
        try:
            self._con.close()
            self._writer.close()
            self._catalog.close()
        finally:
            self._overflow.cleanup()
            self._lock.release()

    def _read(self, before: Fingerprint) -> tuple[Fingerprint, dict[str, Copied], list[Change]]:
        """Read what has changed from one state of the original, with the state's fingerprint."""
        for _ in range(TRIES):
            with self._catalog.attached(self._con) as state:
                copied, differing = self._compared(state)
                after = self._catalog.fingerprint()
            # The state is one of these fingerprints only if nothing was committed in between.
            if after == before:
                return after, copied, differing
            for change in differing:
                change.staged.drop()
            before = after
        raise TimeoutError("the catalog changes faster than it can be read")

    def _compared(self, state: State) -> tuple[dict[str, Copied], list[Change]]:
        """What a state of the original has, and what has to change in the mirror."""
        copied = contents(state, self._schema, self._renamed)
        return copied, changes(state, self._schema, copied, self._copied)

    def _write(
        self,
        fingerprint: Fingerprint | None,
        copied: dict[str, Copied],
        differing: list[Change],
        as_of: datetime,
    ) -> None:
        self._writer.write(differing, self._copied.keys() - copied.keys())
        self._fingerprint, self._copied, self._as_of = fingerprint, copied, as_of

    def _log_stale(self, error: Exception) -> None:
        # Another process will end, and a file system or a database will answer again.
        is_passing = is_locked(error) or isinstance(error, TimeoutError | PostgresError)
        # The text of another error may have values of rows, or connection parameters.
        is_ours = isinstance(error, PolynyaError | TimeoutError)
        why = str(error) if is_ours else type(error).__name__
        if is_locked(error):
            why = "another process has it open"
        as_of = self._as_of.isoformat(" ", "seconds").replace("+00:00", " UTC")
        name = self._catalog.name
        problem = why if why.startswith(name) else f"{name} cannot be read now ({why})"
        self._failure = None if is_passing else ServiceUnavailable(problem)
        is_served = "is served" if is_passing else "is on the page, and clients get an error"
        if not self._stale.startswith(problem):
            self._stale = f"{problem}: its state of {as_of} {is_served}"
            logger.warning(self._stale)
