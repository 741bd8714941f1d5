"""The page over a lake: served by the stand-in's HTTP server, as `polynya serve` does."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any

import pytest
from polynya_local.clients.native import Lake
from polynya_local.lakes.opened import LocalLake
from polynya_local.local_aws.local_aws import StandIn
from polynya_local.page.app import page_handler
from polynya_local.page.state import Addresses, PageState

from tests.support.servers.in_process import settings

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

    def nothing(event: dict[str, Any], context: Any) -> Any:
        return {"statusCode": 404}

    with ExitStack() as stack:
        stack.enter_context(settings(AWS_ENDPOINT_URL_S3=s3_endpoint, BUILD_SECONDS="3600"))
        stand_in = StandIn(
            alias=None, supporting_bucket=None, s3_endpoint=s3_endpoint, region="us-east-1"
        )
        addresses = Addresses(
            stand_in.api_uri, stand_in.s3_uri, "lake", "object-lambda", False, lake=name
        )
        readable = LocalLake(lake.database.url, lake.metadata_schema, s3_endpoint)
        state = stack.enter_context(closing(PageState.of(addresses, readable)))
        stack.enter_context(stand_in)
        stand_in.start(nothing, page_handler=page_handler(state))
        yield Page(lake, stand_in.api_uri)


@pytest.fixture(scope="module")
def show(moto) -> Iterator[Callable[[Lake], Page]]:
    """The page over a lake, for as long as the module's tests run."""
    with ExitStack() as stack:
        yield lambda lake: stack.enter_context(showing(lake, moto))


@pytest.fixture(scope="module")
def owner(lake, show) -> Page:
    """The page over the lake of owner.sql."""
    return show(lake.write("owner", OWNER.read_text()))
