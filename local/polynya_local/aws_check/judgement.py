"""Turns AWS's answers into lines for the reader, with what to do. Nothing here calls AWS."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_network
from typing import Any, NamedTuple

from polynya_pipeline.common.options import Delivery

from .answers import Addresses, Answer, Database, Unknown
from .bucket_policy import Origin, denials
from .network import ANYWHERE, Network, admits, every, permissions

GATEWAYS = {"s3": "S3", "dynamodb": "DynamoDB"}
"""Services that every deployment needs, whose gateway endpoints cost nothing."""
OPTIONAL = {
    "sts": "STS (Vending=yes)",
    "ssm": "SSM (PolicyParameter, Lakes=yes)",
    "events": "EventBridge (EventsSchedule)",
}
BURST = 50
"""The default of the parameter RequestBurst."""
FEW = 8
"""A subnet with fewer free addresses gets a note."""


class Status(StrEnum):
    """What a line says."""

    OK = "ok"
    MISSING = "missing"
    """The deployment fails, or does not work, until it is there."""
    UNKNOWN = "unknown"
    NOTE = "note"
    """Not needed by this deployment."""


class Line(NamedTuple):
    """What the account, the network or this machine has, and what to do."""

    about: str
    status: Status
    words: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """The planned deployment, as the options of the command describe it."""

    region: str
    delivery: Delivery
    bucket: str
    host: str
    port: int
    name: str
    secret_id: str | None
    """Its name or ARN; None: IAM authentication."""
    user: str
    subnets: Sequence[str] = field(default=())
    groups: Sequence[str] = field(default=())


def verdict(about: str, answer: bool | None, ok: str, missing: str, unknown: str) -> Line:
    """A line for an answer that may be unknown."""
    if answer is None:
        return Line(about, Status.UNKNOWN, unknown)
    return Line(about, Status.OK, ok) if answer else Line(about, Status.MISSING, missing)


def refused(about: str, *answers: Answer) -> Iterator[Line]:
    """A line for each answer that AWS refused."""
    for answer in answers:
        if isinstance(answer, Unknown):
            yield Line(about, Status.UNKNOWN, answer.why)


def account(answer: Answer, region: str) -> Line:
    """Whether there are credentials."""
    if isinstance(answer, dict):
        words = f"{answer['Account']} as {answer['Arn']}, region {region}"
        return Line("account", Status.OK, words)
    why = answer.why if isinstance(answer, Unknown) else "AWS does not know this caller"
    return Line("account", Status.MISSING, f"{why}: sign in, or set AWS_PROFILE, and ask again")


def object_lambda(answer: Answer, delivery: Delivery) -> Line:
    """Whether the account uses S3 Object Lambda, which is closed to others.

    No call that reads says whether AWS lets an account make its first access point.
    """
    about, advice = "S3 Object Lambda", "Delivery=materialize works without it"
    if isinstance(answer, Unknown):
        return Line(about, Status.UNKNOWN, f"{answer.why}; {advice}")
    if answer is None:
        return Line(about, Status.UNKNOWN, f"this region does not know it; {advice}")
    names = [item["Name"] for item in answer.get("ObjectLambdaAccessPointList", [])]
    if names:
        count = f"this account uses it in this region ({len(names)}: {', '.join(names[:3])})"
        return Line(about, Status.OK, f"{count}; Delivery=object-lambda is possible")
    words = (
        "this account has no access point in this region. AWS lets only accounts make one that "
        f"used it before 2025-11-07, and does not say which did; {advice}"
    )
    if delivery is Delivery.OBJECT_LAMBDA:
        words += ", and without the risk that AWS refuses the stack"
    return Line(about, Status.UNKNOWN, words)


def bucket(answer: Answer, name: str, region: str) -> Line:
    """Whether the bucket is there."""
    about = "bucket"
    if isinstance(answer, Unknown):
        words = f"{answer.why}; or {name} belongs to another account that denies this one access"
        return Line(about, Status.UNKNOWN, words)
    if answer is None:
        words = f"there is no bucket {name}: it is the one where DuckLake writes its files"
        return Line(about, Status.MISSING, words)
    actual = answer.get("BucketRegion") or region
    return verdict(
        about,
        actual == region,
        f"{name} is in {region}",
        f"{name} is in {actual}: deploy there (--region {actual})",
        "",
    )


def encryption(answer: Answer, key: Answer) -> Line:
    """Whether the functions can decrypt what is in the bucket.

    Args:
        key: the KMS key that `key_of` names.
    """
    about = "bucket encryption"
    if isinstance(answer, Unknown):
        return Line(about, Status.UNKNOWN, answer.why)
    if key_of(answer) is None:
        return Line(about, Status.OK, "needs no right to a key")
    return _key(about, key, "kms:Decrypt and kms:GenerateDataKey")


def key_of(answer: Answer) -> str | None:
    """The KMS key by which a bucket's files are encrypted; None: S3's own keys."""
    if not isinstance(answer, dict):
        return None
    for rule in answer["ServerSideEncryptionConfiguration"]["Rules"]:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        if default.get("KMSMasterKeyID"):
            return str(default["KMSMasterKeyID"])
    return None


def _key(about: str, key: Answer, rights: str) -> Line:
    if isinstance(key, Unknown):
        return Line(about, Status.UNKNOWN, key.why)
    if key is None:
        return Line(about, Status.MISSING, "its KMS key does not exist")
    metadata = key["KeyMetadata"]
    if metadata.get("KeyState", "Enabled") != "Enabled":
        return Line(about, Status.MISSING, f"its KMS key {metadata['KeyId']} is not enabled")
    if metadata["KeyManager"] == "AWS":
        return Line(about, Status.OK, "AWS's own KMS key, which needs no right")
    words = (
        f"under the KMS key {metadata['Arn']}: its policy must give the functions' roles {rights}, "
        "because the template gives no right to keys; the roles exist after the deployment"
    )
    return Line(about, Status.UNKNOWN, words)


def public_access(answer: Answer) -> Line:
    """Whether the bucket is closed to the public."""
    about = "bucket public access"
    if isinstance(answer, Unknown):
        return Line(about, Status.UNKNOWN, answer.why)
    settings = (answer or {}).get("PublicAccessBlockConfiguration", {})
    if settings and all(settings.values()):
        return Line(about, Status.OK, "blocked")
    return Line(about, Status.NOTE, "not blocked by the bucket itself; Polynya needs none")


def bucket_policy(answer: Answer, origin: Origin) -> Iterator[Line]:
    """What the bucket's policy denies to the functions."""
    about = "bucket policy"
    if isinstance(answer, Unknown):
        yield Line(about, Status.UNKNOWN, answer.why)
        return
    try:
        statements = list(denials(answer["Policy"], origin)) if answer else []
    except (AttributeError, KeyError, TypeError, ValueError):
        yield Line(about, Status.UNKNOWN, "this command does not know its form")
        return
    if not statements:
        words = "denies the functions nothing" if answer else "none, so it denies nothing"
        yield Line(about, Status.OK, words)
    for name, applies in statements:
        if applies:
            words = f"the statement {name} denies the functions access: exempt their roles"
            yield Line(about, Status.MISSING, words)
        else:
            words = (
                f"the statement {name} denies access under conditions that this command does not "
                "know: see that it exempts the functions' roles"
            )
            yield Line(about, Status.UNKNOWN, words)


def secret(answer: Answer, name: str, region: str) -> Line:
    """Whether the secret is there. Nobody reads it."""
    about = "secret"
    if isinstance(answer, Unknown):
        return Line(about, Status.UNKNOWN, answer.why)
    if answer is None:
        words = f"there is no secret {name} in {region}: docs/deploying.md says how to make it"
        return Line(about, Status.MISSING, words)
    if answer.get("DeletedDate"):
        return Line(about, Status.MISSING, f"{name} is scheduled for deletion: restore it")
    arn = str(answer["ARN"])
    if arn.split(":")[3] != region:
        return Line(about, Status.MISSING, f"{arn} is not in {region}, where the functions look")
    rotated = "rotated" if answer.get("RotationEnabled") else "not rotated"
    keys = (
        "made by RDS, with the keys that it needs"
        if answer.get("OwningService") == "rds"
        else 'it must be JSON with "username" and "password": this command does not read it'
    )
    return Line(about, Status.OK, f"{arn}, {rotated}; {keys}")


def secret_key(answer: dict[str, Any], key: Answer) -> Line:
    """Whether the functions can decrypt the secret."""
    about = "secret encryption"
    if not answer.get("KmsKeyId"):
        return Line(about, Status.OK, "AWS's own KMS key, which needs no right")
    return _key(about, key, "kms:Decrypt")


def subnets(answer: Answer) -> Iterator[Line]:
    """Whether the subnets are there, and have addresses."""
    about = "subnets"
    if isinstance(answer, Unknown):
        yield Line(about, Status.UNKNOWN, answer.why)
        return
    if answer is None:
        yield Line(about, Status.MISSING, "one of them does not exist in this region")
        return
    described = answer["Subnets"]
    zones = sorted({subnet["AvailabilityZone"] for subnet in described})
    if len({subnet["VpcId"] for subnet in described}) > 1:
        yield Line(about, Status.MISSING, "they are in several VPCs: choose the database's")
        return
    free = {subnet["SubnetId"]: subnet["AvailableIpAddressCount"] for subnet in described}
    full = [name for name, count in free.items() if not count]
    scarce = [f"{name} has {count}" for name, count in free.items() if 0 < count < FEW]
    yield verdict(
        about,
        not full,
        f"in {described[0]['VpcId']}, {', '.join(zones)}",
        f"no address is free in {', '.join(full)}: Lambda needs one in each",
        "",
    )
    if scarce:
        yield Line(about, Status.NOTE, f"few addresses are free: {', '.join(scarce)}")
    if len(zones) == 1:
        words = (
            "all in one zone: the catalog is unavailable when the zone is; add a subnet of another"
        )
        yield Line(about, Status.NOTE, words)


def ways(network: Network, deployment: Deployment) -> Iterator[Line]:
    """What the functions reach from their subnets."""
    out = every(network.leads_out(subnet["SubnetId"]) for subnet in network.subnets)
    doubt = "this command cannot judge the routes, rules or policies on the way"
    for service, name in GATEWAYS.items():
        yield verdict(
            f"way to {name}",
            network.reaches(service),
            "from every subnet",
            f"no way from every subnet: add the gateway endpoint "
            f"com.amazonaws.{network.region}.{service} to their route tables, which costs nothing",
            doubt,
        )
    if deployment.secret_id is not None:
        yield verdict(
            "way to Secrets Manager",
            network.reaches("secretsmanager"),
            "from every subnet",
            "no way from every subnet: add an interface endpoint for secretsmanager with private "
            "DNS that admits the functions at port 443, or a NAT gateway",
            doubt,
        )
    if deployment.delivery is Delivery.OBJECT_LAMBDA:
        yield verdict(
            "way to S3 Object Lambda",
            out,
            "through NAT",
            "no NAT gateway in the routes of every subnet, and there is no endpoint for it; an "
            "internet gateway does not help, because functions have no public address",
            doubt,
        )
    closed = [name for service, name in OPTIONAL.items() if not network.reaches(service)]
    if closed:
        words = f"no certain way to {', '.join(closed)}: only those parameters need it"
        yield Line("other services", Status.NOTE, words)


def security_groups(network: Network) -> Line:
    """Whether the functions' security groups let them out."""
    about = "security groups"
    if network.groups is not None:
        foreign = network.group_ids - {group["GroupId"] for group in network.groups}
        if foreign:
            words = f"{', '.join(sorted(foreign))} is not in {network.vpc}, the subnets' VPC"
            return Line(about, Status.MISSING, words)
    return verdict(
        about,
        admits(network.egress, 443, None, [ANYWHERE]),
        "let the functions out at port 443",
        "let nothing out at port 443, where AWS's services are: add a rule",
        "it is not certain that they let the functions out at port 443 to all services above",
    )


def database_state(database: Database | Unknown | None, deployment: Deployment) -> Line:
    """What RDS says of the database."""
    about = "database"
    match database:
        case Unknown(why=why):
            return Line(about, Status.UNKNOWN, why)
        case None:
            words = (
                f"{deployment.host} is no address of RDS in this account and region, so that its "
                "rules cannot be seen"
            )
            return Line(about, Status.UNKNOWN, words)
    kind = f"the {database.kind} of RDS"
    if "postgres" not in database.engine:
        return Line(about, Status.MISSING, f"{kind} is {database.engine}, not PostgreSQL")
    if database.port not in (None, deployment.port):
        words = f"{kind} answers at port {database.port}: --database-port"
        return Line(about, Status.MISSING, words)
    return Line(about, Status.OK, f"{kind}, {database.engine}")


def iam_authentication(database: Database | Unknown | None) -> Line:
    """Whether roles may sign in without a secret."""
    about = "IAM authentication"
    if not isinstance(database, Database):
        words = "only databases of RDS have it, and this one was not found: give --secret"
        return Line(about, Status.UNKNOWN, words)
    if not database.has_iam:
        return Line(about, Status.MISSING, "the database does not permit it: give --secret")
    if database.resource_id is None:
        words = "an instance of a cluster: give the cluster's address, which IAM needs"
        return Line(about, Status.MISSING, words)
    return Line(about, Status.OK, f"{database.resource_id}; the role needs GRANT rds_iam")


def way_from_outside(
    database: Database | Unknown | None, groups: Answer, addresses: Addresses, port: int
) -> Line:
    """Whether functions outside a VPC reach the database.

    Args:
        groups: the database's security groups.
        addresses: what this machine resolves its name to.
    """
    about, remedy = "way to the database", "give --subnets and --security-groups of its VPC"
    is_public = isinstance(database, Database) and database.is_public
    if addresses and not is_public and all(address.is_private for address in addresses):
        return Line(about, Status.MISSING, f"it has no public address: {remedy}")
    if isinstance(groups, Unknown):
        return Line(about, Status.UNKNOWN, groups.why)
    if groups is None or not (addresses or is_public):
        words = f"it must be public, and admit everybody at port {port}: else {remedy}"
        return Line(about, Status.UNKNOWN, words)
    ingress = [rule for group in groups["SecurityGroups"] for rule in group["IpPermissions"]]
    narrow = f"everybody at port {port}, and functions outside a VPC have no fixed addresses"
    return verdict(
        about,
        admits(ingress, port, frozenset(), [ANYWHERE]),
        f"its security group admits {narrow}; in a VPC it would admit them alone",
        f"its security group does not admit {narrow}: {remedy}",
        f"its security group may not admit {narrow}: {remedy}",
    )


def way_inside(
    database: Database | Unknown | None, addresses: Addresses, port: int, network: Network
) -> Line:
    """Whether functions in a VPC reach the database, as far as security groups say it."""
    about = "way to the database"
    if not isinstance(database, Database):
        words = f"see that its firewall admits {', '.join(sorted(network.group_ids))} at {port}"
        return Line(about, Status.UNKNOWN, words)
    if network.groups is not None and database.groups - {
        group["GroupId"] for group in network.groups
    }:
        words = f"it is not in {network.vpc}: see that its VPC is peered and admits the subnets"
        return Line(about, Status.UNKNOWN, words)
    targets = [ip_network(address) for address in addresses if address.is_private]
    leaves = admits(network.egress, port, database.groups, targets)
    ingress = permissions(network.groups, database.groups, "IpPermissions")
    enters = admits(ingress, port, network.group_ids, network.ranges)
    own = ", ".join(sorted(database.groups))
    sides = {
        "the functions' security groups do not let them out there": leaves,
        f"its security group {own} does not admit them": enters,
    }
    faults = [words for words, answer in sides.items() if answer is False]
    return verdict(
        about,
        every(sides.values()),
        f"security groups let port {port} through",
        f"{' and '.join(faults)}: add a rule for port {port}",
        f"it is not certain that security groups let port {port} through: see their rules",
    )


def way_from_here(addresses: Addresses, connects: bool, deployment: Deployment) -> Line:
    """Whether this machine reaches the database, which says little of the functions."""
    about, port = "database from here", deployment.port
    if not addresses:
        words = f"this machine does not resolve {deployment.host}; in the VPC it must resolve"
        return Line(about, Status.UNKNOWN, words)
    place = f"{addresses[0]} port {port}"
    if connects:
        return Line(about, Status.OK, f"{place} answers this machine")
    words = f"{place} does not answer this machine, which may be right outside its VPC"
    return Line(about, Status.UNKNOWN, words)


def quotas(answer: Answer) -> Line:
    """Whether Lambda starts as many instances as the API lets requests through."""
    about = "Lambda quota"
    if not isinstance(answer, dict) or "AccountLimit" not in answer:
        why = answer.why if isinstance(answer, Unknown) else "AWS did not say it"
        return Line(about, Status.UNKNOWN, why)
    limit: dict[str, Any] = answer["AccountLimit"]
    free = limit.get("UnreservedConcurrentExecutions", limit["ConcurrentExecutions"])
    if free >= BURST:
        return Line(about, Status.OK, f"{free} instances at once, and {BURST} requests are let in")
    words = (
        f"{free} instances at once, and RequestBurst lets {BURST} requests in: set it to at most "
        f"{free}, or ask AWS for more (Service Quotas, Lambda, concurrent executions)"
    )
    return Line(about, Status.NOTE, words)


def build(checkout: bool, make: bool, python: str, runtime: str, sam: bool) -> Iterator[Line]:
    """Whether this machine can run `make build`.

    Args:
        python: the version that the runtime's Python prints; empty: it is not installed.
    """
    if not checkout:
        words = "this is not a checkout: `make build` needs one, and a release has what it makes"
        yield Line("build", Status.NOTE, words)
        return
    yield verdict("make", make, "is here", "is not on PATH: install it", "")
    yield verdict(
        f"Python {runtime}",
        bool(python),
        f"{python} is here",
        f"python{runtime} is not on PATH, and compiled packages fit only one: install it",
        "",
    )
    words = "is here" if sam else "is not here yet: `make build` installs it"
    yield Line("SAM", Status.OK if sam else Status.NOTE, words)
