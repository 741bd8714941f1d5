"""DuckDB in process, for a few files: it can access one temporary folder and nothing else.

Statements contain names and texts of a catalog that others write. They are quoted, and types come
from a closed list. If a mistake lets one through, the statement can reach no file and no network,
and change no setting. DuckDB is imported when a file is made, so that it does not slow the cold
start of the REST catalog.
"""

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from ..runtime import budget
from ..runtime.errors import OutOfTime, PolynyaError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # the same input gives the same bytes
    "memory_limit": "1GB",  # the functions have 1,769 MB
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}

LOCK = """
SET GLOBAL TimeZone = 'UTC';
SET temp_directory = {folder};
SET allowed_directories = [{folder}];
SET enable_external_access = false;
SET lock_configuration = true"""


LAYER = "1.5.5"
"""The DuckDB of layers/columnar. A function without that layer names the files that one with it
writes."""

UNNAMED = "1.5.5"
"""The DuckDB that names do not mention: files of this version are older than the rule."""


def _installed() -> str:
    with suppress(PackageNotFoundError):
        return version("duckdb")
    if find_spec("duckdb") is None:
        return LAYER
    import duckdb

    return str(duckdb.__version__)


def writer_of(duckdb_version: str) -> tuple[str, ...]:
    """The part of a file's name that names the DuckDB which writes it.

    The bytes differ by release, and so do the lengths in manifests and lists.
    """
    return () if duckdb_version == UNNAMED else (f"duckdb {duckdb_version}",)


DUCKDB = _installed()

WRITER = writer_of(DUCKDB)

HAS_ZONED_NANOSECONDS = not DUCKDB.startswith("1.")
"""Whether DuckDB has the type TIMESTAMPTZ_NS: since 2.0."""


class Unreadable(ValueError):
    """DuckDB cannot read its input. The message does not quote DuckDB's message, which can contain
    values of rows."""


class OutOfMemory(PolynyaError):
    """DuckDB needs more memory than it may have."""


class Sandbox(NamedTuple):
    """A connection and the file that it can access."""

    con: "DuckDBPyConnection"
    path: Path
    """A file that may be written and read; it does not exist yet."""


class _Instance:
    """A DuckDB that can access one folder."""

    def __init__(self) -> None:
        import duckdb

        self._folder = tempfile.TemporaryDirectory(prefix="polynya-")
        self.folder = self._folder.name
        self.con = duckdb.connect(":memory:", config=CONFIG)
        self.con.execute(LOCK.format(folder=literal(self.folder)))

    def close(self) -> None:
        """Close DuckDB, and remove its folder."""
        self.con.close()
        self._folder.cleanup()


_idle: list[_Instance] = []
"""Kept for reuse, because to start a DuckDB takes longer than to read or write most files."""

MOST_IDLE = 4

TRANSACTION = "SELECT txid_current()"

INTERVAL_SECONDS = 0.05
"""The time between two interruptions after the end of the budget: one between two statements has no
effect."""

os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def sandbox(*, reads_file: bool = False) -> Iterator[Sandbox]:
    """A DuckDB for the duration of the block, in which nothing of an earlier block is left.

    Args:
        reads_file: the block reads a file of the lake; otherwise only texts, with SQL of our own.

    Raises:
        Unreadable: the texts or the file are not valid.
        OutOfTime: no time is left in the budget; a statement that runs then is interrupted.
        PolynyaError: DuckDB fails in another way.
    """
    import duckdb

    budget.check()
    instance = _idle_instance() or _Instance()
    try:
        folder = tempfile.TemporaryDirectory(dir=instance.folder)
        with folder as path, _transaction(instance) as con, _limit_to_budget(con):
            yield Sandbox(con, Path(path) / "file.parquet")
        is_clean = not os.listdir(instance.folder)
    except BaseException as error:
        # It is unknown what the block has left in it.
        instance.close()
        # DuckDB's message may have a name of the file, which need not be UTF-8.
        if isinstance(error, duckdb.Error | UnicodeDecodeError):
            raise _translated(error, reads_file) from None
        raise
    if is_clean and len(_idle) < MOST_IDLE:
        _idle.append(instance)
    else:
        instance.close()


@contextmanager
def _transaction(instance: _Instance) -> Iterator["DuckDBPyConnection"]:
    """A connection with a transaction, which is rolled back with all that it has created.

    Raises:
        PolynyaError: a statement has ended the transaction.
    """
    with instance.con.cursor() as con:
        con.begin()
        [number] = con.execute(TRANSACTION).fetchall()
        yield con
        if con.execute(TRANSACTION).fetchall() != [number]:
            raise PolynyaError("a statement has ended DuckDB's transaction")
        con.rollback()


@contextmanager
def _limit_to_budget(con: "DuckDBPyConnection") -> Iterator[None]:
    """Interrupt the statements that run in the block after the end of the budget."""
    left, is_over = budget.seconds_left(), Event()
    if math.isinf(left):
        yield
        return

    def interrupt() -> None:
        seconds = left
        while not is_over.wait(seconds):
            con.interrupt()
            seconds = INTERVAL_SECONDS

    thread = Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()  # the next block may have this connection


def _idle_instance() -> _Instance | None:
    while _idle:
        with suppress(IndexError):  # another thread took it
            instance = _idle.pop(0)
            if os.path.isdir(instance.folder):  # some systems remove old folders
                return instance
            instance.close()
    return None


def _translated(error: Exception, reads_file: bool) -> Exception:
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return OutOfTime("DuckDB takes longer than one request may; try again")
    if isinstance(error, duckdb.OutOfMemoryException):
        return OutOfMemory("DuckDB needs more memory than it may have")
    message = f"DuckDB says {type(error).__name__}"
    if reads_file or isinstance(error, duckdb.DataError | duckdb.InvalidInputException):
        return Unreadable(message)
    return PolynyaError(message)


def quoted(name: str) -> str:
    """A name as a DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a DuckDB string literal."""
    return "'" + text.replace("'", "''") + "'"
