"""Copies of data files in S3 with another end. S3 itself copies the part that stays."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..runtime import budget
from ..runtime.errors import Misconfigured, NoSuchKey, ServiceUnavailable
from ..runtime.prefetch import map_in_parallel
from .aws import Clients
from .objects import ErrorTable, body_of, status_code, translate_errors
from .s3_locations import bucket_and_key

SMALLEST_PART = 5 * 1024 * 1024
"""The fewest bytes of a part, except the last one (S3, "Multipart upload limits")."""

PART = 64 * 1024 * 1024
"""S3 copies at most 5 GiB at once; parts of this size are copied side by side, within the time that
one request may take."""
MOST_PARTS = 10_000
PARTS_AT_A_TIME = 8

ABORT_SECONDS = 2
"""An upload is ended also if the time of the request is over."""

ERRORS: ErrorTable = {
    404: (NoSuchKey, "a data file is gone"),
    403: (
        Misconfigured,
        "this function may not copy a data file: its role needs s3:PutObject beside the files "
        "that clients upload",
    ),
}
VIRTUAL_ERRORS: ErrorTable = {
    404: (NoSuchKey, "a data file is gone"),
    403: (
        Misconfigured,
        "a data file is gone, or this function may not copy it for CLIENTS: its role needs "
        "s3:GetObject on the lake's data files, and s3:PutObject below the virtual prefix",
    ),
    412: (ServiceUnavailable, "a data file was replaced while it was copied"),
}
"""The same for copies that clients read."""


class CopySource(NamedTuple):
    """An object of which a part is copied."""

    bucket: str
    key: str
    etag: str = ""
    """Nothing is copied of an object with another one; empty: whatever it has."""


def copy_source(s3: Callable[[], Any], location: str) -> CopySource:
    """The object at `s3://bucket/key`, as it is now.

    Raises: as `copy_with_end`.
    """
    bucket, key = _place(location)
    with translate_errors("a data file cannot be copied now", VIRTUAL_ERRORS):
        return CopySource(bucket, key, s3().head_object(Bucket=bucket, Key=key)["ETag"])


def copy_with_end(clients: Clients, source: str, target: str, start: int, end: bytes) -> None:
    """Write the bytes of an object before `start`, and then `end`, as another object.

    Args:
        source, target: as `s3://bucket/key`.

    Raises:
        NoSuchKey: there is no such object.
        Misconfigured: this process may not read or write it.
        ServiceUnavailable: S3 does not answer.
    """
    copy = Copy(lambda: clients("s3"), CopySource(*_place(source)), *_place(target))
    with translate_errors("a data file cannot be copied now", ERRORS):
        copy.make(start, end, PARTS_AT_A_TIME)


def _place(location: str) -> tuple[str, str]:
    place = bucket_and_key(location)
    if place is None:
        raise NoSuchKey("the data is not in S3")
    return place


@dataclass(frozen=True, slots=True)
class Copy:
    """An object that begins with the bytes of another one."""

    s3: Callable[[], Any]
    """Gives a boto3 client."""
    source: CopySource
    bucket: str
    key: str
    is_new: bool = False
    """An object that is there stays."""

    def make(self, start: int, end: bytes, at_a_time: int) -> None:
        """Write the bytes of the source before `start`, and then `end`.

        Args:
            at_a_time: how many parts S3 copies at the same time, at most.

        Raises:
            NoSuchKey: the source is shorter.
            botocore.exceptions.ClientError, BotoCoreError: S3 fails.
        """
        if start < SMALLEST_PART:
            self._write(self._begin(start) + end)
        else:
            self._copy_in_parts(start, end, at_a_time)

    @property
    def _address(self) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self.key}

    def _begin(self, start: int) -> bytes:
        if not start:
            return b""
        request = {"Bucket": self.source.bucket, "Key": self.source.key}
        request |= {"IfMatch": self.source.etag} if self.source.etag else {}
        body = body_of(self.s3().get_object(**request, Range=f"bytes=0-{start - 1}"), start)
        if len(body) < start:
            raise NoSuchKey("a data file is shorter than the catalog says")
        return body

    def _write(self, body: bytes) -> None:
        self._finish(lambda new: self.s3().put_object(**self._address, Body=body, **new))

    def _copy_in_parts(self, start: int, end: bytes, at_a_time: int) -> None:
        upload_id = self.s3().create_multipart_upload(**self._address)["UploadId"]
        upload = {**self._address, "UploadId": upload_id}
        try:
            parts = map_in_parallel(
                lambda part: self._copied_part(upload, *part), _parts(start), at_a_time
            )
            number = len(parts) + 1
            last = self.s3().upload_part(**upload, PartNumber=number, Body=end)
            parts.append({"PartNumber": number, "ETag": last["ETag"]})
            is_finished = self._finish(
                lambda new: self.s3().complete_multipart_upload(
                    **upload, MultipartUpload={"Parts": parts}, **new
                )
            )
        except BaseException:
            self._abort(upload)
            raise
        if not is_finished:
            self._abort(upload)

    def _finish(self, request: Callable[[dict[str, str]], object]) -> bool:
        """Make the object; False: there is one that stays."""
        client = self.s3()
        try:
            request({"IfNoneMatch": "*"} if self.is_new else {})
        except client.exceptions.ClientError as error:
            # 409: another one of the same key was faster.
            if not self.is_new or status_code(error) not in {409, 412}:
                raise
            return False
        return True

    def _abort(self, upload: dict[str, str]) -> None:
        # S3 keeps the parts of an upload until it is ended, and charges for them.
        with suppress(Exception), budget.limited(ABORT_SECONDS):
            self.s3().abort_multipart_upload(**upload)

    def _copied_part(
        self, upload: dict[str, str], number: int, first: int, end: int
    ) -> dict[str, Any]:
        source = {"Bucket": self.source.bucket, "Key": self.source.key}
        condition = {"CopySourceIfMatch": self.source.etag} if self.source.etag else {}
        copied = self.s3().upload_part_copy(
            **upload,
            PartNumber=number,
            CopySource=source,
            CopySourceRange=f"bytes={first}-{end - 1}",
            **condition,
        )
        return {"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]}


def _parts(start: int) -> list[tuple[int, int, int]]:
    """The number of each part, its first byte, and the byte after its last."""
    count = min(-(-start // PART), MOST_PARTS - 1)
    # The parts are equal, because S3 refuses a short one before the last.
    ends = [start * n // count for n in range(count + 1)]
    return [(n + 1, ends[n], ends[n + 1]) for n in range(count)]
