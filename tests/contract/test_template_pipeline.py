"""The part of template.yaml that runs the jobs: EMR Serverless, its roles and schedules."""

import json
import re
from typing import Any

import boto3
import pytest
import typer
from botocore.validate import ParamValidator
from polynya.settings import SETTINGS
from polynya_local.build.package import ARCHIVE, JOB_FILE
from polynya_local.build.template import Stack
from polynya_local.stand_in.limits.role import Role
from polynya_pipeline.commands import app

from tests.contract import test_template as template
from tests.contract.test_template import DELIVERIES, RESOURCES, TEMPLATE, actions, deployed

GIVEN = {
    "PipelineCode": "packages/pipeline/",
    "VerifySchedule": "rate(1 day)",
    "PublishSchedule": "rate(1 hour)",
    "WriterSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:writer",
    "DatabaseSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:reader",
}
TYPES = ("AWS::EMRServerless::", "AWS::Scheduler::")
NAMES = [n for n, one in RESOURCES.items() if one["Type"].startswith(TYPES)]
ROLES = ("PipelineRole", "IngestRole", "SchedulerRole")
RUNS = ("VerifyRun", "PublishRun")
# Who may read, and what is vended to them, is no matter of a job.
OF_READERS = {"AUTHORIZATION", "VENDING_ROLE", "VENDING_SECONDS"}
EMR = boto3.client("emr-serverless", region_name="us-east-1").meta.service_model


@pytest.fixture
def pipeline(monkeypatch):
    """The template as if these parameters were given."""
    for name, value in GIVEN.items():
        monkeypatch.setitem(TEMPLATE["Parameters"][name], "Default", value)


def present(delivery: str) -> set[str]:
    return {
        name
        for name, one in RESOURCES.items()
        if "Condition" not in one or template.holds(one["Condition"], delivery)
    }


def statements(role: str, delivery: str) -> list[dict[str, Any]]:
    [policy] = deployed(RESOURCES[role]["Properties"]["Policies"], delivery)
    return policy["PolicyDocument"]["Statement"]


def defaults() -> dict[str, Any]:
    configuration = RESOURCES["PipelineApplication"]["Properties"]["RuntimeConfiguration"]
    [one] = configuration
    assert one["Classification"] == "spark-defaults"
    return one["Properties"]


def filled(text: str) -> str:
    """`Fn::Sub` with a value for each name that has a role's ARN or an id for it."""
    values = {"PipelineRole.Arn": "arn:aws:iam::111122223333:role/pipeline"} | GIVEN
    return re.sub(r"\$\{([\w.:]+)\}", lambda m: values.get(m[1], "abc"), text)


def lower(node: Any) -> Any:
    """A universal target names the members of a request with a capital letter first."""
    if isinstance(node, dict):
        return {key[0].lower() + key[1:]: lower(value) for key, value in node.items()}
    return [lower(one) for one in node] if isinstance(node, list) else node


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_without_its_parameter_nothing_of_it_is_there(delivery):
    assert len(NAMES) == 3
    assert not present(delivery) & {*NAMES, *ROLES, "PipelineLogs", "PipelineFails"}


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_is_deployed_refers_only_to_what_is_deployed(delivery, pipeline):
    assert {*NAMES, *ROLES} <= present(delivery)
    template.test_what_is_deployed_refers_only_to_what_is_deployed(delivery)


@pytest.mark.parametrize("run", RUNS)
def test_a_scheduled_run_is_one_that_emr_serverless_and_the_job_take(run, monkeypatch):
    """The request by botocore's model of StartJobRun, the arguments by the job's own parser."""
    target = RESOURCES[run]["Properties"]["Target"]
    request = lower(json.loads(filled(target["Input"]["Fn::Sub"])))
    assert request["clientToken"] == "<aws.scheduler.execution-id>"
    shape = EMR.operation_model("StartJobRun").input_shape
    problems = ParamValidator().validate(request, shape)
    assert not problems.has_errors(), problems.generate_report()
    submit = request["jobDriver"]["sparkSubmit"]
    assert submit["entryPoint"] == f"s3://{GIVEN['PipelineCode']}{JOB_FILE}"
    job, *words = submit["entryPointArguments"]
    jobs = typer.main.get_command(app).commands
    assert job == request["name"]
    if job not in jobs:
        pytest.skip(f"there is no job {job} yet")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u@h/d")
    with jobs[job].make_context(job, words) as context:
        assert context.params["master"] != "none"  # on Spark, then, whose own master counts


def test_a_run_has_the_settings_of_the_functions(pipeline):
    prefix = "spark.emr-serverless.driverEnv."
    told = {name.removeprefix(prefix) for name in defaults() if name.startswith(prefix)}
    of_spark = {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "AWS_DEFAULT_REGION"}
    settings = {one.name for one in SETTINGS} - template.LOCAL_ONLY - OF_READERS
    assert told == settings | of_spark
    variables = template.environment("RestCatalogFunction")
    # Two may be empty, and for a job nobody waits.
    for name in settings - {"CACHE_BUCKET", "HIDDEN_TYPES", "BUILD_SECONDS"}:
        assert defaults()[prefix + name] == variables[name], name
    assert not [name for name in defaults() if "SECRET" in name.upper()]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("given", [GIVEN, {"PipelineCode": "packages/"}], ids=["all", "least"])
def test_emr_serverless_takes_no_empty_value(delivery, given, monkeypatch):
    for name, value in given.items():
        monkeypatch.setitem(TEMPLATE["Parameters"][name], "Default", value)
    for name, value in deployed(defaults(), delivery).items():
        if isinstance(value, dict) and value.get("Ref") in TEMPLATE["Parameters"]:
            value = TEMPLATE["Parameters"][value["Ref"]].get("Default", "given")
        assert value != "", name


def test_the_package_is_what_make_package_makes():
    archive = filled(defaults()["spark.archives"]["Fn::Sub"])
    assert archive == f"s3://{GIVEN['PipelineCode']}{ARCHIVE}#environment"
    pythons = {value for name, value in defaults().items() if "PYSPARK" in name}
    assert pythons == {"./environment/bin/python"}


def test_connections_are_bounded():
    """Two cores to an executor, each with a connection at most; and all runs share the capacity."""
    properties = defaults()
    assert properties["spark.dynamicAllocation.maxExecutors"] == {"Ref": "PipelineExecutors"}
    for least in ("spark.dynamicAllocation.initialExecutors", "spark.executor.instances"):
        assert int(properties[least]) <= TEMPLATE["Parameters"]["PipelineExecutors"]["MinValue"]
    most = TEMPLATE["Parameters"]["PipelineExecutors"]["MaxValue"]
    cores = most * int(properties["spark.executor.cores"]) + int(properties["spark.driver.cores"])
    capacity = RESOURCES["PipelineApplication"]["Properties"]["MaximumCapacity"]
    assert cores <= int(capacity["Cpu"].split()[0])


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("role", ROLES)
def test_no_role_may_do_everything_or_to_everything(role, delivery, pipeline):
    for statement in statements(role, delivery):
        assert statement["Resource"] != "*"
        assert not [action for action in actions(statement) if "*" in action]


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_only_ingest_writes_to_the_lake_and_its_database(delivery, pipeline):
    lake = {"Fn::Sub": "arn:${AWS::Partition}:s3:::${DataBucket}/${DataPrefix}*"}
    writers = {
        role
        for role in ROLES
        for one in statements(role, delivery)
        if one["Resource"] == lake and "s3:PutObject" in actions(one)
    }
    secrets = {
        role: [one["Resource"] for one in statements(role, delivery) if "secret" in str(one)]
        for role in ROLES
    }
    assert writers == {"IngestRole"}
    assert secrets == {
        "PipelineRole": [{"Ref": "DatabaseSecretArn"}],
        "IngestRole": [{"Ref": "WriterSecretArn"}],
        "SchedulerRole": [],
    }
    # Nor does the schedule start anything with the writer's role.
    passed = [
        one for one in statements("SchedulerRole", delivery) if "iam:PassRole" in actions(one)
    ]
    assert [one["Resource"] for one in passed] == [{"Fn::GetAtt": "PipelineRole.Arn"}]


def test_ingest_needs_a_prefix():
    signed_in = {"DatabaseSecretArn": GIVEN["DatabaseSecretArn"]}
    writer = signed_in | {"WriterSecretArn": GIVEN["WriterSecretArn"]}
    assert Stack(signed_in).broken_rules() == []
    assert [text for text in Stack(writer).broken_rules() if "DataPrefix" in text]
    assert Stack(writer | {"DataPrefix": "lake/"}).broken_rules() == []


KEYS = {  # may ingest write it?
    "lake/main/t/a.parquet": True,
    "other/a.parquet": False,
    "lake/polynya/t/g1/list-1.avro": False,
    "lake/policy.json": False,
}


@pytest.mark.parametrize("key", KEYS)
def test_ingest_writes_data_files_only(key):
    values = {
        "AWS::Partition": "aws",
        "DataBucket": "data",
        "DataPrefix": "lake/",
        "VirtualPrefix": "lake/polynya",
        "PolicyObject": "data/lake/policy.json",
    }
    role = Role(Stack(values).statements("IngestRole"))
    for operation in ("PutObject", "DeleteObject"):
        assert role.may(operation, {"Bucket": "data", "Key": key}) == KEYS[key]
        assert not role.may(operation, {"Bucket": "elsewhere", "Key": key})


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_jobs_keep_files_where_the_function_does(delivery, pipeline):
    """What they make beforehand, the function that makes it otherwise may put and read."""
    function = {"object-lambda": "ObjectLambdaFunction", "materialize": "RestCatalogFunction"}
    allowed = {
        (*actions(one), str(one["Resource"])) for one in statements("PipelineRole", delivery)
    }
    needed = {
        (*actions(one), str(one["Resource"]))
        for one in template.statements(function[delivery], delivery)
        if one["Sid"] in {"KeepSmallFiles", "KeepLargeFiles", "PutVirtualFiles"}
    }
    assert len(needed) == 2 and needed <= allowed
