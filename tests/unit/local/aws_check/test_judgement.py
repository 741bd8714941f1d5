"""Lines for answers that moto does not give, or that no test can provoke."""

from dataclasses import replace
from ipaddress import ip_address

import pytest
from polynya_local.aws_check import judgement
from polynya_local.aws_check.answers import Database, Unknown
from polynya_local.aws_check.judgement import BURST, Deployment, Status
from polynya_local.aws_check.survey import RUNTIME
from polynya_pipeline.common.options import Delivery

from tests.aws.template import template

NO_RIGHT = Unknown("not allowed to look: these credentials need a:Right")
# The example of AWS's documentation of ListAccessPointsForObjectLambda.
LISTED = {
    "ObjectLambdaAccessPointList": [
        {
            "Name": "my-object-lambda",
            "ObjectLambdaAccessPointArn": "arn:aws:s3-object-lambda:us-east-1:111122223333:"
            "accesspoint/my-object-lambda",
        }
    ]
}


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (LISTED, Status.OK, "my-object-lambda"),
        ({"ObjectLambdaAccessPointList": []}, Status.UNKNOWN, "before 2025-11-07"),
        ({}, Status.UNKNOWN, "before 2025-11-07"),
        (NO_RIGHT, Status.UNKNOWN, "a:Right"),
        (None, Status.UNKNOWN, "does not know it"),
    ],
)
def test_object_lambda_is_never_promised(answer, status, words, delivery):
    line = judgement.object_lambda(answer, delivery)
    assert line.status is status and words in line.words
    assert (status is Status.OK) or "Delivery=materialize works" in line.words


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"AccountLimit": {"ConcurrentExecutions": 1000}}, Status.OK),
        ({"AccountLimit": {"ConcurrentExecutions": 10}}, Status.NOTE),
        (
            {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 20}},
            Status.NOTE,
        ),
        ({}, Status.UNKNOWN),
        (NO_RIGHT, Status.UNKNOWN),
    ],
)
def test_quotas(answer, status):
    assert judgement.quotas(answer).status is status


def test_the_defaults_are_those_of_the_template():
    parameters = template()["Parameters"]
    assert parameters["RequestBurst"]["Default"] == BURST
    assert parameters["PythonRuntime"]["Default"] == f"python{RUNTIME}"


def key(**changed):
    return {"KeyMetadata": {"KeyId": "k", "Arn": "arn:k", "KeyManager": "CUSTOMER"} | changed}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (key(), Status.UNKNOWN),
        (key(KeyManager="AWS"), Status.OK),
        (key(KeyState="PendingDeletion"), Status.MISSING),
        (NO_RIGHT, Status.UNKNOWN),
        (None, Status.MISSING),
    ],
)
def test_keys(answer, status):
    assert judgement.secret_key({"KmsKeyId": "k"}, answer).status is status
    rule = {
        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "k"}
    }
    encryption = {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}
    assert judgement.encryption(encryption, answer).status is status
    assert judgement.key_of(encryption) == "k"


def test_a_bucket_elsewhere_is_missing_here():
    line = judgement.bucket({"BucketRegion": "eu-west-1"}, "b", "us-east-1")
    assert line.status is Status.MISSING and "--region eu-west-1" in line.words
    assert judgement.bucket({"BucketRegion": "us-east-1"}, "b", "us-east-1").status is Status.OK
    assert judgement.bucket(NO_RIGHT, "b", "us-east-1").status is Status.UNKNOWN


def test_a_secret_of_rds_has_the_keys_that_it_needs():
    arn = "arn:aws:secretsmanager:us-east-1:111122223333:secret:rds!db-1-AbCdEf"
    line = judgement.secret({"ARN": arn, "OwningService": "rds"}, "x", "us-east-1")
    assert line.status is Status.OK and "made by RDS" in line.words


def test_a_policy_of_another_form_is_unknown():
    origin = judgement.Origin("111122223333", None, frozenset())
    [line] = judgement.bucket_policy({"Policy": "nonsense"}, origin)
    assert line.status is Status.UNKNOWN


def test_a_subnet_without_a_free_address():
    def subnet(name, free):
        return {
            "SubnetId": name,
            "VpcId": "vpc-1",
            "AvailabilityZone": f"us-east-1{name}",
            "AvailableIpAddressCount": free,
        }

    lines = list(judgement.subnets({"Subnets": [subnet("a", 0), subnet("b", 3)]}))
    assert [line.status for line in lines] == [Status.MISSING, Status.NOTE]
    assert "in a:" in lines[0].words and "b has 3" in lines[1].words


RDS = Database("instance", "postgres", 5432, frozenset({"sg-1"}), False, True, "db-1")
GROUPS = {
    "SecurityGroups": [
        {
            "GroupId": "sg-1",
            "IpPermissions": [
                {
                    "IpProtocol": "tcp",
                    "FromPort": 5432,
                    "ToPort": 5432,
                    "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
                }
            ],
        }
    ]
}
PRIVATE, PUBLIC = [ip_address("10.0.0.5")], [ip_address("8.8.8.8")]


@pytest.mark.parametrize(
    ("database", "groups", "addresses", "status"),
    [
        (RDS, GROUPS, PRIVATE, Status.MISSING),
        (RDS, GROUPS, PUBLIC, Status.OK),
        (RDS, GROUPS, [], Status.UNKNOWN),
        (replace(RDS, is_public=True), GROUPS, [], Status.OK),
        (replace(RDS, is_public=True), NO_RIGHT, PUBLIC, Status.UNKNOWN),
        (None, None, PUBLIC, Status.UNKNOWN),
        (NO_RIGHT, None, PRIVATE, Status.MISSING),
    ],
)
def test_outside_a_vpc(database, groups, addresses, status):
    assert judgement.way_from_outside(database, groups, addresses, 5432).status is status


def test_iam_needs_the_id_of_the_cluster():
    line = judgement.iam_authentication(replace(RDS, resource_id=None))
    assert line.status is Status.MISSING and "the cluster's address" in line.words
    assert judgement.iam_authentication(RDS).status is Status.OK
    assert judgement.iam_authentication(NO_RIGHT).status is Status.UNKNOWN


def test_a_checkout_needs_make_and_python():
    lines = list(judgement.build(True, False, "", RUNTIME, False))
    assert [line.status for line in lines] == [Status.MISSING, Status.MISSING, Status.NOTE]
    lines = list(judgement.build(True, True, "Python 3.13.0", RUNTIME, True))
    assert {line.status for line in lines} == {Status.OK}


def test_a_wheel_is_no_checkout():
    [line] = judgement.build(False, False, "", RUNTIME, False)
    assert line.status is Status.NOTE and "not a checkout" in line.words


def test_what_this_machine_reaches():
    deployment = Deployment("r", Delivery.MATERIALIZE, "b", "h", 5432, "n", None, "u")
    assert judgement.way_from_here(PUBLIC, True, deployment).status is Status.OK
    assert judgement.way_from_here(PRIVATE, False, deployment).status is Status.UNKNOWN
    assert "does not resolve h" in judgement.way_from_here([], False, deployment).words
