"""Lakes whose catalog is a file, and whose data is in a folder beside it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from duckdb import DuckDBPyConnection
from pg8000.native import identifier
from polynya_local.clients import native
from polynya_local.clients.duckdb import connect, literal
from polynya_local.clients.native import REPEAT

from tests.support import lakes
from tests.support.catalog_versions import ADDED_COLUMNS, RENAMED, VIEW_COLUMN_TAG

EXTENSIONS = ("ducklake", "sqlite_scanner")
KINDS = ("duckdb", "sqlite")
DUCKDB_2 = {"PYTHONPATH": str(Path(__file__).parents[2] / ".duckdb2")}
"""The environment of a process that runs with DuckDB 2.0, which `make setup` puts there."""


@dataclass(frozen=True, slots=True)
class FileLake:
    """A lake in a folder."""

    name: str
    kind: str
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / f"lake.{self.kind}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def address(self) -> str:
        """What `polynya serve` takes, and what follows `ducklake:` in ATTACH."""
        return f"sqlite:{self.file}" if self.kind == "sqlite" else str(self.file)


def written(name: str, kind: str, folder: Path) -> FileLake:
    """A lake from a script of tests/lakes."""
    script = lakes.script_of(name)
    lake = FileLake(script.stem, kind, folder)
    Path(f"{lake.data}_ext").mkdir(parents=True)
    text = REPEAT.sub(
        lambda found: "\n".join(
            found[2].replace("{{i}}", str(i)) for i in range(1, int(found[1]) + 1)
        ),
        script.read_text(),
    )
    text = text.replace("{{CATALOG}}", lake.address.replace("'", "''"))
    execute(text.replace("{{DATA_PATH}}", str(lake.data).replace("'", "''")))
    return lake


def empty(kind: str, folder: Path) -> FileLake:
    """A lake without a table."""
    lake = FileLake("empty", kind, folder)
    lake.folder.mkdir(parents=True, exist_ok=True)
    with writing(lake):
        return lake


def execute(text: str) -> None:
    """Run a script in a DuckDB that is closed afterwards: an open one locks the file."""
    with closing(connect(EXTENSIONS)) as con:
        for statement in con.extract_statements(text):
            con.execute(statement)


def change_tables(lake: FileLake, statements: str) -> None:
    """Change the tables of a catalog, without DuckLake."""
    if lake.kind == "sqlite":
        with closing(sqlite3.connect(lake.file)) as connection:
            connection.executescript(statements)
        return
    with closing(connect()) as con:
        con.execute(f"ATTACH {literal(str(lake.file))} AS file")
        con.execute("USE file")
        for statement in con.extract_statements(statements):
            con.execute(statement)


def query(lake: FileLake, statement: str) -> list[tuple[object, ...]]:
    """Rows of the tables of a catalog, without DuckLake."""
    if lake.kind == "sqlite":
        with closing(sqlite3.connect(lake.file)) as connection:
            return connection.execute(statement).fetchall()
    with closing(connect()) as con:
        con.execute(f"ATTACH {literal(str(lake.file))} AS file (READ_ONLY)")
        con.execute("USE file")
        return con.execute(statement).fetchall()


IN_FRONT = """
import sys, duckdb
assert duckdb.__version__.startswith("2."), duckdb.__version__
con = duckdb.connect()
con.execute(f"ATTACH '{sys.argv[1]}' AS old (READ_ONLY)")
con.execute(f"ATTACH '{sys.argv[2]}' AS new")
con.execute("COPY FROM DATABASE old TO new")
"""


def in_format_of_duckdb_2(lake: FileLake, folder: Path) -> FileLake:
    """A copy of a catalog in the file format of DuckDB 2.0."""
    folder.mkdir()
    copy = FileLake(lake.name, lake.kind, folder)
    subprocess.run(
        [sys.executable, "-c", IN_FRONT, str(lake.file), str(copy.file)],
        check=True,
        env={**os.environ, **DUCKDB_2},
    )
    return copy


@contextmanager
def writing(lake: FileLake) -> Iterator[DuckDBPyConnection]:
    """A DuckDB with the lake attached as `lake`, to write."""
    with closing(connect(EXTENSIONS)) as con:
        source = literal(f"ducklake:{lake.address}")
        con.execute(f"ATTACH {source} AS lake (DATA_PATH {literal(str(lake.data))})")
        con.execute("USE lake")
        yield con


class NativeFile(native.Native):
    """Reads such a lake with DuckDB's extension ducklake."""

    def __init__(self, lake: FileLake, schema: str = "main") -> None:
        self._con = connect(EXTENSIONS)
        self._con.execute(f"ATTACH {literal(f'ducklake:{lake.address}')} AS lake (READ_ONLY)")
        self._catalog = f"{native.CATALOG}.{schema}"


def file_to_1_1(lake: FileLake) -> None:
    """The same for a catalog in a file of DuckDB or SQLite."""
    tables = query(lake, "SELECT table_name FROM ducklake_inlined_data_tables")
    statements = [
        *(
            f"ALTER TABLE {identifier(table)} RENAME COLUMN {name} TO _ducklake_{name}"
            for (table,) in tables
            for name in RENAMED
        ),
        *(f"ALTER TABLE {table} ADD COLUMN {name} {type}" for table, name, type in ADDED_COLUMNS),
        VIEW_COLUMN_TAG,
        "UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version'",
    ]
    change_tables(lake, ";\n".join(statements))
