"""A catalog in a file of SQLite, read by Python's own module.

SQLite has numbers, texts and blobs only, and a column may hold a value of any type. The rows that
are mirrored go through an in-memory database of DuckDB, which has DuckLake's types.
"""

import marshal
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from duckdb import DuckDBPyConnection
from polynya.runtime.errors import Misconfigured
from polynya.types.names import ducklake_type

from ..clients.duckdb import identifier, literal
from .catalog_source import (
    LOCK_SECONDS,
    SOURCE,
    Digests,
    DuckDBState,
    Fingerprint,
    Row,
    Staged,
    Types,
    WrongValue,
    file_state,
    not_a_table,
    state_of,
    statement_of_change,
    statement_of_search,
)
from .mirrored_tables import INLINED, INLINED_ROWS, NO_ID, SHIFT, Table, key_of

# A virtual table has no page of its own. The columns of a view are not read: SQLite would have to
# know its functions.
COMPUTED = """
SELECT name, CASE
  WHEN type = 'view' THEN 'a view'
  WHEN rootpage = 0 THEN 'a virtual table'
  ELSE 'a table with generated columns' END
FROM sqlite_master AS m
WHERE type IN ('table', 'view') AND
  (name LIKE 'ducklake!_%' ESCAPE '!' OR lower(name) = 'polynya_commits')
  AND CASE
  WHEN type = 'view' OR rootpage = 0 THEN true
  ELSE (SELECT max(hidden) FROM pragma_table_xinfo(m.name)) > 0 END
ORDER BY 1"""

TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY 1"

COLUMNS = """
SELECT t.name, c.name, c.type FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c
WHERE t.type = 'table' AND (substr(t.name, 1, 9) = 'ducklake_' OR t.name = 'polynya_commits')
ORDER BY t.name, c.cid"""

# The column may have been promoted, or another one may have its name by now. The one is taken that
# was visible at the first snapshot with the table's schema version.
COLUMNS_OF_INLINED_TABLES = f"""
SELECT i.table_name, c.column_name,
  arg_max(c.column_type, (
    (c.begin_snapshot <= v.made_at AND coalesce(c.end_snapshot > v.made_at, true))::INTEGER,
    c.begin_snapshot))
FROM {SOURCE}.ducklake_inlined_data_tables AS i
JOIN {SOURCE}.ducklake_column AS c ON c.table_id = i.table_id AND c.parent_column IS NULL
LEFT JOIN (
  SELECT t.table_name, min(s.snapshot_id) AS made_at
  FROM {SOURCE}.ducklake_inlined_data_tables AS t
  JOIN {SOURCE}.ducklake_snapshot AS s ON s.schema_version >= t.schema_version
  GROUP BY 1) AS v ON v.table_name = i.table_name
GROUP BY 1, 2"""

OF_COLUMNS = ("ducklake_inlined_data_tables", "ducklake_column", "ducklake_snapshot")
OF_NAMES = ("ducklake_metadata", "ducklake_schema", "ducklake_table")
"""The tables that say what the others hold: all of their rows are read at once."""

NESTED = "STRUCT()"
"""Stands for any nested type, whose values SQLite has as text."""

AFFINITIES = {
    r"INT": "BIGINT",
    r"CHAR|CLOB|TEXT": "VARCHAR",
    r"BLOB|^$": "BLOB",
    r"REAL|FLOA|DOUB": "DOUBLE",
}
"""DuckDB's type of a column, by the words of its declaration; others are texts.
https://www.sqlite.org/datatype3.html#determination_of_column_affinity"""

TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "BOOLEAN"), "BIGINT"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), "BIGINT"),
    "BLOB": "BLOB",
}
"""DuckLake's declaration of a column in SQLite, by DuckDB's type; others are texts."""

ROWS = 16384
"""How many rows are read, or handed to DuckDB, at once."""


class SQLiteCatalog:
    """A file of SQLite."""

    default_schema = "main"

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        # DuckDB does not open it, and must not open another one either.
        self.files: tuple[Path, ...] = (file.absolute(),)
        self._file = file
        self._reading: sqlite3.Connection | None = None
        self._watching: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def fingerprint(self) -> Fingerprint:
        """`PRAGMA data_version` on one connection changes with each commit of any other one, in
        every journal mode. https://www.sqlite.org/pragma.html#pragma_data_version
        """
        # A file that replaces the original, and one that is copied over it, have another identity
        # or time. So has the write-ahead log after a commit: another SQLite in this process
        # (DuckDB's extension has one) frees the locks of this connection when it closes the file,
        # so that a writer may remove the log under it.
        # SQLite has it beside the file itself, not beside a link to it.
        path = self._file.resolve()
        log, stat = file_state(path.with_name(f"{path.name}-wal")), path.stat()
        if self._watching is None or self._identity != (stat.st_dev, stat.st_ino):
            self.close()
            self._watching = self._connected()
            self._identity = (stat.st_dev, stat.st_ino)
        with closing(self._watching.execute("PRAGMA data_version")) as cursor:
            [version] = cursor.fetchone()
        return state_of(stat), log, version

    def close(self) -> None:
        """As `Catalog.close`."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()

    def _connected(self, mode: str = "ro") -> sqlite3.Connection:
        """A connection that may be used by one thread after another."""
        # Without a transaction of its own a statement sees what others commit.
        return sqlite3.connect(
            f"file:{quote(str(self._file.absolute()))}?mode={mode}",
            uri=True,
            timeout=LOCK_SECONDS,
            check_same_thread=False,
            isolation_level=None,
        )

    @contextmanager
    def attached(
        self, con: DuckDBPyConnection, *, to_write: bool = False
    ) -> Iterator["SQLiteState"]:
        """As `Catalog.attached`: one transaction of SQLite, and an empty database in DuckDB."""
        with closing(self._connected("rw" if to_write else "ro")) as reading:
            self._reading = reading
            con.execute(f"ATTACH ':memory:' AS {SOURCE}")
            try:
                # IMMEDIATE takes the lock of the writer now, not at the first change.
                reading.execute("BEGIN IMMEDIATE" if to_write else "BEGIN")
                if computed := reading.execute(COMPUTED).fetchall():
                    raise not_a_table(self.name, *computed[0])
                if to_write and (triggers := reading.execute(TRIGGERS).fetchall()):
                    raise Misconfigured(
                        f"{triggers[0][0]} in {self.name} is a trigger, which a commit would run: "
                        "DuckLake has none; drop it to write through Polynya"
                    )
                yield SQLiteState(con, self.name, reading)
            finally:
                self._reading = None
                con.execute(f"DETACH {SOURCE}")

    def interrupt(self) -> None:
        """As `Catalog.interrupt`."""
        if (reading := self._reading) is not None:
            with suppress(sqlite3.Error):  # it has just been closed
                reading.interrupt()


class SQLiteState(DuckDBState):
    """One state, whose rows are copied to DuckDB when they are needed."""

    def __init__(self, con: DuckDBPyConnection, name: str, reading: sqlite3.Connection) -> None:
        super().__init__(con, name)
        self._reading = reading
        self._wrong: dict[str, list[WrongValue]] = {}
        """The values that DuckDB did not get, by their tables."""
        self._columns: dict[str, list[tuple[str, str]]] = {}
        for table, column, declared in reading.execute(COLUMNS).fetchall():
            self._columns.setdefault(table, []).append((column, duckdb_type_of(declared)))
        for table, columns in self._columns.items():
            types = ", ".join(f"{identifier(name)} {type_}" for name, type_ in columns)
            con.execute(f"CREATE TABLE {SOURCE}.{identifier(table)} ({types})")
        self._complete = {*OF_COLUMNS, *OF_NAMES} & self._columns.keys()
        for table in sorted(self._complete):
            self._load(table, "true")

    def inlined_types(self) -> Types:
        """The types of DuckLake's columns of the same name when the table was made."""
        types: dict[str, dict[str, str]] = {}
        if not {*OF_COLUMNS} <= self._columns.keys():
            return types
        for table, column, type_ in self._con.execute(COLUMNS_OF_INLINED_TABLES).fetchall():
            # Without a type the table is refused, as it is in PostgreSQL: its rows stay texts.
            types.setdefault(table, {})[column] = ducklake_type(type_ or "").duckdb or NESTED
        return types

    def digests(self, schema: str, table: Table) -> Digests:
        """As `State.digests`. Rows are hashed in the file's order, which VACUUM may change."""
        names = [name for name, _ in self._columns[table.name]]
        key = names.index(table.key) if table.key is not None else None
        counts: dict[int, int] = {}
        hashes: dict[int, Any] = {}
        for rows in self._rows(table.name, "true"):
            for number, group in groupby(rows, lambda row: _range_number(row, key)):
                members = list(group)
                if number not in hashes:
                    counts[number], hashes[number] = 0, blake2b(digest_size=16)
                counts[number] += len(members)
                # Version 0: equal values have equal bytes, whatever else refers to them.
                hashes[number].update(marshal.dumps(members, 0))
        return {number: (counts[number], hashes[number].digest()) for number in counts}

    def stage(self, schema: str, table: Table, ranges: Sequence[int] | None, name: str) -> Staged:
        """As `State.stage`."""
        if table.name not in self._complete:
            self._load(table.name, "true" if ranges is None else table.ranges_condition(ranges))
        staged = super().stage(schema, table, ranges, name)
        if table.name not in self._complete:
            self._con.execute(f"DELETE FROM {SOURCE}.{identifier(table.name)}")
            self._wrong.pop(table.name, None)
        return staged

    def has(self, schema: str, table: str, row: Row) -> bool:
        """As `State.has`."""
        sql = statement_of_search(identifier(table), row, "IS")
        return self._reading.execute(sql, [*row.values()]).fetchone() is not None

    def create(self, table: str, types: Mapping[str, str]) -> None:
        """As `WritableState.create`, with the types that DuckLake gives columns in SQLite."""
        columns = ", ".join(
            f"{identifier(name)} {TYPES.get(type_, 'VARCHAR')}" for name, type_ in types.items()
        )
        self._reading.execute(f"CREATE TABLE {identifier(table)} ({columns})")

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """As `WritableState.insert`."""
        columns, values = ", ".join(map(identifier, names)), ", ".join("?" * len(names))
        sql = f"INSERT INTO {identifier(table)} ({columns}) VALUES ({values})"
        self._reading.executemany(sql, rows)

    def change(self, table: str, old: Row, new: Row | None) -> int:
        """As `WritableState.change`."""
        sql = statement_of_change(identifier(table), old, new, "IS")
        return self._reading.execute(sql, [*(new or {}).values(), *old.values()]).rowcount

    def commit(self) -> None:
        """As `WritableState.commit`."""
        self._reading.execute("COMMIT")

    def _load(self, table: str, condition: str) -> None:
        """Hand the rows that meet a condition to DuckDB."""
        columns = self._columns[table]
        for rows in self._rows(table, condition):
            arrays: dict[str, np.ndarray[Any, Any]] = {}
            select = []
            for number, values in enumerate(zip(*rows, strict=True)):
                type_ = columns[number][1]
                try:
                    select.append(_put(arrays, f"c{number}", type_, values))
                except (TypeError, ValueError, OverflowError):
                    fitting = self._checked_values(table, number, rows)
                    select.append(_put(arrays, f"c{number}", type_, fitting))
            self._con.register("rows_of_sqlite", {**arrays, "n": np.arange(len(rows))})
            try:
                self._con.execute(
                    f"INSERT INTO {SOURCE}.{identifier(table)} "
                    f"SELECT {', '.join(select)} FROM rows_of_sqlite"
                )
            finally:
                self._con.unregister("rows_of_sqlite")

    def _checked_values(self, table: str, number: int, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The values of a column; one of another type becomes NULL, and is recorded."""
        column, type_ = self._columns[table][number]
        fitting = [row[number] if _fits(type_, row[number]) else None for row in rows]
        for row, value in zip(rows, fitting, strict=True):
            if value is None and row[number] is not None:
                wrong = self._wrong_value(table, row, column, type_)
                self._wrong.setdefault(table, []).append(wrong)
        return fitting

    def _wrong_value(self, table: str, row: Sequence[Any], column: str, type_: str) -> WrongValue:
        names = [name for name, _ in self._columns[table]]
        values: dict[str, Any] = {
            name: value if isinstance(value, int) else None
            for name, value in zip(names, row, strict=True)
        }
        begin, end, of_table = 0, None, values.get("table_id")
        if is_inlined := INLINED.fullmatch(table):
            of_table = int(is_inlined["table_id"])
        if is_inlined := INLINED_ROWS.fullmatch(table):
            begin, end = values[names[1]] or 0, values[names[2]]
        key = names[0] if is_inlined else key_of(names)
        if key is not None and values[key] is not None:
            place = f"with the {key} {values[key]}"
        else:
            place = self._place(table, column, type_)
        number = _range_number(row, None if key is None else names.index(key))
        return WrongValue(
            number, of_table, begin, end, place, column, f"a value that is no {type_}"
        )

    def _place(self, table: str, column: str, type_: str) -> str:
        """Where the first row with a value of another type is, if it has no id to name it."""
        kinds = ", ".join(map(literal, KINDS[type_]))
        sql = (
            f"SELECT min(rowid) FROM {identifier(table)} "
            f"WHERE typeof({identifier(column)}) NOT IN ({kinds}, 'null')"
        )
        [[rowid]] = self._reading.execute(sql).fetchall()
        return f"with SQLite's rowid {rowid}"

    def _loaded(self, table: Table, ranges: Sequence[int] | None) -> Iterable[WrongValue]:
        wrong = self._wrong.get(table.name, ())
        return (value for value in wrong if ranges is None or value.number in ranges)

    def _rows(self, table: str, condition: str) -> Iterator[list[tuple[Any, ...]]]:
        names = ", ".join(identifier(name) for name, _ in self._columns[table])
        sql = f"SELECT {names} FROM {identifier(table)} WHERE {condition}"
        with closing(self._reading.execute(sql)) as cursor:
            while rows := cursor.fetchmany(ROWS):
                yield rows


def _range_number(row: Sequence[Any], key: int | None) -> int:
    """The number of the range of ids that a row is in, as `Table.range_number`."""
    if key is None:
        return 0
    value = row[key]
    return value >> SHIFT if isinstance(value, int) and value >= 0 else NO_ID


def _put(
    arrays: dict[str, "np.ndarray[Any, Any]"], name: str, type_: str, values: Sequence[Any]
) -> str:
    """Add the values of a column to the arrays that DuckDB reads; returns the column's SQL.

    Raises:
        TypeError, ValueError: a value is not of the type.
    """
    nulls = values.count(None)
    if nulls == len(values):
        return f"CAST(NULL AS {type_})"
    if type_ == "BIGINT":
        if not {*map(type, values)} <= {int, type(None)}:
            raise TypeError
        # DuckDB 1.5.5 misreads masked arrays.
        arrays[name] = np.array([v or 0 for v in values] if nulls else values, dtype=np.int64)
        if not nulls:
            return name
        arrays[f"{name}_null"] = np.array([v is None for v in values])
        return f"CASE WHEN NOT {name}_null THEN {name} END"
    texts = np.empty(len(values), dtype=object)
    if type_ == "VARCHAR" and {*map(type, values)} <= {str, type(None)}:
        texts[:] = values
    else:
        texts[:] = [None if v is None else TEXTS[type_](v) for v in values]
    arrays[name] = texts
    return f"unhex({name})" if type_ == "BLOB" else f"CAST({name} AS {type_})"


def _fits(type_: str, value: Any) -> bool:
    """Whether `_put` accepts a value."""
    if value is None:
        return True
    if type_ == "BIGINT":
        return type(value) is int
    try:
        TEXTS[type_](value)
    except ValueError:
        return False
    return True


def _text(value: float | str | bytes) -> str:
    if isinstance(value, str):
        return value
    return value.decode() if isinstance(value, bytes) else repr(value)


def _hex(value: float | str | bytes) -> str:
    return (value if isinstance(value, bytes) else _text(value).encode()).hex()


def _number(value: float | str | bytes) -> str:
    return repr(float(value))


KINDS = {"BIGINT": ("integer",), "DOUBLE": ("integer", "real"), "VARCHAR": ("text",)}
"""SQLite's names for the values of a type; any value may be read as a BLOB."""

TEXTS = {"VARCHAR": _text, "BLOB": _hex, "DOUBLE": _number}
"""The text from which DuckDB makes a value of a type; `repr` of a number loses nothing."""


def duckdb_type_of(declared: str) -> str:
    """DuckDB's type of a column of SQLite, from its declaration."""
    for words, type_ in AFFINITIES.items():
        if re.search(words, declared, re.IGNORECASE):
            return type_
    return "VARCHAR"
