"""An S3 (moto) in a process of its own, so that its work does not count as ours."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import boto3

from .lakes import BUCKET


@contextmanager
def s3() -> Iterator[str]:
    """Its endpoint, on the loopback interface, with the bucket of the lakes."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C ends us, and we end it
    )
    try:
        endpoint = process.stdout.readline().strip()
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        process.communicate()


def _serve_until_stdin_ends() -> None:
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    _serve_until_stdin_ends()
