"""Signatures of requests to S3: AWS's own examples, those of botocore, and altered ones.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import IO
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from polynya_local.access.signatures import NotSigned, Signature
from polynya_local.messages import Request

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
DAY = datetime(2013, 5, 24, tzinfo=UTC)
DATE = "20130524T000000Z"
CREDENTIAL = f"Credential={KEY}/20130524/us-east-1/s3/aws4_request"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@dataclass(frozen=True)
class Sent:
    """A body that was sent."""

    data: bytes

    def read(self) -> bytes:
        return self.data

    def file(self) -> IO[bytes]:
        return BytesIO(self.data)


def request(
    method: str,
    path: str,
    headers: dict[str, str],
    signature: str,
    *,
    query: str = "",
    body: bytes = b"",
    host: str = "examplebucket.s3.amazonaws.com",
) -> Request:
    """A request with these headers, of which all are signed."""
    given = {"host": host, "x-amz-date": DATE, **headers}
    names = ";".join(sorted(name.lower() for name in given))
    authorization = f"AWS4-HMAC-SHA256 {CREDENTIAL},SignedHeaders={names},Signature={signature}"
    headers = {**given, "Authorization": authorization}
    return Request(method, path, query, tuple(headers.items()), Sent(body))


def verified(of: Request, *, now: datetime = DAY, secret: str = SECRET) -> bytes:
    signature = Signature.from_request(of, now)
    assert signature.access_key_id == KEY
    return signature.verified_body(of, secret).read()


GET = request(
    "GET",
    "/test.txt",
    {"Range": "bytes=0-9", "x-amz-content-sha256": EMPTY},
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
)
PUT = request(
    "PUT",
    "/test%24file.text",
    {
        "Date": "Fri, 24 May 2013 00:00:00 GMT",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
        "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    },
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    body=b"Welcome to Amazon S3.",
)
LIFECYCLE = request(
    "GET",
    "/",
    {"x-amz-content-sha256": EMPTY},
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    query="lifecycle",
)
LISTING = request(
    "GET",
    "/",
    {"x-amz-content-sha256": EMPTY},
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    query="max-keys=2&prefix=J",
)
PRESIGNED = Request(
    "GET",
    "/test.txt",
    f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={KEY}%2F20130524%2Fus-east-1%2Fs3%2F"
    f"aws4_request&X-Amz-Date={DATE}&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
    "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
    (("host", "examplebucket.s3.amazonaws.com"),),
    Sent(b""),
)
LENGTHS = (65536, 1024, 0)


def chunks(signatures: tuple[str, str, str], end: str = "\r\n") -> bytes:
    parts = zip(LENGTHS, signatures, strict=True)
    text = [f"{n:x};chunk-signature={s}\r\n{'a' * n}" + "\r\n" * (n > 0) for n, s in parts]
    return ("".join(text) + end).encode()


OF_CHUNKS = {
    "x-amz-storage-class": "REDUCED_REDUNDANCY",
    "x-amz-decoded-content-length": "66560",
    "Content-Encoding": "aws-chunked",
}
CHUNKED = request(
    "PUT",
    "/examplebucket/chunkObject.txt",
    OF_CHUNKS
    | {"x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Content-Length": "66824"},
    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    host="s3.amazonaws.com",
    body=chunks(
        (
            "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
            "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
            "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
        )
    ),
)
TRAILED = request(
    "PUT",
    "/examplebucket/chunkObject.txt",
    OF_CHUNKS
    | {
        "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        "x-amz-trailer": "x-amz-checksum-crc32c",
    },
    "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
    host="s3.amazonaws.com",
    body=chunks(
        (
            "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
            "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
            "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        ),
        "x-amz-checksum-crc32c:sOO8/Q==\r\n"
        "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
        "\r\n\r\n",
    ),
)
EXAMPLES = {
    "get": GET,
    "put": PUT,
    "lifecycle": LIFECYCLE,
    "listing": LISTING,
    "presigned": PRESIGNED,
    "chunks": CHUNKED,
    "trailer": TRAILED,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_aws_are_verified(name):
    assert verified(EXAMPLES[name]) == EXAMPLES[name].body.read()


def with_header(of: Request, name: str, value: str) -> Request:
    others = [(key, text) for key, text in of.headers if key.lower() != name.lower()]
    return replace(of, headers=(*others, (name, value)))


def in_authorization(old: str, new: str) -> Callable[[Request], Request]:
    def alter(of: Request) -> Request:
        text = of.header("authorization")
        assert old in text
        return with_header(of, "Authorization", text.replace(old, new))

    return alter


def in_body(old: bytes, new: bytes) -> Callable[[Request], Request]:
    def alter(of: Request) -> Request:
        data = of.body.read()
        assert old in data
        return replace(of, body=Sent(data.replace(old, new, 1)))

    return alter


def in_query(old: str, new: str) -> Callable[[Request], Request]:
    def alter(of: Request) -> Request:
        assert old in of.query
        return replace(of, query=of.query.replace(old, new))

    return alter


ALTERED = {
    "another key": (GET, lambda r: replace(r, path="/test2.txt"), "SignatureDoesNotMatch"),
    "another range": (GET, lambda r: with_header(r, "Range", "bytes=0-"), "SignatureDoesNotMatch"),
    "another method": (GET, lambda r: replace(r, method="DELETE"), "SignatureDoesNotMatch"),
    "another host": (GET, lambda r: with_header(r, "host", "x"), "SignatureDoesNotMatch"),
    "one more parameter": (LISTING, in_query("prefix=J", "prefix="), "SignatureDoesNotMatch"),
    "another signature": (GET, in_authorization("f0e8", "f0e9"), "SignatureDoesNotMatch"),
    "another region": (GET, in_authorization("us-east-1", "eu"), "SignatureDoesNotMatch"),
    "another service": (GET, in_authorization("/s3/", "/sts/"), "AuthorizationHeaderMalformed"),
    "another day": (
        GET,
        in_authorization("/20130524/", "/20130525/"),
        "AuthorizationHeaderMalformed",
    ),
    "a header left out": (GET, in_authorization("range;", ""), "SignatureDoesNotMatch"),
    "the host left out": (GET, in_authorization("host;", ""), "AccessDenied"),
    "unsorted headers": (
        GET,
        in_authorization("host;range", "range;host"),
        "AuthorizationHeaderMalformed",
    ),
    "an unsigned header of S3": (
        PUT,
        lambda r: with_header(r, "x-amz-copy-source", "/b/other"),
        "AccessDenied",
    ),
    "another body": (PUT, in_body(b"Welcome", b"welcome"), "XAmzContentSHA256Mismatch"),
    "no hash": (
        PUT,
        lambda r: with_header(r, "x-amz-content-sha256", ""),
        "InvalidRequest",
    ),
    "an unsigned body": (
        PUT,
        lambda r: with_header(r, "x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        "SignatureDoesNotMatch",
    ),
    "another chunk": (CHUNKED, in_body(b"aa", b"ab"), "SignatureDoesNotMatch"),
    "a shorter chunk": (CHUNKED, in_body(b"\r\n400;", b"\r\n3ff;"), "SignatureDoesNotMatch"),
    "no last chunk": (CHUNKED, in_body(b"\r\n0;", b"\r\n"), "SignatureDoesNotMatch"),
    "another line break": (CHUNKED, in_body(b"a\r\n", b"a\n1"), "SignatureDoesNotMatch"),
    "a trailer that nobody has signed": (
        CHUNKED,
        lambda r: replace(r, body=Sent(r.body.read() + b"x-amz-checksum-crc32:AAAAAA==\r\n")),
        "SignatureDoesNotMatch",
    ),
    "another trailer": (TRAILED, in_body(b"sOO8", b"sOO9"), "SignatureDoesNotMatch"),
    "no trailer": (TRAILED, in_body(b"x-amz-trailer-signature", b"y"), "SignatureDoesNotMatch"),
    "a URL for longer": (PRESIGNED, in_query("=86400", "=86401"), "SignatureDoesNotMatch"),
    "a URL for too long": (
        PRESIGNED,
        in_query("=86400", "=604801"),
        "AuthorizationQueryParametersError",
    ),
    "a URL without its end": (
        PRESIGNED,
        in_query("X-Amz-Expires", "x"),
        "AuthorizationQueryParametersError",
    ),
    "a URL of another algorithm": (
        PRESIGNED,
        in_query("HMAC-SHA256", "ECDSA-P256-SHA256"),
        "AuthorizationHeaderMalformed",
    ),
    "a header of another algorithm": (
        GET,
        in_authorization("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
        "AuthorizationHeaderMalformed",
    ),
    "no signature": (GET, lambda r: with_header(r, "Authorization", ""), "AccessDenied"),
    "a token": (
        GET,
        lambda r: with_header(r, "Authorization", "Bearer x"),
        "AuthorizationHeaderMalformed",
    ),
    "a URL of the first day": (
        PRESIGNED,
        in_query("X-Amz-Date=20130524", "X-Amz-Date=00010101"),
        "AccessDenied",
    ),
    "a URL of the last day": (
        PRESIGNED,
        in_query("X-Amz-Date=20130524", "X-Amz-Date=99991231"),
        "AccessDenied",
    ),
    "a signature that is no ASCII": (
        PRESIGNED,
        in_query("X-Amz-Signature=", "X-Amz-Signature=%C3%A9"),
        "SignatureDoesNotMatch",
    ),
    "a date after the last day": (
        GET,
        lambda r: with_header(
            with_header(r, "x-amz-date", ""), "date", "Fri, 31 Dec 9999 23:59:59 -1200"
        ),
        "AccessDenied",
    ),
    "no date": (GET, lambda r: with_header(r, "x-amz-date", "x"), "AccessDenied"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_request_is_not_verified(what):
    of, alter, code = ALTERED[what]
    with pytest.raises(NotSigned) as raised:
        verified(alter(of))
    assert raised.value.code == code


def test_another_secret_does_not_verify_it():
    with pytest.raises(NotSigned, match="SignatureDoesNotMatch"):
        verified(GET, secret=SECRET[:-1])


@pytest.mark.parametrize(
    ("minutes", "code"),
    [(14, None), (-14, None), (16, "RequestTimeTooSkewed"), (-16, "RequestTimeTooSkewed")],
)
def test_a_clock_may_differ_by_a_quarter_of_an_hour(minutes, code):
    now = DAY + timedelta(minutes=minutes)
    if code is None:
        verified(GET, now=now)
        return
    with pytest.raises(NotSigned, match=code):
        verified(GET, now=now)


@pytest.mark.parametrize(("hours", "is_valid"), [(23, True), (25, False), (-1, False)])
def test_a_presigned_url_expires(hours, is_valid):
    now = DAY + timedelta(hours=hours)
    if is_valid:
        verified(PRESIGNED, now=now)
        return
    with pytest.raises(NotSigned, match="Request has expired"):
        verified(PRESIGNED, now=now)


NAMES = ("a b", "ä/ß", "day=2026-01-01/x", "a+b", "100%", "q?x=1&y", "~._-", "a%2Fb", "'()*!$,;:@")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("auth", [S3SigV4Auth, S3SigV4QueryAuth])
def test_what_botocore_signs_is_verified(name, auth):
    data = b"data" if auth is S3SigV4Auth else b""
    url = f"http://127.0.0.1:9000/bucket/{quote(name)}?partNumber=1&uploadId={quote(name, safe='')}"
    signed = AWSRequest("PUT", url, {"x-amz-acl": "private  x", "Range": "bytes=1-2"}, data)
    auth(Credentials(KEY, SECRET, "session"), "s3", "eu-west-1").add_auth(signed)
    parts = urlsplit(signed.url)
    headers = {"host": parts.netloc, **dict(signed.headers.items())}
    sent = Request("PUT", parts.path, parts.query, tuple(headers.items()), Sent(data))
    signature = Signature.from_request(sent, datetime.now(UTC))
    assert (signature.access_key_id, signature.session_token) == (KEY, "session")
    assert signature.verified_body(sent, SECRET).read() == data
