"""Signatures of requests to S3, version 4: in the header, in a presigned URL, and of chunks.

Botocore computes them, as it does for a client.
https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
"""

import hmac
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import file_digest, sha256
from typing import IO, Any
from urllib.parse import quote, unquote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials

from ..messages import LONGEST_TRAILERS, Body, Request, exactly, to_text

ALGORITHM = "AWS4-HMAC-SHA256"
AUTHORIZATION = re.compile(
    rf"{ALGORITHM}\s+Credential=(?P<credential>[^,\s]+)\s*,\s*SignedHeaders=(?P<headers>[^,\s]+)"
    r"\s*,\s*Signature=(?P<signature>[0-9a-f]{64})"
)
CREDENTIAL = re.compile(
    r"(?P<key>[^/]+)/(?P<date>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request"
)
TIME = "%Y%m%dT%H%M%SZ"

SKEW = timedelta(minutes=15)
"""The greatest difference between the time of a request and this machine's."""
LONGEST_PRESIGNED = 7 * 86400

UNSIGNED = "UNSIGNED-PAYLOAD"
UNSIGNED_CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
EMPTY = sha256(b"").hexdigest()

CHUNK = re.compile(rb"(?P<size>[0-9a-fA-F]{1,15});chunk-signature=(?P<signature>[0-9a-f]{64})\r\n")
LONGEST_CHUNK_HEAD = 128


class NotSigned(Exception):
    """A request that is not answered; the arguments are S3's status and code, and the reason."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(status, code, reason)
        self.status, self.code, self.reason = status, code, reason


def _denied(reason: str) -> NotSigned:
    return NotSigned(403, "AccessDenied", reason)


def _malformed(reason: str) -> NotSigned:
    return NotSigned(400, "AuthorizationHeaderMalformed", reason)


def _mismatch() -> NotSigned:
    reason = (
        "The request signature we calculated does not match the signature you provided. Check your "
        "key and signing method."
    )
    return NotSigned(403, "SignatureDoesNotMatch", reason)


class _Verifier(S3SigV4Auth):  # type: ignore[misc]
    """Computes the signature that a request should have."""

    def __init__(self, credentials: Credentials, region: str, signed_headers: tuple[str, ...]):
        super().__init__(credentials, "s3", region)
        self._signed_headers = signed_headers

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        """The headers that the client has signed."""
        headers = HTTPHeaders()
        for name in self._signed_headers:
            for value in request.headers.get_all(name) or [""]:
                headers[name] = value
        return headers


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a request, as its headers or its URL state it."""

    access_key_id: str
    session_token: str = field(repr=False)
    time: str
    """`YYYYMMDD'T'HHMMSS'Z'`, in UTC."""
    region: str
    signed_headers: tuple[str, ...]
    signature: str = field(repr=False)
    payload: str
    """The hash of the body, or one of the constants above, such as UNSIGNED."""

    @classmethod
    def from_request(cls, request: Request, now: datetime) -> "Signature":
        """The signature of a request. Its time is checked; the signature is not verified yet.

        Raises:
            NotSigned: the request has none, or its time is not now.
        """
        parameters = dict(_pairs(request.query))
        if "X-Amz-Algorithm" in parameters or "X-Amz-Signature" in parameters:
            signature = cls._from_url(request, parameters, now)
        else:
            signature = cls._from_header(request, now)
        sent = {name.lower() for name, _ in request.headers if name.lower().startswith("x-amz-")}
        if unsigned := {"host", *sent} - {*signature.signed_headers}:
            names = ", ".join(sorted(unsigned))
            raise _denied(
                f"There were headers present in the request which were not signed: {names}"
            )
        return signature

    @classmethod
    def _from_header(cls, request: Request, now: datetime) -> "Signature":
        header = request.header("authorization")
        if not header:
            raise _denied(
                "This endpoint answers only requests that are signed with the keys which the "
                "catalog gives for a table: let the client ask for them (vended credentials)"
            )
        match = AUTHORIZATION.fullmatch(header.strip())
        if match is None:
            raise _malformed(f"The authorization header must be that of {ALGORITHM}")
        time = _time(request)
        _check_skew(time, now)
        payload = request.header("x-amz-content-sha256")
        if not payload:
            raise NotSigned(400, "InvalidRequest", "Missing required header: x-amz-content-sha256")
        token = request.header("x-amz-security-token")
        names = tuple(match["headers"].split(";"))
        return cls._from_parts(match["credential"], token, time, names, match["signature"], payload)

    @classmethod
    def _from_url(
        cls, request: Request, parameters: Mapping[str, str], now: datetime
    ) -> "Signature":
        try:
            if parameters["X-Amz-Algorithm"] != ALGORITHM:
                raise _malformed(f"X-Amz-Algorithm must be {ALGORITHM}")
            seconds = int(parameters["X-Amz-Expires"])
            time = datetime.strptime(parameters["X-Amz-Date"], TIME).replace(tzinfo=UTC)
            names = tuple(parameters["X-Amz-SignedHeaders"].split(";"))
            credential, signature = parameters["X-Amz-Credential"], parameters["X-Amz-Signature"]
        except (KeyError, ValueError):
            raise NotSigned(
                400, "AuthorizationQueryParametersError", "The parameters X-Amz-… are not complete"
            ) from None
        if not 0 < seconds <= LONGEST_PRESIGNED:
            raise NotSigned(
                400, "AuthorizationQueryParametersError", "X-Amz-Expires must be 1 to 604800"
            )
        # A sum would overflow for times at the ends of the calendar.
        if not -SKEW <= now - time <= timedelta(seconds=seconds):
            raise _denied("Request has expired")
        token = parameters.get("X-Amz-Security-Token", "")
        payload = request.header("x-amz-content-sha256") or UNSIGNED
        return cls._from_parts(credential, token, time, names, signature, payload)

    @classmethod
    def _from_parts(
        cls,
        credential: str,
        token: str,
        time: datetime,
        names: tuple[str, ...],
        signature: str,
        payload: str,
    ) -> "Signature":
        match = CREDENTIAL.fullmatch(credential)
        text = time.strftime(TIME)
        if match is None or match["service"] != "s3" or match["date"] != text[:8]:
            raise _malformed("The credential must be <key>/<date>/<region>/s3/aws4_request")
        if list(names) != sorted({name.lower() for name in names}):
            raise _malformed("The names of signed headers must be in lower case and sorted")
        return cls(match["key"], token, text, match["region"], names, signature, payload)

    def verified_body(self, request: Request, secret_access_key: str) -> Body:
        """The body of a request that these keys have signed; it is verified when it is read.

        Raises:
            NotSigned: another key has signed it, or it was changed.
        """
        verifier = _Verifier(
            Credentials(self.access_key_id, secret_access_key), self.region, self.signed_headers
        )
        signed = AWSRequest(request.method, f"http://host{_path(request.path)}")
        for name, value in request.headers:
            signed.headers[name] = to_text(value)
        if "X-Amz-Content-SHA256" not in signed.headers:
            signed.headers["X-Amz-Content-SHA256"] = self.payload
        signed.params = [(n, v) for n, v in _pairs(request.query) if n != "X-Amz-Signature"]
        signed.context["timestamp"] = self.time
        text = verifier.string_to_sign(signed, verifier.canonical_request(signed))
        if not is_same(verifier.signature(text, signed), self.signature):
            raise _mismatch()
        return _VerifiedBody(request.body, self, verifier, signed)


@dataclass(frozen=True, slots=True)
class _VerifiedBody:
    """A body whose hash, or whose chunks, the client has signed."""

    body: Body
    signature: Signature
    verifier: _Verifier
    signed: AWSRequest

    def read(self) -> bytes:
        """The body as bytes. Raises: as `file`."""
        with self.file() as file:
            return file.read()

    def file(self) -> IO[bytes]:
        """As `Body.file`.

        Raises:
            NotSigned: it is not what was signed.
        """
        with ExitStack() as stack:
            file = stack.enter_context(self.body.file())
            self._verify(file)
            file.seek(0)
            stack.pop_all()
            return file

    def _verify(self, file: IO[bytes]) -> None:
        payload = self.signature.payload
        if payload in (SIGNED_CHUNKS, SIGNED_TRAILER):
            self._check_chunks(file)
        elif payload not in (UNSIGNED, UNSIGNED_CHUNKS) and payload != _sha256(file):
            raise NotSigned(
                400,
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )

    def _check_chunks(self, file: IO[bytes]) -> None:
        before, size = self.signature.signature, 1
        while size:
            head = CHUNK.fullmatch(file.readline(LONGEST_CHUNK_HEAD))
            if head is None:
                raise _mismatch()
            size, digest = int(head["size"], 16), sha256()
            try:
                for piece in exactly(file, size):
                    digest.update(piece)
            except ConnectionError:
                raise _mismatch() from None
            digests = f"{EMPTY}\n{digest.hexdigest()}"
            self._check("AWS4-HMAC-SHA256-PAYLOAD", before, digests, head["signature"])
            before = head["signature"].decode()
            # No signature covers the line break, but readers of the chunks rely on it.
            if size and file.read(2) != b"\r\n":
                raise _mismatch()
        trailers = file.read(LONGEST_TRAILERS + 1)
        if len(trailers) > LONGEST_TRAILERS:
            raise _mismatch()
        if self.signature.payload == SIGNED_TRAILER:
            self._check_trailers(trailers, before)
        elif trailers.strip(b"\r\n"):
            raise _mismatch()

    def _check_trailers(self, text: bytes, before: str) -> None:
        names = {}
        for line in text.replace(b"\r\n", b"\n").strip(b"\n").split(b"\n"):
            name, _, value = line.partition(b":")
            names[name.strip().lower()] = value.strip()
        signature = names.pop(b"x-amz-trailer-signature", b"")
        trailers = b"".join(b"%s:%s\n" % (name, names[name]) for name in sorted(names))
        digest = sha256(trailers).hexdigest()
        self._check("AWS4-HMAC-SHA256-TRAILER", before, digest, signature)

    def _check(self, what: str, before: str, digests: str, signature: bytes) -> None:
        scope = self.verifier.credential_scope(self.signed)
        text = "\n".join([what, self.signature.time, scope, before, digests])
        if not hmac.compare_digest(self.verifier.signature(text, self.signed).encode(), signature):
            raise _mismatch()


def _sha256(file: IO[bytes]) -> str:
    return file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def is_same(text: str, sent: str) -> bool:
    """Whether a client has sent this text; the time does not depend on what it has sent."""
    return hmac.compare_digest(text.encode(), sent.encode())


def _time(request: Request) -> datetime:
    text: Any = request.header("x-amz-date")
    try:
        if text:
            return datetime.strptime(text, TIME).replace(tzinfo=UTC)
        return parsedate_to_datetime(request.header("date")).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        raise _denied("AWS authentication requires a valid Date or x-amz-date header") from None


def _check_skew(time: datetime, now: datetime) -> None:
    if abs(now - time) > SKEW:
        raise NotSigned(
            403,
            "RequestTimeTooSkewed",
            "The difference between the request time and the server's time is too large.",
        )


def _path(path: str) -> str:
    """A path as it is signed, however the client encoded it."""
    return quote(unquote(path, "latin-1"), safe="/-_.~", encoding="latin-1")


def _pairs(query: str) -> list[tuple[str, str]]:
    """The names and values of a query, decoded; a `+` is not a space."""
    parts = (part.partition("=") for part in filter(None, query.split("&")))
    return [(unquote(name), unquote(value)) for name, _, value in parts]
