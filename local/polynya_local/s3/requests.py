"""The parts of S3's protocol that need no S3.

`S3Address` is the bucket, key and query of a request, in the client's own percent-encoding.
`s3_error` makes S3's error answers.

`decoded_body` decodes bodies in S3's encoding `aws-chunked`: signed chunks, checksums at the end.
`document` reads a body of XML.
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import IO
from urllib.parse import parse_qsl, quote, unquote
from uuid import uuid4
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from polynya.runtime.request_id import current_request_id

from ..messages import LONGEST_TRAILERS, Headers, Request, Response, chunks, spooled
from ..server.hosts import MISDIRECTED

# Hosts whose subdomains are buckets: `<bucket>.localhost:9000`. `*.localhost` resolves to the
# loopback interface (RFC 6761); clients make the other form from an IP address.
HOSTS = (".localhost", ".127.0.0.1")

UNRESERVED = "-_.~"

READS = ("GET", "HEAD")

# Query parameters of a presigned URL: SigV4 ones begin with X-Amz-, these are the older form's.
OLD_SIGNATURE = ("awsaccesskeyid", "signature", "expires")


@dataclass(frozen=True, slots=True)
class S3Address:
    """The bucket is decoded, `key` and `query` are not; an empty key: the bucket itself."""

    bucket: str
    key: str
    query: str = field(repr=False)
    """It contains the signature of a presigned URL."""

    @classmethod
    def from_request(cls, request: Request) -> "S3Address":
        """The address of a request, in path style or with the bucket in the host."""
        host = request.header("host").partition(":")[0].lower()
        for suffix in HOSTS:
            if host.endswith(suffix):
                return cls(host.removesuffix(suffix), request.path[1:], request.query)
        bucket, _, key = request.path[1:].partition("/")
        name = unquote(bucket)
        # In a location, a bucket with a slash would be another bucket and the beginning of a key.
        return cls(bucket if "/" in name else name, key, request.query)

    @property
    def key_text(self) -> str:
        """The decoded key."""
        return unquote(self.key)

    @property
    def location(self) -> str:
        """`s3://<bucket>/<key>`, decoded."""
        return f"s3://{self.bucket}/{self.key_text}"

    @property
    def path(self) -> str:
        """The path in path style."""
        bucket = quote(self.bucket, safe=UNRESERVED)
        return f"/{bucket}/{self.key}" if self.key else f"/{bucket}"

    @property
    def target(self) -> str:
        """Path and query for a request line."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def canonical_target(self) -> str:
        """Path and query in the encoding that SigV4 signs: all but unreserved characters and `/`.

        https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. The server
        computes the same form, whether a client sends `day=1` or `day%3D1`.
        """
        path = quote(unquote(self.path, "latin-1"), safe="/" + UNRESERVED, encoding="latin-1")
        pairs = parse_qsl(self.query, keep_blank_values=True, encoding="latin-1")
        query = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in pairs)
        return f"{path}?{query}" if query else path

    def parameters(self) -> dict[str, str]:
        """The decoded query parameters."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def parameter_names(self) -> frozenset[str]:
        """The decoded names of the query parameters, in lower case."""
        return frozenset(name for name, _ in self._query_parts())

    def with_bucket(self, bucket: str) -> "S3Address":
        """The same key and query in another bucket."""
        return replace(self, bucket=bucket)

    def with_key(self, key: str) -> "S3Address":
        """The same bucket and query with another key, which is not encoded yet."""
        return replace(self, key=quote(key, safe="/" + UNRESERVED))

    def without_parameters(self, *names: str) -> "S3Address":
        """The same address without the query parameters of these (lower-case) names."""
        parts = [part for name, part in self._query_parts() if name not in names]
        return replace(self, query="&".join(parts))

    def unsigned(self) -> "S3Address":
        """The same address without the signature of a presigned URL."""
        old = OLD_SIGNATURE if "awsaccesskeyid" in dict(self._query_parts()) else ()
        signed = [name for name, _ in self._query_parts() if name.startswith("x-amz-")]
        return self.without_parameters(*signed, *old)

    def _query_parts(self) -> Iterator[tuple[str, str]]:
        for part in filter(None, self.query.split("&")):
            yield unquote(part.partition("=")[0]).lower(), part


def _encoded(text: str) -> str:
    return quote(text, safe=UNRESERVED, encoding="latin-1")


SUBRESOURCES = frozenset(
    ("acl", "attributes", "legal-hold", "retention", "tagging", "torrent", "uploadid")
)

OBJECT_READS = frozenset(("GetObject", "HeadObject"))

READ_PARAMETERS = frozenset(
    (
        *("partnumber", "range", "versionid", "x-id"),
        *("response-cache-control", "response-content-disposition", "response-content-encoding"),
        *("response-content-language", "response-content-type", "response-expires"),
    )
)
"""The parameters of reads; with another one, S3 may do something else."""


def reads_object(request: Request, address: S3Address) -> bool:
    """Whether a request can only be for the content of an object, whatever S3 is behind."""
    return (
        operation(request, address) in OBJECT_READS
        and address.unsigned().parameter_names() <= READ_PARAMETERS
    )


def operation(request: Request, address: S3Address) -> str | None:
    """ListObjectsV2, GetObject or HeadObject; None: the request is for something else."""
    parameters = {name.lower(): value for name, value in address.parameters().items()}
    if not address.key:
        listing = request.method == "GET" and parameters.get("list-type") == "2"
        return "ListObjectsV2" if listing else None
    if request.method == "HEAD":
        return "HeadObject"
    return "GetObject" if request.method == "GET" and not SUBRESOURCES & set(parameters) else None


CHECKSUM = "x-amz-checksum-"
OF_THE_ENCODING = frozenset(("content-encoding", "x-amz-decoded-content-length", "x-amz-trailer"))


class IncompleteBody(Exception):
    """The body is not `aws-chunked`, or not as long as the request says."""


def decoded_body(request: Request) -> tuple[IO[bytes], Headers]:
    """The decoded data of a request's body, and the headers with which it can be sent on.

    Raises:
        IncompleteBody: the body is not what its headers say.
        ConnectionError, RequestTimeout, OSError: as `Body.file`.
    """
    if not _is_aws_chunked(request):
        return request.body.file(), request.headers
    # The chunks' signatures are the client's, and are dropped: the data is sent on without chunks,
    # and a checksum at its end as a header. Otherwise an S3 behind would store the chunks' heads.
    with request.body.file() as body, ExitStack() as stack:
        try:
            data = stack.enter_context(spooled(chunks(body)))
        except ConnectionError as error:
            raise IncompleteBody(str(error)) from None
        size = size_of(data)
        if (length := request.header("x-amz-decoded-content-length")) not in {"", str(size)}:
            raise IncompleteBody(f"{size} bytes instead of {length}")
        headers = (pair for pair in request.headers if pair[0].lower() not in OF_THE_ENCODING)
        data_headers = (*headers, *_content_encoding(request), *_checksums(body))
        stack.pop_all()
        return data, data_headers


def size_of(file: IO[bytes]) -> int:
    """The size of a file in bytes; afterwards its position is 0."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(0)
    return size


def _is_aws_chunked(request: Request) -> bool:
    streaming = request.header("x-amz-content-sha256").startswith("STREAMING-")
    return streaming or "aws-chunked" in request.header("content-encoding")


def _content_encoding(request: Request) -> Iterator[tuple[str, str]]:
    """The encoding of the object, without that of the request."""
    codings = map(str.strip, request.header("content-encoding").split(","))
    if object_codings := [coding for coding in codings if coding and coding != "aws-chunked"]:
        yield "Content-Encoding", ",".join(object_codings)


def _checksums(stream: IO[bytes]) -> Iterator[tuple[str, str]]:
    """The checksums at the end of a body; the signature of the trailers is left out."""
    for line in stream.read(LONGEST_TRAILERS).decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower().startswith(CHECKSUM):
            yield name.strip(), value.strip()


LONGEST_DOCUMENT = 2 * 1024 * 1024
"""The longest document in bytes; 10,000 parts with their checksums need less."""


def document(file: IO[bytes]) -> ElementTree.Element:
    """The root of a document of XML in UTF-8, without a DTD.

    Raises:
        ValueError: the file is not such a document, or is too long.
    """
    body = file.read(LONGEST_DOCUMENT + 1)
    if len(body) > LONGEST_DOCUMENT:
        raise ValueError("the document is too long")
    # The parser gets a text: in bytes it would obey a declaration of another encoding, in which a
    # DTD has other bytes. Entities of a DTD may expand without end.
    text = body.decode("utf-8-sig")
    if "<!" in text:
        raise ValueError("the document has a DTD")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None


def name_of(element: ElementTree.Element) -> str:
    """The name of an element without its namespace, which some clients leave out."""
    return element.tag.rpartition("}")[2]


def s3_error(
    status: int, code: str, message: str, *, resource: str = "", headers: Headers = ()
) -> Response:
    """An error answer of S3. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""
    request_id = current_request_id() or str(uuid4())
    error = (
        f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        f"<Resource>{escape(resource)}</Resource><RequestId>{request_id}</RequestId></Error>"
    )
    return xml_response(status, error, (("x-amz-request-id", request_id), *headers))


def misdirected(reason: str) -> Response:
    """S3's answer to a request that is for another server."""
    return s3_error(MISDIRECTED, "MisdirectedRequest", reason)


NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


def xml_response(status: int, element: str, headers: Headers = ()) -> Response:
    """An answer with one element of XML."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n{element}'
    return Response(status, (("Content-Type", "application/xml"), *headers), body.encode())
