"""The two servers together: ports, connections, start and stop."""

import contextlib
import errno
import logging
import socket
import threading
import time

import pytest
import urllib3
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from polynya_local.messages import Response

from tests.aws.http_server import HttpServer
from tests.aws.stand_in import StandIn


def stand_in(port: int = 0, alias: str | None = None) -> StandIn:
    nowhere = "http://127.0.0.1:9"
    return StandIn(
        alias=alias, supporting_bucket=None, s3_endpoint=nowhere, region="us-east-1", port=port
    )


def hello(event, context):
    return {"statusCode": 200, "body": "hello"}


EXPECTED = [
    NoCredentialsError(),
    EndpointConnectionError(endpoint_url="http://127.0.0.1:9"),
    ClientError({"Error": {"Code": "ExpiredToken"}}, "GetObject"),
]


@pytest.mark.parametrize("error", EXPECTED, ids=lambda error: type(error).__name__)
def test_what_aws_does_not_give_is_logged_in_one_line(error, caplog):
    def fails(event, context):
        raise error

    with stand_in() as servers:
        servers.start(fails)
        answer = urllib3.request("GET", f"{servers.api_uri}/v1/config")
    assert answer.status == 500
    [record] = caplog.records
    assert record.exc_info is None and "\n" not in record.getMessage()
    assert str(error) in record.getMessage()


@pytest.fixture
def server():
    server = HttpServer(0)
    yield server
    server.stop()


def free_pair() -> int:
    """A port that is free together with the one after it."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = first.getsockname()[1]
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
                return port


def test_the_addresses_are_known_before_the_start():
    port = free_pair()
    with stand_in(port) as made:
        assert made.api_uri == f"http://127.0.0.1:{port}"
        assert made.s3_uri == f"http://127.0.0.1:{port + 1}"


@pytest.mark.parametrize("taken", [0, 1])
def test_a_port_in_use_is_named(taken):
    port = free_pair()
    with (
        socket.create_server(("127.0.0.1", port + taken)),
        pytest.raises(OSError, match=f"127.0.0.1:{port + taken}") as caught,
    ):
        stand_in(port)
    assert caught.value.errno == errno.EADDRINUSE
    with socket.create_server(("127.0.0.1", port + 1 - taken)):
        pass  # the other one of the two ports was released


def test_no_port_is_open_beyond_the_loopback_interface():
    with stand_in() as made:
        port = int(made.api_uri.rpartition(":")[2])
        with socket.create_server(("127.0.0.2", port)):
            pass  # this would fail if the server listened on 0.0.0.0


def test_stop_ends_all_threads_and_releases_the_ports():
    before = set(threading.enumerate())
    with stand_in() as made, urllib3.PoolManager() as pool:
        made.start(hello)
        assert pool.request("GET", made.api_uri).data == b"hello"
        # The pool keeps its connection: a thread of the server waits there.
        port = int(made.api_uri.rpartition(":")[2])
        started = time.monotonic()
        made.stop()
        assert time.monotonic() - started < 2
        assert set(threading.enumerate()) == before
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_stop_has_no_effect_the_second_time_or_before_start():
    made = stand_in()
    made.stop()
    made.stop()


def test_stop_waits_for_a_running_answer():
    began = threading.Event()

    def slow(event, context):
        began.set()
        time.sleep(0.3)
        return {"statusCode": 200, "body": "whole"}

    answers = []
    with stand_in() as made:
        made.start(slow)
        uri = made.api_uri
        client = threading.Thread(target=lambda: answers.append(urllib3.request("GET", uri)))
        client.start()
        assert began.wait(5)
    client.join()
    assert answers[0].data == b"whole"


def test_an_access_point_without_a_handler_is_an_error():
    with stand_in(alias="lake--ol-s3") as made, pytest.raises(ValueError, match="needs a handler"):
        made.start(hello)


def test_headers_and_body_are_sent_in_one_packet(server):
    server.start(lambda request: Response(200, (), b"x" * 100))
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        for _ in range(3):
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(65536).endswith(b"x" * 100)


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
    assert b"Content-Length: 4\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_an_unread_body_does_not_become_the_next_request(server):
    server.start(lambda request: Response(403, (), b"no"))
    with urllib3.HTTPConnectionPool("127.0.0.1", server.server_port, maxsize=1) as pool:
        for _ in range(3):
            assert pool.request("PUT", "/", body=b"GET /x HTTP/1.1\r\n\r\n" * 1000).status == 403
        assert pool.num_connections == 1


def test_an_upload_that_expects_100_continue_is_refused_before_its_body(server):
    server.start(lambda request: Response(403, (), b"no"))
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as client:
        client.sendall(
            b"PUT /b/k HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
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
        assert client.recv(65536).endswith(b"hello")


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
    assert "KeyError: 'what'" in caplog.text
