"""docs/team.md as far as it runs without containers: nginx as docs/docker/nginx.conf says, in front
of a server that reads and one that writes, with PyIceberg, DuckDB and Spark through TLS and tokens.
"""

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import duckdb
import pyarrow
import pytest
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.clients.spark import EXTENSIONS, catalog_settings
from polynya_local.clients.spark_jars import jars, why_not
from polynya_local.processes.postgres import Database, free_port
from polynya_local.processes.serving import COMMAND, KEY_ID, REGION, SECRET, serving
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import UnauthorizedError

from tests.support.lakes import BUCKET

ROOT = Path(__file__).parents[2]
NGINX = ROOT / "docs/docker/nginx.conf"
READS, WRITES = "7c3f-of-ada", "91ab-of-bob"
CALLERS = f'"Bearer {READS}" ada-reads;\n"Bearer {WRITES}" bob-writes;\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx: apt-get install nginx"),
]


@dataclass(frozen=True, slots=True)
class Team:
    """What a member of the team is given."""

    uri: str
    certificate: Path
    s3_endpoint: str
    calls: Path
    """The log of the proxy."""

    def pyiceberg(self, **given: str) -> Catalog:
        return load_catalog(
            "lake",
            **{
                "type": "rest",
                "uri": self.uri,
                "warehouse": "lake",
                "ssl": {"cabundle": str(self.certificate)},
                "s3.endpoint": self.s3_endpoint,
                "s3.region": REGION,
                "s3.access-key-id": KEY_ID,
                "s3.secret-access-key": SECRET,
                **given,
            },
        )

    def duckdb(self, token: str) -> duckdb.DuckDBPyConnection:
        con = connect(("httpfs", "avro", "iceberg"), self.s3_endpoint)
        con.execute(f"SET ca_cert_file = {literal(str(self.certificate))}")
        con.execute(f"CREATE SECRET token (TYPE iceberg, TOKEN {literal(token)})")
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(self.uri)}, SECRET token, "
            "ACCESS_DELEGATION_MODE 'none', DEFAULT_SCHEMA 'main', REMOVE_FILES_ON_DELETE false)"
        )
        return con

    def status(self, path: str, authorization: str = "") -> int:
        headers = {"Authorization": authorization} if authorization else {}
        context = ssl.create_default_context(cafile=self.certificate)
        try:
            with urlopen(Request(self.uri + path, headers=headers), context=context) as answer:
                return answer.status
        except HTTPError as error:
            with error:
                return error.code


@pytest.fixture(scope="module")
def team(postgres_server, moto, tmp_path_factory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("team")
    database = postgres_server.create_database("team")
    owner, reader = with_roles(database)
    with closing(connect(LAKE, moto)) as con:
        con.execute(
            f"ATTACH 'ducklake:postgres:{owner.libpq}' AS lake (DATA_PATH 's3://{BUCKET}/team/')"
        )
        con.execute("CREATE TABLE lake.birds AS SELECT 1 AS id, 'smew' AS name")
    setup = [*COMMAND, "writes", "--setup", "--database", owner.url]
    subprocess.run(setup, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # before PyIceberg's own setting
            patch.delenv(name, raising=False)
        reads = stack.enter_context(serving(reader.url, moto))
        writes = stack.enter_context(serving(owner.url, moto, writes=True, page=False))
        ports = {"8181": reads.catalog_uri, "8191": writes.catalog_uri}
        port = stack.enter_context(proxy(folder, ports))
        uri = f"https://localhost:{port}"
        yield Team(uri, folder / "certificate.pem", moto, folder / "calls")


def with_roles(database: Database) -> tuple[Database, Database]:
    """The owner of DuckLake's tables, and a role that reads them."""
    for statement in (
        "CREATE ROLE team_writer LOGIN",
        "CREATE ROLE team_reader LOGIN",
        "GRANT CREATE, USAGE ON SCHEMA public TO team_writer",
        "GRANT USAGE ON SCHEMA public TO team_reader",
        "ALTER DEFAULT PRIVILEGES FOR ROLE team_writer IN SCHEMA public "
        "GRANT SELECT ON TABLES TO team_reader",
    ):
        database.run(statement)
    return tuple(
        Database(database.host, database.port, role, database.dbname)
        for role in ("team_writer", "team_reader")
    )


@contextmanager
def proxy(folder: Path, ports: dict[str, str]) -> Iterator[int]:
    """The port of nginx with the configuration of the document, but for ports and files."""
    port, text = free_port(), NGINX.read_text()
    for documented, uri in ports.items():
        assert f"127.0.0.1:{documented}" in text
        text = text.replace(f"127.0.0.1:{documented}", uri.removeprefix("http://"))
    text = text.replace("listen 8443", f"listen 127.0.0.1:{port}")
    text = text.replace("/dev/stdout", str(folder / "calls"))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    text = text.replace("http {", "http {" + paths)
    (folder / "nginx.conf").write_text(text)
    (folder / "callers").write_text(CALLERS)
    command = ["openssl", "passwd", "-apr1", "a password"]
    hashed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (folder / "passwords").write_text(f"ada:{hashed}")
    subprocess.run(
        [
            *[
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "1",
                "-subj",
                "/CN=localhost",
            ],
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", folder / "key.pem", "-out", folder / "certificate.pem"),
        ],
        check=True,
        capture_output=True,
    )
    user = "user root;" if os.geteuid() == 0 else ""
    directives = f"daemon off; {user} pid {folder}/pid; error_log {folder}/errors;"
    words = ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-g", directives]
    process = subprocess.Popen(words)
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        assert process.wait(20) == 0


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        with (
            suppress(OSError),
            urlopen(f"https://localhost:{port}/health", context=ssl._create_unverified_context()),
        ):
            return
        time.sleep(0.1)
    raise AssertionError("nginx does not start")


def test_who_has_no_token_gets_nothing(team):
    for token in ({}, {"token": "another"}, {"token": READS[:-1]}):
        with pytest.raises(UnauthorizedError):
            team.pyiceberg(**token)
    with pytest.raises(duckdb.Error, match=r"401|Unauthorized"):
        team.duckdb("another")
    assert team.status("/v1/config?warehouse=lake", f"Basic {READS}") == 401


def test_a_reader_reads_and_cannot_write(team):
    table = team.pyiceberg(token=READS).load_table("main.birds")
    assert (1, "smew") in {(row["id"], row["name"]) for row in table.scan().to_arrow().to_pylist()}
    with pytest.raises(NotImplementedError, match="does not support endpoint: POST"):
        table.append(pyarrow.table({"id": pyarrow.array([9], pyarrow.int32()), "name": ["teal"]}))
    with closing(team.duckdb(READS)) as con:
        assert (1, "smew") in con.execute("FROM ice.birds").fetchall()
        with pytest.raises(duckdb.Error, match="Forbidden"):
            con.execute("INSERT INTO ice.birds VALUES (9, 'teal')")
    assert " ada-reads " in team.calls.read_text()


def test_a_writer_writes(team):
    table = team.pyiceberg(token=WRITES).load_table("main.birds")
    table.append(pyarrow.table({"id": pyarrow.array([2], pyarrow.int32()), "name": ["eider"]}))
    with closing(team.duckdb(WRITES)) as con:
        con.execute("INSERT INTO ice.birds VALUES (3, 'scoter')")
        con.execute("DELETE FROM ice.birds WHERE id = 2")
    with closing(team.duckdb(READS)) as con:
        rows = con.execute("FROM ice.birds ORDER BY id").fetchall()
    assert rows == [(1, "smew"), (3, "scoter")]
    assert " bob-writes " in team.calls.read_text()


SPARK = """
import json, sys
from pyspark.sql import SparkSession

settings = json.loads(sys.argv[1])
spark = SparkSession.builder.config(map=settings).getOrCreate()
spark.sql("INSERT INTO ice.main.ducks VALUES (2, 'eider')")
print(json.dumps([list(row) for row in spark.table("ice.main.ducks").orderBy("id").collect()]))
"""


@pytest.mark.spark
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_spark_writes_with_a_token(team, tmp_path):
    team.pyiceberg(token=WRITES).create_table(
        "main.ducks", pyarrow.schema([("id", pyarrow.int32()), ("name", pyarrow.string())])
    ).append(pyarrow.table({"id": pyarrow.array([1], pyarrow.int32()), "name": ["smew"]}))
    store = ["-keystore", str(tmp_path / "trusted.p12"), "-storepass", "changeit"]
    command = ["keytool", "-importcert", "-noprompt", "-alias", "lake", "-file", team.certificate]
    subprocess.run([*command, *store], check=True, capture_output=True)
    of_catalog = {"token": WRITES, **catalog_settings(team.uri, "lake", team.s3_endpoint)}
    trusted = f"-Djavax.net.ssl.trustStore={tmp_path}/trusted.p12 "
    trusted += "-Djavax.net.ssl.trustStorePassword=changeit"
    settings = {
        "spark.jars": ",".join(map(str, jars() or [])),
        "spark.sql.extensions": EXTENSIONS,
        "spark.driver.extraJavaOptions": trusted,
        "spark.ui.enabled": "false",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        **{f"spark.sql.catalog.ice.{name}": value for name, value in of_catalog.items()},
    }
    ended = subprocess.run(
        [sys.executable, "-c", SPARK, json.dumps(settings)],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [[1, "smew"], [2, "eider"]]
    snapshot = team.pyiceberg(token=READS).load_table("main.ducks").current_snapshot()
    assert snapshot.summary["engine-name"] == "spark"


def test_a_browser_has_a_password(team):
    password = base64.b64encode(b"ada:a password").decode()
    for path in ("/", "/tables/main/birds", "/metrics"):
        assert team.status(path) == 401
        assert team.status(path, f"Bearer {READS}") == 401
        assert team.status(path, f"Basic {password}") == 200
    assert team.status("/health") == 200
