"""The two servers together: ports, connections, start and stop."""

import contextlib
import errno
import socket
import threading
import time

import pytest
import urllib3
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

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
