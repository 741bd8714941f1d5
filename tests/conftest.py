"""What the suites share: one PostgreSQL, one S3, and lakes that DuckDB itself has written."""

import itertools
import logging
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer
from polynya_local.clients.lakes import Lake, write_lake
from polynya_local.postgres import postgres
from polynya_local.serving import environment

LAKES = Path(__file__).parent / "lakes"
BUCKET = "lakes"
DELIVERIES = ("materialize", "object-lambda")
MATERIALIZED = {"10", "13", "14", "17", "22", "36"}
LEFT_OUT = pytest.StashKey[list[str]]()


def pytest_addoption(parser):
    parser.addoption("--lakes", help="only these lakes: the numbers before the underscore, 01,14")
    parser.addoption("--delivery", choices=DELIVERIES, help="only this one")


def pytest_configure(config):
    config.stash[LEFT_OUT] = []


def pytest_terminal_summary(terminalreporter, config):
    if lines := config.stash[LEFT_OUT]:
        terminalreporter.section("snapshots and tables that the bridge says it cannot give")
        for line in sorted(set(lines)):
            terminalreporter.line(line)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """A process of pytest-xdist has ended: what it left out is told with the rest."""
    node.config.stash[LEFT_OUT] += getattr(node, "workeroutput", {}).get("left_out", [])


@pytest.fixture(scope="session")
def left_out(request) -> list[str]:
    """Sentences to print at the end of the run: what is missing on purpose."""
    return request.config.stash[LEFT_OUT]


@pytest.fixture(scope="session")
def postgres_server():
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def moto():
    """The endpoint of an S3 and a DynamoDB that exist as long as the tests run."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment({}).items():
            patch.setenv(name, value)
        server.start()
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint
        server.stop()


class Lakes:
    """Lakes by the name of their script, or by the number that it starts with."""

    def __init__(self, server, s3_endpoint: str) -> None:
        self._server, self._s3_endpoint = server, s3_endpoint
        self._written: dict[Path, Lake] = {}
        self._numbers = itertools.count(1)

    def __call__(self, name: str) -> Lake:
        """The one lake of this name: tests must leave it as it is."""
        script = script_of(name)
        if script not in self._written:
            self._written[script] = self._write(script, script.stem)
        return self._written[script]

    def copied(self, name: str) -> Lake:
        """A lake that only the caller has, but for the files, of which none may be removed."""
        one = self(name)
        database = self._server.copy_database(one.database, f"{one.name}_{next(self._numbers)}")
        return replace(one, database=database)

    def fresh(self, name: str) -> Lake:
        """A lake that only the caller has."""
        script = script_of(name)
        return self._write(script, f"{script.stem}_{next(self._numbers)}")

    def _write(self, script: Path, name: str) -> Lake:
        database = self._server.create_database(name)
        return write_lake(script, database, f"s3://{BUCKET}/{name}", self._s3_endpoint)


def script_of(name: str) -> Path:
    found = [path for path in LAKES.glob("*.sql") if name in (path.stem, path.stem.split("_")[0])]
    (script,) = found
    return script


def pytest_generate_tests(metafunc):
    """A test that asks for `lake_name` runs once for each lake."""
    if {"lake_name", "delivery"} <= set(metafunc.fixturenames):
        # The generator is the same behind both; a few lakes show that this is so.
        lakes = [(name, "object-lambda") for name in wanted_lakes(metafunc.config)]
        lakes += [(n, "materialize") for n, _ in lakes if n.split("_")[0] in MATERIALIZED]
        only = metafunc.config.getoption("--delivery")
        if only:
            lakes = [(name, only) for name in wanted_lakes(metafunc.config)]
        metafunc.parametrize("lake_name, delivery", lakes, scope="module")
    elif "lake_name" in metafunc.fixturenames:
        # One lake after the other, each with all its tests.
        metafunc.parametrize("lake_name", wanted_lakes(metafunc.config), scope="module")


def wanted_lakes(config) -> list[str]:
    names = sorted(path.stem for path in LAKES.glob("*.sql"))
    wanted = (config.getoption("--lakes") or "").split(",")
    return [name for name in names if wanted == [""] or name.split("_")[0] in wanted]


@pytest.fixture(scope="session")
def lake(postgres_server, moto) -> Lakes:
    return Lakes(postgres_server, moto)
