"""Checks the file of a catalog by its first bytes.

A command thus reports what is wrong with it before it imports DuckDB.
"""

import typer
from polynya.runtime.errors import Misconfigured, PolynyaError
from polynya_pipeline.common.errors import say

from .address import Address, DuckDBLake, PostgresLake, SQLiteLake, parse

SQLITE_MAGIC = b"SQLite format 3\x00"
DUCKDB_MAGIC, DUCKDB_MAGIC_AT = b"DUCK", 8


def checked(address: Address) -> Address:
    """The address with the kind that its file's first bytes show; DuckDB, too, looks at these.

    Raises:
        Misconfigured: there is no such file, it cannot be read, or it is something else.
    """
    if isinstance(address, PostgresLake):
        return address
    head = _head(address)
    if head.startswith(SQLITE_MAGIC):
        return SQLiteLake(address.file)
    if head[DUCKDB_MAGIC_AT:].startswith(DUCKDB_MAGIC):
        return DuckDBLake(address.file)
    if not head:
        raise Misconfigured(
            f"{address.file} is empty: no lake was ever written to it; " + _attach(address)
        )
    raise Misconfigured(
        f"{address.file} is neither a database of DuckDB nor one of SQLite: give the file that "
        "follows 'ducklake:' in ATTACH, not one of the data files"
    )


def check_address(text: str) -> None:
    """End a command with a message if its address names no lake.

    Raises:
        typer.Exit: it names none.
    """
    try:
        checked(parse(text))
    except PolynyaError as error:
        say(str(error))
        raise typer.Exit(1) from None


def _attach(address: DuckDBLake | SQLiteLake) -> str:
    """How to make a lake in the file."""
    kind = "sqlite:" if isinstance(address, SQLiteLake) else ""
    return f"DuckDB makes one with ATTACH 'ducklake:{kind}{address.file}'"


def _head(address: DuckDBLake | SQLiteLake) -> bytes:
    file = address.file
    try:
        with file.open("rb") as opened:
            return opened.read(DUCKDB_MAGIC_AT + len(SQLITE_MAGIC))
    except IsADirectoryError:
        raise Misconfigured(
            f"{file} is a folder: give the file of the catalog, which follows 'ducklake:' in ATTACH"
        ) from None
    except FileNotFoundError:
        raise Misconfigured(f"there is no file {file}; {_attach(address)}") from None
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}") from None
