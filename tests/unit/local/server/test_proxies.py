"""What a proxy says of the client, and what strangers say that they have no right to say."""

from collections.abc import Coroutine
from typing import Any

import pytest
from polynya_local.access.addresses import address_key, network
from polynya_local.server.answering import received_body, request_of
from polynya_local.server.hosts import Hosts
from polynya_local.server.proxies import BehindProxies


def run(answer: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing."""
    with pytest.raises(StopIteration):
        answer.send(None)


PROXIES = ("10.0.0.1", "192.168.7.0/24", "2001:db8::/32")


def seen(client: str, *headers: tuple[str, str]) -> tuple[str, str, str]:
    """Address, scheme and host of a request, as the application sees them."""
    found: list[Any] = []

    async def app(scope, receive, send) -> None:
        found.append(request_of(scope, received_body(scope, receive)))

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "raw_path": b"/",
        "query_string": b"",
        "client": (client, 1),
        "headers": [
            (name.encode(), value.encode()) for name, value in (("host", "lake:8181"), *headers)
        ],
    }
    run(BehindProxies(app, PROXIES)(scope, None, None))
    [request] = found
    return request.client, request.scheme, request.header("host")


FORWARDED = (
    ("x-forwarded-for", "203.0.113.5"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-host", "lake.example"),
)


@pytest.mark.parametrize("proxy", ["10.0.0.1", "192.168.7.200", "2001:db8:1::9"])
def test_a_proxy_says_who_the_client_is(proxy):
    assert seen(proxy, *FORWARDED) == ("203.0.113.5", "https", "lake.example")
    assert seen(proxy) == (proxy, "http", "lake:8181")


@pytest.mark.parametrize(
    "stranger", ["10.0.0.2", "192.168.8.1", "127.0.0.1", "::ffff:10.0.0.2", ""]
)
def test_a_stranger_does_not(stranger):
    assert seen(stranger, *FORWARDED) == (stranger, "http", "lake:8181")


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        # What the client has sent itself is on the left.
        ([("x-forwarded-for", "127.0.0.1, 203.0.113.5")], "203.0.113.5"),
        ([("x-forwarded-for", "10.0.0.1, 203.0.113.5, 192.168.7.9")], "203.0.113.5"),
        ([("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "203.0.113.5")], "203.0.113.5"),
        ([("x-forwarded-for", "203.0.113.5:4711")], "203.0.113.5"),
        ([("x-forwarded-for", "[2001:db9::1]:4711")], "2001:db9::1"),
        ([("x-forwarded-for", "")], "10.0.0.1"),
        ([("forwarded", "for=203.0.113.5")], "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_one_that_is_no_proxy(headers, client):
    assert seen("10.0.0.1", *headers)[0] == client


@pytest.mark.parametrize("scheme", ["javascript", "https, http", "", "HTTPS\t"])
def test_the_scheme_is_http_or_https(scheme):
    assert seen("10.0.0.1", ("x-forwarded-proto", scheme))[1] in ("http", "https")


def test_the_host_is_the_last_one_and_is_checked_like_any_other():
    header = ("x-forwarded-host", "evil.example, lake.example")
    assert seen("10.0.0.1", header)[2] == "lake.example"
    assert seen("10.0.0.1", ("x-forwarded-host", " "))[2] == "lake:8181"
    hosts = Hosts.from_names(["lake.example"])
    for host, is_refused in (("lake.example", False), ("evil.example", True)):
        found: list[Any] = []

        async def app(scope, receive, send, found=found) -> None:
            found.append(request_of(scope, received_body(scope, receive)))

        scope = {
            "type": "http",
            "method": "GET",
            "raw_path": b"/",
            "query_string": b"",
            "client": ("10.0.0.1", 1),
            "headers": [(b"host", b"lake:8181"), (b"x-forwarded-host", host.encode())],
        }
        run(BehindProxies(app, PROXIES)(scope, None, None))
        assert (hosts.refusal(found[0], 8181) is not None) == is_refused


@pytest.mark.parametrize(
    "spelt",
    ["10.0.0.7", "::ffff:10.0.0.7", "::FFFF:0A00:0007", "0:0:0:0:0:ffff:10.0.0.7"],
)
def test_an_address_is_one_in_each_spelling(spelt):
    assert address_key(spelt) == "address 10.0.0.7"


def test_a_network_of_64_bits_is_one_machine():
    assert address_key("2001:db8::1") == address_key("2001:DB8:0:0:ffff::2%eth0")
    assert address_key("2001:db8::1") != address_key("2001:db8:0:1::1")
    assert address_key("unknown") != address_key("")


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0", "*", "lake.example", "10.0.0.0/33", ""])
def test_not_everybody_is_a_proxy(text):
    with pytest.raises(ValueError, match=r"every address|does not appear to be"):
        network(text)


def test_a_network_is_named_by_any_of_its_addresses():
    assert network("10.0.0.9/8") == "10.0.0.0/8" and network("10.0.0.1") == "10.0.0.1/32"
