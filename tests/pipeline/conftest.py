"""A lake that DuckDB has open while the jobs use it, and the only SparkSession of the run."""

import itertools
from contextlib import closing
from dataclasses import dataclass

import pytest
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.postgres import Database
from polynya_pipeline.ingest.job import ingest
from polynya_pipeline.ingest.summary import Summary
from polynya_pipeline.verify.job import verify

from tests.support.catalog_versions import SERVED, VERSIONS, parametrize_versions

NUMBERS = itertools.count(1)


def pytest_generate_tests(metafunc):
    # A catalog cannot be taken back to 1.0 while a native writer has its tables open.
    parametrize_versions(metafunc, VERSIONS[:1])


@pytest.fixture
def served_version(request) -> str:
    """The version that a lake has while a job runs."""
    return getattr(request, "param", "1.0")


@pytest.fixture(autouse=True)
def version(served_version, monkeypatch):
    """The same, while a test runs."""
    monkeypatch.setattr(SERVED, "version", served_version)


@pytest.fixture(scope="session")
def spark(moto):
    """A session with Iceberg's jars, which also reads through the bridge."""
    if reason := why_not():
        pytest.skip(reason)
    from polynya_local.clients import spark
    from polynya_local.processes.serving import environment

    session = spark.session()
    # The environment of the tasks, for a session started by any test.
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION")
    found = environment({"AWS_ENDPOINT_URL_S3": moto})
    session.sparkContext.environment.update(
        {name: found[name] for name in (*names, "AWS_ENDPOINT_URL_S3")}
    )
    return session


@dataclass(frozen=True, slots=True)
class OpenLake:
    database: Database
    data_path: str
    duckdb: object

    def sql(self, statement: str) -> list:
        return self.duckdb.execute(statement).fetchall()

    def catalog(self, statement: str, **parameters: object) -> list:
        with closing(self.database.connect()) as con:
            return con.run(statement, **parameters)

    def ingest(self, frame, table: str = "t", **options) -> Summary:
        with SERVED.of(self.as_lake):
            return ingest(frame, table, database=self.database.url, **options)

    def verify(self, **options):
        with SERVED.of(self.as_lake):
            return verify(database=self.database.url, footers=True, **options)

    @property
    def as_lake(self) -> Lake:
        return Lake(self.database.dbname, self.database, self.data_path)


@pytest.fixture
def open_lake(postgres_server, moto, monkeypatch):
    """Makes lakes in S3, unless a test gives a data path; clients of the bridge need S3."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    opened = []

    def make(data_path: str = "", **options: object) -> OpenLake:
        name = f"pipeline_{next(NUMBERS)}"
        database = postgres_server.create_database(name)
        data_path = data_path or f"s3://lakes/{name}"
        con = connect(LAKE, moto)
        words = "".join(f", {key} {value}" for key, value in options.items())
        source = f"ducklake:postgres:{database.libpq}".replace("'", "''")
        con.execute(f"ATTACH '{source}' AS lake (DATA_PATH '{data_path}'{words})")
        con.execute("USE lake")
        opened.append(con)
        return OpenLake(database, data_path, con)

    yield make
    for con in opened:
        con.close()


@pytest.fixture
def native():
    """A fresh DuckDB without caches: `native(lake)` reads the current lake."""
    opened = []

    def read(lake: OpenLake, moto: str):
        con = connect(LAKE, moto)
        attach(con, lake.as_lake)
        opened.append(con)
        return con

    yield read
    for con in opened:
        con.close()


@pytest.fixture
def folder_lake(open_lake, tmp_path):
    """A lake in a folder, with DuckLake's defaults."""
    return open_lake(f"{tmp_path}/data/")
