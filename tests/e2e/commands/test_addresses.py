"""Commands on lakes of every address: where the catalog and the data are, and what cannot be."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from polynya_local.cli import app
from polynya_local.clients import pyiceberg
from polynya_local.clients.duckdb import LAKE, Process, connect, literal
from polynya_local.jobs import accept_postgresql
from polynya_local.lakes import sqlite_catalog
from polynya_local.lakes.opened import opened
from polynya_local.processes.serving import COMMAND, environment, serving
from typer.testing import CliRunner

from tests.support import file_lakes
from tests.support.lakes import BUCKET

EXTENSIONS = (*LAKE, "sqlite_scanner")
TABLE = (
    "CREATE TABLE lake.t (i INTEGER); INSERT INTO lake.t SELECT i FROM range(100) AS r(i); "
    "INSERT INTO lake.t VALUES (100)"
)
SUM = sum(range(101))
NOBODY = 65534


def write(catalog: str, data_path: str, s3_endpoint: str | None = None) -> None:
    """A lake with a table, of which a file has most rows and one is inlined."""
    with closing(connect(EXTENSIONS, s3_endpoint)) as con:
        options = f"(DATA_PATH {literal(data_path)})"
        con.execute(f"ATTACH {literal(f'ducklake:{catalog}')} AS lake {options}")
        for statement in con.extract_statements(TABLE):
            con.execute(statement)


OF_VERSION = "UPDATE ducklake_metadata SET value = '{}' WHERE key = 'version'"


def total(bridge) -> int:
    where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    with closing(pyiceberg.open(*where)) as client:
        return sum(client.rows("main", "t")["i"].to_pylist())


# CI has each version in one kind of catalog.
UNKNOWN = [
    pytest.param(kind, version, marks=[pytest.mark.slow] * ((kind == "sqlite") != (place == 1)))
    for kind in ("sqlite", "postgresql")
    for place, version in enumerate(("1.2", "2.0-dev1", "0.1"))
]


@pytest.mark.parametrize(("kind", "version"), UNKNOWN)
def test_a_catalog_of_an_unknown_version_is_not_served(
    kind, version, tmp_path, postgres_server, moto
):
    if kind == "sqlite":
        made = file_lakes.empty(kind, tmp_path / "lake")
        file_lakes.change_tables(made, OF_VERSION.format(version))
        address = made.address
    else:
        database = postgres_server.create_database(f"version_{version}")
        write(f"postgres:{database.libpq}", f"s3://{BUCKET}/version-{version}/", moto)
        database.run(OF_VERSION.format(version))
        address = database.url
    refused = CliRunner().invoke(app, ["serve", address, "--s3-endpoint", moto, "--port", "0"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    [line] = refused.stderr.splitlines()
    assert line.startswith(f"polynya: DuckLake catalog version {version!r} is not served (")
    assert line.endswith("update Polynya")


@pytest.mark.slow
def test_a_relative_data_path_is_relative_to_where_the_command_starts(tmp_path, monkeypatch):
    folder = tmp_path / "start"
    (folder / "catalogs").mkdir(parents=True)
    monkeypatch.chdir(folder)
    write("catalogs/lake.db", "files/of lake/")
    assert list((folder / "files/of lake/main/t").glob("*.parquet"))
    with serving("ducklake:catalogs/lake.db", None, delivery="object-lambda") as bridge:
        assert total(bridge) == SUM
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["serve", "start/catalogs/lake.db", "--port", "0"])
    assert refused.exit_code == 1
    assert f"there is no folder {tmp_path}/files/of lake" in refused.stderr
    assert "--data-path" in refused.stderr
    (tmp_path / "start/catalogs/lake.db.files").mkdir()
    refused = CliRunner().invoke(app, ["serve", "start/catalogs/lake.db", "--port", "0"])
    assert "--data-path start/catalogs/lake.db.files" in refused.stderr
    moved = {"options": ("--data-path", "start/files/of lake"), "delivery": "object-lambda"}
    with serving("start/catalogs/lake.db", None, **moved) as bridge:
        assert total(bridge) == SUM


CASES = ["duckdb file, data in S3", "postgresql, local data", "connection string"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] * (c != CASES[1])) for c in CASES]
)
def test_catalog_and_data_may_be_anywhere(case, postgres_server, moto, tmp_path):
    database = postgres_server.create_database(f"anywhere_{CASES.index(case)}")
    in_s3, folder = f"s3://{BUCKET}/anywhere-{CASES.index(case)}/", f"{tmp_path}/data"
    catalog, data_path, address = {
        CASES[0]: (f"{tmp_path}/lake.db", in_s3, f"ducklake:{tmp_path}/lake.db"),
        CASES[1]: (f"postgres:{database.libpq}", folder, database.url),
        CASES[2]: (f"postgres:{database.libpq}", in_s3, f"ducklake:postgres:{database.libpq}"),
    }[case]
    write(catalog, data_path, moto)
    with serving(address, moto, delivery="object-lambda") as bridge:
        assert total(bridge) == SUM
        with closing(connect(EXTENSIONS, moto)) as con:
            con.execute(f"ATTACH {literal(f'ducklake:{catalog}')} AS lake")
            con.execute("DELETE FROM lake.t WHERE i = 7")
        assert total(bridge) == SUM - 7


@pytest.mark.slow
def test_other_commands_read_a_file_too(tmp_path):
    lake = file_lakes.written("14", "sqlite", tmp_path / "lake")
    document = printed("doctor", lake.address)
    assert (document["well"], document["findings"]) == (True, [])
    counts = [count for table in document["tables"] for count in table["counts"]]
    assert counts and all(count["same"] for count in counts)
    assert printed("inspect", document["tables"][0]["name"], lake.address)["snapshot"]
    assert printed("verify", lake.address)["findings"] == []


def test_an_added_file_outside_of_the_data_path_is_named(tmp_path):
    """It is there, so that it is neither missing nor damaged."""
    lake = file_lakes.written("27", "sqlite", tmp_path / "lake")
    refused = CliRunner().invoke(app, ["inspect", "ad", lake.address])
    words = (
        f"the added file {lake.data}_ext/full.parquet is neither in S3 nor below the lake's data"
    )
    assert words in refused.output + refused.stderr, refused.output


@pytest.mark.parametrize("words", [["publish"], ["ingest", "t", "rows.parquet", "--database"]])
def test_a_job_that_needs_postgresql_says_so_of_a_file(words):
    done = CliRunner().invoke(app, [*words, "metadata.ducklake"])
    assert done.exit_code == 2 and "this catalog is in a file: " in done.stderr


@pytest.mark.parametrize(
    ("addresses", "code", "words"),
    [
        (("a.ducklake", "mysql://x/y"), 1, "does not read MySQL catalogs"),
        (("a/birds.ducklake", "sqlite:b/birds.db"), 2, "two lakes would be called birds"),
    ],
)
def test_lakes_that_cannot_be_served_together_get_a_sentence(addresses, code, words):
    done = CliRunner().invoke(app, ["serve", *addresses])
    assert done.exit_code == code and words in done.stderr


AFTER_ATTACH = "ducklake:postgres:dbname=lake host=h user=u"


@pytest.mark.parametrize(
    "given", [{"address": AFTER_ATTACH, "database": None}, {"database": AFTER_ATTACH}]
)
def test_a_job_gets_the_url_of_a_connection_string(given):
    urls = []

    def job(*, database: str, as_json: bool) -> None:
        urls.append(database)

    accept_postgresql(job, "")(**given, as_json=False)
    assert urls == ["postgresql://u@h:5432/lake"]


@pytest.mark.slow
def test_verify_finds_data_that_has_moved(tmp_path):
    write(f"{tmp_path}/lake.db", f"{tmp_path}/data")
    (tmp_path / "data").rename(tmp_path / "moved")
    moved = ("--data-path", f"{tmp_path}/moved")
    assert printed("verify", "--database", f"{tmp_path}/lake.db", *moved)["findings"] == []


@pytest.mark.slow
def test_data_elsewhere_than_beside_the_catalog_is_named(tmp_path, capsys):
    (tmp_path / "lake").mkdir()
    for name, data_path, given, is_named in (
        ("below.db", f"{tmp_path}/lake/data", None, False),
        ("elsewhere.db", f"{tmp_path}/data", None, True),
        ("elsewhere.db", f"{tmp_path}/data", f"{tmp_path}/data", False),
    ):
        if given is None:
            write(f"{tmp_path}/lake/{name}", data_path)
        with opened(f"{tmp_path}/lake/{name}", "public", given) as lake:
            assert str(lake.folder) == data_path
        said = capsys.readouterr().err
        assert (f"the catalog says that the lake's data is in {data_path}, " in said) == is_named


NUL = [  # a statement after CREATE TABLE lake.t (i INTEGER, n STRUCT(a VARCHAR), s VARCHAR); words
    (
        "INSERT INTO lake.t SELECT 1, {'a': 'a' || chr(0)}, NULL",
        "main.t is not served: ducklake_inlined_data_1_1 has a text with a NUL character in "
        "its column n, in the row with the row_id 0, which PostgreSQL cannot hold: write these "
        "rows to a file with ducklake_flush_inlined_data",
    ),
    (
        "ALTER TABLE lake.t SET PARTITIONED BY (s); "
        "INSERT INTO lake.t SELECT i, NULL, 'a' || chr(0) FROM range(100) AS r(i)",
        "main.t is not served: ducklake_file_partition_value has a text with a NUL character in "
        "its column partition_value, in the row with the data_file_id 0, which PostgreSQL cannot "
        "hold",
    ),
]


@pytest.mark.parametrize(("statements", "words"), NUL)
def test_a_text_that_postgresql_cannot_hold_is_named(statements, words, tmp_path):
    """Only DuckDB's own file has it: in SQLite DuckLake writes another text, or fails to commit."""
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    with file_lakes.writing(lake) as con:
        con.execute("CREATE TABLE lake.t (i INTEGER, n STRUCT(a VARCHAR), s VARCHAR)")
        for statement in con.extract_statements(statements):
            con.execute(statement)
    refused = CliRunner().invoke(app, ["inspect", "t", lake.address])
    assert refused.exit_code == 1 and words in refused.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_flush_is_the_remedy_for_it(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    with file_lakes.writing(lake) as con:
        con.execute("CREATE TABLE lake.t (i INTEGER, n STRUCT(a VARCHAR))")
        con.execute("INSERT INTO lake.t SELECT 1, {'a': 'a' || chr(0) || 'b'}")
        con.execute("CALL ducklake_flush_inlined_data('lake')")
    assert printed("doctor", lake.address)["well"]


def printed(*words: str):
    """The JSON that a command prints."""
    command = [*COMMAND, *words, "--json"]
    done = subprocess.run(command, env=environment({}), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def damaged(tmp_path: Path) -> Path:
    """A file of DuckDB that was cut."""
    file = tmp_path / "cut.db"
    write(str(file), str(tmp_path / "cut-data"))
    file.write_bytes(file.read_bytes()[:20_000])
    return file


def of(content: bytes):
    def make(tmp_path: Path) -> Path:
        file = tmp_path / "made.db"
        file.write_bytes(content)
        return file

    return make


def without_lake(tmp_path: Path) -> Path:
    with closing(connect()) as con:
        con.execute(f"ATTACH {literal(str(tmp_path / 'other.db'))} AS other")
        con.execute("CREATE TABLE other.t (i INTEGER)")
    return tmp_path / "other.db"


def sqlite_without_lake(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as con:
        con.execute("CREATE TABLE t (i)")
    return tmp_path / "other.sqlite"


BAD = [
    (of(b""), "is empty: no lake was ever written to it"),
    (of(b"PAR1" + bytes(1000)), "is neither a database of DuckDB nor one of SQLite"),
    (lambda tmp_path: tmp_path / "nothing.db", "there is no file"),
    (lambda tmp_path: tmp_path / ("x" * 300), "cannot be read: File name too long"),
    (lambda tmp_path: tmp_path, "is a folder: give the file of the catalog"),
    (damaged, "if it is damaged, restore a copy of it"),
    (without_lake, "has no DuckLake catalog in the schema 'main'"),
    (sqlite_without_lake, "has no DuckLake catalog in the schema 'main'"),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("hidden", ["lake.db", "."])
def test_a_file_of_somebody_else_gets_a_sentence(hidden, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    write(str(folder / "lake.db"), str(folder / "data"))
    (folder / hidden).chmod(0)
    os.seteuid(NOBODY)
    try:
        refused = CliRunner().invoke(app, ["serve", str(folder / "lake.db"), "--port", "0"])
    finally:
        os.seteuid(0)
    assert refused.exit_code == 1
    assert refused.stderr == f"polynya: {folder}/lake.db cannot be read: Permission denied\n"


@pytest.mark.parametrize(("make", "words"), BAD)
def test_a_file_that_is_no_lake_gets_a_sentence(make, words, tmp_path):
    file = make(tmp_path)
    refused = CliRunner().invoke(app, ["serve", str(file), "--port", "0"])
    [line] = refused.stderr.splitlines()
    assert refused.exit_code == 1 and line.startswith("polynya: ") and words in line
    assert str(file) in line


@pytest.mark.parametrize("command", ["serve", "doctor", "inspect main.t", "verify"])
def test_a_wrong_name_is_said_before_duckdb_is_imported(command, tmp_path):
    arguments = [*command.split(), str(tmp_path / "nothing.db")]
    program = "import sys\nfrom polynya_local.cli import app\n"
    program += f"try:\n    app({arguments})\nfinally:\n    print('duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    [line, is_imported] = (done.stderr + done.stdout).splitlines()  # `serve` logs what is printed
    assert done.returncode and line.startswith(f"polynya: there is no file {tmp_path}/nothing.db")
    assert is_imported == "False"


LEAK = "SELECT 1 AS object_id, content AS value FROM read_text('/etc/passwd')"
ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT * FROM r"
COPY = "ALTER TABLE ducklake_metadata RENAME TO copied; CREATE VIEW ducklake_metadata AS {}"
HOSTILE = [  # what somebody else does to the tables of a catalog, and what it is called
    ("duckdb", f"DROP TABLE ducklake_tag; CREATE VIEW ducklake_tag AS {LEAK}", "a view"),
    ("duckdb", 'CREATE VIEW "DuckLake_x" AS SELECT i FROM range(1000000000000) AS r(i)', "a view"),
    ("duckdb", COPY.format("SELECT * FROM copied"), "a view"),
    (
        "duckdb",
        "DROP TABLE ducklake_tag; "
        "CREATE TABLE ducklake_tag (object_id BIGINT, value AS (repeat('x', 1000000000)))",
        "a table with generated columns",
    ),
    ("sqlite", f"DROP TABLE ducklake_tag; CREATE VIEW ducklake_tag AS {LEAK}", "a view"),
    ("sqlite", f"CREATE VIEW ducklake_x AS {ENDLESS}", "a view"),
    ("sqlite", COPY.format("SELECT * FROM copied"), "a view"),
    ("sqlite", "CREATE VIRTUAL TABLE ducklake_x USING fts5(a)", "a virtual table"),
    (
        "sqlite",
        "DROP TABLE ducklake_tag; "
        "CREATE TABLE ducklake_tag (object_id BIGINT, value AS (zeroblob(1000000000)))",
        "a table with generated columns",
    ),
]


@pytest.mark.parametrize(("kind", "statements", "what"), HOSTILE)
def test_a_file_runs_no_query_of_its_own(kind, statements, what, tmp_path):
    lake = file_lakes.empty(kind, tmp_path / "lake")
    file_lakes.change_tables(lake, statements)
    refused = CliRunner().invoke(app, ["serve", lake.address, "--port", "0"])
    [line] = refused.stderr.splitlines()
    assert refused.exit_code == 1 and f"in {lake.file} is {what}: " in line


# What is done to a catalog in SQLite, by a connection that stays open, and what is said of it.
SQLITE_FAULTS = [
    ("BEGIN EXCLUSIVE", "is locked by another process, which writes to it: try again"),
    (
        "UPDATE ducklake_snapshot SET schema_version = 1.5",
        "ducklake_snapshot has a value that is no BIGINT in its column schema_version, in the row "
        "with the snapshot_id 0",
    ),
    (
        "UPDATE ducklake_metadata SET value = CAST(x'ff7365637265740a' AS TEXT)",
        "restore a copy of it: Could not decode to UTF-8 column 'value'",
    ),
]


@pytest.mark.parametrize(("statement", "words"), SQLITE_FAULTS)
def test_a_fault_of_a_file_of_sqlite_gets_a_sentence(statement, words, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_catalog, "LOCK_SECONDS", 0.2)
    lake = file_lakes.empty("sqlite", tmp_path / "lake")
    with closing(sqlite3.connect(lake.file, isolation_level=None)) as writer:
        writer.execute(statement)
        refused = CliRunner().invoke(app, ["inspect", "t", lake.address])
    [line] = refused.stderr.splitlines()
    assert refused.exit_code == 1 and words in line and str(lake.file) in line
    assert "secret" not in line


def test_a_locked_file_is_named_with_the_process_that_holds_it(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    writer = Process(connect, EXTENSIONS)
    try:
        writer.query(f"ATTACH {literal(f'ducklake:{lake.address}')} AS lake")
        refused = CliRunner().invoke(app, ["serve", lake.address, "--port", "0"])
        [line] = refused.stderr.splitlines()
        assert refused.exit_code == 1
        assert f"is open in the process {writer._process.pid}" in line and "DETACH" in line
    finally:
        writer.close()


def test_what_a_local_folder_cannot_do_is_refused(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    for option, code, words in (
        ("--delivery=materialize", 1, "local folder"),
        ("--virtual-bucket=other", 1, "--virtual-bucket names the bucket that --delivery material"),
        ("--copy-data-files", 2, "unless --delivery is materialize"),
    ):
        refused = CliRunner().invoke(app, ["serve", lake.address, option, "--port", "0"])
        assert refused.exit_code == code and words in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_sigterm_leaves_no_postgresql(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    process = subprocess.Popen(
        [*COMMAND, "serve", lake.address, "--port", "0"],
        env=environment({"TMPDIR": str(tmp_path)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    process.stdout.readline()
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()
    assert not list(tmp_path.glob("polynya-postgres-*"))
