"""HTTP requests as events of API Gateway's HTTP API, and a function's answers as HTTP."""

import asyncio
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import urllib3
from aws_lambda_powertools import Logger
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from mangum import Mangum

from tests.aws.stand_in import StandIn

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-troubleshooting-lambda.html
FAILED = b'{"message":"Internal Server Error"}'

app = FastAPI()
threads: set[tuple[int, int]] = set()


@app.api_route("/echo/{rest:path}", methods=["GET", "HEAD", "POST"])
async def echo(request: Request, rest: str) -> JSONResponse:
    """The event that the application received, and the request that the application read."""
    threads.add((threading.get_ident(), id(asyncio.get_running_loop())))
    body = (await request.body()).decode("latin-1")
    return JSONResponse({"event": request.scope["aws.event"], "rest": rest, "body": body})


@app.get("/names/{name}/end")
async def name(name: str) -> PlainTextResponse:
    return PlainTextResponse(name.encode("unicode_escape").decode())


@app.api_route("/bytes/{count}", methods=["GET", "HEAD"])
async def some_bytes(count: int) -> Response:
    return Response(b"\xff" * count, media_type="application/octet-stream")


@app.get("/cookies")
async def cookies() -> Response:
    response = PlainTextResponse("é", headers={"x-name": "value"})
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return response


@app.delete("/thing", status_code=204)
async def delete() -> None: ...


@pytest.fixture(scope="module")
def http():
    # One pool for all tests, so that every test also runs on connections that others have used.
    with urllib3.PoolManager() as pool:
        yield pool


def serve(handler, **settings):
    stand_in = StandIn(
        alias=None, supporting_bucket=None, s3_endpoint=None, region="us-east-1", **settings
    )
    stand_in.start(handler)
    return stand_in


@pytest.fixture(scope="module")
def api():
    with serve(Mangum(app, lifespan="off")) as stand_in:
        yield stand_in.api_uri


def test_a_request_becomes_the_event_that_was_recorded_on_aws(http, api):
    # The request and its event were recorded on AWS on 2026-07-10: github.com/hotsock/voker,
    # vokerhttp/testdata/apigwv2-request.json.
    query = (
        "repeat=one&repeat=two&redirect=https%3A%2F%2Fexample.com%2Fa%2Fb"
        "&literalPlus=a+b&encodedPlus=a%2Bb&empty="
    )
    body = '{"message":"hello from the public internet","unicode":"lambda-λ"}'.encode()
    headers = urllib3.HTTPHeaderDict(
        {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "curl/8.7.1",
            "Cookie": "session=abc123; theme=dark",
        }
    )
    headers.add("X-Voker-Probe", "first")
    headers.add("X-Voker-Probe", "second")
    answer = http.request("POST", f"{api}/echo/space%20value?{query}", headers=headers, body=body)
    event = answer.json()["event"]
    assert answer.status == 200
    assert event["version"] == "2.0"
    assert event["routeKey"] == event["requestContext"]["routeKey"] == "$default"
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/echo/space value"
    assert event["rawQueryString"] == query
    assert event["cookies"] == ["session=abc123", "theme=dark"]
    assert event["queryStringParameters"] == {
        "empty": "",
        "encodedPlus": "a+b",
        "literalPlus": "a b",
        "redirect": "https://example.com/a/b",
        "repeat": "one,two",
    }
    assert event["headers"] == {
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-length": "66",
        "content-type": "application/json",
        "host": api.removeprefix("http://"),
        "user-agent": "curl/8.7.1",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-port": api.rpartition(":")[2],
        "x-forwarded-proto": "http",
        "x-voker-probe": "first,second",
    }
    assert event["body"] == body.decode()
    assert event["isBase64Encoded"] is False
    assert event["requestContext"]["http"]["method"] == "POST"
    assert event["requestContext"]["http"]["sourceIp"] == "127.0.0.1"


def test_a_binary_body_is_encoded_as_base64(http, api):
    answer = http.request("POST", f"{api}/echo/x", body=b"\x00\xff").json()
    assert (answer["event"]["body"], answer["event"]["isBase64Encoded"]) == ("AP8=", True)
    assert answer["body"] == "\x00\xff"


def test_a_chunked_body_is_joined(http, api):
    answer = http.request("POST", f"{api}/echo/x", body=iter([b"one ", b"two"]), chunked=True)
    assert answer.json()["body"] == "one two"


NAMES = [  # in the URL; in an application behind an HTTP API; behind a Function URL
    ("a%1Fb", r"a\x1fb", r"a\x1fb"),
    ("caf%C3%A9", r"caf\xe9", r"caf\xe9"),
    ("a%20b+c", "a b+c", "a b+c"),
    ("100%25", "100%", "100%"),
    # Mangum decodes again what the HTTP API has already decoded.
    ("100%2525", "100%", "100%25"),
]


@pytest.mark.parametrize("url, behind_http_api, _", NAMES)
def test_a_path_is_decoded_as_by_an_http_api(http, api, url, behind_http_api, _):
    assert http.request("GET", f"{api}/names/{url}/end").data.decode() == behind_http_api


@pytest.mark.parametrize("url, _, behind_function_url", NAMES)
def test_a_path_keeps_its_encoding_as_with_a_function_url(http, url, _, behind_function_url):
    with serve(Mangum(app, lifespan="off"), keep_encoded_path=True) as stand_in:
        answer = http.request("GET", f"{stand_in.api_uri}/names/{url}/end")
        event = http.request("GET", f"{stand_in.api_uri}/echo/{url}%2F").json()["event"]
    assert answer.data.decode() == behind_function_url
    assert event["rawPath"] == f"/echo/{url}%2F"


def test_an_http_api_decodes_an_encoded_slash(http, api):
    assert http.request("GET", f"{api}/names/a%2Fb/end").status == 404


def test_bytes_are_returned_unchanged(http, api):
    answer = http.request("GET", f"{api}/bytes/1000")
    assert answer.data == b"\xff" * 1000
    assert answer.headers["content-length"] == "1000"


def test_each_cookie_is_a_header_of_its_own(http, api):
    answer = http.request("GET", f"{api}/cookies")
    set_cookies = answer.headers.getlist("set-cookie")
    assert [cookie.partition(";")[0] for cookie in set_cookies] == ["a=1", "b=2"]
    assert (answer.data.decode(), answer.headers["x-name"]) == ("é", "value")


def test_head_has_the_length_of_the_body_but_no_body(http, api):
    # Both use one connection: a body after HEAD would corrupt the next answer.
    for _ in range(3):
        head = http.request("HEAD", f"{api}/bytes/1000")
        assert (head.status, head.data, head.headers["content-length"]) == (200, b"", "1000")


def test_no_content_has_no_length(http, api):
    answer = http.request("DELETE", f"{api}/thing")
    assert (answer.status, answer.data) == (204, b"")
    assert "content-length" not in answer.headers


def test_an_exception_in_a_function_is_an_internal_server_error(http, caplog):
    def handler(event, context):
        raise ValueError("what nobody outside should read")

    with serve(handler) as stand_in:
        answer = http.request("GET", stand_in.api_uri)
    assert (answer.status, answer.data) == (500, FAILED)
    assert "what nobody outside should read" in caplog.text


# Lambda's limit applies to the JSON of the answer, in which base64 takes 4 letters for 3 bytes.
@pytest.mark.parametrize("count, status", [(4_700_000, 200), (4_720_000, 500)])
def test_lambda_returns_at_most_six_megabytes(http, api, count, status):
    answer = http.request("GET", f"{api}/bytes/{count}")
    assert answer.status == status
    assert answer.data == (b"\xff" * count if status == 200 else FAILED)


ANSWERS = [  # a function's return value, status, content type, body
    ({"message": "hi"}, 200, "application/json", b'{"message": "hi"}'),
    ("hi", 200, "application/json", b"hi"),
    ({"statusCode": 201}, 201, None, b""),
    ({"statusCode": "202", "body": "x", "headers": {"content-type": "a/b"}}, 202, "a/b", b"x"),
    ({"statusCode": 200, "body": "aGk=", "isBase64Encoded": True}, 200, None, b"hi"),
    ({"statusCode": 200, "body": "?", "isBase64Encoded": True}, 500, "application/json", FAILED),
    ({"statusCode": "no"}, 500, "application/json", FAILED),
    ({"statusCode": 200, "body": 5}, 500, "application/json", FAILED),
    ({1, 2}, 500, "application/json", FAILED),
]


@pytest.mark.parametrize("returned, status, content_type, body", ANSWERS)
def test_an_answer_is_read_in_format_2_0(http, returned, status, content_type, body):
    with serve(lambda event, context: returned) as stand_in:
        answer = http.request("GET", stand_in.api_uri)
    found = (answer.status, answer.headers.get("content-type"), answer.data)
    assert found == (status, content_type, body)


def test_the_handler_runs_in_one_thread_with_one_event_loop(http, api):
    threads.clear()
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda i: http.request("GET", f"{api}/echo/{i}"), range(40))
        assert [answer.json()["rest"] for answer in answers] == [str(i) for i in range(40)]
    assert len(threads) == 1
    assert threading.get_ident() not in {thread for thread, _ in threads}


def test_the_context_is_sufficient_for_powertools(http):
    logger = Logger(service="test", stream=io.StringIO())
    seen = []

    @logger.inject_lambda_context
    def handler(event, context):
        seen.append(context.get_remaining_time_in_millis())
        return {"function": context.function_name}

    with serve(handler) as stand_in:
        assert http.request("GET", stand_in.api_uri).json() == {"function": "rest-catalog"}
    assert 28_000 < seen[0] <= 29_000
