"""The file of a catalog: what it is, and a sentence for one that is no catalog."""

import re
import sqlite3
from pathlib import Path

import duckdb
from polynya.errors import Misconfigured, PolynyaError, ServiceUnavailable

from .address import Address, DuckDBLake, PostgresLake, SQLiteLake
from .mirroring.fingerprints import is_locked

SQLITE_MAGIC = b"SQLite format 3\x00"
DUCKDB_MAGIC, DUCKDB_MAGIC_AT = b"DUCK", 8
LONGEST_MESSAGE = 300
ATTACH = "DuckDB makes one with ATTACH 'ducklake:{}'"


def checked(address: Address) -> Address:
    """The address, as what its file is: DuckDB, too, finds SQLite by the file's first bytes.

    Raises:
        Misconfigured: there is no such file, it cannot be read, or it is something else.
    """
    if isinstance(address, PostgresLake):
        return address
    head = _head(address.file)
    if head.startswith(SQLITE_MAGIC):
        return SQLiteLake(address.file)
    if head[DUCKDB_MAGIC_AT:].startswith(DUCKDB_MAGIC):
        return DuckDBLake(address.file)
    if not head:
        raise Misconfigured(
            f"{address.file} is empty: no lake was ever written to it; {_attach(address.file)}"
        )
    raise Misconfigured(
        f"{address.file} is neither a database of DuckDB nor one of SQLite: give the file that "
        "follows 'ducklake:' in ATTACH, not one of the data files"
    )


def failure(name: str, error: Exception) -> PolynyaError:
    """The error to raise for a catalog that cannot be read.

    Args:
        name: what the message calls the catalog.
    """
    words = " ".join(str(error).split())
    if is_locked(error) and isinstance(error, sqlite3.Error):
        return ServiceUnavailable(
            f"{name} is locked by another process, which writes to it: try again when it is ready"
        )
    if is_locked(error):
        process = re.search(r"PID (\d+)", words)
        by = f"the process {process[1]}" if process else "another process"
        return ServiceUnavailable(
            f"{name} is open in {by}, and nobody else can read it meanwhile: DETACH the lake or "
            "quit there, then try again. A lake in SQLite or PostgreSQL has no such limit"
        )
    if isinstance(error, PermissionError):
        return Misconfigured(f"{name} cannot be read: permission denied")
    if isinstance(error, FileNotFoundError):
        return Misconfigured(f"there is no file {name}")
    if isinstance(error, duckdb.Error) and "version number" in words:
        return Misconfigured(
            f"{name} was written by a newer DuckDB than the one of this Python, "
            f"{duckdb.__version__}, which cannot read it: pip install --upgrade 'duckdb>=2,<3'"
        )
    if isinstance(error, sqlite3.Error):
        if "readonly database" in words:
            return Misconfigured(
                f"{name} has a write-ahead log, which SQLite reads only in a folder where it may "
                "write: copy the file, or run PRAGMA journal_mode=DELETE where it was written"
            )
        # SQLite's module quotes a text that it cannot decode.
        words = words.partition(" with text ")[0]
    return Misconfigured(
        f"{name} cannot be read; if it is damaged, restore a copy of it: {words[:LONGEST_MESSAGE]}"
    )


def no_lake(name: str, schema: str, schemas: list[str]) -> Misconfigured:
    """The error for a database without a DuckLake in the schema.

    Args:
        schemas: those that have one.
    """
    if schemas:
        there = ", ".join(map(repr, schemas))
        why = f"; --metadata-schema names one that has it: {there}"
    else:
        why = " nor in another one: give the database that follows 'ducklake:' in ATTACH"
    return Misconfigured(f"{name} has no DuckLake catalog in the schema {schema!r}{why}")


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(DUCKDB_MAGIC_AT + len(SQLITE_MAGIC))
    except IsADirectoryError:
        raise Misconfigured(
            f"{file} is a folder: give the file of the catalog, which follows 'ducklake:' in ATTACH"
        ) from None
    except FileNotFoundError:
        raise Misconfigured(f"there is no file {file}; {_attach(file)}") from None
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}") from None


def _attach(file: Path) -> str:
    return ATTACH.format(file)
