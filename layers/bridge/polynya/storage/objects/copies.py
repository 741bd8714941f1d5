"""Copies of objects in S3 with another end: S3 itself copies what comes before."""

from contextlib import suppress
from typing import Any

from ...errors import Misconfigured, NoSuchKey
from ...parallel import in_parallel
from ..aws import client
from ..s3 import bucket_and_key
from .reader import read_range
from .translated_errors import ErrorTable, translate_errors

SMALLEST_PART = 5 * 1024 * 1024
"""Of an upload in parts (S3, "Multipart upload limits"), except the last one."""

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
    places = bucket_and_key(source), bucket_and_key(target)
    if places[0] is None or places[1] is None:
        raise NoSuchKey("the data is not in S3")
    with translate_errors("a data file cannot be copied now", ERRORS):
        if start < SMALLEST_PART:
            body = (read_range(source, 0, start) if start else b"") + end
            client("s3").put_object(Bucket=places[1][0], Key=places[1][1], Body=body)
        else:
            _in_parts(places[0], places[1], start, end)


def _in_parts(source: tuple[str, str], target: tuple[str, str], start: int, end: bytes) -> None:
    s3, (bucket, key) = client("s3"), target
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    place = {"Bucket": bucket, "Key": key, "UploadId": upload}
    try:
        parts = in_parallel(
            lambda part: _copied_part(place, source, *part), _parts(start), PARTS_AT_A_TIME
        )
        number = len(parts) + 1
        last = s3.upload_part(**place, PartNumber=number, Body=end)
        parts.append({"PartNumber": number, "ETag": last["ETag"]})
        s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})
    except BaseException:
        with suppress(Exception):
            s3.abort_multipart_upload(**place)
        raise


def _parts(start: int) -> list[tuple[int, int, int]]:
    """The number of each part, and its bytes: from, and up to but not including."""
    count = -(-start // PART)
    ends = [start * n // count for n in range(count + 1)]
    return [(n + 1, ends[n], ends[n + 1]) for n in range(count)]


def _copied_part(
    place: dict[str, Any], source: tuple[str, str], number: int, first: int, end: int
) -> dict[str, Any]:
    copied = client("s3").upload_part_copy(
        **place,
        PartNumber=number,
        CopySource=dict(zip(("Bucket", "Key"), source, strict=True)),
        CopySourceRange=f"bytes={first}-{end - 1}",
    )
    return {"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]}
