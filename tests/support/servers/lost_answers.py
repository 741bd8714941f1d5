"""A proxy before the catalog that loses or changes the answers to commits that have landed.

And one before S3 that does not put the files of a commit which has landed.
"""

import http.client
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PATIENCE = 300
"""Seconds until the catalog must answer, also one that has just started on a busy machine."""

CLOSED = 0
"""Instead of a status: the connection is closed without an answer."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A commit as a client sent it."""

    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class LostAnswers:
    """Forwards every request; `lose` says what becomes of the next answers to commits."""

    def __init__(self, catalog_uri: str) -> None:
        self._catalog = urlsplit(catalog_uri).netloc
        self.requests: list[Sent] = []
        """The commits, in order."""
        self.last: Sent | None = None
        """The newest commit, also if it was not answered."""
        self._losses: list[int] = []
        self.lost: list[int] = []
        """What became of answers that had the status 200 or 204."""

    def lose(self, *statuses: int) -> None:
        """Give the next commits these answers, or CLOSED, after they have landed."""
        self._losses += statuses

    def __enter__(self) -> "LostAnswers":
        outer = self

        class Connection(_Connection):
            proxy = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.uri = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def forward(self, method: str, sent: Sent) -> tuple[int, list[tuple[str, str]], bytes]:
        """The status, the headers and the body for the client."""
        if method == "POST" and is_commit(sent.path):
            self.last = sent
        connection = http.client.HTTPConnection(self._catalog, timeout=PATIENCE)
        try:
            connection.request(method, sent.path, sent.body, dict(sent.headers))
            answer = connection.getresponse()
            headers, body = answer.getheaders(), answer.read()
        finally:
            connection.close()
        if method != "POST" or not is_commit(sent.path):
            return answer.status, headers, body
        self.requests.append(sent)
        if answer.status not in (200, 204) or not self._losses:
            return answer.status, headers, body
        status = self._losses.pop(0)
        self.lost.append(status)
        return status, [("Content-Type", "application/json")], _error(status)


class RefusedPuts(LostAnswers):
    """Forwards every request to S3, but answers PUT below a path with a status, if one is set."""

    def __init__(self, s3_endpoint: str, below: str) -> None:
        super().__init__(s3_endpoint)
        self._below = below
        self.status: int | None = None
        """None: S3 is as it should be."""
        self.refused = 0
        """How many were refused."""

    def forward(self, method: str, sent: Sent) -> tuple[int, list[tuple[str, str]], bytes]:
        """The status, the headers and the body for the client."""
        if method != "PUT" or self.status is None or not sent.path.startswith(self._below):
            return super().forward(method, sent)
        self.refused += 1
        code = {403: "AccessDenied", 503: "SlowDown"}.get(self.status, "InternalError")
        body = f"<Error><Code>{code}</Code><Message>refused</Message></Error>"
        return self.status, [("Content-Type", "application/xml")], body.encode()


def is_commit(path: str) -> bool:
    """Whether a POST to this path commits to a table, or to several."""
    parts = urlsplit(path).path.split("/")
    return parts[-1] == "commit" or parts[-2] == "tables"


def _error(status: int) -> bytes:
    types = {409: "CommitFailedException", 500: "InternalServerError"}
    kind = types.get(status, "ServiceFailureException")
    return b'{"error": {"message": "lost", "type": "%b", "code": %d}}' % (kind.encode(), status)


class _Connection(BaseHTTPRequestHandler):
    proxy: LostAnswers
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        left_out = ("host", "connection", "content-length", "accept-encoding")
        headers = tuple((k, v) for k, v in self.headers.items() if k.lower() not in left_out)
        sent = Sent(self.path, headers, self.rfile.read(length))
        try:
            status, answered, body = self.proxy.forward(self.command, sent)
        except OSError:  # the catalog has ended
            status, answered, body = CLOSED, [], b""
        self.close_connection = status == CLOSED
        if status == CLOSED:
            return
        self.send_response(status)
        for name, value in _kept(answered):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        pass


def _kept(headers: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    left_out = ("content-length", "transfer-encoding", "connection", "date", "server")
    return ((name, value) for name, value in headers if name.lower() not in left_out)
