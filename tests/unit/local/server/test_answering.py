"""What both servers do with HTTP: Uvicorn, and the one before the stand-ins of tests/aws/."""

import asyncio
import logging
import socket
import threading
import time
from contextlib import closing
from multiprocessing import Pipe

import pytest
import urllib3
from polynya_local.messages import Answer, Response
from polynya_local.server import connections, uvicorn_server
from polynya_local.server.answering import BODY_SECONDS, Answering, received_in_time
from polynya_local.server.connections import LONGEST_HEAD
from polynya_local.server.uvicorn_server import (
    _Workers,
    answering,
    bound_socket,
    port_of,
    uri_of,
)
from starlette.responses import StreamingResponse
from uvicorn.supervisors import Multiprocess

from tests.aws.http_server import HttpServer
from tests.support.virtual_time import VirtualTimeLoop


class UvicornServer:
    """Uvicorn under the names of `HttpServer`."""

    def __init__(self) -> None:
        self._socket = bound_socket(0)
        self.server_port, self.uri = port_of(self._socket), uri_of(self._socket)
        self._running = None

    def start(self, answer: Answer) -> None:
        self._running = answering(Answering(answer), self._socket)
        self._running.__enter__()

    def stop(self) -> None:
        if self._running is not None:
            self._running.__exit__(None, None, None)
        self._socket.close()


@pytest.fixture(params=[UvicornServer, lambda: HttpServer(0)], ids=["uvicorn", "http.server"])
def server(request):
    server = request.param()
    yield server
    server.stop()


@pytest.mark.parametrize("server", [lambda: HttpServer(0)], indirect=True)
def test_headers_and_body_are_sent_in_one_packet(server):
    """Uvicorn sends two: see the next test."""
    server.start(lambda request: Response(200, (), b"x" * 100))
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        for _ in range(3):
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(65536).endswith(b"x" * 100)


def test_uvicorn_sends_the_body_without_waiting_for_the_client():
    """Nagle's algorithm holds the second packet back until the client acknowledges the first, which
    it does after 40 ms."""
    options = []

    async def app(scope, receive, send):
        connection = send.__self__.transport.get_extra_info("socket")
        options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    with bound_socket(0) as listening, answering(app, listening) as uri:
        assert urllib3.request("GET", uri).status == 204
    assert options == [1]


def test_the_server_says_that_it_answers_although_its_workers_took_long(monkeypatch):
    """Uvicorn waits once, and the command would serve without a word."""
    answers, said = iter([False, False, True, True]), []

    class Late:
        child_conn, _ = Pipe()

        def wait_until_ready(self, seconds: float, should_exit: threading.Event) -> bool:
            return next(answers)

    for name in ("init_processes", "keep_subprocess_alive"):
        monkeypatch.setattr(Multiprocess, name, lambda self: None)
    workers = object.__new__(_Workers)
    workers.processes, workers.should_exit = [Late()], threading.Event()
    workers._on_ready = lambda: said.append("ready")
    workers.init_processes()
    assert said == []
    for _ in range(3):
        workers.keep_subprocess_alive()
    assert said == ["ready"]


def test_a_connection_serves_many_requests(server):
    server.start(lambda request: Response(200, (), request.body.read()))
    with urllib3.HTTPConnectionPool("127.0.0.1", server.server_port, maxsize=1) as pool:
        for method, body in [("POST", b"a"), ("HEAD", None), ("PUT", b"bc"), ("GET", None)]:
            answer = pool.request(method, "/", body=body)
            assert answer.data == (body or b"")
        assert pool.num_connections == 1


def test_the_answer_to_head_ends_with_its_headers(server):
    server.start(lambda request: Response(200, (), b"body"))
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
        client.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = client.makefile("rb").read()
    assert b"content-length: 4\r\n" in answer.lower()
    assert answer.endswith(b"\r\n\r\n")


def test_an_unread_body_does_not_become_the_next_request(server):
    server.start(lambda request: Response(403, (), b"no"))
    with urllib3.HTTPConnectionPool("127.0.0.1", server.server_port, maxsize=1) as pool:
        for _ in range(3):
            assert pool.request("PUT", "/", body=b"GET /x HTTP/1.1\r\n\r\n" * 1000).status == 403
        assert pool.num_connections == 1


def test_a_large_upload_that_expects_100_continue_is_refused_before_its_body(server):
    server.start(lambda request: Response(403, (), b"no"))
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
        client.sendall(
            b"PUT /b/k HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        answer = client.makefile("rb").read()  # until the connection is closed
    assert answer.startswith(b"HTTP/1.1 403")


def test_an_upload_that_expects_100_continue_receives_it(server):
    server.start(lambda request: Response(200, (), request.body.read()))
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        )
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        answer = client.makefile("rb")
        while answer.readline().strip():
            pass  # headers
        assert answer.read(5) == b"hello"


@pytest.mark.parametrize("declared", ["5", "0", "-1", "x", "9999999"])
def test_a_chunked_body_is_whole_whatever_length_it_declares(server, declared):
    server.start(lambda request: Response(200, (), request.body.read()))
    body = bytes(range(256)) * 4000
    answer = urllib3.request(
        "PUT",
        server.uri,
        headers={"x-amz-decoded-content-length": declared},
        body=iter([body[:5], body[5:200_000], body[200_000:]]),
    )
    assert (answer.status, answer.data) == (200, body)


def test_a_body_of_unknown_length_is_sent_in_chunks(server):
    server.start(lambda request: Response(200, (), iter([b"one ", b"", b"two"])))
    answer = urllib3.request("GET", server.uri)
    assert (answer.headers["transfer-encoding"], answer.data) == ("chunked", b"one two")


def test_a_header_cannot_inject_another_one(server):
    server.start(lambda request: Response(200, (("x-a", "1\r\nx-b: 2"),)))
    assert urllib3.request("GET", server.uri).headers["x-a"] == "1 x-b: 2"


def test_a_client_that_disconnects_is_no_error(server, caplog, capfd):
    left = threading.Event()

    def endless():
        try:
            while True:
                yield b"x" * 100_000
        finally:
            left.set()

    pieces = endless()  # this reference keeps it open until close()
    caplog.set_level(logging.INFO)
    server.start(lambda request: Response(200, (), pieces))
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.recv(1000)
    assert left.wait(5)  # so that a connection to the S3 behind is released
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
    server.stop()
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_an_internal_error_is_a_500_and_is_logged(server, caplog):
    def broken(request):
        raise KeyError("what")

    server.start(broken)
    answer = urllib3.request("GET", server.uri, retries=False)
    assert (answer.status, answer.data) == (500, b"Internal Server Error")
    assert "'error': 'KeyError', 'raised_at': '" in caplog.text
    assert "'what'" not in caplog.text  # it can be a value of a row


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\nAuthorization: Bearer ",
        b"GET /",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx: ",
    ],
    ids=["header", "path", "trailer"],
)
def test_a_head_that_does_not_end_is_not_kept(start):
    server = UvicornServer()
    server.start(lambda request: Response(200, (), b"yes"))
    sent = 0
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
        client.sendall(start)
        with pytest.raises(ConnectionError):
            while sent < 64 * LONGEST_HEAD:
                sent += client.send(b"a" * 65536)
    assert urllib3.request("GET", server.uri).data == b"yes"
    server.stop()


def test_a_head_that_takes_long_ends_the_connection(monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    server = UvicornServer()
    server.start(lambda request: Response(200, (), request.body.read()))
    for start in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
            client.sendall(start)
            assert client.recv(100) == b""
    # A body may take longer, and so may the time between two requests.
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
        for _ in range(2):
            client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
            time.sleep(0.7)
            client.sendall(b"b")
            answer = b""
            while not answer.endswith(b"\r\n\r\nab"):
                piece = client.recv(1000)
                assert piece
                answer += piece
            time.sleep(0.7)
    server.stop()


@pytest.mark.parametrize("rest", [b"b", b"bcd"], ids=["a part", "all"])
def test_a_body_that_comes_after_its_answer_keeps_no_connection(monkeypatch, rest):
    monkeypatch.setattr(uvicorn_server, "KEEP_ALIVE_SECONDS", 0.2)

    async def app(scope, receive, send):
        length = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 404, "headers": length})
        await send({"type": "http.response.body", "body": b"no"})

    with (
        bound_socket(0) as listening,
        answering(app, listening),
        socket.create_connection(listening.getsockname(), timeout=5) as client,
    ):
        client.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\na")
        answer = b""
        while not answer.endswith(b"no"):
            answer += client.recv(1000)
        client.sendall(rest)
        assert client.recv(1000) == b""


def test_an_answer_may_take_longer_than_the_next_part_of_a_body():
    """Whoever streams an answer waits for its client to disconnect meanwhile."""
    messages = [{"type": "http.request", "body": b"", "more_body": False}]
    loop, sent = VirtualTimeLoop(), []

    async def receive():
        return messages.pop() if messages else await loop.create_future()

    async def pieces():
        for _ in range(3):
            await asyncio.sleep(BODY_SECONDS)
            yield b"x"

    async def send(message):
        sent.append(message.get("body", b""))

    async def run():
        received = received_in_time(receive)
        await received()
        await StreamingResponse(pieces())({"type": "http"}, received, send)

    with closing(loop):
        loop.run_until_complete(run())
    assert b"".join(sent) == b"xxx"
