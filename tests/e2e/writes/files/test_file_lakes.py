"""Iceberg clients write to lakes in files of DuckDB and SQLite, beside native DuckLake.

Each change is also made, as SQL, in a table of plain DuckDB: what native DuckLake then reads from
the file, and PyIceberg from the catalog, must be the rows of that table.
"""

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import duckdb as duckdb_module
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from polynya.runtime.errors import ServiceUnavailable
from polynya_local.cli import app
from polynya_local.clients import duckdb, spark
from polynya_local.clients.duckdb import connect
from polynya_local.clients.spark_jars import why_not
from polynya_local.lakes.address import parse
from polynya_local.lakes.catalog_source import WritableDuckDBState
from polynya_local.lakes.catalogs import catalog_of
from polynya_local.lakes.mirror import Mirror
from polynya_local.lakes.sqlite_catalog import SQLiteState
from polynya_local.processes.serving import COMMAND, environment, serving
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    ServiceUnavailableError,
    ValidationException,
)
from pyiceberg.transforms import TruncateTransform
from pyiceberg.types import DoubleType
from typer.testing import CliRunner

from tests.support import file_lakes
from tests.support.file_lakes import KINDS, file_to_1_1, query, writing

NATIVE = """
CREATE TABLE t (id BIGINT, name VARCHAR, tags STRUCT(a INTEGER, b VARCHAR[]));
INSERT INTO t SELECT i, 'file ' || i, {'a': i, 'b': [i::VARCHAR]} FROM range(40) AS r(i);
INSERT INTO t SELECT i, 'inlined ' || i, NULL FROM range(100, 105) AS r(i);
DELETE FROM t WHERE id IN (3, 101);
"""
MAKE_SPACE = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake')",
)
needs_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


class Case:
    """A served lake, and the tables as they should be."""

    def __init__(self, lake, bridge) -> None:
        self.lake, self.bridge = lake, bridge
        self.where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        self.catalog = load_catalog("c", uri=bridge.catalog_uri, warehouse=bridge.warehouse)
        self.model = connect()

    def sql(self, *statements: str) -> None:
        """Change the tables of the model."""
        for statement in statements:
            self.model.execute(statement)

    def native(self, *statements: str) -> None:
        """Change the lake as its owner does, while it is served."""
        with writing(self.lake) as con:
            for statement in statements:
                con.execute(statement)

    def rows(self, select: str) -> pa.Table:
        """Rows for a client to write."""
        return self.model.execute(select).to_arrow_table()

    def check(self, table: str) -> None:
        """Compare what native DuckLake and PyIceberg read with the table of the model."""
        expected = self.model.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
        with writing(self.lake) as native:
            assert native.execute(f"SELECT * FROM lake.{table} ORDER BY ALL").fetchall() == expected
        self.model.register("shown", self.catalog.load_table(table).scan().to_arrow())
        assert self.model.execute("SELECT * FROM shown ORDER BY ALL").fetchall() == expected


@pytest.fixture(params=KINDS)
def case(request, tmp_path):
    lake = file_lakes.empty(request.param, tmp_path / "lake")
    with writing(lake) as con:
        for statement in con.extract_statements(NATIVE):
            con.execute(statement)
    with serving(lake.address, None, delivery="object-lambda", writes=True) as bridge:
        made = Case(lake, bridge)
        with closing(made.model):
            made.sql(*made.model.extract_statements(NATIVE))
            yield made


def test_a_branch_is_published(case):
    table = case.catalog.load_table("main.t")
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    rows = "SELECT i, 'staged', NULL FROM range(300, 310) AS r(i)"
    added = case.rows(f"SELECT * FROM t WHERE false UNION ALL {rows}")
    table.refresh().append(added, branch="audit")
    table.refresh().delete("id < 10 or id = 104 or id = 300", branch="audit")
    case.check("main.t")
    case.native("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    staged = table.refresh().refs()["audit"].snapshot_id
    case.sql(f"INSERT INTO t {rows}", "DELETE FROM t WHERE id < 10 OR id = 104 OR id = 300")
    expected = case.model.execute("SELECT count(*), sum(id) FROM t").fetchall()
    case.model.register("scanned", table.scan(snapshot_id=staged).to_arrow())
    assert case.model.execute("SELECT count(*), sum(id) FROM scanned").fetchall() == expected
    table.manage_snapshots().set_current_snapshot(staged).commit()
    case.check("main.t")
    case.native(*MAKE_SPACE)
    case.check("main.t")


@pytest.mark.slow
def test_pyiceberg_partitions_a_native_table(case):
    """As DuckLake cannot: its maintenance keeps the partitions of the files."""
    table = case.catalog.load_table("main.t")
    with table.update_spec() as spec:
        spec.add_field("name", TruncateTransform(3), "beginning")
    case.sql(
        "INSERT INTO t SELECT i, ['ice', 'eider'][1 + i % 2], NULL FROM range(200, 210) AS r(i)"
    )
    for _ in range(2):
        table.append(case.rows("SELECT * FROM t WHERE id >= 200"))
    case.sql("INSERT INTO t SELECT * FROM t WHERE id >= 200")
    case.check("main.t")
    case.native(*MAKE_SPACE)
    case.check("main.t")
    table.refresh()
    found = table.scan("name >= 'i'").to_arrow()
    assert sorted(set(found["name"].to_pylist()) - {"inlined 100"})[0] == "ice"
    partitions = {file["partition"].get("beginning") for file in table.inspect.files().to_pylist()}
    assert {"ice", "eid"} <= partitions


@pytest.mark.slow(but=["[duckdb]"])
def test_pyiceberg_changes_a_native_table(case):
    table = case.catalog.load_table("main.t")
    case.sql("INSERT INTO t SELECT i, 'ice', NULL FROM range(200, 210) AS r(i)")
    table.append(case.rows("SELECT * FROM t WHERE id >= 200"))
    case.check("main.t")
    # Files, inlined rows and rows of the client at once.
    case.sql("DELETE FROM t WHERE id IN (5, 102, 205)")
    table.delete("id in (5, 102, 205)")
    case.check("main.t")
    update = "UPDATE {} SET name = 'native' WHERE id IN (6, 103, 206)"
    case.native(update.format("lake.t"))
    case.sql(update.format("t"))
    case.check("main.t")
    with table.update_schema() as columns:
        columns.add_column("more", DoubleType())
        columns.rename_column("name", "label")
    case.sql("ALTER TABLE t ADD COLUMN more DOUBLE", "ALTER TABLE t RENAME COLUMN name TO label")
    # Into the table of inlined rows that the commit has created.
    insert = "INSERT INTO {} SELECT i, 'again', {{'a': 1, 'b': ['x']}}, i / 2 FROM range(3) r(i)"
    case.native(insert.format("lake.t"))
    case.sql(insert.format("t"))
    case.check("main.t")
    case.native(*MAKE_SPACE)
    case.check("main.t")


@pytest.mark.slow
def test_pyiceberg_adds_files_from_the_folder_of_the_lake(case):
    """Below the data path, and from nowhere else; the catalog has the path on this machine."""
    case.sql(
        "INSERT INTO t SELECT i, 'added ' || i, {'a': i, 'b': ['x']} FROM range(400, 405) r(i)"
    )
    rows = case.rows("SELECT * FROM t WHERE id >= 400")
    (case.lake.data / "landing").mkdir()
    pq.write_table(rows, case.lake.data / "landing" / "1.parquet")
    pq.write_table(rows, case.lake.folder / "outside.parquet")
    location = case.catalog.load_table("main.t").location()
    assert location.startswith("s3://polynya-local-")
    table = case.catalog.load_table("main.t")
    table.add_files(["s3://polynya-local-data/landing/1.parquet"])
    case.check("main.t")
    paths = query(case.lake, "SELECT path FROM ducklake_data_file WHERE mapping_id IS NOT NULL")
    assert paths == [(str(case.lake.data / "landing" / "1.parquet"),)]
    for outside in ("../outside.parquet", "landing/../../outside.parquet"):
        with pytest.raises(OSError):  # PyIceberg cannot read it
            table.add_files([f"s3://polynya-local-data/{outside}"])
    for statement in ("DELETE FROM {} WHERE id = 401", "UPDATE {} SET name = 'x' WHERE id = 402"):
        case.native(statement.format("lake.t"))
        case.sql(statement.format("t"))
    case.check("main.t")
    case.native(*MAKE_SPACE)
    case.check("main.t")


@pytest.mark.slow
def test_names_and_tables_that_clients_create(case):
    case.catalog.create_namespace("ice", {"comment": "made by a client"})
    case.sql(
        "CREATE SCHEMA ice", "CREATE TABLE ice.u AS SELECT i AS k, 'x' AS v FROM range(9) r(i)"
    )
    rows = case.rows("SELECT * FROM ice.u")
    table = case.catalog.create_table("ice.u", rows.schema, properties={"owner": "a"})
    table.append(rows)
    case.check("ice.u")
    case.native("INSERT INTO lake.ice.u VALUES (100, 'native')")
    case.sql("INSERT INTO ice.u VALUES (100, 'native')")
    case.check("ice.u")
    case.catalog.rename_table("ice.u", "ice.renamed")
    case.sql("ALTER TABLE ice.u RENAME TO renamed")
    case.check("ice.renamed")
    case.catalog.drop_table("ice.renamed")
    case.catalog.drop_namespace("ice")
    with writing(case.lake) as native:
        schemas = native.execute("SELECT schema_name FROM duckdb_schemas() WHERE NOT internal")
        assert "ice" not in [name for [name] in schemas.fetchall()]


@pytest.mark.slow
def test_a_stale_commit_is_refused_after_a_native_one(case):
    table = case.catalog.load_table("main.t")
    transaction = table.transaction()
    transaction.delete("id = 7")
    case.native("DELETE FROM lake.t WHERE id < 20")
    case.sql("DELETE FROM t WHERE id < 20")
    # PyIceberg tries again by itself, and finds the conflict in the snapshot that it loads then.
    with pytest.raises((CommitFailedException, ValidationException)):
        transaction.commit_transaction()
    case.check("main.t")


@pytest.mark.slow
def test_duckdb_as_an_iceberg_client(case):
    with closing(duckdb.open(*case.where)) as client:
        for statement in (
            "INSERT INTO {} SELECT i, 'by duckdb', NULL FROM range(300, 310) AS r(i)",
            "DELETE FROM {} WHERE id IN (8, 104, 305)",
            "UPDATE {} SET name = 'changed' WHERE id BETWEEN 9 AND 12",
        ):
            client.query(statement.format("ice.main.t"))
            case.sql(statement.format("t"))
            case.check("main.t")
        # DuckDB stages it first: a transaction that writes, and is rolled back.
        created = "CREATE TABLE {} AS SELECT range AS i FROM range(5)"
        client.query(created.format("ice.main.staged"))
        case.sql(created.format("staged"))
        case.check("main.staged")


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.spark
@needs_spark
def test_spark(case):
    with closing(spark.open(*case.where)) as client:
        for statement in (
            "INSERT INTO {} SELECT id + 300, 'by spark', NULL FROM range(10)",
            "DELETE FROM {} WHERE id IN (8, 104, 305)",
            "UPDATE {} SET name = 'changed' WHERE id BETWEEN 9 AND 12",
        ):
            spark.session().sql(statement.format(f"{client.catalog}.main.t"))
            case.sql(statement.replace("id + 300", "range + 300").format("t"))
            case.check("main.t")


HOLD = """
import sys, time
from pathlib import Path
from tests.support.file_lakes import FileLake, writing
with writing(FileLake("lake", sys.argv[1], Path(sys.argv[2]))) as con:
    con.execute("BEGIN")
    con.execute("INSERT INTO lake.t VALUES (-1, 'held', NULL)")
    print("held", flush=True)
    time.sleep(float(sys.argv[3]))
    con.execute("COMMIT")
"""


def hold(lake, seconds: float) -> subprocess.Popen:
    """A native writer that has the file open for so long, and then commits."""
    words = [sys.executable, "-c", HOLD, lake.kind, str(lake.folder), str(seconds)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, text=True, **pipes)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.slow(but=["[duckdb]"])
def test_a_commit_waits_for_a_native_writer(case):
    """In a file of SQLite the native one may fail, as it does beside another native writer.

    Its transaction has read the file, so that the other one cannot commit, which has the file's
    lock already: SQLite then refuses the COMMIT that came later, without waiting.
    """
    with hold(case.lake, 2) as holder:
        rows = "SELECT i, 'waited', NULL::STRUCT(a INTEGER, b VARCHAR[]) FROM range(400, 403) r(i)"
        case.catalog.load_table("main.t").append(
            case.rows(rows).rename_columns(["id", "name", "tags"])
        )
        _, problem = holder.communicate()
    if holder.returncode:
        assert case.lake.kind == "sqlite" and "database is locked" in problem
    else:
        case.sql("INSERT INTO t VALUES (-1, 'held', NULL)")
    case.sql(f"INSERT INTO t {rows}")
    case.check("main.t")


@pytest.mark.slow
@pytest.mark.slow
def test_a_writer_that_keeps_the_file_open_gets_a_503_with_the_reason(case):
    table = case.catalog.load_table("main.t")
    if case.lake.kind == "sqlite":
        pytest.skip("a native writer locks SQLite's file only while it commits")
    with hold(case.lake, 60) as holder:
        with pytest.raises(ServiceUnavailableError, match=f"is open in the process {holder.pid}"):
            table.append(case.rows("SELECT * FROM t LIMIT 1"))
        holder.kill()
    case.check("main.t")


@pytest.mark.slow
def test_killed_at_any_moment_the_file_has_all_commits_that_were_answered(tmp_path):
    """Each life of the server ends by SIGKILL while a client appends."""
    for kind in KINDS:
        lake = file_lakes.empty(kind, tmp_path / kind)
        with writing(lake) as con:
            con.execute("CREATE TABLE t (id BIGINT)")
        answered: list[int] = []
        draw = random.Random(kind)
        for life in range(3):
            killed(lake, answered, life, draw.random())
        with writing(lake) as con:
            rows = [row for [row] in con.execute("SELECT id FROM lake.t").fetchall()]
        assert len(rows) == len(set(rows)), "a commit took place twice"
        # The last of each life may have taken place without an answer.
        assert {*answered} <= {*rows} and len(rows) <= len(answered) + 3
        snapshots = [row for [row] in query(lake, "SELECT snapshot_id FROM ducklake_snapshot")]
        assert sorted(snapshots) == list(range(len(snapshots)))


def killed(lake, answered: list[int], life: int, seconds: float) -> None:
    command = [*COMMAND, "serve", lake.address, "--port", "0", "--writes", "--no-page"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment({})
    )
    bridge = json.loads(process.stdout.readline())
    table = load_catalog("c", uri=bridge["catalog_uri"], warehouse="lake").load_table("main.t")

    def append() -> None:
        with suppress(Exception):  # the server is killed
            for number in range(life * 1000, life * 1000 + 999):
                table.append(pa.table({"id": pa.array([number], pa.int64())}))
                answered.append(number)

    client = threading.Thread(target=append)
    client.start()
    before = len(answered)
    while client.is_alive() and len(answered) < before + 2:
        time.sleep(0.01)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    client.join()
    assert len(answered) >= before + 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_lake_of_1_1(kind, tmp_path):
    """No DuckDB here reads it natively: a second server reads what the first one has written."""
    lake = file_lakes.empty(kind, tmp_path / "lake")
    with writing(lake) as con:
        for statement in con.extract_statements(NATIVE):
            con.execute(statement)
    file_to_1_1(lake)
    with closing(connect()) as model:
        for statement in model.extract_statements(NATIVE):
            model.execute(statement)
        with serving(lake.address, None, delivery="object-lambda", writes=True) as bridge:
            table = load_catalog("c", uri=bridge.catalog_uri, warehouse="lake").load_table("main.t")
            table.append(model.execute("SELECT * FROM t WHERE id < 3").to_arrow_table())
            table.delete("id in (2, 10, 103)")
        model.execute("INSERT INTO t SELECT * FROM t WHERE id < 3")
        model.execute("DELETE FROM t WHERE id IN (2, 10, 103)")
        with serving(lake.address, None, delivery="object-lambda") as bridge:
            table = load_catalog("c", uri=bridge.catalog_uri, warehouse="lake").load_table("main.t")
            shown = table.scan().to_arrow()
        ids = sorted(shown["id"].to_pylist())
        assert ids == [i for [i] in model.execute("SELECT id FROM t ORDER BY 1").fetchall()]
        assert pc.sum(shown["id"]).as_py() == sum(ids)
    counts = "SELECT min(row_group_count) FROM ducklake_data_file WHERE row_group_count IS NOT NULL"
    assert query(lake, counts) == [(1,)]


@pytest.mark.slow
def test_a_file_with_a_trigger_is_not_written(tmp_path):
    """A commit would run it, and the file may be somebody else's."""
    lake = file_lakes.empty("sqlite", tmp_path / "lake")
    trigger = "CREATE TRIGGER x AFTER INSERT ON ducklake_snapshot BEGIN SELECT 1; END"
    file_lakes.change_tables(lake, trigger)
    refused = CliRunner().invoke(app, ["serve", lake.address, "--writes", "--port", "0"])
    assert refused.exit_code == 1 and "x in" in refused.stderr and "is a trigger" in refused.stderr


class FileState(NamedTuple):
    """What a commit may change in a file."""

    snapshots: list[tuple[object, ...]]
    changes: list[tuple[object, ...]]
    names: list[tuple[object, ...]]

    @classmethod
    def of(cls, lake) -> "FileState":
        tables = ("ducklake_snapshot", "ducklake_snapshot_changes", "ducklake_schema")
        return cls(*(sorted(query(lake, f"SELECT * FROM {table}"), key=repr) for table in tables))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_fails_half_way_leaves_the_file_as_it_was(kind, tmp_path, postgres_server):
    lake = file_lakes.empty(kind, tmp_path / "lake")
    before = FileState.of(lake)
    database = postgres_server.create_database(f"half_a_commit_{kind}")
    changes = (
        "UPDATE ducklake_schema SET schema_name = 'changed'",
        # A row that only the mirror has.
        "SET LOCAL session_replication_role = replica",
        "INSERT INTO ducklake_tag VALUES (0, 0, NULL, 'a', 'b')",
        "SET LOCAL session_replication_role = origin",
        "DELETE FROM ducklake_tag",
    )
    catalog = catalog_of(parse(lake.address))
    with closing(Mirror(catalog, "main", database, None)) as mirror:
        mirror.begin()
        with closing(database.connect()) as con, mirror.writing():
            for _ in range(2):  # not by a second try either
                con.run("BEGIN")
                for change in changes:
                    con.run(change)
                with pytest.raises(ServiceUnavailable):
                    mirror.write_back(con)
                con.run("ROLLBACK")
        assert FileState.of(lake) == before
        with closing(database.connect()) as con, mirror.writing():
            con.run("BEGIN")
            con.run(changes[0])
            mirror.write_back(con)
            con.run("COMMIT")
    assert FileState.of(lake) == before._replace(
        names=[tuple("changed" if v == "main" else v for v in row) for row in before.names]
    )


SNAPSHOT = (
    "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, now(), schema_version, next_catalog_id, "
    "next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1",
    "INSERT INTO ducklake_snapshot_changes SELECT max(snapshot_id), 'x', 'me', NULL, NULL "
    "FROM ducklake_snapshot",
)


def without_journal(lake, commit) -> None:
    """All pages are written, then SQLite does not find the journal that it removes."""
    Path(f"{lake.file}-journal").unlink()
    commit()


def while_it_is_read(lake, commit) -> None:
    """Another one reads the file, so that SQLite may not write its pages."""
    with closing(sqlite3.connect(lake.file)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ducklake_snapshot").fetchall()
        commit()


def then_an_error(lake, commit) -> None:
    commit()
    duckdb_module.sql("SELECT error('after COMMIT')").fetchall()


def without_space(lake, commit) -> None:
    """No file may become longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAULTS = [
    ("sqlite", without_journal, True),
    ("sqlite", while_it_is_read, False),
    ("sqlite", without_space, False),
    ("duckdb", then_an_error, True),
    ("duckdb", without_space, False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fault", "takes_place"), FAULTS)
def test_an_error_of_commit_does_not_say_what_happened(
    kind, fault, takes_place, tmp_path, postgres_server, monkeypatch
):
    """The file is asked; the next commit takes place whatever the error was."""
    lake = file_lakes.empty(kind, tmp_path / "lake")
    before = FileState.of(lake)
    database = postgres_server.create_database(f"commit_{kind}_{fault.__name__}")
    state = SQLiteState if kind == "sqlite" else WritableDuckDBState
    real = state.commit
    with closing(Mirror(catalog_of(parse(lake.address)), "main", database, None)) as mirror:
        mirror.begin()

        def commit() -> None:
            with closing(database.connect()) as con, mirror.writing():
                con.run("BEGIN")
                for statement in SNAPSHOT:
                    con.run(statement)
                mirror.write_back(con)
                con.run("COMMIT")

        with monkeypatch.context() as patch:
            patch.setattr(state, "commit", lambda self: fault(lake, lambda: real(self)))
            if takes_place:
                commit()
            else:
                with pytest.raises(ServiceUnavailable, match="did not take place"):
                    commit()
        assert len(FileState.of(lake).snapshots) == len(before.snapshots) + takes_place
        commit()
    after = FileState.of(lake)
    assert len(after.snapshots) == len(after.changes) == len(before.snapshots) + 1 + takes_place


@pytest.mark.slow
@pytest.mark.slow
def test_no_row_is_there_twice_if_journals_vanish(tmp_path):
    """As when another writer removes them, after whose locks were lost."""
    lake = file_lakes.empty("sqlite", tmp_path / "lake")
    with writing(lake) as con:
        con.execute("CREATE TABLE t (id BIGINT)")
    ended = threading.Event()

    def remove() -> None:
        while not ended.is_set():
            with suppress(FileNotFoundError):
                os.unlink(f"{lake.file}-journal")

    with serving(lake.address, None, delivery="object-lambda", writes=True) as bridge:
        table = load_catalog("c", uri=bridge.catalog_uri, warehouse="lake").load_table("main.t")
        removing = threading.Thread(target=remove)
        removing.start()
        try:
            for number in range(20):
                row = pa.table({"id": pa.array([number], pa.int64())})
                for _ in range(3):
                    with suppress(ServiceUnavailableError):
                        table.append(row)
                        break
                    table.refresh()
        finally:
            ended.set()
            removing.join()
    with writing(lake) as con:
        rows = con.execute("SELECT id FROM lake.t ORDER BY 1").fetchall()
    assert rows == [(number,) for number in range(20)]
