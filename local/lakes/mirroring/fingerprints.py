"""What shows that a catalog has changed: equal fingerprints mean equal contents.

The newest snapshot does not show that snapshots expire, that inlined rows are flushed or files are
merged; the time of a file does not show what SQLite writes into its write-ahead log.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from pg8000.native import Connection
from polynya.ducklake.connection.url import connection_arguments

Fingerprint: TypeAlias = tuple[object, ...]

DUCKDB_HEADERS = 3 * 4096
"""The header of the file, and the two of the database, which each checkpoint writes in turn."""

LOCK_SECONDS = 5.0


class DuckDBFingerprint:
    """A commit makes the write-ahead log longer; a checkpoint, which empties it, writes a header
    with a new number. So neither can return to what it was."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._log = file.with_name(file.name + ".wal")

    def now(self) -> Fingerprint:
        """The fingerprint as of now.

        Raises:
            OSError: the file cannot be read.
        """
        # The log first: a checkpoint in between changes the headers that are read after it.
        log = _file_state(self._log)
        # This process must not hold a lock of DuckDB on the file: closing it here would free that.
        with self._file.open("rb") as file:
            headers = file.read(DUCKDB_HEADERS)
            return log, _state(os.fstat(file.fileno())), headers

    def close(self) -> None:
        """Nothing is open."""


class SQLiteFingerprint:
    """`PRAGMA data_version` on one connection changes with each commit of any other one, in every
    journal mode. https://www.sqlite.org/pragma.html#pragma_data_version

    A file that replaces the original, and one that is copied over it, have another identity or
    time. So has the write-ahead log after a commit: another SQLite in this process (DuckDB's
    extension has one) frees the locks of this connection when it closes the file, so that a writer
    may remove the log under it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._log = file.with_name(file.name + "-wal")
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def now(self) -> Fingerprint:
        """The fingerprint as of now.

        Raises:
            OSError: the file cannot be read.
            sqlite3.Error: the file is locked, or is no database.
        """
        log, found = _file_state(self._log), self._file.stat()
        if self._identity != (found.st_dev, found.st_ino):
            self.close()
            self._connection = read_only(self._file)
            self._identity = (found.st_dev, found.st_ino)
        assert self._connection is not None
        with closing(self._connection.execute("PRAGMA data_version")) as cursor:
            [version] = cursor.fetchone()
        return _state(found), log, version

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self._identity = self._connection, None, None
        if connection is not None:
            connection.close()


def read_only(file: Path) -> sqlite3.Connection:
    """A connection to SQLite that may be used by one thread after another.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    uri = f"file:{quote(str(file.absolute()))}?mode=ro"
    # Without a transaction of its own a statement sees what others commit.
    return sqlite3.connect(
        uri, uri=True, timeout=LOCK_SECONDS, check_same_thread=False, isolation_level=None
    )


class PostgresFingerprint:
    """The snapshot of PostgreSQL: which transactions are visible. Two that are equal see the same
    rows, whatever was changed."""

    def __init__(self, url: str) -> None:
        self._arguments = connection_arguments(url)
        self._connection: Connection | None = None

    def now(self) -> Fingerprint:
        """The fingerprint as of now.

        Raises:
            pg8000.exceptions.Error, OSError: the database does not answer.
        """
        try:
            if self._connection is None:
                self._connection = Connection(
                    **self._arguments, timeout=LOCK_SECONDS, application_name="polynya mirror"
                )
            return tuple(self._connection.run("SELECT pg_catalog.pg_current_snapshot()::text")[0])
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:  # it is gone already, in one of many ways
                return


def is_locked(error: Exception) -> bool:
    """Whether another process has the file open, so that it cannot be read."""
    words = str(error)
    return "Could not set lock" in words or "database is locked" in words


def _file_state(file: Path) -> Fingerprint:
    try:
        return _state(file.stat())
    except FileNotFoundError:
        return ()


def _state(found: os.stat_result) -> Fingerprint:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
