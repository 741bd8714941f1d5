"""`polynya aws check` against moto, which has everything that the command asks for but S3 Object
Lambda and the quotas of Lambda: there the command has to say that it does not know. `make deployed`
runs it against an emulator that has them.
"""

import json
import re
import tomllib
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import boto3
import pytest
import requests
from polynya_local.aws_check.answers import RIGHTS, Aws, addresses, connects, rds_database
from polynya_local.cli import app
from polynya_local.processes.postgres import free_port
from typer.testing import CliRunner

from tests.aws.template import Stack

ROOT = Path(__file__).parents[3]
REGION = "us-east-1"
NOT_IN_MOTO = {"S3 Object Lambda": "unknown", "Lambda quota": "unknown"}
# The name of a database that moto made is not in the DNS.
FROM_HERE = {"database from here": "unknown"}
ELSEWHERE = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake/reader-AbCdEf"
EVERYBODY = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}


@cache
def own_client(endpoint, service):
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION)


class Account:
    """A VPC in which a deployment works, a database of RDS, a bucket and a secret."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint, self.name = endpoint, f"check-{uuid4().hex[:8]}"
        self.ec2, self.rds, self.s3 = map(self.client, ("ec2", "rds", "s3"))
        self.vpc, self.subnets = self.make_vpc("10.1")
        self.table = self.ec2.describe_route_tables(Filters=self.of_vpc)["RouteTables"][0]
        self.functions, self.database = self.make_group("functions"), self.make_group("database")
        self.gateways = [self.gateway(service) for service in ("s3", "dynamodb")]
        self.admit(self.functions, self.functions, 443)
        self.interface = self.ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            VpcEndpointType="Interface",
            ServiceName=f"com.amazonaws.{REGION}.secretsmanager",
            SubnetIds=self.subnets,
            SecurityGroupIds=[self.functions],
            PrivateDnsEnabled=True,
        )["VpcEndpoint"]["VpcEndpointId"]
        self.admit(self.database, self.functions, 5432)
        self.host = self.make_database()
        self.s3.create_bucket(Bucket=self.name)
        self.s3.put_public_access_block(
            Bucket=self.name,
            PublicAccessBlockConfiguration=dict.fromkeys(
                ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls"), True
            )
            | {"RestrictPublicBuckets": True},
        )
        self.secrets = self.client("secretsmanager")
        self.secret = self.secrets.create_secret(Name=self.name, SecretString="hunter2")["ARN"]
        self.options = {
            "--bucket": self.name,
            "--database-host": self.host,
            "--database-name": "lake",
            "--secret": self.name,
            "--subnets": ",".join(self.subnets),
            "--security-groups": self.functions,
            "--region": REGION,
        }

    @property
    def of_vpc(self):
        return [{"Name": "vpc-id", "Values": [self.vpc]}]

    def client(self, service):
        return own_client(self.endpoint, service)

    def make_vpc(self, network: str):
        vpc = self.ec2.create_vpc(CidrBlock=f"{network}.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            self.ec2.create_subnet(
                VpcId=vpc, CidrBlock=f"{network}.{number}.0/24", AvailabilityZone=REGION + zone
            )["Subnet"]["SubnetId"]
            for number, zone in enumerate("ab")
        ]
        return vpc, subnets

    def make_group(self, name: str, vpc: str | None = None) -> str:
        group = self.ec2.create_security_group(
            GroupName=f"{self.name}-{name}", Description="x", VpcId=vpc or self.vpc
        )
        return group["GroupId"]

    def rule(self, group: str, port: int, **target):
        return {
            "GroupId": group,
            "IpPermissions": [{"IpProtocol": "tcp", "FromPort": port, "ToPort": port, **target}],
        }

    def admit(self, group: str, other: str, port: int) -> None:
        pairs = [{"GroupId": other}]
        self.ec2.authorize_security_group_ingress(**self.rule(group, port, UserIdGroupPairs=pairs))

    def shut(self, group: str, other: str, port: int) -> None:
        pairs = [{"GroupId": other}]
        self.ec2.revoke_security_group_ingress(**self.rule(group, port, UserIdGroupPairs=pairs))

    def gateway(self, service: str) -> str:
        return self.ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            VpcEndpointType="Gateway",
            ServiceName=f"com.amazonaws.{REGION}.{service}",
            RouteTableIds=[self.table["RouteTableId"]],
        )["VpcEndpoint"]["VpcEndpointId"]

    def make_database(self, **more) -> str:
        name = f"db-{uuid4().hex[:8]}"
        self.rds.create_db_instance(
            **{
                "DBInstanceIdentifier": name,
                "DBInstanceClass": "db.t4g.micro",
                "Engine": "postgres",
                "MasterUsername": "owner",
                "MasterUserPassword": "password",
                "AllocatedStorage": 20,
                "VpcSecurityGroupIds": [self.database],
            }
            | more
        )
        [instance] = self.rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"]
        return instance["Endpoint"]["Address"]

    def leave_by(self, **target) -> None:
        self.ec2.create_route(
            RouteTableId=self.table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", **target
        )

    def nat(self) -> None:
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = self.ec2.create_nat_gateway(SubnetId=self.subnets[0], AllocationId=address)
        self.leave_by(NatGatewayId=nat["NatGateway"]["NatGatewayId"])

    def internet(self) -> None:
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=self.vpc)
        self.leave_by(GatewayId=gateway)

    def remove(self, endpoint: str) -> None:
        self.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])

    def deny(self, **condition) -> None:
        statement = EVERYBODY | {"Sid": "Own"} | condition
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        self.s3.put_bucket_policy(Bucket=self.name, Policy=json.dumps(policy))

    def key(self) -> str:
        return self.client("kms").create_key()["KeyMetadata"]["Arn"]

    def encrypt(self, key: str) -> None:
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        self.s3.put_bucket_encryption(
            Bucket=self.name,
            ServerSideEncryptionConfiguration={
                "Rules": [{"ApplyServerSideEncryptionByDefault": default}]
            },
        )

    def check(self, *more: str):
        """What the command says: the lines by what they are about, and all that is not `ok`."""
        options = [word for pair in self.options.items() for word in pair if pair[1] is not None]
        done = CliRunner().invoke(app, ["aws", "check", *options, *more, "--json"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "hunter2" not in done.output
        document = json.loads(done.stdout)
        lines = {line["about"]: line for line in document["lines"]}
        return SimpleNamespace(
            code=done.exit_code,
            stderr=done.stderr,
            parameters=document["parameters"],
            words={about: line["words"] for about, line in lines.items()},
            status={about: line["status"] for about, line in lines.items()},
        )


MAKE_CLIENT = Aws._client


@pytest.fixture(scope="module")
def make_client():
    """Makes the command's clients once: this takes longer than all that they ask."""
    return cache(lambda service: MAKE_CLIENT(Aws(REGION), service))


@pytest.fixture
def account(moto, monkeypatch, make_client):
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    monkeypatch.setattr(Aws, "_client", lambda self, service: make_client(service))
    return Account(moto)


def but_ok(answer):
    """What of AWS is not ok, but for what moto and the DNS of this machine lack."""
    of_machine = {"make", "Python 3.13", "SAM"}
    return {
        about: status
        for about, status in answer.status.items()
        if status != "ok" and about not in NOT_IN_MOTO | FROM_HERE and about not in of_machine
    }


OTHER = {"other services": "note"}


def test_an_account_that_can_deploy(account, tmp_path):
    file = tmp_path / "deploy.toml"
    answer = account.check("--write", str(file))
    assert but_ok(answer) == OTHER
    assert {about: answer.status[about] for about in NOT_IN_MOTO} == NOT_IN_MOTO
    assert "Delivery=materialize works without it" in answer.words["S3 Object Lambda"]
    assert "sam deploy --config-file" in answer.stderr
    written = tomllib.loads(file.read_text())
    example = tomllib.loads((ROOT / "docs/samconfig.example.toml").read_text())
    pairs = written["default"]["deploy"]["parameters"].pop("parameter_overrides")
    del example["default"]["deploy"]["parameters"]["parameter_overrides"]
    example["default"]["global"]["parameters"]["region"] = REGION
    assert written == example
    values = dict(pair.split("=", 1) for pair in pairs)
    assert values == {
        "Delivery": "materialize",
        "DatabaseHost": account.host,
        "DatabaseName": "lake",
        "DatabaseSecretArn": account.secret,
        "DataBucket": account.name,
        "SubnetIds": ",".join(account.subnets),
        "SecurityGroupIds": account.functions,
    }
    assert Stack(values).broken_rules() == []


CHANGES = {
    "nothing that it needs": (
        lambda a: [
            a.options.update(
                {"--bucket": "none", "--secret": "none", "--delivery": "object-lambda"}
            ),
            *map(a.remove, (*a.gateways, a.interface)),
            a.shut(a.database, a.functions, 5432),
        ],
        {
            "bucket": "missing",
            "secret": "missing",
            "way to S3": "missing",
            "way to DynamoDB": "missing",
            "way to Secrets Manager": "missing",
            "way to S3 Object Lambda": "missing",
            "way to the database": "missing",
        },
    ),
    "keys, a policy that is not known, one zone": (
        lambda a: [
            a.encrypt(a.key()),
            a.secrets.update_secret(SecretId=a.secret, KmsKeyId=a.key()),
            a.deny(Condition={"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}),
            a.options.update({"--subnets": a.subnets[0]}),
        ],
        {
            "bucket encryption": "unknown",
            "secret encryption": "unknown",
            "bucket policy": "unknown",
            "subnets": "note",
        },
    ),
    "a policy that denies, a deleted secret, a shut endpoint, another port": (
        lambda a: [
            a.deny(),
            a.secrets.delete_secret(SecretId=a.secret),
            a.shut(a.functions, a.functions, 443),
            a.options.update({"--database-port": "6432"}),
        ],
        {
            "bucket policy": "missing",
            "secret": "missing",
            "way to Secrets Manager": "missing",
            "database": "missing",
            "way to the database": "missing",
        },
    ),
    "a policy for this VPC, an internet gateway, MySQL": (
        lambda a: [
            a.deny(Condition={"StringNotEquals": {"aws:SourceVpc": a.vpc}}),
            a.remove(a.interface),
            a.internet(),
            a.options.update({"--database-host": a.make_database(Engine="mysql")}),
        ],
        {"way to Secrets Manager": "missing", "database": "missing"},
    ),
    "another VPC's policy, a secret elsewhere, shut functions, a database that is not of RDS": (
        lambda a: [
            a.deny(Condition={"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}),
            a.ec2.revoke_security_group_egress(
                GroupId=a.functions,
                IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
            ),
            a.options.update({"--secret": ELSEWHERE, "--database-host": "lake.example"}),
        ],
        {
            "bucket policy": "missing",
            "secret": "missing",
            "security groups": "missing",
            "database": "unknown",
            "way to the database": "unknown",
        },
    ),
    "a security group elsewhere, no IAM": (
        lambda a: a.options.update(
            {"--security-groups": a.make_group("x", a.make_vpc("10.2")[0]), "--secret": None}
        ),
        {
            "security groups": "missing",
            "IAM authentication": "missing",
            "way to the database": "missing",
        },
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_is_missing_is_said(account, case):
    change, lines = CHANGES[case]
    change(account)
    answer = account.check()
    assert but_ok(answer) == OTHER | lines
    assert answer.code == ("missing" in lines.values())


def test_nat_leads_to_all_services(account):
    for endpoint in (*account.gateways, account.interface):
        account.remove(endpoint)
    account.nat()
    account.options["--delivery"] = "object-lambda"
    answer = account.check()
    assert but_ok(answer) == {} and answer.code == 0
    assert answer.status["way to S3 Object Lambda"] == "ok"
    assert answer.parameters["Delivery"] == "object-lambda"


@pytest.mark.parametrize(
    ("subnets", "words"),
    [
        (lambda a: "subnet-0123456789abcdef0", "does not exist in this region"),
        (lambda a: f"{a.subnets[0]},{a.make_vpc('10.3')[1][0]}", "in several VPCs"),
    ],
)
def test_subnets_that_cannot_be_used(account, subnets, words):
    account.options["--subnets"] = subnets(account)
    answer = account.check()
    assert answer.code == 1 and words in answer.words["subnets"]
    assert "way to S3" not in answer.words


def test_iam_authentication_is_written(account, tmp_path):
    account.options |= {
        "--secret": None,
        "--database-host": account.make_database(EnableIAMDatabaseAuthentication=True),
    }
    file = tmp_path / "deploy.toml"
    answer = account.check("--write", str(file))
    assert but_ok(answer) == OTHER
    pairs = tomllib.loads(file.read_text())["default"]["deploy"]["parameters"]
    values = dict(pair.split("=", 1) for pair in pairs["parameter_overrides"])
    assert values["DatabaseUser"] == "polynya" and "DatabaseSecretArn" not in values
    assert re.fullmatch("db-[A-Z0-9]+", values["DatabaseResourceId"])
    assert Stack(values).broken_rules() == []


def test_outside_a_vpc_the_database_must_be_public(account):
    account.options |= {"--subnets": "", "--security-groups": ""}
    assert but_ok(account.check()) == {"way to the database": "unknown"}
    account.options["--database-host"] = account.make_database(PubliclyAccessible=True)
    answer = account.check()
    assert but_ok(answer) == {"way to the database": "missing"}
    assert "no fixed addresses" in answer.words["way to the database"]


def test_an_address_that_this_machine_reaches(postgres_server):
    server = postgres_server.maintenance
    assert addresses(server.host) == [ip_address("127.0.0.1")]
    assert connects(server.host, server.port)
    assert not connects(server.host, free_port())
    assert addresses("nothing.invalid") == []


def test_the_address_of_a_cluster_or_a_proxy_is_found(account):
    name, aws = f"cluster-{account.name}", Aws(REGION)
    cluster = account.rds.create_db_cluster(
        DBClusterIdentifier=name,
        Engine="aurora-postgresql",
        MasterUsername="owner",
        MasterUserPassword="password",
        VpcSecurityGroupIds=[account.database],
    )["DBCluster"]
    for address in (cluster["Endpoint"].upper(), cluster["ReaderEndpoint"]):
        database = rds_database(aws, address)
        assert (database.kind, database.engine) == ("cluster", "aurora-postgresql")
        assert database.resource_id == cluster["DbClusterResourceId"]
    proxy = account.rds.create_db_proxy(
        DBProxyName=name,
        EngineFamily="POSTGRESQL",
        Auth=[{"AuthScheme": "SECRETS", "SecretArn": account.secret, "IAMAuth": "REQUIRED"}],
        RoleArn="arn:aws:iam::123456789012:role/x",
        VpcSubnetIds=account.subnets,
        VpcSecurityGroupIds=[account.database],
    )["DBProxy"]
    database = rds_database(aws, proxy["Endpoint"])
    assert (database.kind, database.engine, database.has_iam) == ("proxy", "postgresql", True)
    assert database.groups == {account.database}
    assert re.fullmatch("prx-[A-Za-z0-9]+", database.resource_id)


def policy_of_the_documents(name: str) -> str:
    """The policy of docs/deploying.md for a bucket and a secret with this name."""
    page = (ROOT / "docs/deploying.md").read_text()
    [policy] = [text for text in re.findall(r"```json\n(.*?)```", page, re.S) if "sts:" in text]
    return policy.replace("my-lake", name).replace("lake/reader", name)


@pytest.mark.parametrize("has_rights", [True, False])
def test_the_rights_that_it_needs(account, moto, monkeypatch, has_rights):
    """moto checks signatures and policies here, as IAM does, with two differences.

    HeadBucket needs a right of its own, and no right is limited to a secret.
    """
    iam, user = account.client("iam"), account.name
    iam.create_user(UserName=user)
    key = iam.create_access_key(UserName=user)["AccessKey"]
    statements = json.loads(policy_of_the_documents(account.name))["Statement"]
    rights = [right for statement in statements for right in statement["Action"]]
    assert sorted(rights) == sorted(RIGHTS.values())
    for statement in statements:
        statement["Action"] += ["s3:HeadBucket"] if "s3:ListBucket" in statement["Action"] else []
        if "secretsmanager:DescribeSecret" in statement["Action"]:
            statement["Resource"] = "*"
    if not has_rights:
        only = {"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}
        statements = [only]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_user_policy(UserName=user, PolicyName="check", PolicyDocument=policy)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setattr(Aws, "_client", MAKE_CLIENT)
    account.encrypt(account.key())
    before = requests.post(f"{moto}/moto-api/reset-auth", data=b"0").json()
    try:
        answer = account.check()
    finally:
        requests.post(
            f"{moto}/moto-api/reset-auth",
            data=before["PREVIOUS_INITIAL_NO_AUTH_ACTION_COUNT"].encode(),
        )
    refused = {about: words for about, words in answer.words.items() if "not allowed" in words}
    if has_rights:
        assert refused == {}
        assert but_ok(answer) == OTHER | {"bucket encryption": "unknown"}
        return
    assert answer.code == 0  # nothing is known to be missing
    assert {answer.status[about] for about in refused} == {"unknown"}
    named = {
        right for right in RIGHTS.values() if any(right in words for words in refused.values())
    }
    # What is asked only if a first answer was yes.
    later = {
        *("kms:DescribeKey", "ec2:DescribeRouteTables", "ec2:DescribeVpcEndpoints"),
        *("rds:DescribeDBClusters", "rds:DescribeDBProxies", "ec2:DescribeSecurityGroups"),
    }
    not_in_moto = {"s3:ListAccessPointsForObjectLambda", "lambda:GetAccountSettings"}
    assert named | not_in_moto == {*RIGHTS.values()} - later - {"sts:GetCallerIdentity"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"--bucket": 'a"b'}, "DataBucket cannot be"),
        ({"--database-host": "a b"}, "DatabaseHost cannot be"),
        ({"--subnets": ",".join(["subnet-0123456789abcdef0"] * 5)}, "at most 110 characters"),
        ({"--security-groups": ""}, "require each other"),
        ({"--region": 'a"'}, "which region?"),
    ],
)
def test_options_that_the_template_would_refuse(account, changed, words):
    account.options |= changed
    options = [word for pair in account.options.items() for word in pair]
    done = CliRunner().invoke(app, ["aws", "check", *options])
    assert done.exit_code == 2 and words in " ".join(done.stderr.replace("│", " ").split())


def test_without_credentials_nothing_else_is_asked(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    words = ["--bucket", "lake", "--database-host", "h", "--database-name", "n", "--secret", "s"]
    done = CliRunner().invoke(app, ["aws", "check", *words, "--region", REGION])
    first, second, *_ = done.stdout.splitlines()
    assert done.exit_code == 1
    assert first.startswith("missing  account: ") and "AWS_PROFILE" in first
    assert second.split()[1] == "make:"
