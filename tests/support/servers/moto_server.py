"""moto (S3, DynamoDB, STS, ...) behind a server that costs less than half the CPU of moto's own.

The answers are moto's own. Its server closes the connection after each answer, because it cannot
find the next request behind a body that the application has not read; this one reads the body
first. And moto lists its folders for each request, with 175 calls of stat(), to learn the names of
its services; here this happens once for each service. And it serializes each key of a listing
again; here this happens once for each key.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from threading import Thread
from typing import Any
from unittest.mock import patch

from moto.core.responses import ActionResult
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.s3.models import s3_backends
from moto.s3.responses import S3Response
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from werkzeug.exceptions import InternalServerError
from werkzeug.serving import make_server
from werkzeug.test import run_wsgi_app

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
WITHOUT_BODY = ("204", "304")


@contextmanager
def moto_server() -> Iterator[str]:
    """Run moto in threads of this process; yields its endpoint.

    All servers in a process share their buckets and tables.
    """
    server = make_server(HOST, 0, _Application(create_backend_app), True, request_handler=_Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        with patch.object(S3Response, "serialized", _serialized):
            yield f"http://{HOST}:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def drop_bucket(name: str) -> None:
    """Delete a bucket with its keys, which takes a request for a thousand keys otherwise."""
    _, account = s3_backends.bucket_accounts[name]
    backend = s3_backends[account]["aws"]
    keys = backend.buckets[name].keys
    for key in keys.values():
        key.dispose()
    keys.clear()
    backend.delete_bucket(name)


class _Application(DomainDispatcherApplication):
    """moto, which looks up the service of each host name once."""

    def __init__(self, create_app) -> None:
        super().__init__(create_app)
        self.get_backend_for_host = cache(super().get_backend_for_host)


class _Handler(MotoRequestHandler):
    """One client's connection, which stays open between requests, as S3's does."""

    protocol_version = "HTTP/1.1"
    # Head and body of an answer in one packet: Nagle's algorithm would hold the second one back.
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024

    def run_wsgi(self) -> None:
        environ = self.make_environ()
        environ["wsgi.input"] = BytesIO(self._body(environ))
        # moto's list of a bucket ends with a KeyError if a key is removed meanwhile.
        attempts = Retrying(
            retry=retry_if_exception_type(KeyError),
            stop=stop_after_attempt(3 if self.command == "GET" else 1),
            reraise=True,
        )
        try:
            answer = attempts(run_wsgi_app, self.server.app, environ, buffered=True)
        except Exception:
            logger.exception("moto fails at %s %s", self.command, self.path)
            answer = run_wsgi_app(InternalServerError(), environ, buffered=True)
        pieces, status, headers = answer
        self._send(status, headers, b"".join(pieces))

    def _body(self, environ) -> bytes:
        if environ.get("wsgi.input_terminated"):  # it is chunked
            return environ["wsgi.input"].read()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, status: str, headers, body: bytes) -> None:
        code, _, reason = status.partition(" ")
        is_empty = self.command == "HEAD" or code in WITHOUT_BODY
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in headers and not is_empty:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not is_empty:
            self.wfile.write(body)
        self.wfile.flush()

    def handle_expect_100(self) -> bool:
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def log_request(self, *_) -> None:
        """Log nothing: werkzeug has a line for each request."""


moto_serialized = S3Response.serialized


def _serialized(response: S3Response, action_result: ActionResult) -> Any:
    """moto's answer, put together from those for each key if it is a listing."""
    result: Any = action_result.result
    if response.data.get("Action") != "ListObjectsV2" or not isinstance(result, dict):
        return moto_serialized(response, action_result)
    without_keys = ActionResult(result | {"Contents": []})
    status, headers, body = moto_serialized(response, without_keys)
    keys = "".join(_key(response, one) for one in result["Contents"])
    return status, headers, body.replace(NEXT, keys + NEXT, 1)


def _key(response: S3Response, item: dict[str, Any]) -> str:
    """The XML of one key."""
    known = KEYS.get(str(item))
    if known is None:
        _, _, body = moto_serialized(response, ActionResult({"Contents": [item]}))
        known = KEYS[str(item)] = body[body.index(FIRST) : body.rindex(LAST) + len(LAST)]
    return known


KEYS: dict[str, str] = {}
FIRST, LAST, NEXT = "<Contents>", "</Contents>", "<Name>"
