"""Changes values of a lake's catalog: in every column of every table, alone and two together."""

import multiprocessing
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from random import Random
from typing import Any, NamedTuple

from duckdb import DuckDBPyConnection
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, identifier, literal
from polynya_local.clients import duckdb
from polynya_local.clients.canonical import Canonical, canonical, columns_of
from polynya_local.clients.native import Lake, attach

from tests.support.lakes import script_of

# ---------------------------------------------------------------- the lake

ATTACHED = re.compile(r"(?m)^(?:ATTACH|USE) .*\n")
BYSTANDER = """
CREATE TABLE lake.main.bystander(i INTEGER, s VARCHAR);
INSERT INTO lake.main.bystander SELECT i, 'b' || i FROM range(30) AS r(i);
DELETE FROM lake.main.bystander WHERE i > 20;
"""
BEGIN = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'%s);
USE lake;
"""


def script(*numbers: str, inlines: bool) -> str:
    """The scripts of several lakes as that of one, after that of another table."""
    texts = (ATTACHED.sub("", script_of(number).read_text()) for number in numbers)
    begin = BEGIN % ("" if inlines else ", DATA_INLINING_ROW_LIMIT 0")
    return begin + BYSTANDER + "".join(texts)


def script_beside_another(name: str) -> str:
    """The script of a lake, then another table: scripts name their snapshots by id."""
    return script_of(name).read_text() + BYSTANDER


# ---------------------------------------------------------------- the changes

HUGE = "9223372036854775807"
OF_SNAPSHOTS = {"begin_snapshot", "end_snapshot", "partial_max", "snapshot_id"}
OF_ALL_TABLES = {
    *("ducklake_snapshot", "ducklake_snapshot_changes", "ducklake_metadata", "ducklake_schema"),
}
OWNERS = {
    "data_file_id": "ducklake_data_file",
    "file_id": "ducklake_data_file",
    "mapping_id": "ducklake_column_mapping",
    "partition_id": "ducklake_partition_info",
    "sort_id": "ducklake_sort_info",
}
"""Where the table of a row is that has an id, by the id's column."""
OWNED = {"file_id": "data_file_id"}
INLINED = re.compile(r"ducklake_inlined_(data|delete)_(\d+)")
SYSTEM_COLUMNS = 3
RENAMED = "_ducklake_"
"""The prefix that system columns of inlined rows have in 1.1 alone."""

Name = tuple[str, str]
"""The namespace and the name of a table of the lake."""

TIMES = {"twice": 1, "many": 3000}
LATER = 100_000
"""How much greater the id of a copied row is, where ids are unique."""


class Change(NamedTuple):
    """A change of one row of the catalog, perhaps with another one."""

    table: str
    ctid: str
    column: str
    value: str
    """SQL of the new value; `twice`, `many`, `again` and `gone` are changes of the whole row."""
    about: frozenset[Name]
    """The tables of the lake that the row is about."""
    other: "Change | None" = None

    @property
    def parts(self) -> "list[Change]":
        return [self, *(self.other.parts if self.other else [])]

    @property
    def names(self) -> frozenset[Name]:
        """The tables of the lake that it is about, with the other change."""
        return self.about | (self.other.names if self.other else frozenset())

    def sql(self, name: str, column: str) -> str:
        """The statement.

        Args:
            name: of the catalog's table, quoted.
            column: its name there.
        """
        where = f"ctid = '{self.ctid}'"
        if self.value == "gone":
            return f"DELETE FROM {name} WHERE {where}"
        if self.value in TIMES:
            times = f"generate_series(1, {TIMES[self.value]})"
            return f"INSERT INTO {name} SELECT r.* FROM {name} AS r, {times} WHERE r.{where}"
        if self.value == "again":
            id_ = f"jsonb_build_object({literal(column)}, {identifier(column)} + {LATER})"
            row = f"SELECT (jsonb_populate_record(r, {id_})).*"
            return f"INSERT INTO {name} {row} FROM {name} AS r WHERE r.{where}"
        return f"UPDATE {name} SET {identifier(column)} = {self.value} WHERE {where}"

    def __str__(self) -> str:
        value = self.value if len(self.value) < 60 else f"{self.value[:50]}…"
        line = f"{self.table}.{self.column} = {value} in {self.ctid}, about {sorted(self.about)}"
        return f"{line}; {self.other}" if self.other else line


NAMES = """
SELECT t.table_id, s.schema_name, t.table_name
FROM ducklake_table AS t JOIN ducklake_schema AS s USING (schema_id) ORDER BY t.begin_snapshot"""
COLUMNS = """
SELECT column_name, data_type FROM information_schema.columns
WHERE table_schema = :schema AND table_name = :name ORDER BY ordinal_position"""
TABLES = r"""
SELECT tablename FROM pg_tables
WHERE schemaname = :schema AND tablename ~ '^(ducklake|polynya)_' ORDER BY 1"""


class Catalog:
    """A catalog in PostgreSQL whose rows have places: the same in each of its copies."""

    def __init__(self, con: Connection, schema: str) -> None:
        self.con, self.schema = con, schema
        con.run(f"SET search_path TO {identifier(schema)}")
        self.tables = [table for (table,) in con.run(TABLES, schema=schema)]
        for table in self.tables:
            name = self.qualified(table)
            con.run(f"CREATE TEMP TABLE saved AS SELECT * FROM {name} ORDER BY 1, ctid")
            con.run(f"TRUNCATE {name}")
            con.run(f"INSERT INTO {name} TABLE saved")
            con.run("DROP TABLE saved")

    def qualified(self, table: str) -> str:
        return f"{identifier(self.schema)}.{identifier(table)}"

    def columns(self, table: str) -> dict[str, str]:
        """The types of the columns."""
        return dict(self.con.run(COLUMNS, schema=self.schema, name=table))

    @contextmanager
    def changed(self, change: Change) -> Iterator[bool]:
        """Change rows within the block; yields False if the database does not allow it."""
        with self.put_back({part.table for part in change.parts}):
            yield self.apply(change)

    def apply(self, change: Change) -> bool:
        """Change rows, without those that another version of the catalog lacks.

        Returns:
            False if the database does not allow it.
        """
        try:
            for part in change.parts:
                columns = [*self.columns(part.table)]
                names = (part.column, RENAMED + part.column, part.column.removeprefix(RENAMED))
                column = next((name for name in names if name in columns), None)
                if column or (part.column == "row" and columns):
                    self.con.run(part.sql(self.qualified(part.table), column or columns[0]))
        except DatabaseError:
            return False
        return True

    @contextmanager
    def put_back(self, tables: Collection[str] = ()) -> Iterator[None]:
        """Write tables again after the block, in the same places.

        Args:
            tables: those to write; none: all, and those that the block has made are dropped.
        """
        with ExitStack() as stack:
            for table in self.tables:
                if not tables or table in tables:
                    stack.enter_context(self._put_back(table))
            yield
        if not tables:
            for (table,) in self.con.run(TABLES, schema=self.schema):
                if table not in self.tables:
                    self.con.run(f"DROP TABLE {self.qualified(table)}")

    @contextmanager
    def _put_back(self, table: str) -> Iterator[None]:
        """Write the rows of a table again after the block, in the same places."""
        name, saved = self.qualified(table), f"pg_temp.{identifier('saved_' + table)}"
        self.con.run(f"CREATE TEMP TABLE {identifier('saved_' + table)} AS TABLE {name}")
        try:
            yield
        finally:
            # A DuckDB that has crashed within its transaction keeps a lock.
            self.con.run(
                "SELECT pg_terminate_backend(pid) FROM pg_locks "
                "WHERE relation = :name::regclass AND pid <> pg_backend_pid()",
                name=name,
            )
            self.con.run(f"TRUNCATE {name}")
            self.con.run(f"INSERT INTO {name} TABLE {saved}")
            self.con.run(f"DROP TABLE {saved}")


class Changes:
    """The changes of a catalog."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self._catalog, self._con, self._random = catalog, catalog.con, Random(seed)
        [[self._newest]] = self._con.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
        self._names: dict[int, Name] = {
            table_id: (namespace, name) for table_id, namespace, name in self._con.run(NAMES)
        }
        self._owners = {
            key: dict(self._con.run(f"SELECT {OWNED.get(key, key)}, table_id FROM {table}"))
            for key, table in OWNERS.items()
        }

    def drawn(self) -> list[Change]:
        """All changes, in a random order: first one of each column, then another one of each."""
        changes = [
            change
            for table in self._catalog.tables
            if table.startswith("ducklake_")
            for _, rows in sorted(self._groups(table).items())
            for change in self._changes_of_row(table, *self._random.choice(rows))
        ]
        self._random.shuffle(changes)
        # A value occurs once for each group of rows: the second time comes after all others.
        for key in ((lambda c: (c.table, c.column, c.value)), (lambda c: (c.table, c.column))):
            times: Counter[object] = Counter()
            ordered = []
            for change in changes:
                ordered.append((times[key(change)], len(ordered), change))
                times[key(change)] += 1
            changes = [change for _, _, change in sorted(ordered)]
        return changes

    def drawn_pairs(self) -> Iterator[Change]:
        """Two changes of rows that are about the same tables, without an end."""
        changes = self.drawn()
        together: dict[frozenset[Name], list[Change]] = {}
        for change in changes:
            together.setdefault(change.about, []).append(change)
        while True:
            first = self._random.choice(changes)
            second = self._random.choice(together[first.about])
            # A change gives its row another place.
            if first[:2] != second[:2]:
                yield first._replace(other=second)

    def _groups(self, table: str) -> dict[tuple[Any, bool], list[tuple[str, dict[str, Any]]]]:
        """The rows by the tables that they are about, and by whether they have ended."""
        names = [*self._columns(table)]
        columns = ", ".join(map(identifier, names))
        source = self._catalog.qualified(table)
        rows = self._con.run(f"SELECT ctid::text, {columns} FROM {source}")
        groups: dict[tuple[Any, bool], list[tuple[str, dict[str, Any]]]] = {}
        for ctid, *values in rows:
            row = dict(zip(names, values, strict=True))
            key = tuple(sorted(self._about(table, row))), row.get("end_snapshot") is not None
            groups.setdefault(key, []).append((ctid, row))
        return groups

    def _columns(self, table: str) -> dict[str, str]:
        """The types of the columns whose values are changed: of inlined rows, no values."""
        columns = [*self._catalog.columns(table).items()]
        return dict(columns[:SYSTEM_COLUMNS] if INLINED.match(table) else columns)

    def _changes_of_row(self, table: str, ctid: str, row: dict[str, Any]) -> Iterator[Change]:
        about = self._about(table, row)
        for column, type_ in self._columns(table).items():
            for value in self._values(table, column, type_, row[column]):
                also = self._about(table, {column: int(value)}) if value.isdigit() else frozenset()
                if table == "ducklake_table" and column in ("table_name", "table_uuid"):
                    also = frozenset(self._names.values())
                yield Change(table, ctid, column, value, about | also)
        for value in ("twice", "many", "again", "gone"):
            yield Change(table, ctid, "row", value, about)

    def _values(self, table: str, column: str, type_: str, value: Any) -> list[str]:
        name = identifier(column)
        source = self._catalog.qualified(table)
        sql = f"SELECT DISTINCT {name}::text FROM {source} ORDER BY 1 LIMIT 50"
        texts = [text for (text,) in self._con.run(sql) if text not in (None, str(value))]
        of_another_row = self._random.sample(texts, min(1, len(texts)))
        match type_:
            case "bigint":
                values = [*_numbers(column, value, self._newest), *of_another_row]
            case "character varying":
                hostile = self._random.sample(HOSTILE, 2)
                values = [*_texts(value), *hostile, *map(literal, of_another_row)]
            case "boolean":
                values = ["NULL", "false" if value else "true"]
            case "timestamp with time zone":
                values = ["NULL", "'infinity'", "'-infinity'", "'0044-01-01 00:00:00+00 BC'"]
            case _:
                values = ["NULL", *(f"{literal(text)}::{type_}" for text in of_another_row)]
        own = "NULL" if value is None else literal(value) if isinstance(value, str) else str(value)
        return [text for text in dict.fromkeys(values) if text != own]

    def _about(self, table: str, row: dict[str, Any]) -> frozenset[Name]:
        if table in OF_ALL_TABLES:
            return frozenset(self._names.values())
        ids = {row.get("table_id"), row.get("object_id")}
        if inlined := INLINED.match(table):
            ids.add(int(inlined[2]))
        ids |= {owners.get(row[key]) for key, owners in self._owners.items() if key in row}
        return frozenset(self._names[number] for number in ids if number in self._names)


def _numbers(column: str, value: int | None, newest: int) -> list[str]:
    values = ["NULL", "0", "-1", HUGE, f"-{HUGE} - 1", "2147483648"]
    if value is not None:
        values += [str(value + 1), str(value - 1)]
    if column in OF_SNAPSHOTS:
        values += ["1", str(newest), str(newest + 1000)]
    return values


def _texts(value: str | None) -> list[str]:
    texts = ["", "nan", "x'y\"z\\", '{"a":', "9" * 40, "../../outside/x", "-1", "None", "é" * 300]
    if value is not None:
        texts += [value.upper(), f"{value}x", value[:-1]]
    return ["NULL", *map(literal, texts)]


HOSTILE = [
    *(
        "repeat('x', 1000000)",
        "repeat('{', 100000)",
        "repeat('[', 100000)",
        "repeat('((', 2000)",
        "chr(1) || 'x'",
    ),
    *(r"E'\\x00'", "chr(55296 - 1)", "chr(1114111)", "' '", "E'\\n'", "'%00'", "'%2e%2e/x'"),
    *(literal(text) for text in ("inf", "-Infinity", "1e400", "-0.0", "+1", " 1", "1_000", "0x1F")),
    *(literal(text) for text in ("infinity", "epoch", "now", "today", "294277-01-01", "24:00:00")),
    *(literal(text) for text in ("/etc/passwd", "file:///etc/passwd", "s3://other/x.parquet")),
    *(literal(text) for text in ("http://127.0.0.1:1/x", "s3://", "/", "..", "a/../../b", "a//b")),
    *(
        literal(text)
        for text in ("int64", "struct", "list", "map", "decimal(99,1)", "decimal(2,5)")
    ),
    *(literal(text) for text in ("bucket(0)", "bucket(-1)", "bucket(99999999999)", "identity()")),
    "repeat('9', 5000)",
    "'inlined_insert:' || repeat('9', 5000)",
    "'bucket(' || repeat('9', 5000) || ')'",
    *(literal(text) for text in ("altered_table:", "dropped_table:1", 'created_table:"a"."b', ",")),
]
"""SQL of texts that are of some meaning somewhere: sizes, paths, numbers, types, changes."""


# ---------------------------------------------------------------- what DuckLake reads


class Read(NamedTuple):
    """A read of a table, at a snapshot or the newest."""

    table: Name
    snapshot_id: int | None
    native: Name
    """The name that it had then."""


SECONDS = 60
FATAL = re.compile("INTERNAL|invalidated|does not answer")
"""After such an error a DuckDB reads nothing more."""


@dataclass(frozen=True)
class Truth:
    """The rows of a read, with the names and types of the columns, or why there are none."""

    rows: Canonical | None = None
    types: dict[str, str] = field(default_factory=dict)
    error: str = ""


class NativeProcess:
    """DuckLake in a process of its own: a crash, or a hang, is the error of a read."""

    def __init__(self, lake: Lake, s3_endpoint: str) -> None:
        self._lake = lake, s3_endpoint
        self._process: multiprocessing.process.BaseProcess | None = None

    def read(self, reads: list[Read], seconds: int = SECONDS) -> dict[Read, Truth]:
        """What each read gives; the lake is attached anew.

        Args:
            seconds: after so many DuckDB is taken to hang.
        """
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs, *self._lake), daemon=True)
            self._process.start()
            theirs.close()
        self._pipe.send(reads)
        truths = [Truth(error="DuckDB does not answer")] * len(reads)
        with suppress(EOFError):
            if self._pipe.poll(seconds):
                truths = self._pipe.recv()
        if any(FATAL.search(truth.error) for truth in truths):
            self.close()
        return dict(zip(reads, truths, strict=True))

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _work(pipe: Pipe, lake: Lake, s3_endpoint: str) -> None:
    con = duckdb.connect(duckdb.LAKE, s3_endpoint)
    # It would read a file whose size is wrong in the catalog, if it had read it before.
    con.execute("SET enable_external_file_cache = false")
    with suppress(EOFError):
        while True:
            reads = pipe.recv()
            try:
                attach(con, lake)
            except Exception as error:
                pipe.send([Truth(error=str(error)) for _ in reads])
                continue
            pipe.send([_truth(con, read) for read in reads])
            with suppress(Exception):
                con.execute("DETACH lake")


def _truth(con: DuckDBPyConnection, read: Read) -> Truth:
    at = "" if read.snapshot_id is None else f" AT (VERSION => {read.snapshot_id})"
    source = f"lake.{'.'.join(map(duckdb.identifier, read.native))}{at}"
    try:
        columns = columns_of(con, source)
        types = {name: str(type_) for name, type_ in columns.items()}
        return Truth(canonical(con, source, columns), types)
    except Exception as error:
        return Truth(error=str(error))
