"""Copies of data files in S3 with another end. S3 itself copies the part that stays."""

from contextlib import suppress
from typing import Any

from ..runtime.errors import Misconfigured, NoSuchKey
from ..runtime.prefetch import map_in_parallel
from .aws import Clients
from .objects import ErrorTable, S3Objects, translate_errors
from .s3_locations import bucket_and_key

SMALLEST_PART = 5 * 1024 * 1024
"""The fewest bytes of a part, except the last one (S3, "Multipart upload limits")."""

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


def copy_with_end(clients: Clients, source: str, target: str, start: int, end: bytes) -> None:
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
            before = S3Objects(clients).read_range(source, 0, start) if start else b""
            body = before + end
            clients("s3").put_object(Bucket=target_key[0], Key=target_key[1], Body=body)
        else:
            _copy_in_parts(clients, source_key, target_key, start, end)


def _copy_in_parts(
    clients: Clients, source: tuple[str, str], target: tuple[str, str], start: int, end: bytes
) -> None:
    s3, (bucket, key) = clients("s3"), target
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    upload = {"Bucket": bucket, "Key": key, "UploadId": upload_id}
    try:
        parts = map_in_parallel(
            lambda part: _copied_part(clients, upload, source, *part),
            _parts(start),
            PARTS_AT_A_TIME,
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
    # The parts are equal, because S3 refuses a short one before the last.
    ends = [start * n // count for n in range(count + 1)]
    return [(n + 1, ends[n], ends[n + 1]) for n in range(count)]


def _copied_part(
    clients: Clients,
    upload: dict[str, Any],
    source: tuple[str, str],
    number: int,
    first: int,
    end: int,
) -> dict[str, Any]:
    copied = clients("s3").upload_part_copy(
        **upload,
        PartNumber=number,
        CopySource=dict(zip(("Bucket", "Key"), source, strict=True)),
        CopySourceRange=f"bytes={first}-{end - 1}",
    )
    return {"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]}
