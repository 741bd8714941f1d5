"""Stores that have STS: SeaweedFS from PyPI, and MinIO, which `make minio` builds."""

import base64
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
import requests
from botocore.config import Config
from polynya_local.processes.postgres import HOST, free_port
from polynya_local.processes.serving import KEY_ID, SECRET

from bench.support.s3 import WEED, s3

ROOT = Path(__file__).parents[3]
MINIO = ROOT / ".cache" / "minio" / "minio"
DOCUMENT = ROOT / "docs" / "object-stores.md"

BUCKET = "lakehouse"
ROLE = "arn:aws:iam::000000000000:role/lake"


class Keys(NamedTuple):
    """Long-lived credentials."""

    id: str
    secret: str


@dataclass(frozen=True, slots=True)
class Store:
    """A running store with an empty bucket."""

    endpoint: str
    root: Keys
    """Of who may do everything."""
    server: Keys
    """Of `polynya serve`, which may assume the role."""

    def client(self, service: str, keys: Keys, token: str | None = None) -> Any:
        return boto3.client(
            service,
            "us-east-1",
            endpoint_url=self.endpoint,
            aws_access_key_id=keys.id,
            aws_secret_access_key=keys.secret,
            aws_session_token=token,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )


@contextmanager
def seaweedfs() -> Iterator[Store]:
    if not WEED.exists():
        pytest.skip("no SeaweedFS: make bench")
    server, root = Keys("polynya", "polynya-secret"), Keys(KEY_ID, SECRET)
    rights = ["Read", "List", "Write"]
    identity = {
        "name": server.id,
        "credentials": [{"accessKey": server.id, "secretKey": server.secret}],
        "actions": [f"{right}:{BUCKET}" for right in rights],
    }
    with s3(identity, iam=roles()) as endpoint:
        yield create_bucket(Store(endpoint, root, server))


def roles() -> dict[str, Any]:
    """What docs/object-stores.md says about roles, with a key."""
    [text] = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    configuration: dict[str, Any] = json.loads(text)
    configuration["sts"]["signingKey"] = base64.b64encode(b"0123456789abcdef" * 2).decode()
    return configuration


@contextmanager
def minio() -> Iterator[Store]:
    if not MINIO.exists():
        pytest.skip("no MinIO: make minio")
    root = Keys("minio-root", "minio-root-secret")
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        words = ["server", folder, "--address", f"{HOST}:{ports[0]}"]
        process = subprocess.Popen(
            [str(MINIO), *words, "--console-address", f"{HOST}:{ports[1]}"],
            env={"MINIO_ROOT_USER": root.id, "MINIO_ROOT_PASSWORD": root.secret, "HOME": folder},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        endpoint = f"http://{HOST}:{ports[0]}"
        try:
            until = time.monotonic() + 60
            while not is_ready(f"{endpoint}/minio/health/cluster"):
                assert process.poll() is None and time.monotonic() < until, log.read()
                time.sleep(0.2)
            yield create_bucket(Store(endpoint, root, root))
        finally:
            process.terminate()
            process.wait(30)


def is_ready(uri: str) -> bool:
    try:
        return requests.get(uri, timeout=5).ok
    except requests.RequestException:
        return False


def create_bucket(store: Store) -> Store:
    store.client("s3", store.root).create_bucket(Bucket=BUCKET)
    return store


STORES = {"seaweedfs": seaweedfs, "minio": minio}
