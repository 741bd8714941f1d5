"""Which header Host is answered: none that another site can make the name of this machine."""

import json

import pytest
from polynya_local.stand_in.hosts import Hosts
from polynya_local.stand_in.http_message import Request, Response

HOSTS = Hosts(frozenset({"polynya", "lake.example.org"}))

ACCEPTED = [
    "",
    "127.0.0.1",
    "127.0.0.1:8181",
    "192.168.1.7:8181",
    "[::1]:8181",
    "localhost:8181",
    "LOCALHOST",
    "bucket.localhost:8182",
    "lake--ol-s3.127.0.0.1:8182",
    "polynya:8181",
    "Lake.Example.org",
]
REFUSED = [
    "evil.example",
    "evil.example:8181",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evillocalhost",
    "notpolynya",
    "a.polynya",
    "127.0.0.1,evil.example",
    "127.0.0.1@evil.example",
    "2130706433.example",
    "[evil.example]",
]


@pytest.mark.parametrize("header", ACCEPTED)
def test_addresses_localhost_and_given_names_are_answered(header):
    assert HOSTS.accept(header)


@pytest.mark.parametrize("header", REFUSED)
def test_other_names_are_refused(header):
    assert not HOSTS.accept(header)


def test_a_refusal_is_an_error_of_each_server():
    def answer(request: Request) -> Response:
        raise AssertionError("not asked")

    request = Request("GET", "/v1/config", "", (("Host", "evil.example"),), None, "127.0.0.1")
    refused = HOSTS.guard_catalog(answer)(request)
    error = json.loads(refused.body)["error"]
    assert (refused.status, error["type"], error["code"]) == (403, "ForbiddenException", 403)
    refused = HOSTS.guard_s3(answer)(request)
    assert refused.status == 403 and b"<Code>AccessDenied</Code>" in refused.body
