"""The lake's own files in S3, data files and delete files: read, written and copied by location.

S3's errors are raised as Polynya's, with what they mean for a file of the lake. `DirectS3` sends
frequent requests for less CPU time than boto3 takes.
"""

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs, quote, unquote_plus, urlsplit
from xml.etree.ElementTree import ParseError, fromstring
from zlib import crc32

from ..runtime import budget
from ..runtime.errors import Misconfigured, NoSuchKey, PolynyaError, ServiceUnavailable
from ..runtime.metrics import watched_seconds
from ..runtime.prefetch import in_parallel
from .aws import (
    CONNECT_SECONDS,
    call,
    client,
    credentials,
    read_seconds,
    ssm_parameter,
    timestamp,
)

SCHEMES = frozenset({"s3", "s3a", "s3n"})
"""The schemes under which Hadoop, Spark and other clients write locations in S3."""


def is_s3(location: str) -> bool:
    """Whether a location is in S3."""
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme in SCHEMES


def bucket_and_key(location: str) -> tuple[str, str] | None:
    """The bucket and the key of `s3://bucket/key`, not decoded; None if it is not in S3."""
    bucket, _, key = location.partition("://")[2].partition("/")
    return (bucket, key) if is_s3(location) else None


LARGEST = 256 * 1024 * 1024
"""The most bytes of an object, or of a range, that are read: a function has 1,769 MB of memory."""


class TooLarge(ValueError):
    """An object has more bytes than are read."""


def body_of(answer: Mapping[str, Any], most: int = LARGEST) -> bytes:
    """The body of an answer of GetObject. S3 ignores a range that it finds invalid, and sends all.

    Raises:
        TooLarge: it has more than `most` bytes; no more are read.
        botocore.exceptions.BotoCoreError: S3 stops sending.
    """
    stream, pieces, left = answer["Body"], [], most + 1
    # Reads on to the empty piece after the last one: then botocore checks that nothing is missing.
    while piece := stream.read(left):
        pieces.append(piece)
        left -= len(piece)
        if left <= 0:
            stream.close()
            raise TooLarge(f"an object has more than {most:,} bytes")
    return b"".join(pieces)


def get_object(s3: Any, bucket: str, key: str) -> bytes | None:
    """The bytes of an object; None if there is none.

    Args:
        s3: a boto3 client.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: S3 fails.
        TooLarge: it has more than LARGEST bytes.
    """
    try:
        return body_of(s3.get_object(Bucket=bucket, Key=key))
    except s3.exceptions.ClientError as error:
        # S3 answers 403 for a missing object if the caller may not list the bucket.
        if status_code(error) in {403, 404}:
            return None
        raise


def status_code(error: Any) -> int:
    """The HTTP status of a boto3 `ClientError`."""
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status


ErrorTable = Mapping[int, tuple[type[PolynyaError], str]]
"""The error for an HTTP status, and what the status means."""


@contextmanager
def translate_errors(what: str, by_status: ErrorTable) -> Iterator[None]:
    """Raise Polynya's errors instead of boto3's.

    Args:
        what: what the requests do, for the message about a status that is not in the table.
        by_status: the error for an HTTP status, and what it means.

    Raises:
        ServiceUnavailable: S3 does not answer, or with another status.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raised, meaning = by_status.get(status_code(error), (ServiceUnavailable, what))
        code = error.response.get("Error", {}).get("Code", "an error")
        raise raised(f"S3 answers {code}: {meaning}") from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads the lake's own files by their locations.

    Both functions raise NoSuchKey if a file is missing, ServiceUnavailable or Misconfigured if it
    cannot be read, and TooLarge if it has, or the range is, more than LARGEST bytes.
    """

    read: Callable[[str], bytes]
    """(location) -> all bytes."""
    read_range: Callable[[str, int, int], bytes]
    """(location, first, end) -> the bytes from `first` up to, not including, `end`."""


def object_reader() -> ObjectReader:
    """The reader of files in S3."""
    return ObjectReader(read_object, read_range)


def is_below(location: str, directory: str) -> bool:
    """Whether an object is below `s3://bucket/prefix/`, whatever a client makes of its key.

    Args:
        directory: with a slash at its end; empty: everything is below it.
    """
    if not directory:
        return True
    address, (bucket, prefix) = bucket_and_key(location), bucket_and_key(directory) or ("", "")
    if address is None or {".", ".."} & set(address[1].split("/")):
        return False
    return address[0] == bucket and address[1].startswith(prefix)


def check_below(location: str, *directories: str) -> None:
    """Check that a file of a lake is below its data path, or another place of its own (`is_below`).

    Raises:
        Misconfigured: it is below none of them.
    """
    if not any(is_below(location, directory) for directory in directories):
        raise Misconfigured(
            "the catalog names a file outside of the lake's data path (`data_path` in the document "
            "of the lakes)"
        )


def reader_below(reader: ObjectReader, *directories: str) -> ObjectReader:
    """A reader of the files below some directories, which refuses others as `check_below` does."""
    if "" in directories:
        return reader

    def read(location: str) -> bytes:
        check_below(location, *directories)
        return reader.read(location)

    def read_range(location: str, first: int, end: int) -> bytes:
        check_below(location, *directories)
        return reader.read_range(location, first, end)

    return ObjectReader(read, read_range)


Content = TypeVar("Content")

REFRESH_SECONDS = 60
"""What is removed from a document ceases to apply within a minute."""


class OperatorDocument(Generic[Content]):
    """A document that a setting names, or is: in SSM, in S3, or its own text.

    In SSM there may also be the location in S3, for a document over 4 KB.
    """

    def __init__(
        self,
        what: str,
        source: str,
        parse: Callable[[str], Content],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Do not read it yet.

        Args:
            what: it is, for messages.
            source: `ssm:NAME`, `s3://bucket/key` or the text.
            clock: seconds.
        """
        self._what, self._source, self._parse, self._clock = what, source, parse, clock
        self._read: tuple[float, str, Content] | None = None
        """When it was read, its text, and its content."""

    def current(self) -> Content:
        """The content, read again every minute; the same object as long as the text is.

        Raises:
            Misconfigured: it is missing, or `parse` refuses it.
            ServiceUnavailable: it cannot be read now.
        """
        read, now = self._read, self._clock()
        if read is None or now - read[0] > REFRESH_SECONDS:
            self._read = None  # an old one is not used while it cannot be read
            text = self._text()
            is_same = read is not None and read[1] == text
            content = read[2] if read is not None and is_same else self._parse(text)
            read = self._read = now, text, content
        return read[2]

    def _text(self) -> str:
        text = self._source
        if text.startswith("ssm:"):
            text = ssm_parameter(self._what, text.removeprefix("ssm:"))
        if location := bucket_and_key(text.strip()):
            bucket, key = location
            text = call(
                self._what,
                lambda: body_of(client("s3").get_object(Bucket=bucket, Key=key)).decode(),
            )
        return text


def json_of(text: str, refusal: Callable[[str], Misconfigured]) -> Any:
    """The JSON of a document.

    Args:
        refusal: makes the error of a reason.

    Raises:
        Misconfigured: it is not JSON, or has a key twice, of which json.loads ignores the first.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_key = dict(pairs)
        if len(by_key) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise refusal(f"the key {twice!r} is in one object twice")
        return by_key

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise refusal("it is not JSON") from None


def read_range(location: str, first: int, end: int) -> bytes:
    """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

    Raises:
        NoSuchKey, Misconfigured, ServiceUnavailable, TooLarge: as `read_object`; NoSuchKey also if
            the object ends before `first`, or the range has no bytes.
    """
    check_range(first, end)
    try:
        return read_object(location, end - first, Range=f"bytes={first}-{end - 1}")
    except TooLarge:
        raise ServiceUnavailable("S3 sends more of a file than was asked for") from None


def check_range(first: int, end: int) -> None:
    """Check a range of bytes, which a file may name that somebody else wrote.

    Raises:
        NoSuchKey: it has no bytes; S3 would send the whole object.
        TooLarge: it has more than LARGEST bytes.
    """
    if not 0 <= first < end:
        raise NoSuchKey("a file has no such range of bytes")
    if end - first > LARGEST:
        raise TooLarge(f"a range of a file has more than {LARGEST:,} bytes")


def read_object(location: str, most: int = LARGEST, **parameters: str) -> bytes:
    """The bytes of `s3://bucket/key`.

    Args:
        most: the largest number of bytes.
        parameters: more parameters of GetObject.

    Raises:
        NoSuchKey: there is no such object, or the location is not in S3.
        Misconfigured: this process may not read it.
        ServiceUnavailable: S3 does not answer.
        TooLarge: it has more bytes.
    """
    source = bucket_and_key(location)
    if source is None:
        raise NoSuchKey("the data is not in S3")
    bucket, key = source
    with translate_errors("a file of the lake cannot be read now", _read_errors(bucket)):
        return body_of(client("s3").get_object(Bucket=bucket, Key=key, **parameters), most)


def write_object(location: str, body: bytes) -> None:
    """Put a file of the lake into S3.

    Raises:
        Misconfigured: this process may not write it.
        ServiceUnavailable: S3 does not answer.
    """
    target = bucket_and_key(location)
    if target is None:
        raise Misconfigured("the lake's data is not in S3, where Polynya can write")
    bucket, key = target
    with translate_errors("a file of the lake cannot be written now", _write_errors(bucket)):
        client("s3").put_object(Bucket=bucket, Key=key, Body=body)


def _read_errors(bucket: str) -> ErrorTable:
    """What a status of GetObject means for a file that the catalog names."""
    return {
        404: (NoSuchKey, "a file that the catalog names is gone"),
        416: (NoSuchKey, "a file is shorter than the catalog says"),
        # Not the key: directories of partitions hold values of rows.
        403: (
            Misconfigured,
            f"a file that the catalog names in the bucket {bucket!r}: either it is gone, or this "
            "function's role has no s3:GetObject on it; the parameters DataBucket and DataPrefix, "
            "or AddedFiles, must cover the table's files, also those that ducklake_add_data_files "
            "added",
        ),
    }


def _write_errors(bucket: str) -> ErrorTable:
    return {
        403: (
            Misconfigured,
            f"this function may not write a delete file into the bucket {bucket!r}: its role "
            "needs s3:PutObject on *-delete.parquet below the lake's data path; the parameters "
            "DataBucket and DataPrefix must cover the table's directory",
        )
    }


AT_A_TIME = 48
"""How many ranges are worth reading at the same time: S3 takes 20 ms for each."""

SIGNED_SECONDS = 60
"""The shortest time for which a URL is signed. It is used at once, and by nobody else."""


class _Bucket(NamedTuple):
    """How the objects of a bucket are asked for without boto3."""

    connections: Any
    origin: str
    """Scheme, host and port."""
    path: str
    """The path of its URL, with a slash at its end."""
    region: str


@cache
def _bucket(s3: Any, name: str, seconds: float) -> _Bucket | None:
    """A bucket, with a read timeout; None: it takes boto3, for a proxy or another signature."""
    import urllib3
    from botocore.httpsession import create_urllib3_context, get_cert_path
    from botocore.utils import get_environ_proxies

    key = "k"
    signed = s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": key})
    url = urlsplit(signed)
    credential = parse_qs(url.query).get("X-Amz-Credential")
    if credential is None or get_environ_proxies(signed):
        return None
    tls = {}
    if url.scheme == "https":
        context = tls["ssl_context"] = create_urllib3_context()
        context.load_verify_locations(os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True))
    timeout = urllib3.Timeout(min(CONNECT_SECONDS, seconds), seconds)
    connections = urllib3.connection_from_url(signed, maxsize=AT_A_TIME, timeout=timeout, **tls)
    origin, path = f"{url.scheme}://{url.netloc}", url.path.removesuffix(key)
    return _Bucket(connections, origin, path, region=credential[0].split("/")[2])


OPERATIONS = {
    "GetObject": ("GET", 206),
    "PutObject": ("PUT", 200),
    "ListObjectsV2": ("GET", 200),
}
"""The method of a request that boto3 does not send, and the status of the answer that is used."""


ListedKeys = tuple[dict[str, float], bool]
"""When each key was put, in seconds since 1970; and whether there are more keys."""


class DirectS3:
    """Sends requests without the layers of boto3, also from several threads.

    botocore signs a URL, and urllib3 sends the request, without the layers of boto3 for parameters,
    endpoints and answers: for a third of the CPU time. What is not answered as expected has to be
    asked again through boto3, which knows errors, redirections and retries.
    """

    def send(
        self,
        operation: str,
        bucket: str,
        key: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        most: int = LARGEST,
    ) -> bytes | None:
        """The body of S3's answer; None if S3 answers anything else, or has more bytes.

        Args:
            operation: one of `OPERATIONS`.
            key: of an object; of a list, its prefix, which is in `query` too.
            headers: are signed, too.
            most: the largest number of bytes of the body.

        Raises:
            OutOfTime: no time is left in the budget.
        """
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError
        from urllib3.exceptions import HTTPError

        budget.check()
        method, status = OPERATIONS[operation]
        try:
            place = _bucket(client("s3"), bucket, read_seconds("s3"))
            keys = credentials()
            if place is None or keys is None:
                return None
            path = "" if operation == "ListObjectsV2" else quote(key, safe="/~")
            request = AWSRequest(method, place.origin + place.path + path, headers, params=query)
            S3SigV4QueryAuth(keys, "s3", place.region, SIGNED_SECONDS).add_auth(request)
            with watched_seconds("AwsCalls", service="s3"):
                answer = place.connections.urlopen(
                    method,
                    request.url.removeprefix(place.origin),
                    body=body,
                    headers=headers,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    enforce_content_length=True,
                )
                size = int(answer.headers.get("Content-Length", 0 if method == "PUT" else most))
                if answer.status == status and size <= most:
                    content: bytes = answer.read()
                    answer.release_conn()
                    return content
            answer.close()
        except (BotoCoreError, HTTPError):
            pass
        return None

    def put_new(self, bucket: str, key: str, body: bytes) -> bool:
        """Put an object; False if there is one, or if S3 does not say that it is put now."""
        checksum = b64encode(crc32(body).to_bytes(4, "big")).decode()
        headers = {
            "If-None-Match": "*",
            "x-amz-sdk-checksum-algorithm": "CRC32",
            "x-amz-checksum-crc32": checksum,
        }
        return self.send("PutObject", bucket, key, headers=headers, body=body) is not None

    def keys_after(self, bucket: str, prefix: str, key: str) -> ListedKeys | None:
        """The keys of a prefix after this one, up to a thousand; None if S3 does not say.

        boto3 takes a millisecond for forty keys.
        """
        query = {"list-type": "2", "prefix": prefix, "start-after": key, "encoding-type": "url"}
        body = self.send("ListObjectsV2", bucket, prefix, query=query)
        return None if body is None else _listed(body)


def _listed(body: bytes) -> ListedKeys | None:
    try:
        root = fromstring(body)
        if not root.tag.endswith("ListBucketResult"):
            return None
        names = root.tag.removesuffix("ListBucketResult")
        decoded = unquote_plus if root.findtext(f"{names}EncodingType") == "url" else str
        keys = {
            decoded(content.findtext(f"{names}Key", "")): timestamp(
                content.findtext(f"{names}LastModified", "")
            ).timestamp()
            for content in root.iterfind(f"{names}Contents")
        }
        return keys, {"true": True, "false": False}[root.findtext(f"{names}IsTruncated", "")]
    except (ParseError, ValueError, KeyError):
        return None


class RangeReader:
    """Reads ranges of objects without boto3, also from several threads."""

    def __init__(self) -> None:
        self._direct = DirectS3()

    def read_range(self, location: str, first: int, end: int) -> bytes:
        """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

        Raises:
            NoSuchKey, Misconfigured, ServiceUnavailable, TooLarge: as the function `read_range`.
            OutOfTime: no time is left in the budget.
        """
        check_range(first, end)
        source = bucket_and_key(location)
        body = self.fetch(*source, first, end) if source else None
        return read_range(location, first, end) if body is None else body

    def fetch(self, bucket: str, key: str, first: int, end: int) -> bytes | None:
        """The bytes of a range; None if S3 answers anything else. Raises: as `DirectS3.send`."""
        span = {"Range": f"bytes={first}-{end - 1}"}
        return self._direct.send("GetObject", bucket, key, headers=span, most=end - first)


SMALLEST_PART = 5 * 1024 * 1024
"""The fewest bytes of a part but the last (S3, "Multipart upload limits")."""

PART = 64 * 1024 * 1024
PARTS_AT_A_TIME = 8

ERRORS: ErrorTable = {
    404: (NoSuchKey, "a data file is gone"),
    403: (
        Misconfigured,
        "this function may not copy a data file: its role needs s3:PutObject beside the files "
        "that clients upload",
    ),
}


def copy_with_end(source: str, target: str, start: int, end: bytes) -> None:
    """Write the bytes of an object before `start`, and then `end`, as another object.

    Args:
        source, target: as `s3://bucket/key`.

    Raises:
        NoSuchKey: there is no such object.
        Misconfigured: this process may not read or write it.
        ServiceUnavailable: S3 does not answer.
    """
    source_key, target_key = bucket_and_key(source), bucket_and_key(target)
    if source_key is None or target_key is None:
        raise NoSuchKey("the data is not in S3")
    with translate_errors("a data file cannot be copied now", ERRORS):
        if start < SMALLEST_PART:
            body = (read_range(source, 0, start) if start else b"") + end
            client("s3").put_object(Bucket=target_key[0], Key=target_key[1], Body=body)
        else:
            _in_parts(source_key, target_key, start, end)


def _in_parts(source: tuple[str, str], target: tuple[str, str], start: int, end: bytes) -> None:
    s3, (bucket, key) = client("s3"), target
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    upload = {"Bucket": bucket, "Key": key, "UploadId": upload_id}
    try:
        parts = in_parallel(
            lambda part: _copied_part(upload, source, *part), _parts(start), PARTS_AT_A_TIME
        )
        number = len(parts) + 1
        last = s3.upload_part(**upload, PartNumber=number, Body=end)
        parts.append({"PartNumber": number, "ETag": last["ETag"]})
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    except BaseException:
        with suppress(Exception):
            # S3 keeps the parts of an upload until it is ended, and charges for them.
            s3.abort_multipart_upload(**upload)
        raise


def _parts(start: int) -> list[tuple[int, int, int]]:
    """The number of each part, its first byte, and the byte after its last."""
    count = -(-start // PART)
    # Equal parts: a short one before the last would be refused.
    ends = [start * n // count for n in range(count + 1)]
    return [(n + 1, ends[n], ends[n + 1]) for n in range(count)]


def _copied_part(
    upload: dict[str, Any], source: tuple[str, str], number: int, first: int, end: int
) -> dict[str, Any]:
    copied = client("s3").upload_part_copy(
        **upload,
        PartNumber=number,
        CopySource=dict(zip(("Bucket", "Key"), source, strict=True)),
        CopySourceRange=f"bytes={first}-{end - 1}",
    )
    return {"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]}
