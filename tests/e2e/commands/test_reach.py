"""A command that cannot reach its lake reports host, port and reason, and never the password."""

import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from polynya.ducklake.connection.database import Database
from polynya.runtime.errors import PolynyaError
from polynya_local import reach
from polynya_local import serve as serving
from polynya_local.cli import app
from polynya_local.processes import postgres
from polynya_local.processes.serving import COMMAND, environment
from polynya_local.server.uvicorn_server import port_of
from typer.testing import CliRunner

from tests.support.lakes import BUCKET
from tests.support.writes.transactions import read

RULES = """
host all barred 127.0.0.1/32 reject
host all guarded 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""
LAKES = ("My Lake", "b")


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL that requires a password from one role and rejects another role."""
    owner = postgres._owner()
    folder = Path(
        tempfile.mkdtemp(prefix="polynya-rules-", dir=postgres._traversable_folder(owner))
    )
    rules = folder / "pg_hba.conf"
    rules.write_text(RULES)
    rules.chmod(0o644)
    folder.chmod(0o755)
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(postgres.SETTINGS, "hba_file", str(rules))
            database = stack.enter_context(postgres._own_server())
        with closing(database.connect()) as con:
            con.run("CREATE ROLE guarded LOGIN PASSWORD 'right'")
            con.run("CREATE ROLE barred LOGIN")
            con.run("CREATE DATABASE lakes")
            con.run("CREATE DATABASE empty")
        with closing(in_database(database, "lakes")) as con:
            for schema in LAKES:
                con.run(f'CREATE SCHEMA "{schema}"')
                con.run(f'CREATE TABLE "{schema}".ducklake_metadata(key text)')
        yield database
    shutil.rmtree(folder)


def in_database(server, name: str):
    return postgres.Database(server.host, server.port, server.user, name).connect()


@pytest.fixture
def closed_port() -> int:
    return postgres.free_port()


@pytest.fixture
def no_postgres():
    """The port of a server that ends each connection as soon as it receives data."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            while True:
                connection, _ = listener.accept()
                connection.recv(100)
                connection.close()
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


# (URL, address, the rest of the message)
CASES = [
    ("postgresql://u:s3cret@127.0.0.1:{closed}/d", "127.0.0.1:{closed}", "connection refused"),
    ("postgresql://u:s3cret@x.invalid/d?sslmode=disable", "x.invalid:5432", "unknown host"),
    (
        "postgresql://u:s3cret@{long}/d?sslmode=disable",
        "{long}:5432",
        "not a host name",
    ),
    ("postgresql://u:s3cret@/d?host=/no/such/folder", "/no/such/folder/", "no such socket"),
    (
        "postgresql://guarded:s3cret@127.0.0.1:{port}/lakes",
        "127.0.0.1:{port}",
        'password authentication failed for user "guarded"',
    ),
    (
        "postgresql://guarded@127.0.0.1:{port}/lakes",
        "127.0.0.1:{port}",
        'password authentication failed for user "guarded"; DATABASE_URL has no password',
    ),
    (
        "postgresql://barred:s3cret@127.0.0.1:{port}/lakes",
        "127.0.0.1:{port}",
        'pg_hba.conf rejects connection for host "127.0.0.1", user "barred"',
    ),
    (
        "postgresql://nobody:s3cret@127.0.0.1:{port}/lakes",
        "127.0.0.1:{port}",
        'role "nobody" does not exist',
    ),
    (
        "postgresql://postgres:s3cret@127.0.0.1:{port}/nowhere",
        "127.0.0.1:{port}",
        'database "nowhere" does not exist',
    ),
    (
        "postgresql://guarded:right@127.0.0.1:{port}/lakes",
        "127.0.0.1:{port}",
        "no DuckLake catalog in the PostgreSQL schema 'public' of the database 'lakes' at "
        "127.0.0.1:{port}; schemas that have one: 'My Lake', 'b'",
    ),
    (
        "postgresql://postgres@127.0.0.1:{port}/empty",
        "127.0.0.1:{port}",
        "no other schema has one",
    ),
    ("postgresql://u:s3cret@127.0.0.1:{odd}/d", "127.0.0.1:{odd}", "is not PostgreSQL"),
]


@pytest.mark.parametrize(("url", "place", "words"), CASES)
def test_the_reason_for_a_failed_connection_is_reported(
    url, place, words, server, closed_port, no_postgres
):
    given = {"port": server.port, "closed": closed_port, "odd": no_postgres, "long": "h" * 70}
    with pytest.raises(PolynyaError) as said:
        reach.check(url.format(**given), "public")
    message = str(said.value)
    assert place.format(**given) in message and words.format(**given) in message
    assert "s3cret" not in message and "right" not in message and "\n" not in message


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # pg8000 leaves it open
def test_a_server_that_never_answers_times_out(monkeypatch):
    monkeypatch.setattr(reach, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PolynyaError, match=f"127.0.0.1:{port} cannot be reached: no answer"):
            reach.check(f"postgresql://u:s3cret@127.0.0.1:{port}/d", "public")


def test_a_reachable_lake_is_no_error(server):
    for schema in LAKES:
        reach.check(f"postgresql://guarded:right@127.0.0.1:{server.port}/lakes", schema)


# Passwords with characters that have to be escaped: the rest of them looks like host or port.
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:1/s3cret@127.0.0.1/d?sslmode=disable",
        "postgresql://u:1/x?s3cret@127.0.0.1/d",
        "postgresql://u:1/x#s3cret@127.0.0.1/d",
        "postgresql://u:1@localhost/s3cret@127.0.0.1/d",
    ],
)
def test_parts_of_a_password_are_not_reported_as_a_host(url):
    with pytest.raises(PolynyaError) as said:
        reach.check(url, "public")
    assert "%2F" in str(said.value) and "s3cret" not in str(said.value)


@pytest.mark.parametrize("command", ["serve", "doctor", "indexes", "inspect t"])
def test_every_command_reports_it(command, closed_port):
    url = f"postgresql://u:s3cret@127.0.0.1:{closed_port}/d"
    done = CliRunner().invoke(app, [*command.split(), "--database", url])
    assert done.exit_code == 1 and "s3cret" not in done.output
    assert f"127.0.0.1:{closed_port} cannot be reached: connection refused" in done.output


def test_serve_reports_it_in_one_line(closed_port):
    url = f"postgresql://u:s3cret@127.0.0.1:{closed_port}/d"
    command = [*COMMAND, "serve", "--port", "0"]
    env = environment({"DATABASE_URL": url})
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"polynya: the catalog database at 127.0.0.1:{closed_port} cannot be reached: connection "
        "refused\n"
    )


def test_errors_of_the_functions_do_not_name_the_database(server, closed_port):
    ports = {
        "postgres:s3cret@127.0.0.1:{}/d": closed_port,
        "postgres@127.0.0.1:{}/nowhere": server.port,
        "guarded:s3cret@127.0.0.1:{}/nowhere": server.port,
        "guarded@127.0.0.1:{}/nowhere": server.port,
    }
    for url, port in ports.items():
        with pytest.raises(PolynyaError) as said:
            read(Database("postgresql://" + url.format(port), "public"), lambda con: None)
        message = str(said.value)
        assert "127.0.0.1" not in message and str(port) not in message and "nowhere" not in message


def test_the_command_prints_its_version():
    pyproject = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0 and f'\nversion = "{done.output.split()[1]}"\n' in pyproject
    assert done.output.startswith("polynya ")


# S3


def serve(url: str, *words: str, **env: str | None):
    """`polynya serve` for a command that ends, with no credentials but those in `env`."""
    nothing = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"))
    files = {"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}
    env = {**nothing, **files, "AWS_EC2_METADATA_DISABLED": "true", **env}
    return CliRunner().invoke(app, ["serve", url, "--port", "0", *words], env=env)


KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s3cret"}
STORES = [  # what is wrong; variables; what the only line says
    ("", {}, "there are no credentials for S3, where the lake's data is: set AWS_ACCESS_KEY_ID"),
    ("profile", {"AWS_PROFILE": "mine"}, "cannot be read: The config profile (mine) could not be"),
    ("port", KEYS, "cannot be read: Could not connect to the endpoint URL"),
    ("url", KEYS, "cannot be read: Invalid endpoint: nonsense"),
    ("bucket", KEYS, "has no bucket 'no-such-bucket'"),
    ("empty lake", KEYS, "has no bucket 'no-such-bucket'"),
]


@pytest.mark.parametrize(("wrong", "env", "words"), STORES)
def test_a_store_that_cannot_be_read_ends_serve_with_a_sentence(
    wrong, env, words, lake, moto, closed_port
):
    served = lake.fresh("01") if wrong in {"bucket", "empty lake"} else lake("01")
    if served.database != lake("01").database:
        sql = "UPDATE ducklake_metadata SET value = 's3://no-such-bucket/x/' WHERE key = :key"
        served.database.run(sql, key="data_path")
    if wrong == "empty lake":
        served.database.run("DELETE FROM ducklake_data_file")
    endpoint = {"port": f"http://127.0.0.1:{closed_port}", "url": "nonsense"}.get(wrong, moto)
    done = serve(served.database.url, "--s3-endpoint", endpoint, **env)
    [line] = done.stderr.splitlines()
    assert done.exit_code == 1 and words in line and "s3cret" not in line


ANSWERS = [  # an answer of S3 as its documentation has it; whether it concerns all files; words
    ("InvalidAccessKeyId", 403, True, "does not accept the credentials"),
    ("ExpiredToken", 400, True, "does not accept the credentials"),
    ("AccessDenied", 403, True, "s3:GetObject"),
    ("PermanentRedirect", 301, True, "answers PermanentRedirect"),
    ("NoSuchKey", 404, False, "a file that the catalog names is gone"),
]


@pytest.mark.parametrize(("code", "status", "is_for_all", "words"), ANSWERS)
def test_an_answer_of_s3_gets_a_sentence(code, status, is_for_all, words):
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    try:
        said = (False, str(reach._answered("Amazon S3", "b", "k", response)))
    except PolynyaError as error:
        said = (True, str(error))
    assert said[0] == is_for_all and words in said[1]


def test_one_lost_file_does_not_end_serve(moto):
    problem = reach.check_store(BUCKET, "no/such/file.parquet", moto)
    assert (
        problem == f"a file that the catalog names is gone from the bucket '{BUCKET}' (NoSuchKey)"
    )
    assert reach.check_store(BUCKET, None, moto) is None


def test_without_a_port_the_next_free_one_is_taken(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1] - 1  # where S3 would be
        monkeypatch.setattr(serving, "PORTS", range(port, port + 20, 2))
        with serving.bound_sockets(None, "127.0.0.1") as (catalog, s3):
            assert port < (found := port_of(catalog)) == port_of(s3) - 1
        said = capsys.readouterr().err
    assert said == (
        f"polynya: port {port} or {port + 1} is taken; the catalog is at port {found}\n"
    )


def test_a_taken_port_is_noticed_before_the_lake_is_opened(tmp_path):
    lake = tmp_path / "broken.db"  # it looks like DuckDB's, and cannot be opened
    lake.write_bytes(b"\0" * 8 + b"DUCK")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = CliRunner().invoke(app, ["serve", str(lake), "--port", str(port)])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"polynya: port {port} or {port + 1} is taken")
