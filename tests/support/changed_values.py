"""Changes one value of one row of a lake's catalog, in every column of every table in turn."""

import multiprocessing
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
BEGIN = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'%s);
USE lake;
CREATE TABLE bystander(i INTEGER, s VARCHAR);
INSERT INTO bystander SELECT i, 'b' || i FROM range(30) AS r(i);
DELETE FROM bystander WHERE i > 20;
"""


def script(*numbers: str, inlines: bool) -> str:
    """The scripts of several lakes as that of one, after that of another table."""
    texts = (ATTACHED.sub("", script_of(number).read_text()) for number in numbers)
    return BEGIN % ("" if inlines else ", DATA_INLINING_ROW_LIMIT 0") + "".join(texts)


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
INLINED = re.compile(r"ducklake_inlined_(data|delete)_(\d+)")
SYSTEM_COLUMNS = 3


class Change(NamedTuple):
    """A change of one row of the catalog."""

    table: str
    ctid: str
    column: str
    value: str
    """SQL of the new value; `twice` and `gone` are changes of the whole row."""
    about: frozenset[str]
    """The names of the lake's tables that the row is about."""

    @property
    def sql(self) -> str:
        name, where = f"public.{identifier(self.table)}", f"ctid = '{self.ctid}'"
        if self.value == "gone":
            return f"DELETE FROM {name} WHERE {where}"
        if self.value == "twice":
            return f"INSERT INTO {name} SELECT * FROM {name} WHERE {where}"
        return f"UPDATE {name} SET {identifier(self.column)} = {self.value} WHERE {where}"

    def __str__(self) -> str:
        value = self.value if len(self.value) < 60 else f"{self.value[:50]}…"
        return f"{self.table}.{self.column} = {value} in {self.ctid}, about {sorted(self.about)}"


class Changes:
    """The changes of a catalog in PostgreSQL; it is written anew, so that each row has a place."""

    def __init__(self, con: Connection, seed: int) -> None:
        self._con, self._random = con, Random(seed)
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        self._tables = [table for (table,) in con.run(sql)]
        for table in self._tables:
            with _put_back(con, table):
                pass
        [[self._newest]] = con.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
        self._names = dict(con.run("SELECT table_id, table_name FROM ducklake_table"))
        self._owners = {
            key: dict(con.run(f"SELECT {OWNED.get(key, key)}, table_id FROM {table}"))
            for key, table in OWNERS.items()
        }

    def drawn(self) -> list[Change]:
        """All changes, in a random order: first one of each column, then another one of each."""
        changes = [
            change
            for table in self._tables
            for _, rows in sorted(self._groups(table).items(), key=str)
            for change in self._of_row(table, *self._random.choice(rows))
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

    def _groups(self, table: str) -> dict[object, list[tuple[str, dict[str, Any]]]]:
        """The rows by the tables that they are about, and by whether they have ended."""
        rows = self._con.run(f"SELECT ctid::text, * FROM public.{identifier(table)}")
        names = [column["name"] for column in self._con.columns][1:]
        groups: dict[object, list[tuple[str, dict[str, Any]]]] = {}
        for ctid, *values in rows:
            row = dict(zip(names, values, strict=True))
            key = self._about(table, row), row.get("end_snapshot") is not None
            groups.setdefault(key, []).append((ctid, row))
        return groups

    def _of_row(self, table: str, ctid: str, row: dict[str, Any]) -> Iterator[Change]:
        about = self._about(table, row)
        sql = """SELECT column_name, data_type FROM information_schema.columns
          WHERE table_schema = 'public' AND table_name = :name ORDER BY ordinal_position"""
        types = self._con.run(sql, name=table)
        for column, type_ in types[:SYSTEM_COLUMNS] if INLINED.match(table) else types:
            for value in self._values(table, column, type_, row[column]):
                also = self._about(table, {column: int(value)}) if value.isdigit() else frozenset()
                yield Change(table, ctid, column, value, about | also)
        yield Change(table, ctid, "row", "twice", about)
        yield Change(table, ctid, "row", "gone", about)

    def _values(self, table: str, column: str, type_: str, value: Any) -> list[str]:
        name = identifier(column)
        sql = f"SELECT DISTINCT {name}::text FROM public.{identifier(table)} ORDER BY 1 LIMIT 50"
        texts = [text for (text,) in self._con.run(sql) if text not in (None, str(value))]
        of_another_row = self._random.sample(texts, min(1, len(texts)))
        match type_:
            case "bigint":
                values = [*_numbers(column, value, self._newest), *of_another_row]
            case "character varying":
                values = [*_texts(value), *map(literal, of_another_row)]
            case "boolean":
                values = ["NULL", "false" if value else "true"]
            case "timestamp with time zone":
                values = ["NULL", "'infinity'", "'0044-01-01 00:00:00+00 BC'"]
            case _:
                values = ["NULL", *(f"{literal(text)}::{type_}" for text in of_another_row)]
        own = "NULL" if value is None else literal(value) if isinstance(value, str) else str(value)
        return [text for text in dict.fromkeys(values) if text != own]

    def _about(self, table: str, row: dict[str, Any]) -> frozenset[str]:
        if table in OF_ALL_TABLES:
            return frozenset(self._names.values())
        ids = {row.get("table_id"), row.get("object_id")}
        if inlined := INLINED.match(table):
            ids.add(int(inlined[2]))
        ids |= {owners.get(row[key]) for key, owners in self._owners.items() if key in row}
        return frozenset(self._names[number] for number in ids if number in self._names)


OWNED = {"file_id": "data_file_id"}


def _numbers(column: str, value: int | None, newest: int) -> list[str]:
    values = ["NULL", "0", "-1", HUGE]
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


@contextmanager
def changed(con: Connection, change: Change) -> Iterator[bool]:
    """Change the catalog within the block; yields False if the database does not allow it."""
    with _put_back(con, change.table):
        try:
            con.run(change.sql)
        except DatabaseError:
            yield False
        else:
            yield True


@contextmanager
def _put_back(con: Connection, table: str) -> Iterator[None]:
    """Write the rows of a table again after the block, in the same places."""
    name = f"public.{identifier(table)}"
    con.run(f"CREATE TEMP TABLE saved AS TABLE {name}")
    try:
        yield
    finally:
        # A DuckDB that has crashed within its transaction keeps a lock.
        con.run(
            "SELECT pg_terminate_backend(pid) FROM pg_locks "
            "WHERE relation = :name::regclass AND pid <> pg_backend_pid()",
            name=name,
        )
        con.run(f"TRUNCATE {name}")
        con.run(f"INSERT INTO {name} TABLE saved")
        con.run("DROP TABLE saved")


# ---------------------------------------------------------------- what DuckLake reads

Read = tuple[str, int | None]
"""A table, and a snapshot or None for the newest."""
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

    def read(self, reads: list[Read]) -> dict[Read, Truth]:
        """What each read gives; the lake is attached anew."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs, *self._lake), daemon=True)
            self._process.start()
            theirs.close()
        self._pipe.send(reads)
        truths = [Truth(error="DuckDB does not answer")] * len(reads)
        with suppress(EOFError):
            if self._pipe.poll(SECONDS):
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
    with suppress(EOFError):
        while True:
            reads = pipe.recv()
            try:
                attach(con, lake)
            except Exception as error:
                pipe.send([Truth(error=str(error)) for _ in reads])
                continue
            pipe.send([_truth(con, *read) for read in reads])
            with suppress(Exception):
                con.execute("DETACH lake")


def _truth(con: DuckDBPyConnection, table: str, snapshot_id: int | None) -> Truth:
    at = "" if snapshot_id is None else f" AT (VERSION => {snapshot_id})"
    source = f"lake.main.{duckdb.identifier(table)}{at}"
    try:
        columns = columns_of(con, source)
        types = {name: str(type_) for name, type_ in columns.items()}
        return Truth(canonical(con, source, columns), types)
    except Exception as error:
        return Truth(error=str(error))
