"""The part of template.yaml that writes: deployed only with Writes=yes, with rights of its own."""

from typing import Any

import pytest
from polynya.mapping.manifests import LENGTH
from polynya.mapping.tables import SHOWN_MS
from polynya.virtual_files.names import KINDS, Name, parse

from local.build.package import ARCHIVE, JOB_FILE
from tests.aws.confinement import Role
from tests.aws.template import Stack
from tests.contract.template import test_template as template
from tests.contract.template.test_template import DELIVERIES, RESOURCES, TEMPLATE, actions, deployed

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:"
GIVEN = {
    "Writes": "yes",
    "Vending": "yes",
    "DatabaseSecretArn": SECRET + "reader",
    "CommitsSecretArn": SECRET + "writer",
    "PolicyObject": "data/lake/policy.json",
    "DataPrefix": "lake/",
    "PipelineCode": "data/lake/",
}
VALUES = GIVEN | {
    "AWS::Partition": "aws",
    "DataBucket": "data",
    "StagingBucket": "staging",
    "StagingBucket.Arn": "arn:aws:s3:::staging",
}
OF_WRITES = [name for name, one in RESOURCES.items() if one.get("Condition") == "AcceptsWrites"]
UUID = "01a1fb09-8760-7336-b677-0e4f6c1fb6b5"


@pytest.fixture
def writing(monkeypatch):
    """The template with these parameters."""
    for name, value in GIVEN.items():
        monkeypatch.setitem(TEMPLATE["Parameters"][name], "Default", value)


def stack(**values: str) -> Stack:
    return Stack(VALUES | values)


def present(delivery: str) -> set[str]:
    return {
        name
        for name, one in RESOURCES.items()
        if "Condition" not in one or template.holds(one["Condition"], delivery)
    }


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_by_default_nothing_that_writes_is_deployed(delivery):
    assert {"CommitsFunction", "CommitsPermission", "StagingBucket", "PostRoute"} <= {*OF_WRITES}
    assert not present(delivery) & {*OF_WRITES, "WriterRole", "VendToWritersPolicy"}


@pytest.mark.parametrize("vending", ["yes", "no"])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_deployed_resources_refer_only_to_deployed_ones(delivery, vending, writing, monkeypatch):
    monkeypatch.setitem(TEMPLATE["Parameters"]["Vending"], "Default", vending)
    assert {*OF_WRITES} <= present(delivery)
    assert ("WriterRole" in present(delivery)) == (vending == "yes")
    template.test_deployed_resources_refer_only_to_deployed_ones(delivery)


def test_the_functions_that_read_gain_only_the_right_to_vend(writing):
    """They get it by a policy beside their roles, which has no other right."""
    for function in ("RestCatalogFunction", "ObjectLambdaFunction"):
        for delivery in DELIVERIES:
            given = stack(Delivery=delivery).statements(function)
            assert given == stack(Delivery=delivery, Writes="no").statements(function)
    policy = stack().properties("VendToWritersPolicy")
    assert policy["Roles"] == ["${RestCatalogFunctionRole}", "${CommitsFunctionRole}"]
    [statement] = policy["PolicyDocument"]["Statement"]
    assert actions(statement) == ["sts:AssumeRole"]
    assert statement["Resource"] == "${WriterRole.Arn}"


def test_only_the_functions_that_answer_clients_can_assume_the_role_of_writers():
    role = stack().properties("WriterRole")
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    functions = ["${RestCatalogFunctionRole.Arn}", "${CommitsFunctionRole.Arn}"]
    assert statement["Principal"] == {"AWS": functions}
    assert not {"Policies", "ManagedPolicyArns"} & role.keys()


# The database


@pytest.mark.parametrize(
    ("values", "credentials", "role"),
    [
        ({}, f"secret:{SECRET}writer", ""),
        ({"CommitsSecretArn": "", "CommitsDatabaseUser": "writer"}, "iam", "writer"),
    ],
)
def test_the_function_that_writes_has_a_database_role_of_its_own(values, credentials, role):
    given = stack(DatabaseResourceId="db-A", DatabaseHost="h", DatabaseName="d", **values)
    variables = given.properties("CommitsFunction")["Environment"]["Variables"]
    assert variables["DATABASE_CREDENTIALS"] == credentials
    assert variables["DATABASE_URL"].startswith(f"postgresql://{role}@h:5432/d?")
    [sign_in] = [one for one in given.statements("CommitsFunction") if "SignIn" in one["Sid"]]
    assert sign_in["Resource"].endswith(f":dbuser:db-A/{role}" if role else "secret:writer")


# S3


def rights(resource: str, delivery: str) -> Role:
    return Role(stack(Delivery=delivery, VirtualPrefix="lake/polynya").statements(resource))


def vended(delivery: str, **values: str) -> Role:
    """The role that is vended to writers; a session has a part of these rights."""
    given = stack(**({"Delivery": delivery, "VirtualPrefix": "lake/polynya"} | values))
    policies = [given.properties(name) for name in ("FilesPolicy", "WriteFilesPolicy")]
    assert all("${WriterRole}" in policy["Roles"] for policy in policies)
    return Role([one for policy in policies for one in policy["PolicyDocument"]["Statement"]])


# Operation, bucket, key; whether the function that writes may do it under each delivery, and
# whether a session of the role that is vended to writers may.
S3_RIGHTS = [
    ("GetObject", "data", f"lake/main/orders/{UUID}/a.parquet", (True, True), True),
    ("GetObject", "staging", f"commits/{UUID}/m0.avro", (True, True), True),
    ("GetObject", "data", "lake/polynya/list.avro", (True, True), True),
    ("GetObject", "data", "other/a.parquet", (False, False), False),
    ("PutObject", "data", f"lake/main/orders/{UUID}/a.parquet", (False, False), True),
    ("PutObject", "data", f"lake/main/orders/{UUID}/p=1/polynya-7-a.parquet", (True, True), True),
    ("PutObject", "data", f"lake/main/orders/ducklake-{UUID}.parquet", (False, False), True),
    ("PutObject", "staging", f"commits/{UUID}/m0.avro", (False, False), True),
    ("PutObject", "data", "lake/polynya/list.avro", (False, True), False),
    ("PutObject", "data", "lake/policy.json", (False, False), False),
    ("PutObject", "data", f"lake/{ARCHIVE}", (False, False), False),
    ("PutObject", "data", f"lake/{JOB_FILE}", (False, False), False),
    ("PutObject", "data", f"lake/polynya/{UUID}/g3/{UUID}-deletes.parquet", (False, True), True),
    ("PutObject", "data", f"lake/polynya/{UUID}/g3/{UUID}-deletes.puffin", (False, True), True),
    ("PutObject", "data", "lake/main/orders/ducklake-1-delete.parquet", (True, True), True),
    ("PutObject", "data", "other/ducklake-1-delete.parquet", (False, False), False),
    ("PutObject", "staging", "commits/ducklake-1-delete.parquet", (False, False), True),
    ("PutObject", "data", "other/a.parquet", (False, False), False),
    ("DeleteObject", "data", f"lake/main/orders/{UUID}/a.parquet", (False, False), False),
    ("DeleteObject", "data", "lake/main/orders/ducklake-1-delete.parquet", (False, False), False),
    ("DeleteObject", "staging", f"commits/{UUID}/m0.avro", (False, False), False),
    ("DeleteObject", "data", "lake/polynya/list.avro", (False, False), False),
]


@pytest.mark.parametrize(("operation", "bucket", "key", "function", "writer"), S3_RIGHTS)
def test_rights_in_s3(operation, bucket, key, function, writer):
    parameters = {"Bucket": bucket, "Key": key}
    for delivery, expected in zip(DELIVERIES, function, strict=True):
        assert rights("CommitsFunction", delivery).may(operation, parameters) is expected
        if operation != "GetObject" or "polynya" not in key:  # these are in the access point
            assert vended(delivery).may(operation, parameters) is writer
    assert vended("materialize").may(operation, parameters) is writer


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_writer_can_put_a_virtual_file(kind, delivery):
    """Whether the virtual files are below the lake's prefix or not."""
    numbers = tuple(range(len(KINDS[kind].numbers)))
    for prefix in ("lake/polynya", "polynya"):
        key = Name(UUID, kind, numbers, "0" * LENGTH).key(prefix)
        assert parse(key, prefix).kind == kind
        role = vended(delivery, VirtualPrefix=prefix)
        assert not role.may("PutObject", {"Bucket": "data", "Key": key})
        given = stack(Delivery=delivery, VirtualPrefix=prefix)
        commits = Role(given.statements("CommitsFunction"))
        if delivery == "object-lambda":  # else the function that writes puts virtual files
            assert not commits.may("PutObject", {"Bucket": "data", "Key": key})
        for end in ("parquet", "puffin"):
            of_duckdb = f"{key.rpartition('/')[0]}/{UUID}-deletes.{end}"
            assert role.may("PutObject", {"Bucket": "data", "Key": of_duckdb})
            assert commits.may("GetObject", {"Bucket": "data", "Key": of_duckdb})


def test_an_upload_through_object_lambda_is_a_delete_file_of_duckdb():
    """The access point has no permission for single keys; the one behind it has."""
    given = stack(VirtualPrefix="lake/polynya", **{"SupportingAccessPoint.Arn": "arn:sap"})
    statements = given.properties("WriteFilesPolicy")["PolicyDocument"]["Statement"]
    by_sid = {statement["Sid"]: statement for statement in statements}
    lambda_ = by_sid["UploadThroughObjectLambda"]
    assert lambda_["Resource"] == "${ObjectLambdaAccessPoint.Arn}"
    assert {*lambda_["Action"]} == {
        "s3-object-lambda:PutObject",
        "s3-object-lambda:AbortMultipartUpload",
    }
    behind = by_sid["PassDeleteFilesThrough"]
    assert {*behind["Action"]} == {"s3:PutObject", "s3:AbortMultipartUpload"}
    ends = ("parquet", "puffin")
    assert behind["Resource"] == [f"arn:sap/object/lake/polynya/*-deletes.{end}" for end in ends]
    assert "s3-object-lambda.amazonaws.com" in str(behind["Condition"])
    materialized = stack(Delivery="materialize").properties("WriteFilesPolicy")
    sids = {one["Sid"] for one in materialized["PolicyDocument"]["Statement"]}
    assert not sids & {"UploadThroughObjectLambda", "PassDeleteFilesThrough"}


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_nothing_of_the_stack_but_ingest_may_delete_an_object(delivery, writing):
    found = {
        name
        for name in present(delivery)
        for statement in allowing(RESOURCES[name], delivery)
        if {"s3:DeleteObject", "s3:*"} & {*actions(statement)}
    }
    assert found <= {"IngestRole"}


def allowing(resource: dict[str, Any], delivery: str) -> list[dict[str, Any]]:
    """The statements of policies in a resource that allow something."""
    properties = deployed(resource.get("Properties", {}), delivery)
    documents = [properties.get("PolicyDocument", {"Statement": []})]
    documents += [one.get("PolicyDocument", one) for one in properties.get("Policies", [])]
    statements = [one for document in documents for one in document.get("Statement", [])]
    return [one for one in statements if one["Effect"] == "Allow"]


def test_clients_put_their_metadata_into_a_bucket_that_empties_itself(writing):
    staging = stack().resolved(template.environment("CommitsFunction")["STAGING_LOCATION"])
    assert staging == "s3://staging/commits"
    [rule] = stack().properties("StagingBucket")["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 30)
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    # No table names a statistics file that is gone.
    assert SHOWN_MS < (30 - 1) * 24 * 3600 * 1000


# Rules

RULES = [
    ({}, []),
    ({"CommitsSecretArn": ""}, ["CommitsSecretArn"]),
    ({"CommitsSecretArn": "", "CommitsDatabaseUser": "w"}, ["CommitsSecretArn"]),
    ({"CommitsSecretArn": "", "CommitsDatabaseUser": "w", "DatabaseResourceId": "db-A"}, []),
    ({"PolicyObject": ""}, ["PolicyParameter"]),
    ({"PolicyObject": "", "PolicyParameter": "/lake/policy"}, []),
    ({"Writes": "no", "CommitsSecretArn": "", "PolicyObject": ""}, []),
    ({"JwtScopes": "ice/read"}, ["JwtScopes"]),
    ({"JwtScopes": "ice/read", "JwtIssuer": "https://i", "JwtAudience": "a"}, []),
    ({"LakesObject": "b/k"}, ["LakesObject"]),
    ({"LakeFiles": "arn:aws:s3:::b/*", "LakeSecretArns": "s"}, ["LakeFiles"]),
    ({"LakeCommitsSecretArns": "s"}, ["LakeCommitsSecretArns"]),
    ({"LakesObject": "b/k", "LakeFiles": "arn:aws:s3:::b/*", "Lakes": "yes"}, []),
]


@pytest.mark.parametrize(("values", "named"), RULES)
def test_values_that_do_not_fit_together_are_refused(values, named):
    broken = stack(**values).broken_rules()
    assert len(broken) == len(named)
    assert all(name in sentence for name, sentence in zip(named, broken, strict=True))


ADDED = {"Bucket": "exports", "Key": "sales/2026.parquet"}


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_added_files_may_be_read_where_the_parameter_says_and_written_nowhere(delivery):
    places = "arn:aws:s3:::exports/sales/*,arn:aws:s3:::exports/more/*"
    readers = ["RestCatalogFunction", "CommitsFunction", "FilesPolicy", "PipelineRole"]
    readers += ["ObjectLambdaFunction"] if delivery == "object-lambda" else []

    def role(name: str, value: str) -> Role:
        deployment = stack(Delivery=delivery, AddedFiles=value)
        if name == "FilesPolicy":
            return Role(deployment.properties(name)["PolicyDocument"]["Statement"])
        return Role(deployment.statements(name))

    for name in readers:
        assert role(name, places).may("GetObject", ADDED), name
        assert not role(name, "").may("GetObject", ADDED), name
        assert not role(name, places).may("GetObject", ADDED | {"Key": "wages/1.parquet"}), name
        for operation in ("PutObject", "DeleteObject"):
            assert not role(name, places).may(operation, ADDED), name
    others = {"IngestRole", "CommitsFunction", "WriteFilesPolicy"} - {*readers}
    text = "exports/sales"
    assert all(text not in str(stack(AddedFiles=places).properties(name)) for name in others)
