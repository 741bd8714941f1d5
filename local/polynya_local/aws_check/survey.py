"""Asks AWS and this machine what a deployment needs, one line after the other."""

import shutil
import subprocess
from collections.abc import Iterator

from .. import IS_CHECKOUT, ROOT
from . import judgement
from .answers import Answer, Aws, Database, Unknown, addresses, connects, rds_database
from .bucket_policy import Origin
from .judgement import Deployment, Line
from .network import Network

RUNTIME = "3.13"
"""The default of the parameter PythonRuntime."""
PYTHON = (
    f"PYENV_VERSION=$(pyenv versions --bare 2>/dev/null | grep '^{RUNTIME}\\.' | tail -1) "
    f"python{RUNTIME} --version"
)
"""The Python that `make build` runs."""
OF_VPC = {
    "describe_route_tables": "RouteTables",
    "describe_vpc_endpoints": "VpcEndpoints",
    "describe_security_groups": "SecurityGroups",
}
"""The calls about a VPC, and the key of what each answers."""


class Survey:
    """The questions about one deployment."""

    def __init__(self, aws: Aws, deployment: Deployment) -> None:
        self._aws, self._deployment = aws, deployment
        self._network: Network | None = None
        self.sign_in: dict[str, str] = {}
        """The parameters by which the functions sign in to the database, as far as `lines` saw."""

    def lines(self) -> Iterator[Line]:
        """A line for each thing that a deployment needs; without credentials one line about AWS."""
        caller = self._aws.ask("sts", "get_caller_identity")
        yield judgement.account(caller, self._deployment.region)
        if isinstance(caller, dict):
            account = str(caller["Account"])
            answer = self._aws.ask(
                "s3control", "list_access_points_for_object_lambda", AccountId=account
            )
            yield judgement.object_lambda(answer, self._deployment.delivery)
            vpc = list(self._vpc())
            yield from self._bucket(account)
            yield from self._secret()
            yield from vpc
            yield from self._database()
            yield judgement.quotas(self._aws.ask("lambda", "get_account_settings"))
        yield from self._build()

    def _vpc(self) -> Iterator[Line]:
        if not self._deployment.subnets:
            return
        ids = [*self._deployment.subnets]
        answer = self._aws.ask("ec2", "describe_subnets", SubnetIds=ids)
        yield from judgement.subnets(answer)
        subnets = answer["Subnets"] if isinstance(answer, dict) else []
        vpcs = {subnet["VpcId"] for subnet in subnets}
        if len(vpcs) != 1:
            return
        [vpc] = vpcs
        answers = [
            self._aws.ask("ec2", call, Filters=[{"Name": "vpc-id", "Values": [vpc]}])
            for call in OF_VPC
        ]
        yield from judgement.refused("network", *answers)
        tables, endpoints, groups = (
            answer[key] if isinstance(answer, dict) else None
            for answer, key in zip(answers, OF_VPC.values(), strict=True)
        )
        self._network = Network(
            self._deployment.region,
            vpc,
            subnets,
            frozenset(self._deployment.groups),
            tables,
            endpoints,
            groups,
        )
        yield from judgement.ways(self._network, self._deployment)
        yield judgement.security_groups(self._network)

    def _bucket(self, account: str) -> Iterator[Line]:
        name, ask = self._deployment.bucket, self._aws.ask
        answer = ask("s3", "head_bucket", Bucket=name)
        yield judgement.bucket(answer, name, self._deployment.region)
        if answer is None:
            return
        encryption = ask("s3", "get_bucket_encryption", Bucket=name)
        yield judgement.encryption(encryption, self._key(judgement.key_of(encryption)))
        yield judgement.public_access(ask("s3", "get_public_access_block", Bucket=name))
        policy = ask("s3", "get_bucket_policy", Bucket=name)
        yield from judgement.bucket_policy(policy, self._origin(account))

    def _origin(self, account: str) -> Origin:
        if not self._deployment.subnets:
            return Origin(account, None, frozenset())
        network = self._network
        if network is None or network.tables is None or network.endpoints is None:
            return Origin(account, None, None)
        endpoints = network.endpoint_ids("s3")
        return Origin(account, network.vpc if endpoints else None, endpoints)

    def _secret(self) -> Iterator[Line]:
        name = self._deployment.secret_id
        if name is None:
            return
        answer = self._aws.ask("secretsmanager", "describe_secret", SecretId=name)
        yield judgement.secret(answer, name, self._deployment.region)
        if isinstance(answer, dict):
            self.sign_in = {"DatabaseSecretArn": answer["ARN"]}
            yield judgement.secret_key(answer, self._key(answer.get("KmsKeyId")))
        elif isinstance(answer, Unknown) and name.startswith("arn:"):
            self.sign_in = {"DatabaseSecretArn": name}

    def _database(self) -> Iterator[Line]:
        deployment, network = self._deployment, self._network
        database = rds_database(self._aws, deployment.host)
        yield judgement.database_state(database, deployment)
        if deployment.secret_id is None:
            yield judgement.iam_authentication(database)
            if isinstance(database, Database) and database.resource_id:
                self.sign_in = {
                    "DatabaseUser": deployment.user,
                    "DatabaseResourceId": database.resource_id,
                }
        resolved, port = addresses(deployment.host), deployment.port
        if network is not None:
            yield judgement.way_inside(database, resolved, port, network)
        elif not deployment.subnets:
            groups: Answer = None
            if isinstance(database, Database) and database.groups:
                ids = sorted(database.groups)
                groups = self._aws.ask("ec2", "describe_security_groups", GroupIds=ids)
            yield judgement.way_from_outside(database, groups, resolved, port)
        answers = bool(resolved) and connects(deployment.host, port)
        yield judgement.way_from_here(resolved, answers, deployment)

    def _key(self, key: str | None) -> Answer:
        return self._aws.ask("kms", "describe_key", KeyId=key) if key else None

    def _build(self) -> Iterator[Line]:
        python = ""
        if IS_CHECKOUT and shutil.which("bash"):
            run = subprocess.run(["bash", "-c", PYTHON], capture_output=True, text=True)
            python = run.stdout.strip() if run.returncode == 0 else ""
        sam = (ROOT / ".venv-sam/bin/sam").exists()
        yield from judgement.build(IS_CHECKOUT, bool(shutil.which("make")), python, RUNTIME, sam)
