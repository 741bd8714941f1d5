"""The proxy before a real S3 (moto), where clients may upload."""

from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from polynya_local.s3.uploads import Uncommitted, UploadPaths

from tests.aws.stand_in import StandIn

REGION = "us-east-1"
BUCKET = "uploads"
UUID = "01a1fb09-8760-7336-b677-0e4f6c1fb6b5"
OF_TABLE = f"lake/main/orders/{UUID}"
STAGING = "lake/.polynya-staging"
PATHS = UploadPaths.from_locations(
    data_path=f"s3://{BUCKET}/lake",
    staging_location="",
    virtual_location=f"s3://{BUCKET}/lake/polynya",
)
SMALL = b"x" * 100


@dataclass(frozen=True, slots=True)
class Store:
    """The endpoint of the proxy, and a client of the S3 behind it."""

    uri: str
    real: Any

    def content(self, key: str) -> bytes:
        """The bytes of an object of BUCKET."""
        body: bytes = self.real.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body


def stand_in(
    endpoint: str,
    uploads: UploadPaths | None = PATHS,
    alias: str | None = None,
    uncommitted: Uncommitted | None = None,
) -> StandIn:
    """Start the proxy before an S3."""
    made = StandIn(
        alias=alias,
        supporting_bucket=BUCKET,
        s3_endpoint=endpoint,
        region=REGION,
        uploads=uploads,
        uncommitted=uncommitted,
    )
    made.start(lambda event, context: None, lambda event, context: None)
    return made


def client(endpoint: str, **config: Any) -> Any:
    """A boto3 client with any credentials."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="anybody",
        aws_secret_access_key="any secret will do",
        config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}, **config),
    )
