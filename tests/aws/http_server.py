"""An HTTP/1.1 server: one thread per connection, keep-alive, streamed answers.

`Request` and `Response` are records; the body of a request is read on demand.
docs/developers/decisions/0005 says why this is not uvicorn.

Header values have one character per byte (Latin-1), as in `http.server` and `http.client`, so
that every header passes through unchanged.
"""

import logging
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from socketserver import TCPServer
from threading import Lock, Thread
from typing import IO, Any
from urllib.parse import quote

from polynya.runtime.errors import log_fields
from polynya_local.messages import (
    PER_CONNECTION,
    Answer,
    Request,
    Response,
    chunks,
    exactly,
    spooled,
)


def from_text(value: str) -> str:
    """A header value from text: the characters of its UTF-8 bytes."""
    return value.encode("utf-8", "replace").decode("latin-1")


def unchunked(stream: BufferedIOBase) -> Iterator[bytes]:
    """The data of a chunked body (RFC 9112, section 7.1), without extensions and trailers.

    Raises:
        ConnectionError: the body is not chunked, or breaks off.
    """
    yield from chunks(stream)
    while stream.readline(65536).strip():
        pass


class RequestBody:
    """Reads the body of one request from its connection, at most once.

    Every method raises ConnectionError if the body breaks off.
    """

    def __init__(
        self, stream: BufferedIOBase, headers: Message, send_continue: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
        length = headers.get("Content-Length", "0")
        self._length = int(length) if re.fullmatch(r"\d{1,18}", length) else 0
        self._read = not (self._chunked or self._length)
        # Such a client sends the body after 100 Continue.
        self._held_back = headers.get("Expect", "").lower() == "100-continue"
        self._send_continue = send_continue

    def read(self) -> bytes:
        """The whole body, without its Transfer-Encoding."""
        return b"".join(self._pieces())

    def file(self) -> IO[bytes]:
        """The same as a file."""
        return spooled(self._pieces())

    def drain(self) -> bool:
        """Read up to the next request; False: the connection has to be closed instead."""
        if self._held_back:
            return False  # after an answer the client may send the body or not
        for _ in self._pieces():
            pass
        return True

    def _pieces(self) -> Iterator[bytes]:
        if self._held_back:
            self._held_back = False
            self._send_continue()
        if not self._read:
            self._read = True
            if self._chunked:
                yield from unchunked(self._stream)
            else:
                yield from exactly(self._stream, self._length)


logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
ALL_ADDRESSES = "0.0.0.0"
# Seconds after which an idle connection is closed; no answer takes as long.
CONNECTION_TIMEOUT_S = 120
# Seconds that stop() waits for answers under way.
STOP_GRACE_S = 5
# Characters that are left as they are; control characters and bytes beyond ASCII are
# percent-encoded, which names the same key.
REQUEST_LINE = "".join(map(chr, range(0x21, 0x7F)))


class HttpServer(ThreadingHTTPServer):
    """Binds its port when it is created, and answers between `start` and `stop`."""

    request_queue_size = 128
    answer: Answer

    def __init__(self, port: int, host: str = HOST) -> None:
        self._host = host
        self._serving: Thread | None = None
        self._connections: dict[socket.socket, Thread] = {}
        self._lock = Lock()
        try:
            super().__init__((host, port), _Connection)
        except OSError as error:
            reason = f"cannot listen on {host}:{port}: {error.strerror}"
            raise OSError(error.errno, reason) from error

    def server_bind(self) -> None:
        # HTTPServer looks up the name of the host, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self._host, self.server_address[1]

    @property
    def uri(self) -> str:
        """`http://<host>:<port>`, as programs on this machine reach it."""
        host = HOST if self._host == ALL_ADDRESSES else self._host
        return f"http://{host}:{self.server_port}"

    def start(self, answer: Answer) -> None:
        """Serve in a thread; `answer` is called in the thread of each connection."""
        self.answer = answer
        name = f"http-{self.server_port}"
        self._serving = Thread(target=self.serve_forever, args=(0.05,), name=name, daemon=True)
        self._serving.start()

    def stop(self) -> None:
        """Stop listening, finish the answers under way, and end all threads."""
        if self._serving is not None:
            self.shutdown()
            self._serving.join()
            self._serving = None
        self.server_close()
        with self._lock:
            connections = dict(self._connections)
        # This ends the read of an idle connection; a busy one continues to write.
        _end(connections, socket.SHUT_RD, STOP_GRACE_S)
        _end(connections, socket.SHUT_RDWR, 1)

    def process_request(self, request: Any, client_address: Any) -> None:
        # Like ThreadingMixIn, but keeps the threads with their sockets.
        arguments = (request, client_address)
        thread = Thread(target=self.process_request_thread, args=arguments, daemon=True)
        with self._lock:
            self._connections[request] = thread
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._connections[request]

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that disconnects is no error; the library would print a traceback.
        if isinstance(sys.exc_info()[1], OSError):
            logger.debug("the client at %s disconnected", client_address, exc_info=True)
        else:
            logger.exception("the connection from %s failed", client_address)


def _end(connections: dict[socket.socket, Thread], how: int, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    for connection, thread in connections.items():
        if thread.is_alive():
            try:
                connection.shutdown(how)
            except OSError:
                continue  # closed already
    for thread in connections.values():
        thread.join(max(0.0, deadline - time.monotonic()))


class _Connection(BaseHTTPRequestHandler):
    """One client's connection: parses each request, sends each answer."""

    server: HttpServer
    protocol_version = "HTTP/1.1"
    timeout = CONNECTION_TIMEOUT_S
    # Headers and body must be sent in one packet: otherwise Nagle's algorithm and delayed
    # acknowledgements cost 40 ms per answer.
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024

    def respond(self) -> None:
        # self.path has "/" for a leading "//", which a key may have.
        target = quote(self.requestline.split()[1].encode("latin-1"), safe=REQUEST_LINE)
        if not target.startswith("/"):
            self.send_error(400)
            return
        path, _, query = target.partition("?")
        headers = tuple(self.headers.items())
        body = RequestBody(self.rfile, self.headers, self._send_continue)
        request = Request(self.command, path, query, headers, body)
        try:
            response = self.server.answer(request)
        except ConnectionError:
            raise  # the client disconnected before the end of its body
        except Exception as error:
            logger.error("%s %s failed: %s", self.command, path, log_fields(error))
            response = Response(500, (("Content-Type", "text/plain"),), b"Internal Server Error")
        # What is left of the body would be read as the next request.
        if not body.drain():
            self.close_connection = True
        self._send(response)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = respond

    def _send(self, response: Response) -> None:
        pieces = (response.body,) if isinstance(response.body, bytes) else response.body
        try:
            chunked = self._send_head(response)
            if self.command != "HEAD" and response.status not in (204, 304):
                for piece in filter(None, pieces):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                if chunked:
                    self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except Exception as error:
            # The answer has begun: only a broken connection tells the client.
            logger.debug("the answer to %s %s broke off: %r", self.command, self.path, error)
            self.close_connection = True
        finally:
            if close := getattr(response.body, "close", None):
                close()

    def _send_head(self, response: Response) -> bool:
        """Send status and headers; whether the body is chunked."""
        length = response.header("content-length")
        if isinstance(response.body, bytes) and (length is None or self.command != "HEAD"):
            length = str(len(response.body))
        headers = [(k, v) for k, v in response.headers if k.lower() not in PER_CONNECTION]
        chunked = False
        if response.status not in (204, 304):
            chunked = length is None and self.request_version == "HTTP/1.1"
            if length is not None:
                headers.append(("Content-Length", length))
            elif chunked:
                headers.append(("Transfer-Encoding", "chunked"))
            else:
                self.close_connection = True  # marks the end of the body for HTTP/1.0
        if response.header("date") is None:
            headers.append(("Date", self.date_time_string()))
        if self.close_connection:
            headers.append(("Connection", "close"))
        self.log_request(response.status)
        self.send_response_only(response.status)
        # A line break in a value would begin another header.
        for name, value in headers:
            self.send_header(name, re.sub(r"[\r\n]+", " ", value))
        self.end_headers()
        return chunked

    def _send_continue(self) -> None:
        self.send_response_only(100)
        self.end_headers()
        self.wfile.flush()

    def handle_expect_100(self) -> bool:
        return True  # sent when the body is read: a refused upload is never sent

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug("%s: %s", self.address_string(), format % args)
