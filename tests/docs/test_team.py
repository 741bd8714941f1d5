"""docs/team.md as far as it runs without containers: the command of docs/docker/compose.yaml with a
certificate and the policy of the document, and PyIceberg, DuckDB and Spark through TLS and tokens.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import duckdb
import pyarrow
import pytest
import requests
import yaml
from polynya_local.clients.duckdb import ICEBERG, LAKE, connect, literal
from polynya_local.clients.spark import EXTENSIONS
from polynya_local.clients.spark_jars import jars, why_not
from polynya_local.processes.postgres import Database
from polynya_local.processes.serving import COMMAND, serving
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, UnauthorizedError

from tests.support.lakes import BUCKET

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/team.md").read_text()
SERVICE = yaml.safe_load((ROOT / "docs/docker/compose.yaml").read_text())["services"]["polynya"]

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Team:
    """What a member of the team is given."""

    uri: str
    certificate: Path
    audit: Path
    ada: str
    """A token that reads one table."""
    job: str
    """One that writes all."""

    def pyiceberg(self, **given: str) -> Catalog:
        ssl = {"cabundle": str(self.certificate)}
        return load_catalog(
            "lake", **{"type": "rest", "uri": self.uri, "warehouse": "lake", "ssl": ssl, **given}
        )

    def duckdb(self, token: str) -> duckdb.DuckDBPyConnection:
        con = connect(ICEBERG)
        con.execute(f"SET ca_cert_file = {literal(str(self.certificate))}")
        con.execute(f"CREATE SECRET token (TYPE iceberg, TOKEN {literal(token)})")
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(self.uri)}, SECRET token, "
            "DEFAULT_SCHEMA 'main')"
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
def team(postgres_server, moto, certificate, tmp_path_factory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("team")
    owner = with_owner(postgres_server.create_database("team"))
    with closing(connect(LAKE, moto)) as con:
        con.execute(
            f"ATTACH 'ducklake:postgres:{owner.libpq}' AS lake (DATA_PATH 's3://{BUCKET}/team/')"
        )
        con.execute("CREATE TABLE lake.birds AS SELECT 1 AS id, 'smew' AS name")
        con.execute("CREATE TABLE lake.eggs AS SELECT 1 AS id")
    access = folder / "access"
    access.mkdir()
    shutil.copy(certificate.chain, access)
    shutil.copy(certificate.key, access)
    [policy] = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    (access / "policy.json").write_text(policy)
    (access / "secret").write_bytes(os.urandom(32).hex().encode())
    ada, job = (made(name, access / "tokens") for name in ("ada", "nightly-job"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"):  # before the others
            patch.delenv(name, raising=False)
        with serving(owner.url, moto, delivery="object-lambda", options=options(access)) as bridge:
            uri = bridge.catalog_uri.replace("127.0.0.1", "localhost")
            yield Team(uri, access / "certificate.pem", access / "audit.log", ada, job)


def options(access: Path) -> tuple[str, ...]:
    """The command of the compose file, but for the addresses, and the audit log in a file."""
    words = [word.replace("/access/", f"{access}/") for word in SERVICE["command"]]
    others = ("--s3-endpoint=", "--public-uri=")
    assert sum(word.startswith(others) for word in words) == len(others)
    same = [word for word in words if not word.startswith(others)]
    return (*same, f"--audit-log={access / 'audit.log'}")


def made(name: str, file: Path) -> str:
    command = [*COMMAND, "token", name, "--file", str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def with_owner(database: Database) -> Database:
    """The owner of DuckLake's tables, as whom the server connects."""
    for statement in (
        "CREATE ROLE team_writer LOGIN",
        "GRANT CREATE, USAGE ON SCHEMA public TO team_writer",
    ):
        database.run(statement)
    return Database(database.host, database.port, "team_writer", database.dbname)


def test_who_has_no_token_gets_nothing(team):
    for token in ({}, {"token": "another"}, {"token": team.ada[:-1]}):
        with pytest.raises(UnauthorizedError):
            team.pyiceberg(**token)
    with pytest.raises(duckdb.Error, match=r"401|Unauthorized"):
        team.duckdb("another")
    assert team.status("/v1/config?warehouse=lake", f"Basic {team.ada}") == 401
    assert team.status("/health") == 200
    assert (team.status("/metrics"), team.status("/metrics", f"Bearer {team.ada}")) == (401, 200)


def test_a_reader_reads_one_table_and_cannot_write(team):
    catalog = team.pyiceberg(token=team.ada)
    assert catalog.list_tables("main") == [("main", "birds")]
    table = catalog.load_table("main.birds")
    assert (1, "smew") in {(row["id"], row["name"]) for row in table.scan().to_arrow().to_pylist()}
    with pytest.raises(NoSuchTableError):
        catalog.load_table("main.eggs")
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        table.append(pyarrow.table({"id": pyarrow.array([9], pyarrow.int32()), "name": ["teal"]}))
    with closing(team.duckdb(team.ada)) as con:
        assert (1, "smew") in con.execute("FROM ice.birds").fetchall()
        with pytest.raises(duckdb.Error, match=r"these keys are for the files of one table|403"):
            con.execute("INSERT INTO ice.birds VALUES (9, 'teal')")
    assert '"who": "token=ada"' in team.audit.read_text()


def test_a_writer_writes(team):
    table = team.pyiceberg(token=team.job).load_table("main.birds")
    table.append(pyarrow.table({"id": pyarrow.array([2], pyarrow.int32()), "name": ["eider"]}))
    with closing(team.duckdb(team.job)) as con:
        con.execute("INSERT INTO ice.birds VALUES (3, 'scoter')")
        con.execute("DELETE FROM ice.birds WHERE id = 2")
    with closing(team.duckdb(team.ada)) as con:
        rows = con.execute("FROM ice.birds ORDER BY id").fetchall()
    assert rows == [(1, "smew"), (3, "scoter")]
    assert '"who": "token=nightly-job"' in team.audit.read_text()


def test_the_page_shows_a_reader_one_table(team):
    """Rows and SQL are read through TLS, as the document says."""
    with requests.Session() as browser:
        browser.verify = str(team.certificate)
        for token, status in (("x", 401), (team.ada, 303)):
            form = {"token": token, "next": "/"}
            answer = browser.post(f"{team.uri}/login", data=form, allow_redirects=False)
            assert answer.status_code == status
        assert answer.headers["Set-Cookie"].startswith("__Host-polynya-session=")
        report = browser.get(f"{team.uri}/?format=json").json()
        assert [line["name"] for line in report["lines"]] == ["birds"]
        assert browser.get(f"{team.uri}/tables/main/eggs").status_code == 404
        for path in ("/sql?query=SELECT+count(*)+AS+n+FROM+birds&", "/tables/main/birds/rows?"):
            while (answer := browser.get(f"{team.uri}{path}format=json")).status_code == 202:
                time.sleep(1)
            assert answer.json()["answer"]["notes"] == {}, path


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
    team.pyiceberg(token=team.job).create_table(
        "main.ducks", pyarrow.schema([("id", pyarrow.int32()), ("name", pyarrow.string())])
    ).append(pyarrow.table({"id": pyarrow.array([1], pyarrow.int32()), "name": ["smew"]}))
    store = ["-keystore", str(tmp_path / "trusted.p12"), "-storepass", "changeit"]
    command = ["keytool", "-importcert", "-noprompt", "-alias", "lake", "-file", team.certificate]
    subprocess.run([*command, *store], check=True, capture_output=True)
    of_catalog = {
        "type": "rest",
        "uri": team.uri,
        "warehouse": "lake",
        "token": team.job,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    }
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
    snapshot = team.pyiceberg(token=team.job).load_table("main.ducks").current_snapshot()
    assert snapshot.summary["engine-name"] == "spark"
