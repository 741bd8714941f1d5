"""The stand-ins give a function the packages of its layers and the S3 permissions of its role."""

import threading
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.aws.confinement import Confinement, Role, importable, loaded_with
from tests.aws.lambda_function import FunctionError, LambdaFunction
from tests.aws.template import Stack, as_deployed

DELIVERIES = ("object-lambda", "materialize")
RESOURCES = {
    "functions.rest_catalog.app": "RestCatalogFunction",
    "functions.object_lambda.app": "ObjectLambdaFunction",
    "functions.commits.app": "CommitsFunction",
}


def statement(effect: str, action: str, resource: str, **more) -> dict:
    return {"Effect": effect, "Action": action, "Resource": resource, **more}


def invoked(handler, confinement):
    function = LambdaFunction(
        "tried", handler, region="us-east-1", timeout_s=9, confinement=confinement
    )
    try:
        return function.invoke({})
    finally:
        function.stop()


def given(function: str, delivery: str = "object-lambda", **settings: str) -> Confinement:
    values = {"DELIVERY": delivery, "CACHE_BUCKET": "cache", "WRITES": "yes"} | settings
    values |= {"STAGING_LOCATION": "s3://staging"}
    return as_deployed(values, data_bucket="data", data_prefix="lake/")[function]


# Packages. The handlers act as one of our modules, because imports of tests are not restricted.


def imports(code: str):
    def handler(event, context):
        exec(code, {"__name__": "polynya.tried", "__package__": "polynya"})

    return handler


ABSENT = [
    "import duckdb",
    "import numpy",
    "from numpy import array",
    "import pyarrow",
    "import aws_xray_sdk",
    "import polynya.mapping.data_files",
    "from polynya.iceberg.avro import columnar",
    "from .mapping.data_files import anything",
    "from .iceberg.avro.columnar import anything",
]
PRESENT = [
    "import boto3",
    "import fastapi",
    "import json",
    "from .storage.file_cache import FileCache",
]


@pytest.mark.parametrize("code", ABSENT)
def test_a_package_of_no_layer_cannot_be_imported(code):
    """Also if another module of this process has imported it."""
    import polynya.mapping.data_files  # noqa: F401

    with pytest.raises(FunctionError, match="ModuleNotFoundError"):
        invoked(imports(code), given("rest-catalog"))


@pytest.mark.parametrize("code", PRESENT)
def test_a_package_of_a_layer_or_of_the_runtime_can_be_imported(code):
    assert invoked(imports(code), given("rest-catalog")) is None


def test_the_columnar_layer_adds_packages():
    code = "import duckdb, numpy; from .mapping import data_files"
    assert invoked(imports(code), given("rest-catalog", "materialize")) is None
    assert invoked(imports(code), given("object-lambda")) is None


def test_threads_of_a_function_are_confined_too():
    def handler(event, context):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(imports("import duckdb"), event, context).result()

    with pytest.raises(FunctionError, match="ModuleNotFoundError"):
        invoked(handler, given("rest-catalog"))
    thread = threading.Thread(target=imports("import duckdb"), args=(None, None))
    thread.start()
    thread.join()


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("app", RESOURCES)
def test_a_function_starts_with_only_its_layers(app, delivery):
    names = importable(Stack({"Delivery": delivery}).requirements(RESOURCES[app]))
    packages = {name.partition(".")[0] for name in loaded_with(app)}
    assert "polynya" in packages and "aws_lambda_powertools" in packages
    assert packages <= names
    assert not names & {"pytest", "moto", "pyarrow", "typer"}


# Permissions

ROLES = [  # statements, operation, parameters, whether it is allowed
    ([], "GetObject", {"Bucket": "b", "Key": "k"}, False),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b/*")], "GetObject", ("b", "k/l"), True),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b/*")], "HeadObject", ("b", "k/l"), True),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b/*")], "PutObject", ("b", "k"), False),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b/*")], "GetObject", ("bb", "k"), False),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b/l/*")], "GetObject", ("b", "l2/k"), False),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b/l?/*")], "GetObject", ("b", "l2/k"), True),
    ([("Allow", "s3:GetObject", "arn:aws:s3:::b.c/*")], "GetObject", ("bxc", "k"), False),
    (
        [
            ("Allow", "s3:PutObject", "arn:aws:s3:::b/*"),
            ("Deny", "s3:PutObject", "arn:aws:s3:::b/p"),
        ],
        "PutObject",
        ("b", "p"),
        False,
    ),
    ([("Allow", "s3:ListBucket", "arn:aws:s3:::b")], "ListObjectsV2", ("b", None), True),
    ([("Allow", "s3:ListBucket", "arn:aws:s3:::b/*")], "ListObjectsV2", ("b", None), False),
    ([("Allow", "s3:GetObject", "*")], "GetObjectAcl", ("b", "k"), False),
]


@pytest.mark.parametrize(("statements", "operation", "at", "may"), ROLES)
def test_a_role_allows_what_its_statements_allow(statements, operation, at, may):
    parameters = at if isinstance(at, dict) else {"Bucket": at[0], "Key": at[1]}
    parameters = {name: value for name, value in parameters.items() if value}
    role = Role([statement(*one) for one in statements])
    assert role.may(operation, parameters) is may


def test_a_condition_on_the_prefix_applies_to_lists_below_it():
    condition = {"StringLike": {"s3:prefix": "lake/*"}}
    role = Role([statement("Allow", "s3:ListBucket", "arn:aws:s3:::b", Condition=condition)])
    assert role.may("ListObjectsV2", {"Bucket": "b", "Prefix": "lake/x"})
    assert not role.may("ListObjectsV2", {"Bucket": "b", "Prefix": "other"})
    assert not role.may("ListObjectsV2", {"Bucket": "b"})
    assert not role.may_list("b")


def test_an_unknown_condition_is_an_error_of_the_stand_in():
    condition = {"Bool": {"aws:SecureTransport": "true"}}
    role = Role([statement("Allow", "s3:GetObject", "*", Condition=condition)])
    with pytest.raises(ValueError, match="does not know"):
        role.may("GetObject", {"Bucket": "b", "Key": "k"})


CALLS = [  # function, delivery, operation, bucket, key, S3's error, or None if it succeeds
    ("rest-catalog", "object-lambda", "get_object", "data", "lake/a", None),
    ("rest-catalog", "object-lambda", "get_object", "data", "lake/missing", 403),
    ("rest-catalog", "object-lambda", "get_object", "data", "other/a", 403),
    ("rest-catalog", "object-lambda", "put_object", "data", "lake/b", 403),
    ("rest-catalog", "object-lambda", "put_object", "cache", "b", 403),
    ("rest-catalog", "materialize", "put_object", "data", "polynya/b", None),
    ("rest-catalog", "materialize", "put_object", "data", "lake/b", 403),
    ("object-lambda", "object-lambda", "put_object", "cache", "b", None),
    ("object-lambda", "object-lambda", "get_object", "cache", "missing", 404),
    ("object-lambda", "object-lambda", "delete_object", "cache", "b", 403),
    ("object-lambda", "object-lambda", "put_object", "data", "lake/b", 403),
    ("commits", "object-lambda", "get_object", "data", "lake/a", None),
    ("commits", "object-lambda", "get_object", "staging", "commits/a", None),
    ("commits", "object-lambda", "put_object", "staging", "commits/b", 403),
    ("commits", "object-lambda", "put_object", "data", "lake/b", 403),
    ("commits", "object-lambda", "put_object", "data", "polynya/b", 403),
    ("commits", "object-lambda", "delete_object", "data", "lake/a", 403),
    ("commits", "materialize", "put_object", "data", "polynya/b", None),
    ("commits", "materialize", "put_object", "data", "lake/b", 403),
    ("commits", "materialize", "delete_object", "data", "polynya/b", 403),
    ("rest-catalog", "materialize", "get_object", "staging", "commits/a", 403),
]


@pytest.fixture(scope="module")
def s3(moto):
    client = boto3.client("s3", endpoint_url=moto)
    for bucket in ("data", "cache", "staging"):
        client.create_bucket(Bucket=bucket)
    for bucket, key in (("data", "lake/a"), ("data", "other/a"), ("staging", "commits/a")):
        client.put_object(Bucket=bucket, Key=key, Body=b"a")
    return client


@pytest.mark.parametrize(("function", "delivery", "operation", "bucket", "key", "status"), CALLS)
def test_a_function_has_the_s3_permissions_of_its_role(
    s3, function, delivery, operation, bucket, key, status
):
    def handler(event, context):
        try:
            getattr(s3, operation)(Bucket=bucket, Key=key)
        except ClientError as error:
            return error.response["ResponseMetadata"]["HTTPStatusCode"]
        return None

    assert invoked(handler, given(function, delivery)) == status
    s3.put_object(Bucket=bucket, Key="by whoever is no function", Body=b"")


COPY = "polynya/00000000-0000-0000-0000-000000000000/g3/data-file-9-1-2-f.parquet"
ENDED = [  # function, delivery, COPY_DATA_FILES, key, whether the function may end an upload to it
    ("rest-catalog", "materialize", "yes", COPY, True),
    ("rest-catalog", "materialize", "yes", COPY.replace("data-file", "rows"), False),
    ("rest-catalog", "materialize", "yes", "lake/a", False),
    ("rest-catalog", "materialize", "no", COPY, False),
    ("rest-catalog", "object-lambda", "yes", COPY, False),
    ("commits", "materialize", "yes", COPY, True),
    ("commits", "materialize", "no", COPY, False),
    ("object-lambda", "object-lambda", "yes", COPY, False),
]


@pytest.mark.parametrize(("function", "delivery", "copies", "key", "may"), ENDED)
def test_what_copies_data_files_may_end_its_uploads(function, delivery, copies, key, may):
    role = given(function, delivery, COPY_DATA_FILES=copies).role
    place = {"Bucket": "data", "Key": key}
    assert role.may("AbortMultipartUpload", place) is may
    puts = delivery == "materialize" and key.startswith("polynya/")
    assert role.may("UploadPartCopy", place) is puts
    assert not role.may("DeleteObject", place)
