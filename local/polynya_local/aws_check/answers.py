"""Calls to AWS, which only read. RIGHTS has the right that each of them needs."""

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from polynya_pipeline.common.progress import one_line

RIGHTS = {
    "get_caller_identity": "sts:GetCallerIdentity",
    "list_access_points_for_object_lambda": "s3:ListAccessPointsForObjectLambda",
    "head_bucket": "s3:ListBucket",
    "get_bucket_encryption": "s3:GetEncryptionConfiguration",
    "get_public_access_block": "s3:GetBucketPublicAccessBlock",
    "get_bucket_policy": "s3:GetBucketPolicy",
    "describe_secret": "secretsmanager:DescribeSecret",
    "describe_key": "kms:DescribeKey",
    "describe_subnets": "ec2:DescribeSubnets",
    "describe_route_tables": "ec2:DescribeRouteTables",
    "describe_vpc_endpoints": "ec2:DescribeVpcEndpoints",
    "describe_security_groups": "ec2:DescribeSecurityGroups",
    "describe_db_instances": "rds:DescribeDBInstances",
    "describe_db_clusters": "rds:DescribeDBClusters",
    "describe_db_proxies": "rds:DescribeDBProxies",
    "get_account_settings": "lambda:GetAccountSettings",
}
"""The right that a call needs, by the name of the call in boto3."""

DENIED = frozenset(("403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"))
NO_SUCH = frozenset(
    (
        "404",
        "InvalidGroup.NotFound",
        "InvalidSubnetID.NotFound",
        "NoSuchBucket",
        "NoSuchBucketPolicy",
        "NoSuchPublicAccessBlockConfiguration",
        "NotFoundException",
        "ResourceNotFoundException",
        "ServerSideEncryptionConfigurationNotFoundError",
    )
)
SECONDS = 5


@dataclass(frozen=True, slots=True)
class Unknown:
    """AWS did not answer this question."""

    why: str
    """The reason, and what to do."""


Answer = dict[str, Any] | Unknown | None
"""None: AWS has no such thing."""


class Aws:
    """Read-only calls in one region, with the credentials of the environment or of a profile."""

    def __init__(self, region: str | None) -> None:
        """Begin a session.

        Args:
            region: None: that of the environment or of the profile.

        Raises:
            ValueError: there is no such region, or no such profile.
        """
        try:
            self._session = boto3.Session(region_name=region)
        except BotoCoreError as error:
            raise ValueError(one_line(error)) from None
        self.region = self._session.region_name or ""
        if not re.fullmatch("[a-z0-9-]+", self.region):
            raise ValueError("which region? Give --region, or set AWS_DEFAULT_REGION")
        self.client = cache(self._client)

    def ask(self, service: str, call: str, **arguments: Any) -> Answer:
        """AWS's answer to a call, with all pages."""
        try:
            client = self.client(service)
            if client.can_paginate(call):
                return dict(client.get_paginator(call).paginate(**arguments).build_full_result())
            return dict(getattr(client, call)(**arguments))
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in NO_SUCH:
                return None
            if code in DENIED:
                return Unknown(f"not allowed to look: these credentials need {RIGHTS[call]}")
            return Unknown(f"AWS answers {code} to {RIGHTS[call]}")
        except (BotoCoreError, ValueError) as error:  # ValueError: an endpoint is not a URL
            return Unknown(f"no answer to {RIGHTS[call]}: {one_line(error)}")

    def _client(self, service: str) -> Any:
        config = Config(connect_timeout=SECONDS, read_timeout=10, retries={"total_max_attempts": 2})
        return self._session.client(service, config=config)


@dataclass(frozen=True, slots=True)
class Database:
    """An instance, a cluster or a proxy of RDS."""

    kind: str
    engine: str
    port: int | None
    """None for a proxy: AWS does not return its port, which is PostgreSQL's."""
    groups: frozenset[str]
    """Its security groups."""
    is_public: bool
    """Whether AWS says that it has a public address; it does not say so of most clusters."""
    has_iam: bool
    """Whether roles may sign in by IAM."""
    resource_id: str | None
    """Its id in IAM policies; None: it is an instance of a cluster, whose id they have instead."""


def rds_database(aws: Aws, host: str) -> Database | Unknown | None:
    """The database of RDS in this account and region that has this address."""
    refusals = []
    for service_call, key, read in KINDS:
        answer = aws.ask("rds", service_call)
        if isinstance(answer, Unknown):
            refusals.append(answer)
            continue
        for described in (answer or {}).get(key, []):
            if host.lower() in {address.lower() for address in _addresses(described)}:
                return read(described)
    return refusals[0] if refusals else None


def _addresses(described: dict[str, Any]) -> Iterator[str]:
    """The names at which an instance, a cluster or a proxy answers."""
    endpoint = described.get("Endpoint") or {}
    yield endpoint.get("Address", "") if isinstance(endpoint, dict) else endpoint
    yield described.get("ReaderEndpoint") or ""
    yield from described.get("CustomEndpoints", [])


def _groups(described: dict[str, Any]) -> frozenset[str]:
    return frozenset(group["VpcSecurityGroupId"] for group in described["VpcSecurityGroups"])


def _instance(described: dict[str, Any]) -> Database:
    return Database(
        "instance",
        described["Engine"],
        described["Endpoint"].get("Port"),
        _groups(described),
        bool(described.get("PubliclyAccessible")),
        bool(described.get("IAMDatabaseAuthenticationEnabled")),
        None if described.get("DBClusterIdentifier") else described.get("DbiResourceId"),
    )


def _cluster(described: dict[str, Any]) -> Database:
    return Database(
        "cluster",
        described["Engine"],
        described.get("Port"),
        _groups(described),
        bool(described.get("PubliclyAccessible")),
        bool(described.get("IAMDatabaseAuthenticationEnabled")),
        described.get("DbClusterResourceId"),
    )


def _proxy(described: dict[str, Any]) -> Database:
    return Database(
        "proxy",
        described["EngineFamily"].lower(),
        None,
        frozenset(described.get("VpcSecurityGroupIds", [])),
        False,
        any(way.get("IAMAuth") in {"REQUIRED", "ENABLED"} for way in described.get("Auth", [])),
        described.get("DBProxyArn", "").rpartition(":")[2] or None,
    )


KINDS = (
    ("describe_db_instances", "DBInstances", _instance),
    ("describe_db_clusters", "DBClusters", _cluster),
    ("describe_db_proxies", "DBProxies", _proxy),
)

Addresses = list[IPv4Address | IPv6Address]


def addresses(host: str) -> Addresses:
    """What this machine resolves a name to; empty: nothing."""
    try:
        results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ip_address(address[0]) for *_, address in results]


def connects(host: str, port: int) -> bool:
    """Whether this machine can open a connection."""
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError:
        return False
    return True
