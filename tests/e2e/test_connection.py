"""The connection to PostgreSQL: TLS, rights, transactions, and coming back after a loss."""

import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from pg8000.native import Connection, identifier
from polynya.ducklake import queries
from polynya.ducklake.connection import Database, connection_arguments
from polynya.errors import Misconfigured, PolynyaError, ServiceUnavailable

from local import postgres
from local.canonical import difference, from_arrow
from local.clients import native, pyiceberg, rest
from local.lakes import write_lake
from local.serving import serving

READER, PASSWORD = "polynya reader", "p@ss/w:rd %20'+"
UNVERIFIED = "the certificate|SSL certificate"


def run(database: postgres.Database, *statements: str) -> list:
    con = database.connect()
    try:
        return [con.run(sql) for sql in statements][-1]
    finally:
        con.close()


# What a URL says


def tls_of(url: str) -> tuple[bool, bool] | None:
    """Whether the certificate and the host name are checked; None without TLS."""
    context = connection_arguments(url).get("ssl_context")
    return context and (context.verify_mode == ssl.CERT_REQUIRED, context.check_hostname)


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
def test_tls_is_on_and_checked_unless_the_host_is_local_or_the_url_says_otherwise(url, tls):
    assert tls_of(url) == tls


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("postgres://u:p%40ss%2Fw%3Ard%20%2520'+@h:6543/d", {"password": "p@ss/w:rd %20'+"}),
        ("postgresql://a%40b@h/my%20lake", {"user": "a@b", "database": "my lake", "port": 5432}),
        ("postgresql://u@h:6543/d?sslmode=disable", {"host": "h", "port": 6543, "password": None}),
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
def test_a_url_that_cannot_be_used_is_refused_without_being_shown(url):
    with pytest.raises(Misconfigured) as refused:
        Database(url, "public")
    assert "s3cret" not in str(refused.value) and refused.value.__cause__ is None


# TLS


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
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setitem(postgres.SETTINGS, name, value)
        with postgres._own_server() as database:
            yield database, folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("host", "query", "outcome"),
    [
        ("localhost", "sslmode=verify-full&sslrootcert={}/own.crt", True),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={}/own.crt", True),
        ("127.0.0.1", "sslmode=require", True),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "host={}", False),
        ("localhost", "sslmode=verify-full&sslrootcert={}/other.crt", UNVERIFIED),
        ("localhost", "sslmode=verify-ca&sslrootcert={}/other.crt", UNVERIFIED),
        ("localhost", "sslmode=verify-full", UNVERIFIED),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={}/own.crt", UNVERIFIED),
    ],
)
def test_the_certificate_is_checked_as_sslmode_says(tls, host, query, outcome):
    database, folder = tls
    url = f"postgresql://{database.user}@{host}:{database.port}/{database.dbname}?"
    asked = Database(url + query.format(folder), "public")
    question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    try:
        if isinstance(outcome, str):
            with pytest.raises(Misconfigured, match=outcome):
                asked.read(lambda con: con.run(question))
        else:
            assert asked.read(lambda con: con.run(question)) == [[outcome]]
    finally:
        asked.close()


def test_a_server_without_tls_is_said_to_have_none(postgres_server):
    url = postgres_server.create_database("without_tls").url
    with pytest.raises(Misconfigured, match="TLS"):
        Database(f"{url}?sslmode=require", "public").read(lambda con: None)


# Rights


@pytest.fixture
def reader(postgres_server):
    """A role that may nothing yet."""
    role = identifier(READER)
    maintenance = postgres_server.maintenance
    run(
        maintenance, f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'"
    )
    databases: list[postgres.Database] = []
    yield databases.append
    for database in databases:
        run(database, f"DROP OWNED BY {role}")
    run(maintenance, f"DROP ROLE {role}")


def grants(writer: str) -> list[str]:
    role = identifier(READER)
    tables = f"GRANT SELECT ON TABLES TO {role}"
    return [f"ALTER DEFAULT PRIVILEGES FOR ROLE {identifier(writer)} IN SCHEMA public {tables}"]


@pytest.mark.parametrize("number", ["13", "14"])
def test_select_and_default_privileges_are_enough(number, reader, postgres_server, moto):
    """They are given before the lake is there, so every table of it is one that came later."""
    (script,) = Path("tests/lakes").glob(f"{number}_*.sql")
    database = postgres_server.create_database(f"select_only_{number}")
    reader(database)
    run(database, *grants(database.user))
    lake = write_lake(script, database, f"s3://lakes/select_only_{number}", moto)
    truth = native.open(lake, moto)
    as_reader = replace(database, user=READER, password=PASSWORD)
    with serving(as_reader.url, moto) as bridge:
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
    ["CREATE TABLE mine()", "UPDATE ducklake_metadata SET value = ''", "TRUNCATE ducklake_table"],
)
@pytest.mark.parametrize("first", ["SELECT 1", "COMMIT"])
def test_nothing_can_be_written(statement, first, lake):
    """Even by the owner of everything, and even outside of the transaction."""
    database = Database(lake("40").database.url, "My Lake")
    with pytest.raises(Misconfigured, match="25006"):
        database.read(lambda con: (con.run(first), con.run(statement)))
    database.close()


def test_a_missing_grant_is_named(reader, lake):
    database = lake("40").database
    reader(database)
    run(database, f'GRANT USAGE ON SCHEMA "My Lake" TO {identifier(READER)}')
    asked = Database(replace(database, user=READER, password=PASSWORD).url, "My Lake")
    with pytest.raises(Misconfigured, match="GRANT SELECT ON ALL TABLES"):
        asked.read(queries.lake)
    asked.close()


# Transactions


@pytest.fixture
def numbers(postgres_server, request):
    database = postgres_server.create_database(f"numbers_{abs(hash(request.node.name))}")
    run(database, "CREATE TABLE number(n int)", "INSERT INTO number VALUES (1)")
    return database


def count(con: Connection) -> int:
    [[number]] = con.run("SELECT count(*) FROM number")
    return number


def test_one_answer_is_one_view(numbers):
    asked = Database(numbers.url, "public")

    def question(con: Connection) -> list[int]:
        before = count(con)
        run(numbers, "INSERT INTO number VALUES (2)", "CREATE TABLE later()")
        return [before, count(con)]

    assert asked.read(question) == [1, 1]
    assert asked.read(count) == 2
    asked.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("transaction_isolation", "repeatable read"),
        ("transaction_read_only", "on"),
        ("TimeZone", "UTC"),
        ("IntervalStyle", "postgres"),
        ("DateStyle", "ISO, MDY"),
        ("bytea_output", "hex"),
        ("extra_float_digits", "1"),
        ("statement_timeout", "25s"),
        ("application_name", "polynya"),
    ],
)
def test_what_the_server_has_as_default_does_not_matter(setting, value, postgres_server):
    odd = {
        "TimeZone": "Asia/Kathmandu",
        "IntervalStyle": "iso_8601",
        "DateStyle": "German",
        "bytea_output": "escape",
        "extra_float_digits": "-3",
        "statement_timeout": "0",
        "default_transaction_isolation": "read committed",
    }
    database = postgres_server.create_database(f"odd_{setting.lower()}")
    name = identifier(database.dbname)
    run(database, *(f"ALTER DATABASE {name} SET {key} = '{odd[key]}'" for key in odd))
    asked = Database(database.url, "public")
    assert asked.read(lambda con: con.run(f"SHOW {setting}")) == [[value]]
    asked.close()


# Losses


def backend(con: Connection) -> int:
    [[pid]] = con.run("SELECT pg_backend_pid()")
    return pid


def test_a_connection_that_was_ended_is_opened_again(numbers):
    asked = Database(numbers.url, "public")
    first = asked.read(backend)
    run(numbers, f"SELECT pg_terminate_backend({first}, 5000)")
    assert asked.read(backend) != first
    asked.close()


@pytest.mark.parametrize("losses", [1, 2])
def test_a_question_that_was_cut_off_is_asked_once_more(numbers, losses):
    asked = Database(numbers.url, "public")
    tries = []

    def question(con: Connection) -> int:
        tries.append(backend(con))
        if len(tries) <= losses:
            run(numbers, f"SELECT pg_terminate_backend({tries[-1]}, 5000)")
        return count(con)

    if losses == 1:
        assert asked.read(question) == 1
    else:
        with pytest.raises(ServiceUnavailable) as away:
            asked.read(question)
        assert away.value.retry_after
    assert len(set(tries)) == len(tries) == 2
    assert asked.read(count) == 1
    asked.close()


def test_a_query_that_takes_too_long_is_ended(numbers):
    asked = Database(numbers.url, "public", timeout_seconds=1)
    with pytest.raises(ServiceUnavailable):
        asked.read(lambda con: con.run("SELECT pg_sleep(30)"))
    assert asked.read(count) == 1
    asked.close()


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(ServiceUnavailable) as away:
        Database("postgresql://u:s3cret@127.0.0.1:1/d", "public").read(count)
    assert "s3cret" not in str(away.value)


def test_a_database_that_is_not_there_is_a_mistake(numbers):
    with pytest.raises(Misconfigured, match="role, password or database"):
        Database(replace(numbers, dbname="no such").url, "public").read(count)


# The schema of the catalog


@pytest.mark.parametrize(
    "schema", ["public", "My Lake", 'a"b', "a,b", "a.b", "it's", "ünï", "select", "UPPER", "a:b"]
)
def test_the_catalog_may_be_in_any_schema(schema, postgres_server):
    database = postgres_server.create_database(f"schema_{abs(hash(schema))}")
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
    asked = Database(database.url, schema)
    found = asked.read(queries.lake)
    assert (found.version, found.snapshot_id) == ("1.0", 7)
    assert found.layout == {"ducklake_data_file.partial_max"}
    asked.close()


def test_a_schema_without_a_catalog_is_a_mistake(numbers):
    asked = Database(numbers.url, "elsewhere")
    with pytest.raises(Misconfigured, match="'elsewhere'.*METADATA_SCHEMA"):
        asked.read(queries.lake)
    asked.close()
