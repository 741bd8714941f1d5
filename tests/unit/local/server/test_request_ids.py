"""The id of a request: in its answer, and in each line that is written about it."""

import asyncio
import io
import json
import logging
import re
from contextlib import closing

import pytest
from anyio import to_thread
from polynya.runtime.metrics import function_logger
from polynya.runtime.request_id import current_request_id, identified
from polynya_local.access.audit_log import AuditLog
from polynya_local.s3.requests import s3_error
from polynya_local.server.logs import PrintableFormatter
from polynya_local.server.request_ids import RequestIds

S3_PORT = 8182
MADE = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def asked(*headers: tuple[bytes, bytes], port: int = 8181) -> tuple[list[tuple[bytes, bytes]], str]:
    """The headers of an answer, and the id that a thread of its request has seen."""
    messages, seen = [], []

    async def app(scope, receive, send) -> None:
        await to_thread.run_sync(lambda: seen.append(current_request_id()))
        behind = [(b"content-length", b"0"), (b"X-Amz-Request-Id", b"of the store")]
        await send({"type": "http.response.start", "status": 200, "headers": behind})
        await send({"type": "http.response.body"})

    async def send(message) -> None:
        messages.append(message)

    scope = {"type": "http", "headers": [*headers], "server": ("127.0.0.1", port)}
    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(RequestIds(app, S3_PORT)(scope, None, send))
    assert current_request_id() == ""
    return messages[0]["headers"], seen[0]


@pytest.mark.parametrize("given", ["a", "A-1", "0af7651916cd43dd8448eb211c80319c", "x" * 64])
@pytest.mark.parametrize(
    ("port", "header"), [(8181, b"x-request-id"), (S3_PORT, b"x-amz-request-id")]
)
def test_a_plain_id_of_the_client_is_taken_over(given, port, header):
    headers, seen = asked((b"x-request-id", given.encode()), port=port)
    assert seen == given
    assert [value for name, value in headers if name.lower() == header] == [given.encode()]
    assert (b"content-length", b"0") in headers


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"x" * 65,
        b"a b",
        b'a","who":"token=ada',
        b"a\n",
        b"a\r\nb",
        b"a_b",
        "é".encode(),
        "١".encode(),  # a digit, for some
        b"\x1b[2J",
    ],
)
def test_other_texts_are_not(given):
    ids = set()
    for headers in ([(b"x-request-id", given)], [(b"x-request-id", given)], []):
        answered, seen = asked(*headers)
        assert re.fullmatch(MADE, seen)
        assert (b"x-request-id", seen.encode()) in answered
        ids.add(seen)
    assert len(ids) == 3


def test_lines_of_the_log_have_it(tmp_path):
    stream = io.StringIO()
    logger = function_logger("ids")
    logger.registered_handler.setStream(stream)
    record = logging.LogRecord("n", logging.ERROR, "p", 1, "it failed", None, None)
    text, audit = PrintableFormatter("%(message)s"), AuditLog(str(tmp_path / "audit"))
    with identified("id-1"):
        logger.error("refused", reason="why")
        assert text.format(record) == "it failed (request id-1)"
        audit.write(who="ada")
    logger.error("refused", reason="why")
    assert text.format(record) == "it failed"
    audit.write(who="ada")
    for lines in (stream.getvalue(), (tmp_path / "audit").read_text()):
        first, second = map(json.loads, lines.splitlines())
        assert first["request_id"] == "id-1" and "request_id" not in second


def test_an_error_of_s3_has_the_id_of_its_request():
    with identified("id-1"):
        response = s3_error(404, "NoSuchKey", "gone")
    assert b"<RequestId>id-1</RequestId>" in response.body
    assert response.header("x-amz-request-id") == "id-1"
