"""Bodies that clients send in S3's encoding `aws-chunked`: signed chunks, checksums at the end.

The chunks' signatures are of the client, and end here: the data is sent on as it is, and a checksum
at the end as a header. Otherwise an S3 behind would store the heads of the chunks.
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
"""

from collections.abc import Iterator
from io import BytesIO

from ..http_message import Headers, Request, chunks

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
    kept = (header for header in request.headers if header[0].lower() not in OF_THE_ENCODING)
    return data, (*kept, *_content_encoding(request), *_checksums(stream))


def _is_aws_chunked(request: Request) -> bool:
    streaming = request.header("x-amz-content-sha256").startswith("STREAMING-")
    return streaming or "aws-chunked" in request.header("content-encoding")


def _content_encoding(request: Request) -> Iterator[tuple[str, str]]:
    """The encoding of the object, without that of the request."""
    codings = map(str.strip, request.header("content-encoding").split(","))
    if kept := [coding for coding in codings if coding and coding != "aws-chunked"]:
        yield "Content-Encoding", ",".join(kept)


def _checksums(stream: BytesIO) -> Iterator[tuple[str, str]]:
    """The checksums at the end of a body; the signature of the trailers is left out."""
    for line in stream.read().decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower().startswith(CHECKSUM):
            yield name.strip(), value.strip()
