"""Which requests are answered: those to this machine's own names, not those of other sites."""

from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import urllib3
from mangum import Mangum
from polynya_local.messages import Request
from polynya_local.s3.local_bucket import LocalBucket
from polynya_local.server.hosts import SAFE_METHODS, Hosts, refused
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import RESTError

from tests.aws.stand_in import StandIn

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
    return Request(method, path, "", host_header + named, None)


HOSTS = Hosts.from_names(["My.Machine:9000", "any-port"])


@pytest.mark.parametrize("host", ANSWERED)
def test_a_name_of_this_machine_or_an_allowed_one_is_answered(host):
    assert HOSTS.refusal(request(host), PORT) is None


@pytest.mark.parametrize("host", REFUSED)
def test_another_name_is_refused(host):
    assert "--allow-host" in HOSTS.refusal(request(host), PORT)


def test_without_a_port_it_is_80():
    assert HOSTS.refusal(request("localhost"), 80) is None


OWN, NAMED = "http://localhost:8181", "https://any-port"
NAVIGATION = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
PROGRAM = {}
LINK = {"Sec_Fetch_Site": "cross-site", **NAVIGATION}
TYPED = {"Sec_Fetch_Site": "none", **NAVIGATION}
PICTURE = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}
OUR_FORM = {"Sec_Fetch_Site": "same-origin", **NAVIGATION, "Origin": OWN}
SITES = [
    # what a program or a browser sends; the page and the catalog, reading and changing; S3, both
    (PROGRAM, "answered", "answered", "answered"),
    (TYPED, "answered", "answered", "refused"),
    (LINK, "answered", "refused", "refused"),
    (PICTURE, "answered", "refused", "refused"),
    (PICTURE | {"Sec_Fetch_Site": "same-site"}, "answered", "refused", "refused"),
    (OUR_FORM, "answered", "answered", "refused"),
    ({"Sec_Fetch_Site": "same-origin"}, "answered", "answered", "answered"),
    # a page that sends no referrer
    (OUR_FORM | {"Origin": "null"}, "answered", "answered", "refused"),
    # older browsers, and names without TLS
    ({"Origin": OWN}, "answered", "answered", "answered"),
    ({"Origin": OWN.upper()}, "answered", "answered", "answered"),
    ({"Origin": NAMED}, "answered", "answered", "answered"),
    ({"Origin": "null"}, "refused", "refused", "refused"),
    ({"Origin": "http://evil.example"}, "refused", "refused", "refused"),
    ({"Origin": "http://localhost"}, "refused", "refused", "refused"),
    ({"Origin": "http://localhost:8182"}, "refused", "refused", "refused"),
    ({"Origin": "http://localhost:8181.evil.example"}, "refused", "refused", "refused"),
    ({"Origin": "http://127.0.0.1:8181"}, "refused", "refused", "refused"),
    ({"Origin": "evil://x://localhost:8182"}, "refused", "refused", "refused"),
    ({"Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"}, *["refused"] * 3),
]


@pytest.mark.parametrize(("headers", "reading", "changing", "s3"), SITES)
def test_what_pages_of_other_sites_may_do(headers, reading, changing, s3):
    answers = {
        (method, is_s3): HOSTS.refusal(
            request("localhost:8181", method, **headers), PORT, is_s3=is_s3
        )
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE")
        for is_s3 in (False, True)
    }
    for (method, is_s3), refusal in answers.items():
        expected = s3 if is_s3 else reading if method in SAFE_METHODS else changing
        assert (refusal is None) == (expected == "answered"), (method, is_s3, refusal)


def test_a_page_at_a_name_that_the_user_allows_is_our_own():
    headers = {"Origin": "http://my.machine:9000"}
    assert HOSTS.refusal(request("my.machine:9000", "POST", **headers), PORT) is None
    assert HOSTS.refusal(request("localhost:8181", "POST", **headers), PORT) is None
    assert HOSTS.refusal(request("any-port:1", "POST", Origin="http://any-port:2"), PORT)


# Both servers

STATUSES = {
    **dict.fromkeys(["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"]),
    **dict.fromkeys(["[fe80::1]", "[fe80::1]:1", "named", "named:5"]),
    **dict.fromkeys(["[::1]", "[::1]:", "[::1]:x", "[::1", "::1", "::1:{port}", "[]:{port}"], 421),
    **dict.fromkeys(["localhost:", "localhost:-1", "localhost:99999", "localhost:²"], 421),
    **dict.fromkeys([":", ":{port}", "[::2]:{port}", "\xff:{port}", "a b:{port}", "[", "]"], 421),
    **dict.fromkeys(["named:", "named:x", "named:1:2", "localhost:{port}, named"], 421),
}
"""By the header Host; None: answered."""


@pytest.fixture(scope="module")
def servers():
    """The catalog, by Mangum as in the functions, and S3; a folder behind them."""

    async def catalog(scope, receive, send):
        body = f"{scope['server']}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    with TemporaryDirectory() as folder:
        Path(folder, "page.html").write_text("<script>alert(1)</script>")
        made = StandIn(
            alias=None,
            supporting_bucket=None,
            s3_endpoint=None,
            region="us-east-1",
            local_bucket=LocalBucket("data", Path(folder)),
            allowed_hosts=["[fe80::1]", "named"],
        )
        with made:
            made.start(Mangum(catalog, lifespan="off"))
            yield made


@pytest.mark.parametrize("host", STATUSES)
def test_no_header_host_is_an_error_of_the_server(servers, host):
    for uri, path in ((servers.api_uri, "/v1/config"), (servers.s3_uri, "/data/page.html")):
        port = int(uri.rpartition(":")[2])
        with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.putrequest("GET", path, skip_host=True)
            connection.putheader("Host", host.format(port=port))
            connection.endheaders()
            assert connection.getresponse().status == (STATUSES[host] or 200), uri


def test_what_is_stored_is_no_page(servers):
    for method, path, status in [
        ("GET", "/data/page.html", 200),
        ("HEAD", "/data/page.html", 200),
        ("GET", "/data/", 200),
        ("GET", "/data/none", 404),
        ("GET", "/data/v1/config", 404),
        ("PUT", "/data/page.html", 403),
    ]:
        answer = urllib3.request(method, f"{servers.s3_uri}{path}", retries=False)
        assert answer.status == status
        assert answer.headers["Content-Security-Policy"] == "sandbox"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Disposition"] == "attachment"


def test_the_answer_is_a_sentence_that_is_escaped():
    page = refused(request("x"), "not <b>known</b>")
    catalog = refused(request("x", path="/v1/config"), "not <b>known</b>")
    assert (page.status, catalog.status) == (421, 421)
    assert b"not &lt;b&gt;known" in page.body
    assert catalog.body == (
        b'{"error": {"message": "not <b>known</b>", "type": "ForbiddenException", "code": 421}}'
    )


def test_a_client_of_the_catalog_that_is_sent_to_s3_reads_where_the_catalog_is(servers):
    with pytest.raises(RESTError, match=f"The Iceberg REST catalog is at {servers.api_uri}: "):
        load_catalog("wrong", type="rest", uri=servers.s3_uri, warehouse="lake")


def test_a_key_that_begins_as_the_paths_of_the_catalog_is_a_key(servers):
    """Also of a bucket that is in the name of the host."""
    port = int(servers.s3_uri.rpartition(":")[2])
    headers = {"Host": f"data.localhost:{port}"}
    answer = urllib3.request("GET", f"{servers.s3_uri}/v1/none", headers=headers, retries=False)
    assert answer.status == 404 and b"NoSuchKey" in answer.data
