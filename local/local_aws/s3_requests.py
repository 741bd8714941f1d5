"""The parts of S3's protocol that need no S3.

`S3Address` is the bucket, key and query of a request, in the client's own percent-encoding.
`listing` answers ListObjectsV2 for a folder, `s3_error` makes S3's error answers.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html

`decoded_body` decodes bodies in S3's encoding `aws-chunked`: signed chunks, checksums at the end.
The chunks' signatures are of the client, and end here: the data is sent on as it is, and a checksum
at the end as a header. Otherwise an S3 behind would store the heads of the chunks.
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote
from uuid import uuid4
from xml.sax.saxutils import escape

from .http_server import Headers, Request, Response, chunks

# Hosts whose subdomains are buckets: `<bucket>.localhost:9000`. `*.localhost` resolves to the
# loopback interface (RFC 6761); clients make the other form from an IP address.
HOSTS = (".localhost", ".127.0.0.1")

UNRESERVED = "-_.~"

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
    def of(cls, request: Request) -> "S3Address":
        """The address of a request, in path style or with the bucket in the host."""
        host = request.header("host").partition(":")[0].lower()
        for suffix in HOSTS:
            if host.endswith(suffix):
                return cls(host.removesuffix(suffix), request.path[1:], request.query)
        bucket, _, key = request.path[1:].partition("/")
        return cls(unquote(bucket), key, request.query)

    @property
    def key_text(self) -> str:
        """The decoded key."""
        return unquote(self.key)

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

    def in_bucket(self, bucket: str) -> "S3Address":
        """The same key and query in another bucket."""
        return replace(self, bucket=bucket)

    def without(self, *names: str) -> "S3Address":
        """The same address without the query parameters of these (lower-case) names."""
        parts = [part for name, part in self._query_parts() if name not in names]
        return replace(self, query="&".join(parts))

    def unsigned(self) -> "S3Address":
        """The same address without the signature of a presigned URL."""
        old = OLD_SIGNATURE if "awsaccesskeyid" in dict(self._query_parts()) else ()
        signed = [name for name, _ in self._query_parts() if name.startswith("x-amz-")]
        return self.without(*signed, *old)

    def _query_parts(self) -> Iterator[tuple[str, str]]:
        for part in filter(None, self.query.split("&")):
            yield unquote(part.partition("=")[0]).lower(), part


def _encoded(text: str) -> str:
    return quote(text, safe=UNRESERVED, encoding="latin-1")


MOST_KEYS = 1000


def listing(bucket: str, folder: Path, parameters: Mapping[str, str]) -> Response:
    """The answer to ListObjectsV2: keys by their UTF-8 bytes, or common prefixes."""
    prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
    after = parameters.get("continuation-token") or parameters.get("start-after", "")
    max_keys = parameters.get("max-keys", "")
    most = min(MOST_KEYS, int(max_keys)) if max_keys.isdecimal() else MOST_KEYS
    entries = _entries(folder, prefix, delimiter)
    keys = [entry for entry in sorted(entries, key=str.encode) if entry.encode() > after.encode()]
    shown = keys[:most]
    is_truncated = len(keys) > len(shown) and bool(shown)
    last = escape(shown[-1]) if is_truncated else ""
    token = f"<NextContinuationToken>{last}</NextContinuationToken>" if is_truncated else ""
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"
        f"<KeyCount>{len(shown)}</KeyCount><MaxKeys>{most}</MaxKeys>"
        f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{token}"
        f"{''.join(_element(key, entries[key]) for key in shown)}</ListBucketResult>"
    )
    return Response(200, (("Content-Type", "application/xml"),), body.encode())


def _entries(folder: Path, prefix: str, delimiter: str) -> dict[str, os.stat_result | None]:
    """The keys with a prefix; None is a common prefix."""
    entries: dict[str, os.stat_result | None] = {}
    for key, state in _files(folder, prefix):
        inner, separator, _ = key[len(prefix) :].partition(delimiter or "\x00")
        if delimiter and separator:
            entries[prefix + inner + delimiter] = None
        else:
            entries[key] = state
    return entries


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below the folder, without those that are behind a symbolic link."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            key = os.path.relpath(path, folder)
            if key.startswith(prefix) and not os.path.islink(path) and os.path.isfile(path):
                yield key, os.stat(path)


def _element(key: str, state: os.stat_result | None) -> str:
    if state is None:
        return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
    changed = datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="seconds")
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
        f'<ETag>"{state.st_mtime_ns:x}-{state.st_size:x}"</ETag><Size>{state.st_size}</Size>'
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


CHECKSUM = "x-amz-checksum-"
OF_THE_ENCODING = frozenset(("content-encoding", "x-amz-decoded-content-length", "x-amz-trailer"))


class IncompleteBody(Exception):
    """The body is not `aws-chunked`, or not as long as the request says."""


def decoded_body(request: Request) -> tuple[bytes, Headers]:
    """The data of a request's body, and its headers for a request that sends the data as it is.

    Raises:
        IncompleteBody: the body is not what its headers say.
        ConnectionError: it breaks off.
    """
    body = request.body.read()
    if not _is_aws_chunked(request):
        return body, request.headers
    stream = BytesIO(body)
    try:
        data = b"".join(chunks(stream))
    except ConnectionError as error:
        raise IncompleteBody(str(error)) from None
    if (length := request.header("x-amz-decoded-content-length")) not in {"", str(len(data))}:
        raise IncompleteBody(f"{len(data)} bytes instead of {length}")
    headers = (header for header in request.headers if header[0].lower() not in OF_THE_ENCODING)
    return data, (*headers, *_content_encoding(request), *_checksums(stream))


def _is_aws_chunked(request: Request) -> bool:
    streaming = request.header("x-amz-content-sha256").startswith("STREAMING-")
    return streaming or "aws-chunked" in request.header("content-encoding")


def _content_encoding(request: Request) -> Iterator[tuple[str, str]]:
    """The encoding of the object, without that of the request."""
    codings = map(str.strip, request.header("content-encoding").split(","))
    if object_codings := [coding for coding in codings if coding and coding != "aws-chunked"]:
        yield "Content-Encoding", ",".join(object_codings)


def _checksums(stream: BytesIO) -> Iterator[tuple[str, str]]:
    """The checksums at the end of a body; the signature of the trailers is left out."""
    for line in stream.read().decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower().startswith(CHECKSUM):
            yield name.strip(), value.strip()


def s3_error(
    status: int, code: str, message: str, *, resource: str = "", headers: Headers = ()
) -> Response:
    """An error answer of S3. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""
    request_id = str(uuid4())
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        f"<Resource>{escape(resource)}</Resource><RequestId>{request_id}</RequestId></Error>"
    )
    own = (("Content-Type", "application/xml"), ("x-amz-request-id", request_id))
    return Response(status, (*own, *headers), body.encode())
