"""Which requests are answered: those to this machine's own names, not those of other sites."""

import pytest
from polynya_local.stand_in.hosts import Hosts
from polynya_local.stand_in.http_message import Request
from polynya_local.stand_in.machine import refused

PORT = 8181

ANSWERED = [
    "127.0.0.1:8181",
    "localhost:8181",
    "LOCALHOST:8181",
    "localhost.:8181",
    "[::1]:8181",
    "127.8.0.3:8181",
    "bucket.localhost:8181",
    "two.dots.127.0.0.1:8181",
    "lake--ol-s3.127.0.0.1:8181",
    "",
    "my.machine:9000",
    "any-port",
    "any-port:1",
]
REFUSED = [
    "evil.example",
    "evil.example:8181",
    "localhost:8182",
    "localhost",
    "127.0.0.1.evil.example:8181",
    "localhost.evil.example:8181",
    "evil-localhost:8181",
    "127.0.0.1@evil.example:8181",
    "10.0.0.1:8181",
    "[::2]:8181",
    "my.machine:9001",
    "localhost:8181, evil.example",
    "localhost:8181:8181",
    "<script>",
]


def request(host: str, method: str = "GET", path: str = "/", **headers: str) -> Request:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    host_header = (("Host", host),) if host else ()
    return Request(method, path, "", host_header + named, None, "127.0.0.1")


HOSTS = Hosts.of(["My.Machine:9000", "any-port"])


@pytest.mark.parametrize("host", ANSWERED)
def test_a_name_of_this_machine_or_an_allowed_one_is_answered(host):
    assert HOSTS.refusal(request(host), PORT) is None


@pytest.mark.parametrize("host", REFUSED)
def test_another_name_is_refused(host):
    assert "--allow-host" in HOSTS.refusal(request(host), PORT)


def test_without_a_port_it_is_80():
    assert HOSTS.refusal(request("localhost"), 80) is None


SITES = [
    ("POST", "cross-site", True),
    ("DELETE", "same-site", True),
    ("POST", "same-origin", False),
    ("POST", "", False),
    ("GET", "cross-site", False),
]


@pytest.mark.parametrize(("method", "site", "is_refused"), SITES)
def test_pages_of_other_sites_change_nothing(method, site, is_refused):
    headers = {"Sec_Fetch_Site": site} if site else {}
    found = HOSTS.refusal(request("localhost:8181", method, **headers), PORT)
    assert (found is not None) == is_refused


def test_the_answer_is_a_sentence_that_is_escaped():
    page = refused(request("x"), "not <b>known</b>")
    catalog = refused(request("x", path="/v1/config"), "not <b>known</b>")
    assert (page.status, catalog.status) == (421, 421)
    assert b"not &lt;b&gt;known" in page.body
    assert catalog.body == (
        b'{"error": {"message": "not <b>known</b>", "type": "ForbiddenException", "code": 421}}'
    )
