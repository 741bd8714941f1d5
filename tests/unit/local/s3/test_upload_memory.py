"""Uploads of any size take little memory, in S3 and in a folder."""

import errno
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO

import pytest
import urllib3
from polynya_local.messages import Request, Response, pieces_of
from polynya_local.s3.local_bucket import LocalBucket
from polynya_local.s3.loopback import loopback
from polynya_local.s3.proxy import Buckets, S3Behind, S3Proxy, S3Upstream
from polynya_local.s3.requests import S3Address

from tests.support.writes.uploads import BUCKET, OF_TABLE, PATHS

request = partial(urllib3.request, timeout=60)
"""urllib3 gives up after 3 s, which 64 MB may take on a busy machine."""

MB = 1024 * 1024
SENT = 64 * MB
PART = b"0123456789abcdef" * (MB // 16)
DIGEST = sha256(PART * (SENT // MB)).hexdigest()


def plain() -> Iterator[bytes]:
    return (PART for _ in range(SENT // MB))


def chunked() -> Iterator[bytes]:
    yield from (b"%x\r\n%b\r\n" % (MB, PART) for _ in range(SENT // MB))
    yield b"0\r\n\r\n"


BODIES = [
    (plain, {"Content-Length": str(SENT)}),
    (plain, {}),
    (
        chunked,
        {"Content-Encoding": "aws-chunked", "x-amz-decoded-content-length": str(SENT)},
    ),
]


def digest_of(pieces: Iterator[bytes]) -> str:
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


@contextmanager
def folder(path: Path, digests: list[str]) -> Iterator[Buckets]:
    yield LocalBucket(BUCKET, path)
    with open(path / OF_TABLE / "new.parquet", "rb") as file:
        digests.append(digest_of(pieces_of(file)))


@contextmanager
def another_s3(path: Path, digests: list[str]) -> Iterator[Buckets]:
    def answer(asked: Request) -> Response:
        if asked.method == "HEAD":
            return Response(404)
        assert asked.header("content-length") == str(SENT)
        with asked.body.file() as file:
            digests.append(digest_of(pieces_of(file)))
        return Response(200)

    with loopback(answer) as uri:
        yield S3Behind(S3Upstream(uri, "us-east-1"))


@pytest.mark.parametrize(("body", "headers"), BODIES, ids=["plain", "chunked", "aws-chunked"])
@pytest.mark.parametrize("buckets", [folder, another_s3])
def test_an_upload_is_not_in_memory_as_a_whole(tmp_path, buckets, body, headers):
    digests: list[str] = []
    with buckets(tmp_path, digests) as to:
        proxy = S3Proxy(to, PATHS)
        with loopback(lambda asked: proxy.answer(asked, S3Address.from_request(asked))) as uri:
            tracemalloc.start()
            try:
                url = f"{uri}/{BUCKET}/{OF_TABLE}/new.parquet"
                answer = request("PUT", url, body=body(), headers=headers, retries=False)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    assert answer.status == 200, answer.data
    assert digests == [DIGEST]
    assert peak < SENT / 4


def test_parts_are_put_together_piece_by_piece(tmp_path):
    bucket = LocalBucket(BUCKET, tmp_path)

    def answer(asked: Request) -> Response:
        return S3Proxy(bucket, PATHS).answer(asked, S3Address.from_request(asked))

    with loopback(answer) as uri:
        url = f"{uri}/{BUCKET}/{OF_TABLE}/new.parquet"
        begun = request("POST", f"{url}?uploads").data
        upload_id = begun.partition(b"<UploadId>")[2].partition(b"<")[0].decode()
        tracemalloc.start()
        try:
            part = f"{url}?partNumber=1&uploadId={upload_id}"
            assert request("PUT", part, body=plain()).status == 200
            body = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part>"
            body += b"</CompleteMultipartUpload>"
            answered = request("POST", f"{url}?uploadId={upload_id}", body=body)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert answered.status == 200, answered.data
    with open(tmp_path / OF_TABLE / "new.parquet", "rb") as file:
        assert digest_of(pieces_of(file)) == DIGEST
    assert peak < SENT / 4


class FullDisk:
    """A body for which there is no room."""

    def file(self) -> IO[bytes]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_upload_for_which_the_disk_has_no_room_is_answered(tmp_path):
    request = Request("PUT", f"/{BUCKET}/{OF_TABLE}/new.parquet", "", (), FullDisk())
    proxy = S3Proxy(LocalBucket(BUCKET, tmp_path), PATHS)
    answer = proxy.answer(request, S3Address.from_request(request))
    assert answer.status == 500
    assert b"<Code>InternalError</Code>" in answer.body
    assert b"No space left on device" in answer.body
