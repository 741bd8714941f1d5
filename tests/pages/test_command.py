"""The page as `polynya serve` shows it, beside the catalog and the S3 endpoint."""

import json
import re
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from polynya_local.cli import app
from polynya_local.clients.duckdb import Process, connect, literal
from polynya_local.processes.serving import serving
from typer.testing import CliRunner

from tests.support import file_lakes
from tests.support.servers.slow_servers import delaying


def answer(uri: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(uri, headers=headers)) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def bridge(lake, moto):
    with serving(lake("26").database.url, moto, delivery="object-lambda") as found:
        yield found


@pytest.fixture(scope="module")
def database(lake) -> str:
    """The name of the database of the lake."""
    return urlsplit(lake("26").database.url).path.strip("/")


def test_the_page_is_at_the_address_of_the_catalog(bridge, database):
    assert bridge.page == f"{bridge.catalog_uri}/"
    status, text = answer(bridge.page)
    assert status == 200 and f"<h1>{database}</h1>" in text and bridge.catalog_uri in text
    status, text = answer(f"{bridge.catalog_uri}/v1/config?warehouse=lake")
    assert status == 200 and "overrides" in json.loads(text)
    status, text = answer(f"{bridge.catalog_uri}/health")
    assert status == 200 and json.loads(text)["status"] == "ok"


def test_another_host_is_refused_on_page_catalog_and_s3(bridge):
    for uri in (bridge.page, f"{bridge.catalog_uri}/v1/config", f"{bridge.s3_endpoint}/lakes/x"):
        status, text = answer(uri, Host="rebound.example")
        assert status == 421 and "--allow-host rebound.example" in text


def test_there_is_no_page_if_a_policy_decides_who_reads_what(lake, moto):
    settings = {"AUTHORIZATION": json.dumps({"rules": []})}
    with serving(lake("26").database.url, moto, settings=settings) as found:
        assert found.page is None
        assert answer(f"{found.catalog_uri}/")[0] == 404


def test_the_help_names_the_page():
    text = " ".join(CliRunner().invoke(app, ["serve", "--help"]).output.split())
    assert "http://127.0.0.1:8181/" in text and "--no-page" in text and "--allow-host" in text


VIEWS = ("/", "/changes", "/doctor", "/tables/main/t", "/tables/main/t/rows")


@pytest.mark.slow
def test_views_say_that_a_locked_file_is_served_as_it_was(tmp_path):
    lake = file_lakes.FileLake("locked", "duckdb", tmp_path / "lake")
    lake.folder.mkdir()
    lake.data.mkdir()
    elsewhere = tmp_path / "elsewhere"
    attach = f"ATTACH {literal(f'ducklake:{lake.address}')} AS lake (DATA_PATH "
    file_lakes.execute(f"{attach}{literal(str(elsewhere))}); CREATE TABLE lake.t AS SELECT 1 AS i")
    with serving(lake.address, None, delivery="object-lambda") as found:
        [notice] = json.loads(answer(f"{found.page}?format=json")[1])["notices"]
        assert notice.startswith(f"the catalog says that the lake's data is in {elsewhere}, ")
        assert "notices" not in json.loads(answer(f"{found.page}changes?format=json")[1])
        before = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
        writer = Process(connect, file_lakes.EXTENSIONS)
        try:
            writer.query(f"ATTACH {literal(f'ducklake:{lake.address}')} AS lake")
            writer.query("INSERT INTO lake.t VALUES (2)")
            for path in ("/", "/tables/main/t", "/no/such/page"):
                uri = found.catalog_uri + path
                notice, *_ = json.loads(answer(f"{uri}?format=json")[1])["notices"]
                assert f"{lake.file} cannot be read now (another process has it open)" in notice
                as_of = re.search(r"its state of (\S+ \S+) UTC is served", notice)
                assert abs(datetime.fromisoformat(as_of[1]) - before) < timedelta(seconds=60)
                assert f'<p class="notice warning" role="status">{notice}' in answer(uri)[1]
        finally:
            writer.close()
        report = json.loads(answer(f"{found.page}?format=json")[1])
        assert len(report["notices"]) == 1 and report["newest"] == 2


def test_all_views_say_that_the_database_is_away(lake, show, caplog):
    made = lake("26")
    with delaying(made.database.port, 0) as port:
        page = show(replace(made, database=replace(made.database, port=port)))
        assert page.get("/").status == 200
    for path in VIEWS:
        found = page.get(path)
        assert found.status == 503 and found.headers["Retry-After"], path
        assert "<h1>This page cannot be shown</h1>" in found.text
        sentence = page_error(page, path)
        assert sentence in found.text and "the catalog database" in sentence
    assert not [record for record in caplog.records if record.exc_info]


def page_error(page, path: str) -> str:
    return json.loads(page.get(f"{path}?format=json").text)["error"]["message"]
