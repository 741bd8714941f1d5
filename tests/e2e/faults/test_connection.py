"""The connection to PostgreSQL: TLS, rights, transactions, and reconnection after a loss."""

import gc
import itertools
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pg8000.native import Connection, identifier, literal
from polynya.ducklake import queries
from polynya.ducklake.connection import database as database_module
from polynya.ducklake.connection.database import BEGIN_WRITE, Database
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime import budget
from polynya.runtime.errors import ConcurrentCommit, Misconfigured, ServiceUnavailable
from polynya.runtime.settings import SETTINGS
from polynya_local.cli import app
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.native import write_lake
from polynya_local.processes import postgres
from typer.testing import CliRunner

from tests.support import rest
from tests.support.servers import in_process
from tests.support.servers.slow_servers import delaying, silent
from tests.support.writes.transactions import read

LAKES = Path(__file__).parents[2] / "lakes"
READER, PASSWORD = "polynya reader", "p@ss/w:rd %20'+"
NUMBERS = itertools.count(1)


def run(database: postgres.Database, *statements: str) -> list:
    con = database.connect()
    try:
        return [con.run(sql) for sql in statements][-1]
    finally:
        con.close()


# URLs


def tls_of(url: str) -> tuple[bool, bool] | None:
    """Whether the certificate and the host name are checked; None without TLS."""
    context = connection_arguments(url).get("ssl_context")
    return (context.verify_mode == ssl.CERT_REQUIRED, context.check_hostname) if context else None


@pytest.mark.parametrize(
    ("url", "tls"),
    [
        ("postgresql://u@db.example.com/d", (True, True)),
        ("postgresql://u@db.example.com/d?sslmode=verify-full", (True, True)),
        ("postgresql://u@db.example.com/d?sslmode=verify-ca", (True, False)),
        ("postgresql://u@db.example.com/d?sslmode=require", (False, False)),
        ("postgresql://u@db.example.com/d?sslmode=disable", None),
        ("postgresql://u@10.0.0.1/d", (True, True)),
        ("postgresql://u@127.0.0.1/d", None),
        ("postgresql://u@localhost/d", None),
        ("postgresql://u@[::1]/d", None),
        ("postgresql://u@localhost/d?sslmode=verify-full", (True, True)),
        ("postgresql://u@localhost/d?host=db.example.com", (True, True)),
        ("postgresql://u@db.example.com/d?host=/run/postgresql", None),
    ],
)
def test_tls_is_required_and_checked_unless_the_host_is_local_or_the_url_disables_it(url, tls):
    assert tls_of(url) == tls


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("postgres://u:p%40ss%2Fw%3Ard%20%2520'+@h:6543/d", {"password": "p@ss/w:rd %20'+"}),
        ("postgresql://a%40b@h/my%20lake", {"user": "a@b", "database": "my lake", "port": 5432}),
        ("postgresql://u@h:6543/d?sslmode=disable", {"host": "h", "port": 6543, "password": ""}),
        ("postgresql://u@/d?host=/run/pg", {"unix_sock": "/run/pg/.s.PGSQL.5432"}),
        ("postgresql://u@h:6543/d?host=/run/pg", {"unix_sock": "/run/pg/.s.PGSQL.6543"}),
        ("postgresql:///d", {"host": "localhost", "user": "postgres"}),
    ],
)
def test_a_url_is_read_as_libpq_reads_it(url, arguments):
    assert arguments.items() <= connection_arguments(url).items()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgresql://u:s3cret@h",
        "postgresql://u:s3cret@h/",
        "mysql://u:s3cret@h/d",
        "postgresql://u:s3cret@h:port/d",
        "postgresql://u:s3cret@h:99999/d",
        "postgresql://u:s3cret@[h/d",
        "host=h password=s3cret dbname=d",
        "postgresql://u:s3cret@h/d?sslmode=perhaps",
        "postgresql://u:s3cret@h/d?sslrootcert=/no/such/file",
    ],
)
def test_an_unusable_url_is_refused_and_not_shown(url):
    with pytest.raises(Misconfigured) as refused:
        Database(url, "public")
    assert "s3cret" not in str(refused.value) and refused.value.__cause__ is None


# TLS


# The modes of libpq.
@pytest.mark.parametrize("mode", ["disable", "require", "verify-ca", "verify-full"])
def test_every_mode_is_accepted_and_named_by_every_help(mode):
    connection_arguments(f"postgresql://u@db.example.com/d?sslmode={mode}")
    with pytest.raises(Misconfigured, match=mode):
        connection_arguments("postgresql://u@db.example.com/d?sslmode=prefer")
    [setting] = [one for one in SETTINGS if one.name == "DATABASE_URL"]
    assert mode in setting.help
    for command in ("serve", "inspect", "doctor", "indexes", "ingest", "publish", "verify"):
        done = CliRunner().invoke(app, [command, "--help"])
        assert f" {mode}" in " ".join(done.output.split()), command


@pytest.fixture(scope="module")
def tls() -> Iterator[tuple[postgres.Database, Path]]:
    """A PostgreSQL whose certificate names localhost, and the folder with it and its socket."""
    owner = postgres._owner()
    folder = Path(tempfile.mkdtemp(prefix="polynya-tls-", dir=postgres._traversable_folder(owner)))
    for name in ("own", "other"):
        files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        subprocess.run([*new, *files, *subject], check=True, capture_output=True)
    for file in (folder, *folder.iterdir()):
        if owner:
            shutil.chown(file, owner)
    folder.chmod(0o755)
    settings = {
        "ssl": "on",
        "ssl_cert_file": str(folder / "own.crt"),
        "ssl_key_file": str(folder / "own.key"),
        "unix_socket_directories": str(folder),
    }
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setitem(postgres.SETTINGS, name, value)
            database = stack.enter_context(postgres._own_server())
        yield database, folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("host", "query", "is_encrypted"),
    [
        ("localhost", "sslmode=verify-full&sslrootcert={}/own.crt", True),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={}/own.crt", True),
        ("127.0.0.1", "sslmode=require", True),
        ("127.0.0.1", "sslmode=disable", False),
        ("127.0.0.1", "host={}", False),
    ],
)
def test_the_connection_is_encrypted_as_sslmode_says(tls, host, query, is_encrypted):
    opened = over_tls(tls, host, query)
    sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    assert read(opened, lambda con: con.run(sql)) == [[is_encrypted]]
    opened.close()


@pytest.mark.parametrize(
    ("host", "query"),
    [
        ("localhost", "sslmode=verify-full&sslrootcert={}/other.crt"),
        ("localhost", "sslmode=verify-ca&sslrootcert={}/other.crt"),
        ("localhost", "sslmode=verify-full"),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={}/own.crt"),
    ],
)
# pg8000 leaves the socket open.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_a_wrong_certificate_is_refused(tls, host, query):
    with pytest.raises(Misconfigured, match="certificate"):
        read(over_tls(tls, host, query), lambda con: None)
    gc.collect()


def test_a_server_without_tls_is_refused_if_tls_is_required(numbers):
    with pytest.raises(Misconfigured, match="TLS"):
        read(Database(f"{numbers.url}?sslmode=require", "public"), lambda con: None)


def over_tls(tls, host: str, query: str) -> Database:
    database, folder = tls
    url = f"postgresql://{database.user}@{host}:{database.port}/{database.dbname}"
    return Database(f"{url}?{query.format(folder)}", "public")


# Rights


@pytest.fixture
def reader(postgres_server):
    """A role without any right."""
    role, password = identifier(READER), literal(PASSWORD)
    maintenance = postgres_server.maintenance
    run(maintenance, f"CREATE ROLE {role} LOGIN PASSWORD {password}")
    databases: list[postgres.Database] = []
    yield databases.append
    for database in databases:
        run(database, f"DROP OWNED BY {role}")
    run(maintenance, f"DROP ROLE {role}")


@pytest.mark.parametrize("number", ["13", pytest.param("14", marks=pytest.mark.slow)])
def test_select_and_default_privileges_are_enough(number, reader, postgres_server, moto):
    """The rights are granted before the lake is written, so every table is newer than they are."""
    (script,) = LAKES.glob(f"{number}_*.sql")
    database = postgres_server.create_database(f"select_only_{number}")
    reader(database)
    tables = f"GRANT SELECT ON TABLES TO {identifier(READER)}"
    writer = identifier(database.user)
    run(database, f"ALTER DEFAULT PRIVILEGES FOR ROLE {writer} IN SCHEMA public {tables}")
    place = f"s3://lakes/select_only_{number}"
    lake = write_lake(script.stem, script.read_text(), database, place, moto)
    truth = native.open(lake, moto)
    as_reader = replace(database, user=READER, password=PASSWORD)
    with in_process.bridge(replace(lake, database=as_reader), moto) as bridge:
        client = pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        for table in truth.tables():
            snapshots = catalog.load_table(table.namespace, table.name)["snapshots"]
            for where in [(table.namespace, table.name, s["snapshot-id"]) for s in snapshots]:
                rows = from_arrow(client.rows(*where), truth.columns(*where))
                assert not difference(truth.canonical(*where), rows), where
        client.close()
    truth.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine()",
        "UPDATE ducklake_metadata SET value = ''",
        'TRUNCATE "My Lake".ducklake_table',
    ],
)
@pytest.mark.parametrize("first", ["SELECT 1", "COMMIT"])
def test_nothing_can_be_written(statement, first, lake):
    """Not even the owner of everything can write, not even outside of the transaction."""
    database = Database(lake("40").database.url, "My Lake")
    with pytest.raises(Misconfigured, match="25006"):
        read(database, lambda con: (con.run(first), con.run(statement)))
    database.close()


def test_a_missing_grant_is_named(reader, lake):
    database = lake("40").database
    reader(database)
    run(database, f'GRANT USAGE ON SCHEMA "My Lake" TO {identifier(READER)}')
    opened = Database(replace(database, user=READER, password=PASSWORD).url, "My Lake")
    with pytest.raises(Misconfigured, match="GRANT SELECT ON ALL TABLES"):
        read(opened, queries.lake().run)
    opened.close()


# Transactions


@pytest.fixture
def numbers(postgres_server):
    database = postgres_server.create_database(f"numbers_{next(NUMBERS)}")
    run(database, "CREATE TABLE number(n int)", "INSERT INTO number VALUES (1)")
    return database


def count(con: Connection) -> int:
    [[number]] = con.run("SELECT count(*) FROM public.number")
    return number


def test_one_transaction_reads_one_snapshot(numbers):
    opened = Database(numbers.url, "public")

    def query(con: Connection) -> list[int]:
        before = count(con)
        run(numbers, "INSERT INTO number VALUES (2)", "CREATE TABLE later()")
        return [before, count(con)]

    assert read(opened, query) == [1, 1]
    assert read(opened, count) == 2
    opened.close()


ODD_DEFAULTS = {
    "TimeZone": "Asia/Kathmandu",
    "IntervalStyle": "iso_8601",
    "DateStyle": "German",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "statement_timeout": "0",
    "default_transaction_isolation": "read committed",
}


@pytest.fixture(scope="module")
def odd(postgres_server):
    database = postgres_server.create_database("odd_defaults")
    name = identifier(database.dbname)
    run(
        database,
        *(f"ALTER DATABASE {name} SET {key} = '{ODD_DEFAULTS[key]}'" for key in ODD_DEFAULTS),
    )
    opened = Database(database.url, "public", timeout_seconds=7)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SHOW transaction_isolation", "repeatable read"),
        ("SHOW transaction_read_only", "on"),
        ("SHOW statement_timeout", "7s"),
        ("SHOW application_name", "polynya"),
        ("SELECT timestamptz '2024-06-01 12:00:00.5+02' || ''", "2024-06-01 10:00:00.5+00"),
        ("SELECT date '2024-06-01' || ''", "2024-06-01"),
        ("SELECT interval '1 month 2 days 03:04:05' || ''", "1 mon 2 days 03:04:05"),
        ("SELECT (0.1::float8 + 0.2::float8) || ''", "0.30000000000000004"),
        ("SELECT decode('00ff', 'hex')", b"\x00\xff"),
        ("SELECT 'xx61'::bytea", b"xx61"),
    ],
)
def test_defaults_of_the_server_do_not_matter(odd, query, answer):
    assert read(odd, lambda con: con.run(query)) == [[answer]]


# Lost connections


def backend(con: Connection) -> int:
    [[pid]] = con.run("SELECT pg_backend_pid()")
    return pid


def test_a_terminated_connection_is_opened_again(numbers):
    opened = Database(numbers.url, "public")
    first = read(opened, backend)
    run(numbers, f"SELECT pg_terminate_backend({first}, 5000)")
    assert read(opened, backend) != first
    opened.close()


@pytest.mark.parametrize("losses", [1, 2])
def test_an_interrupted_query_is_retried_once(numbers, losses):
    opened = Database(numbers.url, "public")
    tries = []

    def query(con: Connection) -> int:
        tries.append(backend(con))
        if len(tries) <= losses:
            run(numbers, f"SELECT pg_terminate_backend({tries[-1]}, 5000)")
        return count(con)

    if losses == 1:
        assert read(opened, query) == 1
    else:
        with pytest.raises(ServiceUnavailable) as away:
            read(opened, query)
        assert away.value.retry_after
    assert len(set(tries)) == len(tries) == 2
    assert read(opened, count) == 1
    opened.close()


def with_number(con: Connection) -> list:
    return con.run("SELECT :a + 1", a=1)


def test_behind_a_pooler_statements_are_prepared_no_more(numbers):
    """It gives each transaction another connection, which does not know them."""
    opened = Database(numbers.url, "public")
    opened.keep_prepared(True)
    expected = read(opened, with_number)
    tries = []

    def query(con: Connection) -> list:
        tries.append(backend(con))
        con.run("DEALLOCATE ALL")
        return with_number(con)

    assert read(opened, query) == expected
    assert len(set(tries)) == len(tries) == 2
    for _ in range(3):
        opened.keep_prepared(True)  # as each reading of the lake does
        assert read(opened, query) == expected
    assert len(tries) == 5
    opened.close()


def test_a_commit_behind_a_pooler_is_tried_again(numbers):
    opened = Database(numbers.url, "public")
    opened.keep_prepared(True)
    read(opened, with_number)
    with pytest.raises(ConcurrentCommit), opened.transaction(BEGIN_WRITE) as con:
        con.run("DEALLOCATE ALL")
        with_number(con)
    with opened.transaction(BEGIN_WRITE) as con:
        con.run("DEALLOCATE ALL")
        with_number(con)
        assert with_number(con)
    opened.close()


def test_an_unreadable_result_is_not_taken_for_the_next_one(numbers):
    opened = Database(numbers.url, "public")
    with pytest.raises(ValueError):
        read(opened, lambda con: con.run("SELECT time '24:00:00' FROM generate_series(1, 9)"))
    assert read(opened, count) == 1
    opened.close()


def test_a_slow_query_is_cancelled(numbers):
    opened = Database(numbers.url, "public", timeout_seconds=1)
    with pytest.raises(ServiceUnavailable):
        read(opened, lambda con: con.run("SELECT pg_sleep(30)"))
    assert read(opened, count) == 1
    opened.close()


def test_a_missing_server_is_unavailable():
    with pytest.raises(ServiceUnavailable) as away:
        read(Database("postgresql://u:s3cret@127.0.0.1:1/d", "public"), count)
    assert "s3cret" not in str(away.value)


def test_a_missing_database_is_a_misconfiguration(numbers):
    with pytest.raises(Misconfigured, match="role, password or database"):
        read(Database(replace(numbers, dbname="no such").url, "public"), count)


# What PostgreSQL, or a pooler before it, answers instead: a state, a message, and the tries that a
# read makes of it; 0: another try does not help.
STATES = [
    ("08006", "connection failure", 2),
    ("08P01", "no more connections allowed (max_client_conn)", 1),
    ("08P01", "unsupported startup parameter: statement_timeout", 0),
    ("22012", "division by zero", 0),
    ("25P03", "terminating connection due to idle-in-transaction timeout", 2),
    ("40001", "canceling statement due to conflict with recovery", 2),
    ("40P01", "deadlock detected", 2),
    ("42501", "permission denied", 0),
    ("53100", "could not extend file: no space left on device", 1),
    ("53200", "out of memory", 1),
    ("53300", "sorry, too many clients already", 2),
    ("55006", "database is being accessed by other users", 1),
    ("55P03", "canceling statement due to lock timeout", 1),
    ("57014", "canceling statement due to statement timeout", 1),
    ("57P03", "the database system is starting up", 2),
    ("57P04", "the database was dropped", 0),
    ("57P05", "terminating connection due to idle-session timeout", 2),
    ("58030", "could not read block", 1),
    ("XX001", "invalid page in block", 0),
]


@pytest.mark.parametrize(("state", "message", "tries"), STATES)
def test_what_passes_by_itself_is_answered_503(refusing, state, message, tries):
    opened, attempts = refusing, []

    def query(con: Connection) -> None:
        attempts.append(state)
        con.run(f"DO $$ BEGIN RAISE {literal(message)} USING ERRCODE = {literal(state)}; END $$")

    with pytest.raises(ServiceUnavailable if tries else Misconfigured) as raised:
        read(opened, query)
    assert bool(raised.value.retry_after) == bool(tries)
    assert len(attempts) == (tries or 1) and message not in str(raised.value)


@pytest.fixture(scope="module")
def refusing(postgres_server):
    opened = Database(postgres_server.create_database("refusing").url, "public")
    yield opened
    opened.close()


def test_a_database_that_accepts_no_connections_is_unavailable(numbers, postgres_server):
    name, role = identifier(numbers.dbname), "a few connections"
    maintenance = postgres_server.maintenance
    run(maintenance, f"CREATE ROLE {identifier(role)} LOGIN CONNECTION LIMIT 0")
    run(maintenance, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    try:
        with pytest.raises(ServiceUnavailable, match="55000"):
            read(Database(numbers.url, "public"), count)
        run(maintenance, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        with pytest.raises(ServiceUnavailable, match="53300"):
            read(Database(replace(numbers, user=role).url, "public"), count)
    finally:
        run(maintenance, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        run(maintenance, f"DROP ROLE {identifier(role)}")


# Errors of our own code


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("a scratch file"),
        PermissionError("a scratch file"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "ü".encode("cp1252").decode,
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_our_own_is_not_taken_for_one_of_the_database(numbers, error):
    opened = Database(numbers.url, "public")
    tries = []

    def query(con: Connection) -> None:
        tries.append(count(con))
        raise error if isinstance(error, Exception) else error()

    with pytest.raises((OSError, UnicodeError)):
        read(opened, query)
    assert tries == [1]
    assert read(opened, count) == 1
    opened.close()


@pytest.fixture
def ascii_database(postgres_server):
    """A database that accepts any bytes as text."""
    like = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    name = f"sql_ascii_{next(NUMBERS)}"
    run(postgres_server.maintenance, f"CREATE DATABASE {name} {like}")
    postgres_server.created.append(name)
    return replace(postgres_server.maintenance, dbname=name)


def test_a_lake_in_a_sql_ascii_database_is_read(ascii_database, moto):
    """Statistics and names in it are in UTF-8, as DuckDB writes them."""
    (script,) = LAKES.glob("04_*.sql")
    place = f"s3://lakes/{ascii_database.dbname}"
    lake = write_lake(script.stem, script.read_text(), ascii_database, place, moto)
    truth = native.open(lake, moto)
    with in_process.bridge(lake, moto) as bridge:
        client = pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        for table in truth.tables():
            (*_, last) = catalog.load_table(table.namespace, table.name)["snapshots"]
            where = (table.namespace, table.name, last["snapshot-id"])
            rows = from_arrow(client.rows(*where), truth.columns(*where))
            assert not difference(truth.canonical(*where), rows), where
        client.close()
    truth.close()


def test_text_that_is_not_utf8_is_reported(ascii_database):
    run(
        ascii_database,
        r"CREATE TABLE ducklake_text AS SELECT convert_from('\xfc', 'SQL_ASCII') AS s",
    )
    opened = Database(ascii_database.url, "public")
    with pytest.raises(Misconfigured, match="not UTF-8"):
        read(opened, lambda con: con.run("SELECT s FROM ducklake_text"))
    opened.close()


# Waits


@pytest.mark.parametrize("tls", ["disable", "require"])
def test_a_server_that_never_answers_costs_no_more_than_the_budget(tls):
    with silent() as port, budget.limited(1):
        began = time.monotonic()
        with pytest.raises(ServiceUnavailable):
            read(Database(f"postgresql://u@127.0.0.1:{port}/d?sslmode={tls}", "public"), count)
        assert time.monotonic() - began < 2


def test_each_wait_also_has_its_own_limit(monkeypatch):
    """The limit ends a silently lost connection, so that it is opened again."""
    monkeypatch.setattr(database_module, "GRACE_SECONDS", 0.2)
    with silent() as port:
        began = time.monotonic()
        opened = Database(f"postgresql://u@127.0.0.1:{port}/d", "public", timeout_seconds=0.3)
        with pytest.raises(ServiceUnavailable):
            read(opened, count)
        assert 1 <= time.monotonic() - began < 2  # two attempts


@pytest.mark.parametrize("encrypted", [False, True])
def test_many_answers_in_time_stay_together_within_the_budget(encrypted, numbers, request):
    database, folder = request.getfixturevalue("tls") if encrypted else (numbers, None)
    query = f"sslmode=verify-full&sslrootcert={folder}/own.crt" if encrypted else ""
    with delaying(database.port, 0.3) as port:
        url = f"postgresql://{database.user}@localhost:{port}/{database.dbname}?{query}"
        opened = Database(url, "public", timeout_seconds=5)
        assert read(opened, backend)  # the server answers
        with budget.limited(2):
            began = time.monotonic()
            with pytest.raises(ServiceUnavailable):
                read(opened, lambda con: [backend(con) for _ in range(20)])
            assert time.monotonic() - began < 3
        assert read(opened, backend)
        opened.close()


# The schema of the catalog


@pytest.mark.parametrize(
    "schema", ["public", "My Lake", 'a"b', "a,b", "a.b", "it's", "ünï", "select", "UPPER", "a:b"]
)
def test_the_catalog_may_be_in_any_schema(schema, postgres_server):
    database = postgres_server.create_database(f"schema_{next(NUMBERS)}")
    name = identifier(schema)
    run(
        database,
        f"CREATE SCHEMA IF NOT EXISTS {name}",
        f"CREATE TABLE {name}.ducklake_metadata AS VALUES ('version', '1.0')",
        f"ALTER TABLE {name}.ducklake_metadata RENAME column1 TO key",
        f"ALTER TABLE {name}.ducklake_metadata RENAME column2 TO value",
        f"CREATE TABLE {name}.ducklake_snapshot(snapshot_id bigint)",
        f"INSERT INTO {name}.ducklake_snapshot VALUES (7)",
        f"CREATE TABLE {name}.ducklake_data_file(partial_max bigint)",
    )
    opened = Database(database.url, schema)
    found = read(opened, queries.lake().run)
    assert (found.version, found.snapshot_id) == ("1.0", 7)
    assert found.layout == {"ducklake_data_file.partial_max"}
    opened.close()


def test_a_schema_without_a_catalog_is_a_misconfiguration(numbers):
    opened = Database(numbers.url, "elsewhere")
    with pytest.raises(Misconfigured, match=r"'elsewhere'.*METADATA_SCHEMA"):
        read(opened, queries.lake().run)
    opened.close()
