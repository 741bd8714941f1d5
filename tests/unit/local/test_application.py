"""What the server answers by itself."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import repeat
from pathlib import Path

import pytest
from polynya.catalog.reader import Catalog
from polynya.runtime.budget import seconds_left
from polynya.runtime.errors import ServiceUnavailable
from polynya.storage.aws import AwsSettings
from polynya_local.application import Application, Served, ServedLake, lake_of_path
from polynya_local.lakes.opened import LocalLake
from polynya_local.s3.local_bucket import CatalogFiles
from polynya_local.s3.uploads import UploadPaths

from tests.support.virtual_time import VirtualTimeLoop

PORTS = 8181, 8182
POLICY = {"rules": [{"principals": ["*"], "lakes": ["open"], "tables": {"*": ["*"]}}]}


def application(
    folder: Path, *names: str, writes: bool = False, settings: Mapping[str, str] | None = None
) -> Application:
    database = "postgresql://reader@nowhere.example/lake"
    lakes = {name: {"database_url": database, "data_path": f"s3://data/{name}/"} for name in names}
    return Application(
        Served(
            settings={
                "DELIVERY": "object-lambda",
                "VIRTUAL_BUCKET": "virtual",
                "LAKES": json.dumps(lakes),
                "AUTHORIZATION": json.dumps(POLICY),
                **(settings or {}),
            },
            lakes={
                name: ServedLake(
                    LocalLake(database, "public"),
                    lake["data_path"],
                    "data",
                    uploads(lake["data_path"]) if writes else None,
                    CatalogFiles.from_paths([]),
                )
                for name, lake in lakes.items()
            },
            are_several=True,
            catalog_uri=f"http://127.0.0.1:{PORTS[0]}",
            s3_uri=f"http://127.0.0.1:{PORTS[1]}",
            s3_port=PORTS[1],
            aws=AwsSettings("us-east-1"),
            supporting_bucket="data",
            virtual_root="s3://virtual/polynya/",
            cache_folder=folder,
            has_page=False,
            host="127.0.0.1",
            allowed_hosts=(),
        )
    )


def uploads(data_path: str) -> UploadPaths:
    return UploadPaths.from_locations(
        data_path=data_path, staging_location="", virtual_location="s3://virtual/polynya"
    )


def get(app: Application, path: str) -> str:
    status, body = asked(app, "GET", path)
    assert status == 200
    return body


def asked(
    app: Application,
    method: str,
    path: str,
    body: Iterable[bytes] = (b"",),
    *,
    pauses: Iterable[float] = repeat(0),
    port: int = PORTS[0],
) -> tuple[int, str]:
    """Status and body of the answer.

    Args:
        body: in pieces, which may have no end.
        pauses: the seconds before each of them, and before the end.
    """
    status, _, text = answered(app, method, path, body, pauses, port)
    return status, text


def answered(
    app: Application,
    method: str,
    target: str,
    body: Iterable[bytes],
    pauses: Iterable[float],
    port: int,
) -> tuple[int, dict[bytes, bytes], str]:
    """The same with the headers."""
    messages, pieces, seconds = [], iter(body), iter(pauses)
    path, _, query = target.partition("?")

    async def receive():
        await asyncio.sleep(next(seconds))
        piece = next(pieces, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [] if method == "GET" else [(b"transfer-encoding", b"chunked")],
        "server": ("127.0.0.1", port),
    }
    with closing(VirtualTimeLoop()) as loop:
        loop.run_until_complete(app(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in messages[1:]).decode()
    return messages[0]["status"], dict(messages[0]["headers"]), text


def test_metrics_name_no_lake_that_strangers_do_not_see(tmp_path):
    app = application(tmp_path, "open", "secret")
    for name in ("open", "secret"):
        app._metrics("LoadTable", 5, {"lake": name})
    text = get(app, "/metrics")
    assert 'lake="open"' in text and "secret" not in text
    assert text.endswith("# EOF\n")


def test_two_applications_in_one_process_count_their_own_requests(tmp_path):
    one, other = application(tmp_path, "open"), application(tmp_path, "open")
    for app in (one, other, other):
        assert asked(app, "GET", "/v1/open/nothing")[0] == 404
    for app, number in ((one, 1), (other, 2)):
        refusals = f'polynya_refusals_total{{lake="",reason="NoSuchRouteException"}} {number}.0'
        assert refusals in get(app, "/metrics")


def test_the_server_says_that_it_lives_without_a_database(tmp_path):
    assert get(application(tmp_path, "open"), "/live") == "ok\n"


def test_a_uri_that_ends_in_v1_is_told_so(tmp_path):
    app = application(tmp_path, "open")
    status, body = asked(app, "GET", "/v1/v1/config")
    assert status == 404 and "leave out the /v1" in json.loads(body)["error"]["message"]
    status, body = asked(app, "GET", "/v1/v2/config")
    assert status == 404 and "leave out" not in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("path", ["/live", "/health", "/v1/nothing", "/v1/open/nothing"])
def test_a_write_to_a_path_that_names_no_lake_is_not_found(path, tmp_path):
    app = application(tmp_path, "open", "other", writes=True)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        status, body = asked(app, method, path)
        assert (status, json.loads(body)["error"]["type"]) == (404, "NoSuchRouteException")


@pytest.mark.parametrize(
    ("target", "lake"),
    [
        ("/v1/config?warehouse=a@7", "a"),
        ("/health?warehouse=a", "a"),
        ("/v1/a.v3--at-7/namespaces", "a"),
        ("/lakes/a/tables", "a"),
        ("/v1/", ""),
        ("/", ""),
        ("", ""),
        ("*", ""),  # the target of OPTIONS
    ],
)
def test_each_target_of_a_request_has_a_lake_or_none(target, lake):
    path, _, query = target.partition("?")
    assert lake_of_path(path, query) == lake


ASK_EACH = [
    ((), 200, {"status": "ok"}),
    (("open",), 200, {"status": "degraded", "unavailable": ["open"]}),
    (("secret",), 200, {"status": "degraded", "unavailable": []}),
    (("open", "secret"), 503, None),
]


@pytest.mark.parametrize(("failing", "expected", "answer"), ASK_EACH)
def test_each_database_is_asked_for_the_health_of_all_lakes(
    tmp_path, monkeypatch, failing, expected, answer
):
    asked_lakes, seconds = [], []

    def health(catalog):
        asked_lakes.append(catalog.settings.lake)
        seconds.append(seconds_left())
        if catalog.settings.lake in failing:
            raise ServiceUnavailable("PostgreSQL at nowhere.example does not answer")
        return {"status": "ok", "snapshot-id": 1}

    monkeypatch.setattr(Catalog, "health", health)
    status, body = asked(application(tmp_path, "open", "secret"), "GET", "/health")
    assert sorted(asked_lakes) == ["open", "secret"]
    assert max(seconds) <= 10  # a balancer does not wait for as long as other requests may take
    assert status == expected
    if answer is not None:
        assert json.loads(body) == answer
    assert "secret" not in body and "nowhere" not in body


NAMESPACES = "/v1/open/namespaces"
PIECE = b" " * 65_536


@pytest.mark.parametrize(("settings", "megabytes"), [({}, 64), ({"REQUEST_MB": "1"}, 1)])
@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("path", [NAMESPACES, f"{NAMESPACES}/n/tables/t/metrics", "/v1/nothing"])
def test_a_body_that_does_not_end_is_refused_before_the_memory_is_full(
    tmp_path, settings, megabytes, writes, path
):
    app = application(tmp_path, "open", writes=writes, settings=settings)
    status, body = asked(app, "POST", path, repeat(PIECE))
    assert status == 413
    assert json.loads(body)["error"] == {
        "message": f"the body of a request may have {megabytes * 2**20:,} bytes: send it in "
        "several requests",
        "type": "ContentTooLargeException",
        "code": 413,
    }


def test_a_body_may_be_as_long_as_the_setting_says(tmp_path):
    app = application(tmp_path, "open", writes=True, settings={"REQUEST_MB": "1"})
    pieces = [PIECE] * 16
    assert asked(app, "POST", NAMESPACES, pieces)[0] == 403
    assert asked(app, "POST", NAMESPACES, [*pieces, b" "])[0] == 413


UPLOAD = "/data/open/01234567-89ab-cdef-0123-456789abcdef/new.parquet"


STOPPING = [(), (b"{",), (PIECE,) * 20]
"""Bodies of which nothing more comes."""


def stopped(app: Application, method: str, path: str, pieces: Sequence[bytes], port: int):
    """The answer to one of them."""
    pauses = [*(59 for _ in pieces), 61]
    status, headers, text = answered(app, method, path, pieces, pauses, port)
    assert headers[b"connection"] == b"close"
    return status, text


@pytest.mark.parametrize("pieces", STOPPING)
@pytest.mark.parametrize("path", [NAMESPACES, "/v1/nothing"])
def test_the_catalog_does_not_wait_for_a_body_of_which_nothing_comes(tmp_path, path, pieces):
    app = application(tmp_path, "open", writes=True)
    status, text = stopped(app, "POST", path, pieces, PORTS[0])
    assert status == 408
    assert json.loads(text)["error"] == {
        "message": "nothing of the request's body has come for 60 s",
        "type": "RequestTimeoutException",
        "code": 408,
    }


@pytest.mark.parametrize("pieces", STOPPING)
@pytest.mark.parametrize(("method", "target"), [("PUT", UPLOAD), ("POST", "/data?delete")])
def test_s3_does_not_wait_for_a_body_of_which_nothing_comes(tmp_path, method, target, pieces):
    app = application(tmp_path, "open", writes=True)
    status, text = stopped(app, method, target, pieces, PORTS[1])
    assert status == 400
    assert "<Code>RequestTimeout</Code>" in text


def test_a_body_that_keeps_coming_is_waited_for(tmp_path):
    app, pieces = application(tmp_path, "open", writes=True), [PIECE] * 500
    status, _ = asked(app, "POST", NAMESPACES, pieces, pauses=repeat(59))
    assert status == 403  # the policy's: the body was read
