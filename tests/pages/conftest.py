"""The page over a lake, served by Uvicorn, as `polynya serve` does."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any

import pytest
from polynya_local.clients.native import Lake
from polynya_local.lakes.opened import LocalLake
from polynya_local.page.app import page_app
from polynya_local.page.state import Addresses, PageState
from polynya_local.server.uvicorn_server import answering, bound_socket, uri_of

from tests.aws.stand_in import StandIn
from tests.support.servers.in_process import ALIAS, functions, settings

OWNER = Path(__file__).parent / "owner.sql"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the page."""

    status: int
    headers: HTTPMessage
    text: str

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Page:
    """The page over one lake."""

    lake: Lake
    uri: str
    state: PageState | None = None

    def get(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """The answer to a request; redirections are not followed."""
        host, _, port = self.uri.removeprefix("http://").partition(":")
        with closing(HTTPConnection(host, int(port), timeout=120)) as connection:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())

    def report(self, path: str) -> Any:
        """The JSON of a page that is there."""
        mark = "&" if "?" in path else "?"
        answer = self.get(f"{path}{mark}format=json")
        assert answer.status == 200, (path, answer.text)
        return answer.json


@contextmanager
def showing(lake: Lake, s3_endpoint: str, name: str = "shop.ducklake") -> Iterator[Page]:
    """Serve the page over a lake for the block; `name` is what the page calls it."""
    with ExitStack() as stack:
        values = {"AWS_ENDPOINT_URL_S3": s3_endpoint, "BUILD_SECONDS": "3600"}
        stack.enter_context(settings(**values))
        listening = bound_socket(0)
        uri = uri_of(listening)
        addresses = Addresses(uri, s3_endpoint, "lake", "object-lambda", False, lake=name)
        readable = LocalLake(lake.database.url, lake.metadata_schema, s3_endpoint)
        state = stack.enter_context(closing(PageState.create(addresses, readable, os.environ)))
        yield Page(lake, stack.enter_context(answering(page_app(state), listening)))


@pytest.fixture(scope="module")
def show(moto) -> Iterator[Callable[[Lake], Page]]:
    """The page over a lake, for as long as the module's tests run."""
    with ExitStack() as stack:
        yield lambda lake: stack.enter_context(showing(lake, moto))


@pytest.fixture(scope="module")
def owner(lake, show) -> Page:
    """The page over the lake of owner.sql."""
    return show(lake.write("owner", OWNER.read_text()))


@pytest.fixture(scope="module")
def page(lake, moto):
    """The page over the lake of owner.sql, with the catalog and the S3 of `polynya serve`."""
    lake = lake.write("owner_rows", OWNER.read_text())
    with ExitStack() as stack:
        bucket = lake.data_path.removeprefix("s3://").partition("/")[0]
        stand_in = StandIn(
            alias=ALIAS, supporting_bucket=bucket, s3_endpoint=moto, region="us-east-1"
        )
        values = {
            "DATABASE_URL": lake.database.url,
            "METADATA_SCHEMA": lake.metadata_schema,
            "WAREHOUSE": "lake",
            "DELIVERY": "object-lambda",
            "VIRTUAL_BUCKET": ALIAS,
            "BUILD_SECONDS": "3600",
            "AWS_ENDPOINT_URL_S3": moto,
            "AWS_ENDPOINT_URL_DYNAMODB": moto,
            "OBJECT_LAMBDA_ENDPOINT": stand_in.s3_uri,
        }
        started = stack.enter_context(functions(**values))
        addresses = Addresses(stand_in.api_uri, stand_in.s3_uri, "lake", "object-lambda", False)
        readable = LocalLake(lake.database.url, lake.metadata_schema, moto)
        state = stack.enter_context(closing(PageState.create(addresses, readable, os.environ)))
        stack.enter_context(stand_in)
        stand_in.start(started.rest_catalog, started.object_lambda)
        uri = stack.enter_context(answering(page_app(state), bound_socket(0)))
        yield Page(lake, uri, state)


def report(page: Page, path: str) -> dict:
    """The JSON of a page, when it is ready."""
    while True:
        mark = "&" if "?" in path else "?"
        answer = page.get(f"{path}{mark}format=json")
        if answer.status != 202:
            assert answer.status == 200, answer.text
            return answer.json
