"""The part of template.yaml that runs the jobs: EMR Serverless, its roles and schedules."""

import json
import re
from typing import Any

import boto3
import pytest
import typer
from botocore.validate import ParamValidator
from polynya.runtime.settings import SETTINGS
from polynya_pipeline.commands import app

from local.build.package import ARCHIVE, JOB_FILE
from tests.aws.confinement import Role
from tests.aws.template import Stack
from tests.contract.template import test_template as template
from tests.contract.template.test_template import DELIVERIES, RESOURCES, TEMPLATE, actions, deployed

GIVEN = {
    "PipelineCode": "packages/pipeline/",
    "VerifySchedule": "rate(1 day)",
    "PublishSchedule": "rate(1 hour)",
    "WriterSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:writer",
    "DatabaseSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:reader",
}
TYPES = ("AWS::EMRServerless::", "AWS::Scheduler::")
NAMES = [n for n, one in RESOURCES.items() if one["Type"].startswith(TYPES) and n != "EventsRun"]
ROLES = ("PipelineRole", "IngestRole", "SchedulerRole")
RUNS = [
    ("VerifyRun", {}),
    ("PublishRun", {}),
    ("PublishRun", {"GlueDatabase": "analytics", "Delivery": "materialize"}),
]
# Settings for callers of the catalog and for vending do not concern jobs.
FOR_CALLERS = {
    *("SCAN_PLANNING", "AUTHORIZATION", "VENDING_ROLE", "VENDING_SECONDS", "WRITER_ROLE"),
    *("LOG_VALUES", "EVENT_BUS", "EVENTS_TABLE", "LAKES", "VIEW_DIALECTS"),
}
EMR = boto3.client("emr-serverless", region_name="us-east-1").meta.service_model


@pytest.fixture
def pipeline(monkeypatch):
    """The template with these parameters."""
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
    """`Fn::Sub` with a role's ARN or an id for each name."""
    values = {"PipelineRole.Arn": "arn:aws:iam::111122223333:role/pipeline"} | GIVEN
    return re.sub(r"\$\{([\w.:]+)\}", lambda m: values.get(m[1], "abc"), text)


def lower(node: Any) -> Any:
    """The request with small initial letters, because a universal target uses capital ones."""
    if isinstance(node, dict):
        return {key[0].lower() + key[1:]: lower(value) for key, value in node.items()}
    return [lower(one) for one in node] if isinstance(node, list) else node


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_without_its_parameter_the_pipeline_is_not_deployed(delivery):
    assert len(NAMES) == 3
    assert not present(delivery) & {*NAMES, *ROLES, "PipelineLogs", "PipelineFails"}


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_deployed_resources_refer_only_to_deployed_ones(delivery, pipeline):
    assert {*NAMES, *ROLES} <= present(delivery)
    template.test_deployed_resources_refer_only_to_deployed_ones(delivery)


@pytest.mark.parametrize(("run", "more"), RUNS)
def test_emr_serverless_and_the_job_accept_a_scheduled_run(run, more, monkeypatch):
    """botocore's model of StartJobRun checks the request, the job's parser the arguments."""
    made = {"PipelineRole.Arn": "arn:aws:iam::111122223333:role/pipeline"}
    target = Stack(GIVEN | made | {"PipelineApplication": "abc"} | more).properties(run)["Target"]
    request = lower(json.loads(target["Input"]))
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
        assert context.params["master"] != "none"  # so it runs on Spark, with the master of Spark
        registers = f"glue:{more['GlueDatabase']}" if more else None
        assert context.params.get("register") == registers


def test_a_run_has_the_settings_of_the_functions(pipeline):
    prefix = "spark.emr-serverless.driverEnv."
    passed_settings = {name.removeprefix(prefix) for name in defaults() if name.startswith(prefix)}
    of_spark = {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "AWS_DEFAULT_REGION"}
    settings = {one.name for one in SETTINGS} - template.LOCAL_ONLY - FOR_CALLERS
    assert passed_settings == settings | of_spark
    variables = template.environment("RestCatalogFunction")
    # Four may be empty, and a job needs no time limit for builds.
    may_be_empty = {"CACHE_BUCKET", "HIDDEN_TYPES", "STAGING_LOCATION", "CUSTOM_PROPERTIES"}
    for name in settings - may_be_empty - {"BUILD_SECONDS"}:
        assert defaults()[prefix + name] == variables[name], name
    assert not [name for name in defaults() if "SECRET" in name.upper()]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("given", [GIVEN, {"PipelineCode": "packages/"}], ids=["all", "least"])
def test_no_value_for_emr_serverless_is_empty(delivery, given, monkeypatch):
    for name, value in given.items():
        monkeypatch.setitem(TEMPLATE["Parameters"][name], "Default", value)
    for name, value in deployed(defaults(), delivery).items():
        if isinstance(value, dict) and value.get("Ref") in TEMPLATE["Parameters"]:
            value = TEMPLATE["Parameters"][value["Ref"]].get("Default", "given")
        assert value != "", name


def test_the_package_is_that_of_make_package():
    archive = filled(defaults()["spark.archives"]["Fn::Sub"])
    assert archive == f"s3://{GIVEN['PipelineCode']}{ARCHIVE}#environment"
    pythons = {value for name, value in defaults().items() if "PYSPARK" in name}
    assert pythons == {"./environment/bin/python"}


def test_connections_are_bounded():
    """An executor has two cores, each with at most one connection; all runs share the capacity."""
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
def test_no_statement_of_a_role_allows_all_actions_or_resources(role, delivery, pipeline):
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
    # The schedule starts nothing with the writer's role.
    passed = [
        one for one in statements("SchedulerRole", delivery) if "iam:PassRole" in actions(one)
    ]
    assert [one["Resource"] for one in passed] == [{"Fn::GetAtt": "PipelineRole.Arn"}]


GLUE = {"GlueDatabase": "analytics", "Delivery": "materialize", "PublishSchedule": "rate(1 hour)"}


def test_glue_is_written_only_if_a_database_is_given():
    """And nothing of it but the tables of that database."""
    assert not [one for one in Stack(GIVEN).statements("PipelineRole") if "glue" in str(one)]
    values = GIVEN | GLUE | {"AWS::Partition": "aws", "AWS::Region": "r", "AWS::AccountId": "1"}
    [found] = [one for one in Stack(values).statements("PipelineRole") if "glue" in str(one)]
    names = ("catalog", "database/analytics", "table/analytics/*")
    assert found["Resource"] == [f"arn:aws:glue:r:1:{name}" for name in names]


@pytest.mark.parametrize(
    "changed", [{"Delivery": "object-lambda"}, {"PublishSchedule": ""}], ids=str
)
def test_glue_needs_materialize_and_a_schedule(changed):
    signed_in = {"DatabaseSecretArn": GIVEN["DatabaseSecretArn"]}
    assert Stack(signed_in | GLUE).broken_rules() == []
    [message] = Stack(signed_in | GLUE | changed).broken_rules()
    assert "GlueDatabase requires" in message


def test_ingest_needs_a_prefix():
    signed_in = {"DatabaseSecretArn": GIVEN["DatabaseSecretArn"]}
    writer = signed_in | {"WriterSecretArn": GIVEN["WriterSecretArn"]}
    assert Stack(signed_in).broken_rules() == []
    assert [text for text in Stack(writer).broken_rules() if "DataPrefix" in text]
    assert Stack(writer | {"DataPrefix": "lake/"}).broken_rules() == []


KEYS = {  # whether ingest may write the key
    "lake/main/t/a.parquet": True,
    "other/a.parquet": False,
    "lake/polynya/t/g3/list-1.avro": False,
    "lake/policy.json": False,
    f"lake/code/{ARCHIVE}": False,
    f"lake/code/{JOB_FILE}": False,
    "lake/code/t/a.parquet": True,
}


@pytest.mark.parametrize("key", KEYS)
def test_ingest_writes_data_files_only(key):
    values = {
        "AWS::Partition": "aws",
        "DataBucket": "data",
        "DataPrefix": "lake/",
        "VirtualPrefix": "lake/polynya",
        "PolicyObject": "data/lake/policy.json",
        "PipelineCode": "data/lake/code/",
    }
    role = Role(Stack(values).statements("IngestRole"))
    for operation in ("PutObject", "DeleteObject"):
        assert role.may(operation, {"Bucket": "data", "Key": key}) == KEYS[key]
        assert not role.may(operation, {"Bucket": "elsewhere", "Key": key})


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_jobs_store_files_where_the_function_does(delivery, pipeline):
    """The function that normally makes these files may put and read them, too."""
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
