"""The real Lambda handlers in this process, behind the stand-in for API Gateway and S3.

This is faster than the command and allows what the command does not: several settings for DynamoDB,
and lakes that it refuses.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import boto3
import pytest
from polynya.ducklake.connection.database import Database
from polynya_local.clients.native import Lake
from polynya_local.processes.serving import REGION, Bridge
from polynya_local.s3.uploads import UncommittedFiles, UploadPaths
from polynya_local.writes import everybody_may_write

from tests.aws import stand_in as local_aws
from tests.aws.dynamodb import TABLE
from tests.aws.functions import Functions
from tests.aws.stand_in import StandIn
from tests.aws.template import as_deployed
from tests.support.catalog_versions import SERVED

ALIAS = "virtual"
CACHE_BUCKET = "kept"
UNLIMITED_SECONDS = 3600
"""Rows do not depend on how busy the machine is; test_time_budget.py is about requests' time."""

_started: list[Functions] = []


@contextmanager
def settings(**values: str) -> Iterator[None]:
    """Set variables of the environment, which clients of AWS that are made then read."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


@contextmanager
def functions(**values: str) -> Iterator[Functions]:
    """Instances of the functions with these settings."""
    with settings(**values), closing(Functions()) as started:
        _started.append(started)
        yield started
        _started.remove(started)


def running() -> Functions:
    """Those that were started last."""
    return _started[-1]


def reset_functions() -> None:
    """Let all functions forget what they have opened, as new instances; the clients of AWS stay."""
    for one in _started:
        one.close()


@contextmanager
def standing_in(
    lake: Lake,
    s3_endpoint: str,
    *,
    delivery: str = "object-lambda",
    alias: str = ALIAS,
    data_prefix: str = "",
    confined: bool = True,
    writes: bool = False,
    removes: bool = True,
    **values: str,
) -> Iterator[StandIn]:
    """Serve `lake`; each function has the packages and the rights in S3 that it has on AWS.

    Args:
        alias: the access point of S3 Object Lambda.
        data_prefix: the template's parameter DataPrefix.
        confined: False for setups that no deployment has, such as a bucket for virtual files only.
        writes: whether clients may write, as with `polynya serve --writes`.
        removes: whether they may remove uploads that are not committed, which they may not on AWS.
        values: settings that add to or replace the usual ones.
    """
    bucket = lake.data_path.removeprefix("s3://").partition("/")[0]
    virtual_bucket = alias if delivery == "object-lambda" else bucket
    uploads = UploadPaths.from_locations(
        data_path=lake.data_path,
        staging_location=values.get("STAGING_LOCATION", ""),
        virtual_location=f"s3://{virtual_bucket}/{values.get('VIRTUAL_PREFIX', 'polynya')}",
    )
    database = Database(lake.database.url, lake.metadata_schema)
    uncommitted = UncommittedFiles(database)
    stand_in = StandIn(
        alias=alias if delivery == "object-lambda" else None,
        supporting_bucket=bucket,
        s3_endpoint=s3_endpoint,
        region=REGION,
        uploads=uploads if writes else None,
        uncommitted=uncommitted.claim if removes else None,
    )
    usual = {
        "DATABASE_URL": lake.database.url,
        "METADATA_SCHEMA": lake.metadata_schema,
        "WAREHOUSE": "lake",
        "DELIVERY": delivery,
        "VIRTUAL_BUCKET": virtual_bucket,
        "AWS_ENDPOINT_URL_S3": s3_endpoint,
        "AWS_ENDPOINT_URL_DYNAMODB": s3_endpoint,
        "OBJECT_LAMBDA_ENDPOINT": stand_in.s3_uri,
    }
    if writes:
        usual |= {"WRITES": "yes", "AUTHORIZATION": everybody_may_write()}
    given = usual | values
    deployment = as_deployed(given, data_bucket=bucket, data_prefix=data_prefix)
    confinements = deployment if confined else None
    with closing(uncommitted), stand_in, functions(**given) as started:
        migrated = SERVED.beside(lake, started.commits)
        stand_in.start(
            started.rest_catalog,
            started.object_lambda,
            confinements,
            commits_handler=migrated if writes else None,
        )
        yield stand_in


@contextmanager
def bridge(
    lake: Lake,
    s3_endpoint: str,
    *,
    delivery: str = "materialize",
    hide_types: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
    writes: bool = False,
    removes: bool = True,
) -> Iterator[Bridge]:
    """The same as `processes.serving.serving`, without a process, which takes 3 s to start, and
    with as much time for a request as it takes.

    A nested bridge hides the outer one, which answers again after the inner one ends.
    """
    values = {
        "HIDDEN_TYPES": ",".join(hide_types),
        "BUILD_SECONDS": str(UNLIMITED_SECONDS),
        "POWERTOOLS_LOG_LEVEL": "WARNING",
        "POWERTOOLS_METRICS_DISABLED": "true",
        **cache_settings(s3_endpoint),
        **(settings or {}),
    }
    with (
        _without_timeouts(),
        standing_in(
            lake, s3_endpoint, delivery=delivery, writes=writes, removes=removes, **values
        ) as stand_in,
    ):
        yield Bridge(stand_in.api_uri, "lake", stand_in.s3_uri, delivery, writes)


@contextmanager
def _without_timeouts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("REST_TIMEOUT_S", "OBJECT_LAMBDA_TIMEOUT_S"):
            patch.setattr(local_aws, name, UNLIMITED_SECONDS)
        yield


def cache_settings(endpoint: str) -> dict[str, str]:
    """The settings of a store in the DynamoDB and the S3 of `endpoint`, which all tests share."""
    client = boto3.client("dynamodb", endpoint_url=endpoint, region_name=REGION)
    if TABLE not in client.list_tables()["TableNames"]:
        client.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        )
    # Not the lakes' bucket, because rights on the one would be rights on the other.
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(
        Bucket=CACHE_BUCKET
    )
    return {"CACHE_TABLE": TABLE, "CACHE_BUCKET": CACHE_BUCKET}
