"""A lake of any address for a command that reads it in this process."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..stand_in.hosts import MISDIRECTED, Hosts
from ..stand_in.http_message import Request, Response
from ..stand_in.http_server import HttpServer
from ..stand_in.s3.address import S3Address
from ..stand_in.s3.error import s3_error
from ..stand_in.s3.local_bucket import LocalBucket
from .data_path import BUCKET
from .opened import opened

LOCAL_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
"""The local S3 accepts any, and S3 clients want some."""


@dataclass(frozen=True, slots=True)
class ReadableLake:
    """A lake in PostgreSQL, with data in S3."""

    database: str = field(repr=False)
    """Its URL, which may hold a password."""
    metadata_schema: str
    s3_endpoint: str | None
    """None: AWS."""
    is_mirror: bool
    """Whether the database is a copy that this process has made."""
    folder_warning: str = ""
    """As `OpenedLake.folder_warning`."""
    staleness: Callable[[], str] = str
    """In a sentence, why an older state is shown, and of when; empty: the newest is."""


@contextmanager
def readable(
    address: str, metadata_schema: str, data_path: str | None, s3_endpoint: str | None
) -> Iterator[ReadableLake]:
    """Open a lake for the block, as of now.

    Args:
        s3_endpoint: of data that is not in a local folder; None: AWS.

    Raises:
        PolynyaError: as `opened`.
    """
    with opened(address, metadata_schema, data_path) as lake:
        is_mirror = lake.mirror is not None
        if lake.folder is None:
            yield ReadableLake(lake.database, lake.metadata_schema, s3_endpoint, is_mirror)
            return
        use_local_credentials()
        with local_s3(lake.folder) as endpoint:
            yield ReadableLake(lake.database, lake.metadata_schema, endpoint, is_mirror)


@contextmanager
def local_s3(folder: Path) -> Iterator[str]:
    """Serve a folder as a bucket of S3 on the loopback interface; gives the endpoint."""
    bucket, hosts = LocalBucket(BUCKET, folder), Hosts.of(())

    def answer(request: Request) -> Response:
        if refusal := hosts.refusal(request, server.server_port):
            return s3_error(MISDIRECTED, "MisdirectedRequest", refusal)
        return bucket.answer(request, S3Address.of(request))

    server = HttpServer(0)
    server.start(answer)
    try:
        yield server.uri
    finally:
        server.stop()


def use_local_credentials() -> None:
    """Give this process credentials for a local S3, unless it has some."""
    for name, value in LOCAL_CREDENTIALS.items():
        os.environ.setdefault(name, value)
