"""The page as `polynya serve` shows it, beside the catalog and the S3 endpoint."""

import json
import urllib.error
import urllib.request

import pytest
from polynya_local.cli import app
from polynya_local.processes.serving import serving
from typer.testing import CliRunner


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


def test_the_page_is_at_the_address_of_the_catalog(bridge):
    assert bridge.page == f"{bridge.catalog_uri}/"
    status, text = answer(bridge.page)
    assert status == 200 and "<h1>The lake" in text and bridge.catalog_uri in text
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
