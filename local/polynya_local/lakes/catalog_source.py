"""What a mirror reads: a catalog of any kind, and one state of it whose tables DuckDB selects.

Equal fingerprints of a catalog mean equal contents. The newest snapshot is not enough: it does not
show that snapshots expire, that inlined rows are flushed or files are merged; the time of a file
does not show what SQLite writes into its write-ahead log.

The original may have a value that the mirror cannot hold: SQLite has any value in any column, and
PostgreSQL has no text with a NUL character. The mirror has NULL there, and `refusals` says which
table is not served because of it.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from duckdb import DuckDBPyConnection
from polynya.runtime.errors import REMEDY, Misconfigured

from ..clients.duckdb import identifier
from .mirrored_tables import (
    INLINED_ROWS,
    NOT_READ,
    NUL,
    SYSTEM_COLUMNS,
    TABLES_NOT_READ,
    Column,
    Renamed,
    Table,
    inlined_table,
    metadata_table,
    postgres_text,
    qualified,
)

SOURCE = "source"
"""The name under which DuckDB attaches a catalog, or the copy of its rows."""


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A value of the original that the mirror cannot hold, where it has NULL."""

    number: int
    """The number of its row's range."""
    table_id: int | None
    """The table that the row belongs to; None: the row does not say it."""
    begin_snapshot: int
    end_snapshot: int | None
    """The snapshots that may show it."""
    row: str
    column: str
    wrong: str

    def sentence(self, table: str) -> str:
        """What is wrong.

        Args:
            table: the table of the catalog that has it.
        """
        return f"{table} has {self.wrong} in its column {self.column}, in the row {self.row}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A table is not served at some snapshots, because of the rows in one range."""

    number: int
    table_id: int
    begin_snapshot: int
    end_snapshot: int | None
    reason: str


def refusals(catalog: str, table: Table, wrong: Iterable[WrongValue]) -> tuple[Refusal, ...]:
    """One refusal for each table with wrong values in a range of rows.

    Args:
        catalog: its name in messages.
        table: the table of the catalog that has the rows.

    Raises:
        Misconfigured: it is not known which table a row belongs to.
    """
    by_table: dict[tuple[int, int], list[WrongValue]] = {}
    for value in wrong:
        if value.column in NOT_READ or TABLES_NOT_READ.fullmatch(table.name):
            continue
        if value.table_id is None:
            raise Misconfigured(
                f"{catalog} cannot be served: {value.sentence(table.name)}, which does not say "
                f"whose it is{REMEDY}"
            )
        by_table.setdefault((value.number, value.table_id), []).append(value)
    return tuple(
        Refusal(number, table_id, *_snapshots(values), _reason(table, values[0]))
        for (number, table_id), values in by_table.items()
    )


def _snapshots(values: Sequence[WrongValue]) -> tuple[int, int | None]:
    ends = [value.end_snapshot for value in values if value.end_snapshot is not None]
    end = max(ends) if len(ends) == len(values) else None
    return min(value.begin_snapshot for value in values), end


def _reason(table: Table, value: WrongValue) -> str:
    is_nul = value.wrong == NUL
    remedy = FLUSH if is_nul and INLINED_ROWS.fullmatch(table.name) else REMEDY
    return (
        value.sentence(table.name) + (", which PostgreSQL cannot hold" if is_nul else "") + remedy
    )


FLUSH = ": write these rows to a file with ducklake_flush_inlined_data"

Types = Mapping[str, Mapping[str, str]]
"""DuckDB's types of the user's columns, by table of inlined rows and by column."""

Digests = dict[int, tuple[Any, ...]]
"""The number of rows of each range of a table, and what changes with their contents."""

LINES = 4096
"""How many rows are sent to PostgreSQL at once."""


Fingerprint: TypeAlias = tuple[object, ...]

LOCK_SECONDS = 5.0
"""How long a fingerprint waits for a lock, or for an answer."""


def file_state(file: Path) -> Fingerprint:
    """A value that changes if a file is replaced or written; empty: there is no file."""
    try:
        return state_of(file.stat())
    except FileNotFoundError:
        return ()


def state_of(stat: os.stat_result) -> Fingerprint:
    """As `file_state`, from the result of `stat`."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


class Staged(Protocol):
    """Rows of a table, taken from one state of a catalog."""

    @property
    def refusals(self) -> Sequence[Refusal]:
        """What is not served because of values that the mirror cannot hold."""

    def chunks(self) -> Iterator[bytes]:
        """The rows as COPY of PostgreSQL reads them."""

    def drop(self) -> None:
        """Free the table or the file that holds the rows."""


class State(Protocol):
    """One state of a catalog, while it is attached."""

    def data_paths(self) -> dict[str, str]:
        """The data path of each lake, by the schema that has its tables."""

    def tables(self, schema: str, renamed: Renamed | None) -> list[Table]:
        """The tables of a lake, with their locations rewritten as `renamed` says."""

    def digests(self, schema: str, table: Table) -> Digests:
        """Equal digests of a range mean equal rows."""

    def has(self, schema: str, table: str, row: "Row") -> bool:
        """Whether a table has a row, with values as JSON has them."""

    def stage(self, schema: str, table: Table, ranges: Sequence[int] | None, name: str) -> Staged:
        """Take the rows of these ranges; None: all rows.

        Args:
            name: unique among the rows that are staged from this state.

        Raises:
            Misconfigured: PostgreSQL cannot hold a value of them, and its table is not known.
        """


Row = Mapping[str, object]
"""Values as JSON has them, by the names of columns."""


class WritableState(State, Protocol):
    """A state of a catalog in a file, which nobody else can change meanwhile.

    All methods raise what the database raises.
    """

    def create(self, table: str, types: Mapping[str, str]) -> None:
        """Create a table with columns of DuckDB's types."""

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Insert rows, with values as JSON has them."""

    def change(self, table: str, old: Row, new: Row | None) -> int:
        """Change the rows that have the values `old`; returns how many there are.

        Args:
            new: the values that they get; None: they are deleted.
        """

    def commit(self) -> None:
        """Commit the changes; nothing more can be changed. An error leaves it open whether all of
        them are written, or none."""


class Catalog(Protocol):
    """A catalog that is mirrored: not in PostgreSQL, or with locations that are rewritten."""

    name: str
    """The name that messages use."""
    default_schema: str
    files: tuple[Path, ...]
    """All files that DuckDB may open to read it; none: DuckDB does not read it."""

    def fingerprint(self) -> Fingerprint:
        """A value that differs if the contents do. Raises: whatever reading the catalog raises."""

    def attached(
        self, con: DuckDBPyConnection, *, to_write: bool = False
    ) -> AbstractContextManager[State]:
        """Attach it for the block: a file of DuckDB is locked meanwhile.

        Args:
            to_write: nobody else may write meanwhile; the state is a `WritableState`.

        Raises:
            Misconfigured: something in it is not a table.
            duckdb.Error, sqlite3.Error, pg8000.exceptions.Error, OSError: it cannot be read.
        """

    def interrupt(self) -> None:
        """End a statement that another thread waits for, if that is possible."""

    def close(self) -> None:
        """Close what the fingerprint has opened."""


def not_a_table(catalog: str, name: str, kind: str) -> Misconfigured:
    """The error for a catalog with something else than a table, such as a view.

    Reading it would run SQL of whoever wrote the file: a view can read any file of this machine,
    and may never end.
    """
    return Misconfigured(
        f"{name} in {catalog} is {kind}: DuckLake keeps its catalog in plain tables, and "
        "Polynya reads nothing else, because a file from somebody else could run queries on "
        "this machine. If you made it, replace it by a table with its rows"
    )


TABLES = """
SELECT table_name, column_name, data_type FROM duckdb_columns()
WHERE database_name = ? AND schema_name = ?
  AND (starts_with(table_name, 'ducklake_') OR table_name = 'polynya_commits')
ORDER BY table_name, column_index"""

LAKES = """
SELECT schema_name FROM duckdb_tables()
WHERE database_name = ? AND table_name = 'ducklake_metadata' ORDER BY 1"""

# Two checksums of each range: in the XOR alone a row that is there twice would cancel out.
DIGESTS = """
SELECT number, count(*), bit_xor(digest), sum(digest)
FROM (SELECT {number} AS number, {digest} AS digest FROM {table}) GROUP BY number"""

DATA_PATH = "SELECT value FROM {table} WHERE key = 'data_path'{scope}"

WRONG_VALUES = """
SELECT {number}, {table_id}, {begin}, {end}, CAST({key} AS VARCHAR)
FROM ({rows}) WHERE {is_wrong} ORDER BY {key}"""

STAGE = "CREATE OR REPLACE TEMP TABLE {staged} AS SELECT {select} FROM {rows}"


class DuckDBState:
    """A state whose tables are in the database `source` of a DuckDB."""

    def __init__(self, con: DuckDBPyConnection, name: str) -> None:
        self._con, self._name = con, name

    def data_paths(self) -> dict[str, str]:
        """As `State.data_paths`."""
        schemas = [name for [name] in self._con.execute(LAKES, [SOURCE]).fetchall()]
        return {schema: self._data_path(schema) for schema in schemas}

    def _data_path(self, schema: str) -> str:
        table = qualified(SOURCE, schema, "ducklake_metadata")
        columns = {name for name, *_ in self._con.execute(f"DESCRIBE {table}").fetchall()}
        # The first versions have no options of a schema or a table.
        scope = " AND scope IS NULL" if "scope" in columns else ""
        rows = self._con.execute(DATA_PATH.format(table=table, scope=scope)).fetchall()
        return str(rows[0][0]) if rows else ""

    def tables(self, schema: str, renamed: Renamed | None) -> list[Table]:
        """As `State.tables`."""
        columns: dict[str, list[tuple[str, str]]] = {}
        for table, column, type_ in self._con.execute(TABLES, [SOURCE, schema]).fetchall():
            columns.setdefault(table, []).append((column, type_))
        types = self.inlined_types()
        return [
            inlined_table(name, stored, dict(stored) | dict(types.get(name, {})))
            if INLINED_ROWS.fullmatch(name)
            else metadata_table(name, stored, renamed)
            for name, stored in columns.items()
        ]

    def inlined_types(self) -> Types:
        """The types of inlined columns that are stored as another type: none in DuckDB."""
        return {}

    def digests(self, schema: str, table: Table) -> Digests:
        """As `State.digests`."""
        source = qualified(SOURCE, schema, table.name)
        sql = DIGESTS.format(number=table.range_number, digest=table.digest, table=source)
        return {number: tuple(digest) for number, *digest in self._con.execute(sql).fetchall()}

    def has(self, schema: str, table: str, row: Row) -> bool:
        """As `State.has`."""
        sql = statement_of_search(qualified(SOURCE, schema, table), row, "IS NOT DISTINCT FROM")
        return self._con.execute(sql, [*row.values()]).fetchone() is not None

    def stage(self, schema: str, table: Table, ranges: Sequence[int] | None, name: str) -> Staged:
        """As `State.stage`."""
        rows = qualified(SOURCE, schema, table.name)
        where, parameters = "", []
        if ranges is not None:
            # DuckDB skips row groups by their smallest and largest values.
            rows = f"(SELECT * FROM {rows} WHERE {table.ranges_condition(ranges)})"
            where, parameters = f" WHERE list_contains(?, {table.range_number})", [list(ranges)]
        sql = STAGE.format(staged=name, select=table.select, rows=rows) + where
        self._con.execute(sql, parameters)
        wrong = [*self._wrong_values(table, rows + where, parameters), *self._loaded(table, ranges)]
        refused = refusals(self._name, table, wrong)
        return StagedInDuckDB(self._con, name, table.columns, refused)

    def _wrong_values(
        self, table: Table, rows: str, parameters: Sequence[object]
    ) -> Iterator[WrongValue]:
        """The values of these rows that the mirror cannot hold.

        Args:
            rows: SQL of a FROM clause, with these parameters.
        """
        checked = table.checked
        if not checked:
            return
        # The first pass finds the columns that have wrong values: mostly none.
        some = ", ".join(f"bool_or({column.is_wrong})" for column in checked)
        [has_some] = self._con.execute(f"SELECT {some} FROM {rows}", parameters).fetchall()
        begin, end = ("0", "NULL")
        if INLINED_ROWS.fullmatch(table.name):
            begin, end = (identifier(column.name) for column in table.columns[1:SYSTEM_COLUMNS])
        key = table.key or table.columns[0].name
        for column in itertools.compress(checked, has_some):
            sql = WRONG_VALUES.format(
                number=table.range_number,
                table_id=table.table_id or "NULL",
                begin=begin,
                end=end,
                key=identifier(key),
                rows=f"SELECT * FROM {rows}",
                is_wrong=column.is_wrong,
            )
            for number, table_id, begun, ended, row in self._con.execute(
                sql, parameters
            ).fetchall():
                name = f"with the {key} {row}"
                yield WrongValue(
                    number, table_id, begun or 0, ended, name, column.name, column.wrong
                )

    def _loaded(self, table: Table, ranges: Sequence[int] | None) -> Iterable[WrongValue]:
        """The values of these ranges that DuckDB did not get: none from a file of DuckDB."""
        return ()


def statement_of_search(table: str, row: Row, same: str) -> str:
    """The SQL of `State.has`; its parameters are the values. Args: as `statement_of_change`."""
    where = " AND ".join(f"{identifier(name)} {same} ?" for name in row)
    return f"SELECT 1 FROM {table} WHERE {where} LIMIT 1"


def statement_of_change(table: str, old: Row, new: Row | None, same: str) -> str:
    """The SQL of `WritableState.change`; its parameters are the new values, then the old ones.

    Args:
        table: its name, quoted.
        same: the operator for which NULLs are equal.
    """
    where = " AND ".join(f"{identifier(name)} {same} ?" for name in old)
    if new is None:
        return f"DELETE FROM {table} WHERE {where}"
    return f"UPDATE {table} SET {', '.join(f'{identifier(n)} = ?' for n in new)} WHERE {where}"


class WritableDuckDBState(DuckDBState):
    """A state in a file of DuckDB; the tables of one lake are in one of its schemas."""

    def __init__(self, con: DuckDBPyConnection, name: str) -> None:
        super().__init__(con, name)
        self._schema = "main"

    def tables(self, schema: str, renamed: Renamed | None) -> list[Table]:
        """As `State.tables`; from now on the tables of this schema are written."""
        self._schema = schema
        return super().tables(schema, renamed)

    def create(self, table: str, types: Mapping[str, str]) -> None:
        """As `WritableState.create`."""
        columns = ", ".join(f"{identifier(name)} {type_}" for name, type_ in types.items())
        self._con.execute(f"CREATE TABLE {self._named(table)} ({columns})")

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """As `WritableState.insert`: many rows with each statement."""
        row = f"({', '.join('?' * len(names))})"
        into = f"INSERT INTO {self._named(table)} ({', '.join(map(identifier, names))}) VALUES "
        for start in range(0, len(rows), ROWS_OF_INSERT):
            batch = rows[start : start + ROWS_OF_INSERT]
            values = [value for row in batch for value in row]
            self._con.execute(into + ", ".join([row] * len(batch)), values)

    def change(self, table: str, old: Row, new: Row | None) -> int:
        """As `WritableState.change`."""
        sql = statement_of_change(self._named(table), old, new, "IS NOT DISTINCT FROM")
        [count] = self._con.execute(sql, [*(new or {}).values(), *old.values()]).fetchone() or (0,)
        return int(count)

    def _named(self, table: str) -> str:
        return qualified(SOURCE, self._schema, table)

    def commit(self) -> None:
        """As `WritableState.commit`."""
        self._con.execute("COMMIT")
        self._con.execute("BEGIN")  # `attached` ends it


ROWS_OF_INSERT = 200
"""How many rows one INSERT has: to prepare a statement takes longer than to insert a row."""


class StagedInDuckDB:
    """Rows in a temporary table."""

    def __init__(
        self,
        con: DuckDBPyConnection,
        name: str,
        columns: Sequence[Column],
        refusals: Sequence[Refusal],
    ) -> None:
        self._con, self._name, self.refusals = con, name, refusals
        self._line = " || chr(9) || ".join(postgres_text(column) for column in columns)

    def chunks(self) -> Iterator[bytes]:
        """As `Staged.chunks`."""
        rows = self._con.execute(f"SELECT {self._line} FROM {identifier(self._name)}")
        while lines := rows.fetchmany(LINES):
            yield "".join(f"{line}\n" for [line] in lines).encode()

    def drop(self) -> None:
        """As `Staged.drop`."""
        self._con.execute(f"DROP TABLE {identifier(self._name)}")
