"""Bucket, key and query of a request to S3, in the client's own percent-encoding."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, quote, unquote

from ..http_message import Request

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
        kept = [part for name, part in self._query_parts() if name not in names]
        return replace(self, query="&".join(kept))

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
