"""DuckDB in process, for one file: it can access one temporary folder and nothing else.

Statements contain names and texts of a catalog that others write. They are quoted, and types come
from a closed list. If a mistake lets one through, the statement finds no file, no network and no
setting that it could change. DuckDB is imported when a file is made, so it does not slow the cold
start of the REST catalog.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...errors import PolynyaError

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
SET TimeZone = 'UTC';
SET temp_directory = {folder};
SET allowed_directories = [{folder}];
SET enable_external_access = false;
SET lock_configuration = true"""


class Unreadable(ValueError):
    """DuckDB cannot read its input. The message does not quote DuckDB's message, which can contain
    values of rows."""


class Sandbox(NamedTuple):
    """A connection and the file that it can access."""

    con: "DuckDBPyConnection"
    path: Path
    """A file that may be written and read; it does not exist yet."""


@contextmanager
def sandbox(*, reads_file: bool = False) -> Iterator[Sandbox]:
    """A separate DuckDB for the duration of the block.

    Args:
        reads_file: the block reads a file of the lake; otherwise only texts, with SQL of our own.

    Raises:
        Unreadable: the texts or the file are not valid.
        PolynyaError: DuckDB fails in another way.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="polynya-") as folder:
        try:
            with duckdb.connect(":memory:", config=CONFIG) as con:
                con.execute(LOCK.format(folder=literal(folder)))
                yield Sandbox(con, Path(folder) / "file.parquet")
        except duckdb.OutOfMemoryException:
            raise PolynyaError("DuckDB needs more memory than it may have") from None
        except duckdb.Error as error:
            message = f"DuckDB says {type(error).__name__}"
            if reads_file or isinstance(error, duckdb.DataError | duckdb.InvalidInputException):
                raise Unreadable(message) from None
            raise PolynyaError(message) from None


def quoted(name: str) -> str:
    """A name as a DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a DuckDB string literal."""
    return "'" + text.replace("'", "''") + "'"
