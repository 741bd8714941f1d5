"""What each resource of template.yaml has to be, by its type; none is without a test here."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from polynya_local import ROOT

from tests.aws.template import Stack, template
from tests.contract.template.test_template import TEMPLATE, references

RESOURCES = template()["Resources"]
TESTED: set[str] = set()
"""The types of resources that a test here is about."""
EVERYTHING = {
    "Writes": "yes",
    "Vending": "yes",
    "EventsSchedule": "rate(1 minute)",
    "PipelineCode": "code/jobs/",
    "VerifySchedule": "rate(1 day)",
    "PublishSchedule": "rate(1 hour)",
    "WriterSecretArn": "writer",
    "DataPrefix": "lake/",
    "AlarmTopicArn": "topic",
    "JwtIssuer": "https://issuer",
    "JwtAudience": "a,b",
    "Tracing": "Active",
    "PythonRuntime": "python3.12",
    "Architecture": "x86_64",
    "LogRetentionDays": "7",
}
STACK = Stack(EVERYTHING)


def of_type(kind: str) -> Callable[..., Any]:
    """Run the test for each resource of a type, with its name and its properties."""
    TESTED.add(kind)
    names = [name for name, resource in RESOURCES.items() if resource["Type"] == kind]
    return pytest.mark.parametrize(
        ("name", "properties"), [(name, STACK.properties(name)) for name in names], ids=names
    )


def condition(name: str) -> str | None:
    return RESOURCES[name].get("Condition")


def referring_to(name: str) -> Iterator[str]:
    """The resources that refer to one."""
    for other, resource in RESOURCES.items():
        if name in set(references(resource)):
            yield other


def test_each_resource_has_a_test():
    assert {resource["Type"] for resource in RESOURCES.values()} == TESTED


def test_parameters_and_conditions_are_in_the_order_of_the_groups():
    interface = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]
    groups = [group["Parameters"] for group in interface["ParameterGroups"]]
    assert list(TEMPLATE["Parameters"]) == [name for group in groups for name in group]
    text = (ROOT / "template.yaml").read_text()
    labels = [group["Label"]["default"] for group in interface["ParameterGroups"]]
    for section, end in (("Parameters", "Rules"), ("Conditions", "Globals")):
        part = text[text.index(f"\n{section}:\n") : text.index(f"\n{end}:\n")]
        assert re.findall(r"^  # -+ (.*)", part, re.MULTILINE) == labels


def test_each_condition_is_used():
    text = (ROOT / "template.yaml").read_text()
    for name in TEMPLATE["Conditions"]:
        assert len(re.findall(rf"\b{name}\b", text)) > 1, name
    assert not TEMPLATE["Conditions"].keys() & TEMPLATE["Parameters"].keys()


@of_type("AWS::ApiGatewayV2::Api")
def test_apis(name, properties):
    assert properties["ProtocolType"] == "HTTP"
    # A browser of another site may not call it.
    assert "CorsConfiguration" not in properties


@of_type("AWS::ApiGatewayV2::Stage")
def test_stages(name, properties):
    assert (properties["StageName"], properties["AutoDeploy"]) == ("$default", True)
    log = properties["AccessLogSettings"]
    assert log["DestinationArn"] == "${ApiLogs.Arn}"
    # The caller and the path, and neither tokens nor queries.
    assert "$context.identity.userArn" in log["Format"] and "$context.path" in log["Format"]
    assert not re.search(r"authorization|query", log["Format"], re.IGNORECASE)


@of_type("AWS::ApiGatewayV2::Route")
def test_routes(name, properties):
    integration = properties["Target"].removeprefix("integrations/")[2:-1]
    assert RESOURCES[integration]["Type"] == "AWS::ApiGatewayV2::Integration"
    assert condition(integration) in (None, condition(name))
    # API Gateway may invoke the function for this route.
    method, _, path = properties["RouteKey"].partition(" ")
    function = STACK.properties(integration)["IntegrationUri"]
    sources = [
        STACK.properties(permission)["SourceArn"].partition("/*/")[2]
        for permission, resource in RESOURCES.items()
        if resource["Type"] == "AWS::Lambda::Permission"
        and STACK.properties(permission)["FunctionName"] == function
        and condition(permission) in (None, condition(name))
    ]
    route = f"{'*' if method == 'ANY' else method}{path}"
    assert any(is_like(route, source) for source in sources)


def is_like(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern with stars; `{proxy+}` is itself."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None


@of_type("AWS::ApiGatewayV2::Authorizer")
def test_authorizers(name, properties):
    assert condition(name) == "TakesTokens"
    assert properties["AuthorizerType"] == "JWT"
    assert properties["IdentitySource"] == ["$request.header.Authorization"]
    assert properties["JwtConfiguration"] == {"Issuer": "https://issuer", "Audience": ["a", "b"]}


@of_type("AWS::ApiGatewayV2::Integration")
def test_integrations(name, properties):
    assert properties["IntegrationType"] == "AWS_PROXY"
    assert properties["PayloadFormatVersion"] == "2.0"  # Mangum reads both; events/ are of this one
    function = properties["IntegrationUri"].strip("${}").removesuffix(".Alias")
    assert RESOURCES[function]["Type"] == "AWS::Serverless::Function"
    assert condition(function) == condition(name)


@of_type("AWS::Lambda::Permission")
def test_permissions(name, properties):
    assert properties["Principal"] == "apigateway.amazonaws.com"
    assert properties["Action"] == "lambda:InvokeFunction"
    assert ":${Api}/*/" in properties["SourceArn"]
    function = properties["FunctionName"].strip("${}").removesuffix(".Alias")
    assert condition(function) in (None, condition(name))


@of_type("AWS::Serverless::Function")
def test_functions(name, properties):
    folder, handler = ROOT / properties["CodeUri"], properties["Handler"]
    module, _, function = handler.partition(".")
    assert re.search(rf"^(def )?{function}\b", (folder / f"{module}.py").read_text(), re.MULTILINE)
    logs = properties["LoggingConfig"]["LogGroup"].strip("${}")
    assert RESOURCES[logs]["Type"] == "AWS::Logs::LogGroup"
    assert condition(logs) == condition(name)
    assert "${BridgeLayer}" in properties["Layers"] and "${TracingLayer}" in properties["Layers"]


@of_type("AWS::Serverless::LayerVersion")
def test_layers(name, properties):
    assert (ROOT / properties["ContentUri"] / "requirements.txt").exists()
    assert properties["CompatibleRuntimes"] == ["python3.12"]
    assert properties["CompatibleArchitectures"] == ["x86_64"]
    metadata = STACK.resolved(RESOURCES[name]["Metadata"])
    assert metadata == {"BuildMethod": "python3.12", "BuildArchitecture": "x86_64"}
    users = [RESOURCES[user]["Type"] for user in referring_to(name)]
    assert set(users) == {"AWS::Serverless::Function"}


@of_type("AWS::Logs::LogGroup")
def test_logs(name, properties):
    assert properties == {"RetentionInDays": "7"}
    [*users] = referring_to(name)
    assert any(condition(user) == condition(name) for user in users)


@of_type("AWS::DynamoDB::Table")
def test_tables(name, properties):
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert properties["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]
    # What is in it can be made again, and a table with a name of its own could not be replaced.
    assert RESOURCES[name]["DeletionPolicy"] == "Delete" and "TableName" not in properties
    expires = properties.get("TimeToLiveSpecification")
    cached = {"AttributeName": "ttl", "Enabled": True}
    assert expires == (cached if name == "CacheTable" else None)


PUBLIC = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")


@of_type("AWS::S3::Bucket")
def test_buckets(name, properties):
    assert properties["PublicAccessBlockConfiguration"] == dict.fromkeys(PUBLIC, True)
    assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    [rule] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    [expires] = properties["LifecycleConfiguration"]["Rules"]
    assert expires["Status"] == "Enabled" and int(expires["ExpirationInDays"]) > 0
    # CloudFormation cannot delete a bucket with files; one that it failed to make has none.
    assert RESOURCES[name]["DeletionPolicy"] == "RetainExceptOnCreate"
    [policy] = [
        other for other in referring_to(name) if RESOURCES[other]["Type"] == "AWS::S3::BucketPolicy"
    ]
    assert condition(policy) == condition(name)


@of_type("AWS::S3::BucketPolicy")
def test_bucket_policies(name, properties):
    bucket = properties["Bucket"].strip("${}")
    [statement] = properties["PolicyDocument"]["Statement"]
    assert statement == {
        "Sid": "OnlyTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [f"${{{bucket}.Arn}}", f"${{{bucket}.Arn}}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


@of_type("AWS::S3::AccessPoint")
def test_access_points(name, properties):
    assert condition(name) == "IsObjectLambda" and properties["Bucket"] == "${DataBucket}"
    assert properties["PublicAccessBlockConfiguration"] == dict.fromkeys(PUBLIC, True)


@of_type("AWS::S3ObjectLambda::AccessPoint")
def test_object_lambda_access_points(name, properties):
    assert condition(name) == "IsObjectLambda"
    configuration = properties["ObjectLambdaConfiguration"]
    assert configuration["SupportingAccessPoint"] == "${SupportingAccessPoint.Arn}"
    [transformation] = configuration["TransformationConfigurations"]
    called = transformation["ContentTransformation"]["AwsLambda"]["FunctionArn"]
    assert called == "${ObjectLambdaFunction.Alias}"
    # The function may answer at the access point that has this name.
    answers = [one for one in STACK.statements("ObjectLambdaFunction") if one["Sid"] == "Answer"]
    assert answers[0]["Resource"].endswith(f":accesspoint/{properties['Name']}")


@of_type("AWS::SSM::Parameter")
def test_parameters_of_ssm(name, properties):
    assert properties["Value"] == "${ObjectLambdaAccessPoint.Alias.Value}"
    # The function reads it by this name, and has the right to.
    variables = STACK.properties("ObjectLambdaFunction")["Environment"]["Variables"]
    assert variables["VIRTUAL_BUCKET"] == f"ssm:{properties['Name']}"
    [statement] = STACK.properties("ObjectLambdaSettings")["PolicyDocument"]["Statement"]
    assert statement["Resource"].endswith(f":parameter{properties['Name']}")
    assert condition(name) == condition("ObjectLambdaFunction")


@of_type("AWS::IAM::ManagedPolicy")
def test_managed_policies(name, properties):
    statements = properties["PolicyDocument"]["Statement"]
    assert len({statement["Sid"] for statement in statements}) == len(statements)
    for statement in statements:
        assert_limited(statement)
    # A policy is of use: somebody has it, or the outputs name it.
    given = properties.get("Roles") or [
        *referring_to(name),
        *(one for one in TEMPLATE["Outputs"].values() if name in set(references(one))),
    ]
    assert given


def assert_limited(statement: dict[str, Any]) -> None:
    """A statement names actions and resources, of one service and one account or bucket."""
    resources = statement.get("Resource", statement.get("NotResource"))
    for resource in [resources] if isinstance(resources, str) else resources:
        assert resource not in {"*", "arn:aws:s3:::*"}
    for action in (
        [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
    ):
        assert "*" not in action


@of_type("AWS::IAM::Role")
def test_roles(name, properties):
    [trust] = properties["AssumeRolePolicyDocument"]["Statement"]
    assert (trust["Effect"], trust["Action"]) == ("Allow", "sts:AssumeRole")
    if "Service" in trust["Principal"]:
        # No service assumes it for another account (the confused deputy).
        account = {"aws:SourceAccount": "${AWS::AccountId}"}
        assert trust["Condition"] == {"StringEquals": account}
    else:
        assert {*trust["Principal"]} == {"AWS"} and "*" not in trust["Principal"]["AWS"]
    for statement in STACK.statements(name) if "Policies" in properties else ():
        assert_limited(statement)


@of_type("AWS::EMRServerless::Application")
def test_applications(name, properties):
    assert condition(name) == "HasPipeline" and properties["Architecture"] == "X86_64"
    assert properties["AutoStopConfiguration"]["Enabled"]
    logs = properties["MonitoringConfiguration"]["CloudWatchLoggingConfiguration"]
    assert logs["LogGroupName"] == "${PipelineLogs}"


@of_type("AWS::Scheduler::Schedule")
def test_schedules(name, properties):
    assert properties["FlexibleTimeWindow"] == {"Mode": "OFF"}
    target = properties["Target"]
    role = target["RoleArn"].strip("${}").removesuffix(".Arn")
    statements = STACK.statements(role)
    # The role may do what the target is.
    action = (
        "lambda:InvokeFunction" if "Function" in target["Arn"] else "emr-serverless:StartJobRun"
    )
    assert action in {statement["Action"] for statement in statements}
    assert condition(role) in {condition(name), "RunsOnSchedule"}


@of_type("AWS::Events::Rule")
def test_rules_of_events(name, properties):
    targets = properties.get("Targets", [])
    assert [target["Arn"] for target in targets] == (["topic"] if name == "PipelineFails" else [])
    assert (properties.get("State") == "DISABLED") == (not targets)


def functions_of(properties: dict[str, Any]) -> set[str]:
    """The function that an alarm watches, by a dimension."""
    named = {item["Value"] for item in properties["Dimensions"]}
    services = {
        STACK.properties(function)["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]: function
        for function, resource in RESOURCES.items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
    functions = {value.strip("${}") for value in named} & {*services.values()}
    return functions | {services[value] for value in named & services.keys()}


@of_type("AWS::CloudWatch::Alarm")
def test_alarms(name, properties):
    assert properties["AlarmActions"] == ["topic"]
    assert "AlarmActions" not in Stack({}).properties(name)
    assert properties["TreatMissingData"] == "notBreaching"
    assert len({"Statistic", "ExtendedStatistic"} & properties.keys()) == 1
    # It is there if its function is.
    for function in functions_of(properties):
        assert condition(function) == condition(name)
    assert functions_of(properties) or properties["Namespace"] == "AWS/ApiGateway"
    # The runbook says what to do.
    assert f"`{name}`" in (ROOT / "docs/runbook.md").read_text()


@of_type("AWS::CloudWatch::Dashboard")
def test_dashboards(name, properties):
    assert properties["DashboardName"] == "${AWS::StackName}-${AWS::Region}"
    assert condition(name) is None
