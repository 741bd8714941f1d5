"""Fixtures of all suites: one PostgreSQL, one S3, and lakes written by DuckDB itself."""

import gc
import os

import boto3
import pytest
from polynya_local.clients.duckdb import THREADS
from polynya_local.processes.postgres import postgres
from polynya_local.processes.serving import environment

from tests.support.catalog_versions import IN_VERSION
from tests.support.certificates import Certificate, trusted_certificate
from tests.support.lakes import BUCKET, SCRIPTS, Lakes, in_the_other_version, number_of
from tests.support.servers.moto_server import moto_server
from tests.support.shared_duckdb import SharedDuckDB

# A JVM runs for some minutes here: its second compiler and its parallel collector cost more CPU
# than they save (33 s instead of 18 s for the first nine lakes).
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ.setdefault(THREADS, "1")

DELIVERIES = ("materialize", "object-lambda")
LEFT_OUT = pytest.StashKey[list[str]]()
UNNAMED = pytest.StashKey[list[str]]()


def pytest_addoption(parser):
    parser.addoption("--lakes", help="only these lakes: the numbers before the underscore, 01,14")
    parser.addoption("--delivery", choices=DELIVERIES, help="only this one")


def pytest_configure(config):
    config.stash[LEFT_OUT] = []
    config.stash[UNNAMED] = []
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.import_plugin("tests.support.scheduler")


def pytest_collection_finish():
    """Spare the collector the tests themselves, which live until the end."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter, config):
    if lines := config.stash[LEFT_OUT]:
        terminalreporter.section("snapshots and tables that the bridge does not serve")
        for line in sorted(set(lines)):
            terminalreporter.line(line)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Collect what a finished process of pytest-xdist left out, to print it with the rest."""
    node.config.stash[LEFT_OUT] += getattr(node, "workeroutput", {}).get("left_out", [])


@pytest.fixture(scope="session", autouse=True)
def certificate(tmp_path_factory) -> Certificate:
    """The certificate of servers with TLS. PyArrow reads once which ones a process trusts."""
    return trusted_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def left_out(request) -> list[str]:
    """Sentences to print at the end of the run: what is deliberately left out."""
    return request.config.stash[LEFT_OUT]


@pytest.fixture(scope="session")
def postgres_server():
    # With a hundred databases it starts a process twice a second.
    with postgres(autovacuum="off") as server:
        yield server


@pytest.fixture(scope="session")
def moto():
    """The endpoint of an S3 and a DynamoDB that exist during the test run."""
    with pytest.MonkeyPatch.context() as patch, moto_server() as endpoint:
        for name, value in environment({}).items():
            patch.setenv(name, value)
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint


def pytest_generate_tests(metafunc):
    """A test with the argument `lake_name` runs once for each lake.

    `make test-slow` also runs it on the lake in its other version, unless the module says that it
    lets DuckDB change the lake, which is of version 1.0 then (IN_BOTH_VERSIONS = False).
    """
    if "lake_name" not in metafunc.fixturenames:
        return
    lakes = wanted_lakes(metafunc.config)
    names, values = cases(metafunc, lakes)
    if getattr(metafunc.module, "IN_BOTH_VERSIONS", True):
        values += map(slow, cases(metafunc, [in_the_other_version(name) for name in lakes])[1])
    # The scope runs all tests of one lake before those of the next.
    metafunc.parametrize(names, values, scope="module")


def cases(metafunc, lakes: list[str]) -> tuple[str, list]:
    """The names of the parameters, and their values."""
    if of_module := getattr(metafunc.module, "cases", None):
        return of_module(lakes, metafunc.config.getoption("--delivery"))
    return "lake_name", lakes


def slow(case):
    """The same values of parameters, left to `make test-slow`."""
    if hasattr(case, "marks"):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)


def wanted_lakes(config) -> list[str]:
    names = sorted(path.stem for path in SCRIPTS.glob("*.sql"))
    wanted = (config.getoption("--lakes") or "").split(",")
    return [name for name in names if wanted == [""] or number_of(name) in wanted]


def pytest_collection_modifyitems(config, items):
    """Leave `slow` on the cases alone that it is about.

    `slow("a", "b")`: cases with one of these in their ids; `slow(but=["a"])`: all others.
    """
    marks = [list(item.iter_markers("slow")) for item in items]
    option = config.option
    if not (option.file_or_dir or option.keyword or option.lakes or option.delivery):
        config.stash[UNNAMED] = unnamed_cases(items, marks)
    for item in items:
        for node in item.listchain():
            node.own_markers[:] = [mark for mark in node.own_markers if mark.name != "slow"]
    for item, of_item in zip(items, marks, strict=True):
        if any(is_about(mark, case_of(item)) for mark in of_item):
            item.add_marker(pytest.mark.slow)


def unnamed_cases(items, marks) -> list[str]:
    """What marks name and no case has in its id."""
    missing = {}
    for item, of_item in zip(items, marks, strict=True):
        for mark in of_item:
            parts = missing.setdefault(id(mark), {*mark.args, *mark.kwargs.get("but", ())})
            parts -= {part for part in parts if part in case_of(item)}
    return sorted(set().union(*missing.values()))


def is_about(mark, case: str) -> bool:
    if but := mark.kwargs.get("but"):
        return not any(part in case for part in but)
    return not mark.args or any(part in case for part in mark.args)


def case_of(item) -> str:
    """The id of the parameters in brackets, without the version of the catalog."""
    _, bracket, case = item.nodeid.partition("::")[2].partition("[")
    return (bracket + IN_VERSION.sub("", case)).replace("-]", "]").removesuffix("[]")


@pytest.fixture(scope="session")
def lake(postgres_server, moto) -> Lakes:
    return Lakes(postgres_server, moto)


@pytest.fixture(scope="session")
def shared_duckdb():
    client = SharedDuckDB()
    yield client
    client.close()
