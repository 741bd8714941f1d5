"""The mirror of a catalog in PostgreSQL: it has what DuckLake itself writes into a PostgreSQL, and
misses no change."""

import hashlib
import logging
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import duckdb
import pytest
from duckdb import DuckDBPyConnection
from polynya.runtime.errors import Misconfigured
from polynya_local.clients.duckdb import Process, connect, identifier, literal
from polynya_local.lakes import mirror as module
from polynya_local.lakes.catalogs import DuckDBCatalog, PostgresCatalog, SQLiteCatalog
from polynya_local.lakes.mirror import Mirror
from polynya_local.processes.postgres import Database

from tests.support import file_lakes
from tests.support.catalog_versions import WRITTEN, restored, to_1_1
from tests.support.file_lakes import KINDS, FileLake, query

CATALOGS = {"duckdb": DuckDBCatalog, "sqlite": SQLiteCatalog}

COLUMNS = """
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
  AND c.relname NOT IN ('polynya_changed_uploads', 'polynya_refused')
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1, a.attnum"""

Tables = dict[str, tuple[list[tuple[str, str]], list[list[str]]]]
"""Columns with types, and sorted rows as PostgreSQL's text, by table."""


def tables_of(database: Database) -> Tables:
    columns: dict[str, list[tuple[str, str]]] = {}
    with closing(database.connect()) as con:
        for table, name, type_ in con.run(COLUMNS):
            columns.setdefault(table, []).append((name, type_))
        return {table: (names, rows_of(con, table, names)) for table, names in columns.items()}


def rows_of(con, table: str, columns) -> list[list[str]]:
    texts = ", ".join(f"{identifier(name)}::text" for name, _ in columns)
    return sorted(con.run(f"SELECT {texts} FROM {identifier(table)}"), key=repr)


@pytest.fixture
def mirrors(postgres_server):
    """Makes mirrors, which are closed at the end."""
    made = []

    def mirror(catalog, schema: str = "main") -> tuple[Mirror, Database]:
        database = postgres_server.create_database(f"mirror_{len(made)}_{random.getrandbits(32)}")
        made.append(Mirror(catalog, schema, database, None))
        return made[-1], database

    yield mirror
    for one in made:
        one.close()


def catalog_of(lake: FileLake):
    return CATALOGS[lake.kind](lake.file)


# DuckLake loses the quotes of texts within structs when it writes to PostgreSQL or SQLite.
UNLIKE_NATIVE = {("duckdb", "st")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", ["13", "16"])
def test_a_mirror_is_as_ducklake_writes_it_into_postgresql(number, kind, lake, mirrors, tmp_path):
    native = tables_of(lake(f"{number}-1.0").database)
    mirror, database = mirrors(catalog_of(file_lakes.written(number, kind, tmp_path / "lake")))
    mirror.refresh()
    found = tables_of(database)
    assert {name: columns for name, (columns, _) in found.items()} == {
        name: columns for name, (columns, _) in native.items()
    }
    inlined = [name for name in native if name.startswith("ducklake_inlined_")]
    assert inlined
    for table in inlined:
        kept = [
            n for n, (name, _) in enumerate(native[table][0]) if (kind, name) not in UNLIKE_NATIVE
        ]
        assert [[row[n] for n in kept] for row in found[table][1]] == [
            [row[n] for n in kept] for row in native[table][1]
        ]


# A change of each kind that a catalog can have.
CHANGES = (
    "INSERT INTO t (i, s) VALUES ({n}, 'small')",
    "INSERT INTO t (i, s) SELECT i, 'large' FROM range({n}, {n} + 50) AS r(i)",
    "DELETE FROM t WHERE i % 7 = {n} % 7",
    "UPDATE t SET s = 'changed {n}' WHERE i % 5 = {n} % 5",
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
    "CALL ducklake_expire_snapshots('lake', older_than => now() - INTERVAL 1 MILLISECOND)",
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "CALL lake.set_option('target_file_size', '{n}MB')",
    "COMMENT ON TABLE t IS 'comment {n}'",
    "ALTER TABLE t ADD COLUMN c{n} INTEGER DEFAULT {n}",
    "CREATE TABLE t{n} (x DOUBLE, y DATE)",
    "CREATE VIEW v{n} AS SELECT {n} AS x",
    "CHECKPOINT lake",
)
STEPS = 25


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_no_change_of_a_random_history_is_missed(seed, kind, mirrors, tmp_path):
    draws = random.Random(seed)
    lake = file_lakes.empty(kind, tmp_path / "lake")
    with file_lakes.writing(lake) as con:
        con.execute("CREATE TABLE t (i BIGINT, s VARCHAR)")
    mirror, database = mirrors(catalog_of(lake))
    mirror.refresh()
    done = 0
    for n in range(STEPS):
        statement = draws.choice(CHANGES).format(n=n)
        # DuckLake refuses some, such as a flush after ADD COLUMN.
        with file_lakes.writing(lake) as con:
            try:
                con.execute(statement)
                done += 1
            except duckdb.Error:
                # Without this the file stays open in this process, after the connection is closed.
                con.execute("USE memory")
                con.execute("DETACH lake")
        before = contents(lake)
        mirror.refresh()
        assert mirror.refresh() == 0, "nothing has changed since"
        assert contents(lake) == before, "reading has changed the original"
        whole, copy = mirrors(catalog_of(lake))
        whole.refresh()
        assert tables_of(database) == tables_of(copy), f"step {n}: {statement}"
    assert done > STEPS / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_becomes_a_view_is_not_read(kind, mirrors, tmp_path):
    """The file is checked whenever it is read, not only at the start."""
    lake = file_lakes.empty(kind, tmp_path / "lake")
    mirror, database = mirrors(catalog_of(lake))
    mirror.refresh()
    before = tables_of(database)
    view = "CREATE VIEW ducklake_tag AS SELECT * FROM range(1000000000000)"
    file_lakes.change_tables(lake, f"DROP TABLE ducklake_tag; {view}")
    with pytest.raises(Misconfigured, match=r"ducklake_tag in .* is a view"):
        mirror.refresh()
    assert tables_of(database) == before


NOT_HOSTILE = """
CREATE TABLE "generated always as" (i INTEGER);
CREATE VIEW mine AS SELECT * FROM ducklake_table;
ALTER TABLE ducklake_tag ADD COLUMN "generated always" VARCHAR DEFAULT 'generated always'"""


@pytest.mark.parametrize("kind", KINDS)
def test_what_else_is_in_a_file_does_not_matter(kind, mirrors, tmp_path):
    lake = file_lakes.empty(kind, tmp_path / "lake")
    file_lakes.change_tables(lake, NOT_HOSTILE)
    mirror, database = mirrors(catalog_of(lake))
    mirror.refresh()
    assert {name.partition("_")[0] for name in tables_of(database)} == {"ducklake"}


def test_what_sqlite_writes_into_its_log_is_seen(mirrors, tmp_path):
    """With a write-ahead log a commit leaves the file itself as it is."""
    lake = file_lakes.empty("sqlite", tmp_path / "lake")
    with closing(sqlite3.connect(lake.file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        mirror, database = mirrors(catalog_of(lake))
        mirror.refresh()
        for n in range(3):
            before = (lake.file.stat().st_mtime_ns, contents(lake)[lake.file.name])
            writer.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'created_by'", [n])
            assert (lake.file.stat().st_mtime_ns, contents(lake)[lake.file.name]) == before
            assert (mirror.refresh(), mirror.refresh()) == (1, 0)
            rows = tables_of(database)["ducklake_metadata"][1]
            assert ["created_by", str(n), None, None] in rows


def test_a_file_that_replaces_another_is_seen(mirrors, tmp_path):
    """As a copy over it, and as another file of the same name, with as many commits."""
    for kind in KINDS:
        lake = file_lakes.empty(kind, tmp_path / kind)
        other = file_lakes.empty(kind, tmp_path / f"other-{kind}")
        mirror, database = mirrors(catalog_of(lake))
        mirror.refresh()
        shutil.copyfile(other.file, lake.file)
        assert mirror.refresh()
        assert data_path_in(database) == f"{other.data}/"
        third = file_lakes.empty(kind, tmp_path / f"third-{kind}")
        third.file.replace(lake.file)
        assert mirror.refresh()
        assert data_path_in(database) == f"{third.data}/"


# A commit that is in the write-ahead log only: the process ends without a checkpoint.
KILLED = """
import os, sys
from pathlib import Path
from tests.support.file_lakes import FileLake, writing
with writing(FileLake("lake", sys.argv[1], Path(sys.argv[2]))) as con:
    con.execute("CREATE TABLE killed (i INTEGER)")
    os._exit(0)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_lake_behind_a_link_is_read_and_written(kind, mirrors, tmp_path):
    """The database has its logs beside the file, and not beside the link."""
    lake = file_lakes.empty(kind, tmp_path / "lake")
    link = tmp_path / f"link.{kind}"
    link.symlink_to(lake.file)
    mirror, database = mirrors(CATALOGS[kind](link))
    mirror.refresh()
    subprocess.run([sys.executable, "-c", KILLED, kind, str(lake.folder)], check=True)
    mirror.refresh()
    assert [row[5] for row in tables_of(database)["ducklake_table"][1]] == ["killed"]
    commit(mirror, database, "UPDATE ducklake_table SET table_name = 'changed'")
    assert query(lake, "SELECT table_name FROM ducklake_table") == [("changed",)]


def commit(mirror: Mirror, database: Database, statement: str) -> None:
    """What a commit of a client does in the mirror, and then in the file."""
    with closing(database.connect()) as con, mirror.writing():
        con.run("BEGIN")
        con.run(statement)
        mirror.write_back(con)
        con.run("COMMIT")


def test_lakes_of_one_duckdb_file_are_read_and_written_at_once(mirrors, tmp_path):
    """DuckDB opens a file once in a process, which loses its lock when it closes the file."""
    file = tmp_path / "lakes.duckdb"
    schemas = ("a", "b")
    with closing(connect(file_lakes.EXTENSIONS)) as con:
        for schema in schemas:
            path = literal(str(tmp_path / schema))
            con.execute(
                f"ATTACH {literal(f'ducklake:{file}')} AS lake "
                f"(DATA_PATH {path}, METADATA_SCHEMA '{schema}')"
            )
            con.execute("CREATE TABLE lake.t (i INTEGER)")
            con.execute("DETACH lake")
    served = [mirrors(DuckDBCatalog(file), schema) for schema in schemas]
    for mirror, _ in served:
        mirror.refresh()
    count = 3

    def commits(mirror: Mirror, database: Database) -> None:
        for n in range(count):
            commit(mirror, database, f"UPDATE ducklake_table SET table_id = {100 + n}")
            mirror.refresh()

    with ThreadPoolExecutor(len(served)) as threads:
        for done in [threads.submit(commits, *one) for one in served]:
            done.result()
    with closing(connect()) as con:
        con.execute(f"ATTACH {literal(str(file))} AS file (READ_ONLY)")
        for schema in schemas:
            ids = con.execute(f"SELECT table_id FROM file.{schema}.ducklake_table").fetchall()
            assert ids == [(99 + count,)]


VALUES = {"text": "'a/b'", "bytes": "x'ff'", "number": "1.5"}


@pytest.mark.parametrize(
    "tables", ["ducklake_table_stats", pytest.param("ducklake_*", marks=pytest.mark.slow)]
)
def test_a_wrong_value_anywhere_in_sqlite_is_named(tables, mirrors, tmp_path):
    """It refuses a table, or the lake where the row does not say whose it is; all else follows."""
    lake = file_lakes.written("09", "sqlite", tmp_path / "lake")
    mirror, database = mirrors(catalog_of(lake))
    mirror.refresh()
    sound = tables_of(database)
    columns = query(
        lake,
        "SELECT t.name, c.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c "
        f"WHERE t.type = 'table' AND t.name GLOB '{tables}'",
    )
    named = 0
    with closing(sqlite3.connect(lake.file, isolation_level=None)) as con:
        for table, column in columns:
            rows = con.execute(f'SELECT rowid, "{column}" FROM "{table}" LIMIT 1').fetchall()
            for rowid, value in rows:
                for wrong in VALUES.values():
                    change = f'UPDATE "{table}" SET "{column}" = '
                    try:
                        con.execute(f"{change}{wrong} WHERE rowid = {rowid}")
                    except sqlite3.IntegrityError:
                        continue  # a primary key
                    words = f"{table} has a value that is no "
                    try:
                        mirror.refresh()
                    except Misconfigured as error:
                        assert words in str(error) and f" in its column {column}," in str(error)
                        named += 1
                    else:
                        reasons = database.run("SELECT reason FROM polynya_refused")
                        for [reason] in reasons:
                            assert words in reason and f" in its column {column}," in reason
                            named += 1
                    con.execute(f"{change}? WHERE rowid = {rowid}", [value])
                    mirror.refresh()
                    assert database.run("SELECT * FROM polynya_refused") == []
        assert tables_of(database) == sound
    assert named > len(VALUES)


def data_path_in(database: Database) -> str:
    [[path]] = database.run("SELECT value FROM ducklake_metadata WHERE key = 'data_path'")
    return path


def contents(lake: FileLake) -> dict[str, str]:
    files = sorted(path for path in lake.folder.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


OTHER_VERSIONS = [
    pytest.param(version, marks=[pytest.mark.slow] * (version not in (WRITTEN[0], "1.1")))
    for version in (*WRITTEN, "1.1")
]


@pytest.mark.parametrize("version", OTHER_VERSIONS)
def test_catalogs_of_other_versions_are_mirrored(version, postgres_server, moto, mirrors, tmp_path):
    lake = restored(WRITTEN[-1] if version == "1.1" else version, "-file", postgres_server, moto)
    if version == "1.1":
        to_1_1(lake)
    file = tmp_path / "lake.duckdb"
    as_duckdb_file(lake.database, lake.metadata_schema, file)
    mirror, database = mirrors(DuckDBCatalog(file))
    mirror.refresh()
    native, found = tables_of(lake.database), tables_of(database)
    for table, (columns, rows) in native.items():
        if table.startswith("ducklake_inlined_data_") and table[-1].isdecimal():
            # The file has texts where DuckDB would have its own types.
            assert len(found[table][1]) == len(rows)
        else:
            assert found[table] == (columns, rows)


def as_duckdb_file(database: Database, schema: str, file) -> None:
    """Copy a catalog into a file, with the types that DuckLake gives its columns there."""
    with closing(connect(("postgres_scanner",))) as con:
        con.execute(f"ATTACH {literal(database.libpq)} AS pg (TYPE postgres, READ_ONLY)")
        con.execute(f"ATTACH {literal(str(file))} AS file")
        for table, columns in columns_by_table(con, schema).items():
            values = ", ".join(
                f"decode({identifier(name)}) AS {identifier(name)}"
                if type_ == "BLOB"
                else identifier(name)
                for name, type_ in columns
            )
            name = identifier(table)
            con.execute(f"CREATE TABLE file.{name} AS SELECT {values} FROM pg.{schema}.{name}")


def columns_by_table(con: DuckDBPyConnection, schema: str) -> dict[str, list[tuple[str, str]]]:
    rows = con.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = 'pg' AND schema_name = ? ORDER BY table_name, column_index",
        [schema],
    ).fetchall()
    found: dict[str, list[tuple[str, str]]] = {}
    for table, name, type_ in rows:
        found.setdefault(table, []).append((name, type_))
    return found


def test_a_file_that_a_writer_holds_is_served_as_it_was_and_logged_once(mirrors, tmp_path, caplog):
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    mirror, database = mirrors(catalog_of(lake))
    mirror.refresh()
    before = tables_of(database)
    with caplog.at_level(logging.WARNING), HeldOpen(lake) as writer:
        for n in range(2):
            writer.execute(f"CREATE TABLE lake.t{n} (i INTEGER)")
            mirror.refresh_if_possible()
            assert tables_of(database) == before
    [line] = [record.getMessage() for record in caplog.records]
    assert "another process has it open" in line and str(lake.file) in line
    mirror.refresh_if_possible()
    assert len(tables_of(database)["ducklake_table"][1]) == 2
    assert "can be read again" in caplog.records[-1].getMessage()


class HeldOpen:
    """A writer in a process of its own: DuckDB's lock is that of a process."""

    def __init__(self, lake: FileLake) -> None:
        self._process = Process(connect, file_lakes.EXTENSIONS)
        self._attach = (
            f"ATTACH {literal(f'ducklake:{lake.address}')} AS lake "
            f"(DATA_PATH {literal(str(lake.data))})"
        )

    def __enter__(self):
        self._process.query(self._attach)
        return self

    def __exit__(self, *_):
        self._process.close()

    def execute(self, statement: str) -> None:
        self._process.query(statement)


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_costs_what_it_changes(kind, mirrors, tmp_path):
    """Ranges of rows that are written, of a lake with many files."""
    lake = file_lakes.empty(kind, tmp_path / "lake")
    with file_lakes.writing(lake) as con:
        con.execute("CREATE TABLE t (i BIGINT)")
        con.execute("INSERT INTO t SELECT i FROM range(100) AS r(i)")
    add_files(lake, 3000)
    mirror, _ = mirrors(catalog_of(lake))
    first = mirror.refresh()
    with file_lakes.writing(lake) as con:
        con.execute("INSERT INTO t SELECT i FROM range(100) AS r(i)")
    assert first > 2 * (3000 // 256)
    assert mirror.refresh() <= 6  # files, statistics, snapshot, changes, and two of the table


def add_files(lake: FileLake, count: int) -> None:
    """Rows of files that do not exist, beside that of the only one."""
    with closing(connect(("sqlite_scanner",))) as con:
        con.execute(f"ATTACH {literal(str(lake.file))} AS file (TYPE {lake.kind})")
        for table in ("data_file", "file_column_stats"):
            con.execute(f"CREATE TEMP TABLE one AS SELECT * FROM file.ducklake_{table}")
            con.execute(
                f"INSERT INTO file.ducklake_{table} SELECT one.* "
                f"REPLACE (data_file_id + i AS data_file_id) FROM one, range(1, {count}) AS r(i)"
            )
            con.execute("DROP TABLE one")
        con.execute(f"UPDATE file.ducklake_snapshot SET next_file_id = next_file_id + {count}")


def test_a_catalog_in_postgresql_is_mirrored_too(lake, mirrors):
    original = lake.fresh("16")
    source = PostgresCatalog(original.database.url)
    mirror, database = mirrors(source, "public")
    mirror.refresh()
    assert tables_of(database) == tables_of(original.database)
    assert mirror.refresh() == 0
    original.database.run("UPDATE ducklake_metadata SET value = 'x' WHERE key = 'created_by'")
    assert mirror.refresh() == 1
    assert tables_of(database) == tables_of(original.database)


def test_a_catalog_that_does_not_answer_is_served_as_it_was(lake, mirrors, monkeypatch, caplog):
    original = lake.fresh("13")
    mirror, database = mirrors(PostgresCatalog(original.database.url), "public")
    mirror.refresh()
    before = tables_of(database)
    monkeypatch.setattr(module, "SECONDS_TO_WAIT", 0.5)
    with closing(original.database.connect()) as con:
        con.run("BEGIN")
        con.run("LOCK TABLE ducklake_tag IN ACCESS EXCLUSIVE MODE")
        con.run("UPDATE ducklake_metadata SET value = 'x' WHERE key = 'created_by'")
        started = time.monotonic()
        for _ in range(3):
            mirror.refresh_if_possible()
        assert time.monotonic() - started < 2, "only the first request waits"
        assert "takes longer than 0.5 s" in mirror.staleness()
        con.run("COMMIT")
    monkeypatch.setattr(module, "SECONDS_TO_WAIT", 20)
    mirror.refresh_if_possible()
    assert mirror.staleness() == ""
    assert tables_of(database) == tables_of(original.database) != before
    assert len(caplog.records) == 2
