"""The deployment: template.yaml, its settings, its permissions and its sample events."""

import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from polynya.access.table_scope import S3Scope
from polynya.access.vended_credentials import session_policy
from polynya.runtime import errors
from polynya.runtime.metrics import BY_LAKE, METRICS
from polynya.runtime.settings import DELIVERIES as DEFAULTS
from polynya.runtime.settings import SETTINGS
from polynya.storage.event_bus import LEASE_SECONDS

from tests.aws.template import NO_VALUE, Stack, template

ROOT = Path(__file__).parents[3]
LOCAL_ONLY = {
    *("OBJECT_LAMBDA_ENDPOINT", "EQUALITY_DELETE_KEYS", "EQUALITY_DELETE_FILES"),
    *("EQUALITY_DELETE_GB", "REQUEST_MB"),
}
DELIVERIES = ("object-lambda", "materialize")
FUNCTIONS = ("RestCatalogFunction", "ObjectLambdaFunction", "CommitsFunction")
OF_EVENTS = {"EVENT_BUS", "EVENTS_TABLE"}
"""Settings that only the function has which publishes events."""


TEMPLATE = template()
RESOURCES = TEMPLATE["Resources"]


def holds(condition: str, delivery: str) -> bool:
    """Whether a condition holds with this delivery and defaults for all other parameters."""
    return _true(TEMPLATE["Conditions"][condition], delivery)


def _true(expression: dict[str, Any], delivery: str) -> bool:
    [(function, operands)] = expression.items()
    if function == "Fn::Not":
        return not _true(operands[0], delivery)
    if function in {"Fn::And", "Fn::Or"}:
        return (all if function == "Fn::And" else any)(_true(one, delivery) for one in operands)
    if function == "Condition":
        return holds(operands, delivery)
    assert function == "Fn::Equals"
    left, right = (_value(operand, delivery) for operand in operands)
    return left == right


def _value(operand: Any, delivery: str) -> Any:
    if not isinstance(operand, dict):
        return operand
    name = operand["Ref"]
    return delivery if name == "Delivery" else TEMPLATE["Parameters"][name]["Default"]


def deployed(node: Any, delivery: str) -> Any:
    """The node as CloudFormation sees it with this delivery: each `Fn::If` is resolved."""
    if isinstance(node, dict) and "Fn::If" in node:
        condition, then, otherwise = node["Fn::If"]
        return deployed(then if holds(condition, delivery) else otherwise, delivery)
    if isinstance(node, dict):
        items = {key: deployed(value, delivery) for key, value in node.items()}
        return {key: value for key, value in items.items() if value != NO_VALUE}
    if isinstance(node, list):
        values = [deployed(item, delivery) for item in node]
        return [value for value in values if value != NO_VALUE]
    return node


def references(node: Any) -> Iterator[str]:
    """The names of parameters and resources that a node refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref":
                yield value.split(".")[0]  # `Function.Alias` is a name of SAM
            elif key == "Fn::GetAtt":
                yield (value if isinstance(value, str) else value[0]).split(".")[0]
            elif key == "Fn::Sub":
                text, given = (value, {}) if isinstance(value, str) else value
                yield from set(re.findall(r"\$\{([^.}]+)", text)) - given.keys()
                yield from references(given)
            elif key == "Fn::If":
                yield from references(TEMPLATE["Conditions"][value[0]])
                yield from references(value[1:])
            else:
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def with_globals(resource: dict[str, Any]) -> dict[str, Any]:
    """The resource; for a function with the properties from `Globals`."""
    is_function = resource.get("Type") == "AWS::Serverless::Function"
    return resource | {"Globals": TEMPLATE["Globals"]} if is_function else resource


def environment(function: str) -> dict[str, Any]:
    own = RESOURCES[function]["Properties"]["Environment"]["Variables"]
    return TEMPLATE["Globals"]["Function"]["Environment"]["Variables"] | own


def statements(function: str, delivery: str) -> list[dict[str, Any]]:
    policies = deployed(RESOURCES[function]["Properties"]["Policies"], delivery)
    documents = [
        RESOURCES[policy["Ref"]]["Properties"]["PolicyDocument"] if "Ref" in policy else policy
        for policy in policies
    ]
    found = [statement for document in documents for statement in document["Statement"]]
    return deployed(found, delivery)


def actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else action


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_gets_every_setting(function: str) -> None:
    given = {name for name in environment(function) if not name.startswith("POWERTOOLS_")}
    assert given == {setting.name for setting in SETTINGS} - LOCAL_ONLY - OF_EVENTS


def test_the_function_of_events_gets_every_setting_and_has_only_its_rights() -> None:
    given = {name for name in environment("EventsFunction") if not name.startswith("POWERTOOLS_")}
    assert given == {setting.name for setting in SETTINGS} - LOCAL_ONLY
    calls = (ROOT / "layers/bridge/polynya/storage/event_bus.py").read_text()
    called = {
        f"{service}:{call.title().replace('_', '')}"
        for service, call in re.findall(r"(events|dynamodb)(?:\(\))?\.([a-z_]+)\(", calls)
    }
    assert called == {"events:PutEvents", "dynamodb:UpdateItem"}
    values = {"EventsSchedule": "rate(1 minute)", "DatabaseSecretArn": "secret"}
    statements = Stack(values).statements("EventsFunction")
    allowed = {action for statement in statements for action in actions(statement)}
    assert allowed == called | {"secretsmanager:GetSecretValue"}
    [puts] = [one["Resource"] for one in statements if "events:PutEvents" in actions(one)]
    assert puts.endswith(":event-bus/default")
    assert (
        Stack(values | {"EventBusName": "b"}).properties("EventsFunction")["Environment"][
            "Variables"
        ]["EVENT_BUS"]
        == "b"
    )


def test_events_are_published_only_if_there_is_a_schedule() -> None:
    of_events = [
        name for name, one in RESOURCES.items() if one.get("Condition") == "PublishesEvents"
    ]
    assert {"EventsFunction", "EventsTable", "EventsRun", "EventsFail"} <= {*of_events}
    assert not holds("PublishesEvents", "object-lambda")
    role = Stack({}).properties("EventsSchedulerRole")
    [statement] = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "lambda:InvokeFunction"
    assert statement["Resource"] == "${EventsFunction.Arn}"
    # A function that was ended at its timeout must not hold up more than one run.
    timeout = RESOURCES["EventsFunction"]["Properties"]["Timeout"]
    assert timeout < LEASE_SECONDS < timeout + 60


def test_events_need_a_bus_that_exists() -> None:
    """EventBridge drops events of any other bus without an error; a rule on it cannot be made."""
    rule = RESOURCES["EventsBusExists"]
    assert (rule["Type"], rule["Condition"]) == ("AWS::Events::Rule", "PublishesEvents")
    properties = Stack({"EventBusName": "b"}).properties("EventsBusExists")
    assert properties["EventBusName"] == "b"
    assert "Targets" not in properties and properties["State"] == "DISABLED"


SCHEDULES = re.compile(r"\b(\w+Schedule)=(.)")


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("docs/**/*.md"), ROOT / "docs/samconfig.example.toml"],
    ids=lambda path: path.name,
)
def test_values_with_spaces_are_quoted_for_sam(path: Path) -> None:
    """SAM ends a value at a space, unless it is in quotes of its own: `rate(1` is no schedule."""
    unquoted = [name for name, first in SCHEDULES.findall(path.read_text()) if first != '"']
    assert unquoted == []


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_default_of_a_parameter_is_that_of_its_setting(setting: Any) -> None:
    value = environment("RestCatalogFunction").get(setting.name, {})
    parameter = TEMPLATE["Parameters"].get(value.get("Ref"), {})
    if "Default" in parameter:
        assert str(parameter["Default"]) == setting.default


PAGE = (ROOT / "docs/settings.md").read_text()
ROWS = [re.split(r" (?<!\\)\| ", row) for row in re.findall(r"^\| (`.*) \|$", PAGE, re.MULTILINE)]
VARIABLES = {row[0].strip("`"): row[1:] for row in ROWS if len(row) == 4}


def code(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def test_the_page_has_a_row_for_exactly_each_setting() -> None:
    assert list(VARIABLES) == [setting.name for setting in SETTINGS]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_page_has_the_default_of_each_setting(setting: Any) -> None:
    default = VARIABLES[setting.name][1]
    if setting.default is None:
        assert default == "required"
    elif setting.name in {"SNAPSHOT_LIMIT", "BUILD_SECONDS"}:
        assert default.startswith(f"{setting.default}: ")
        numbers = [value._asdict()[setting.name.lower()] for value in DEFAULTS.values()]
        assert [int(number) for number in re.findall(r" (\d+)", default)] == numbers
    else:
        assert default == (f"`{setting.default}`" if setting.default else "none")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_page_names_the_parameters_of_each_setting(setting: Any) -> None:
    """These are the parameters of the variable in either function, except pseudo parameters."""
    functions = (*FUNCTIONS, "EventsFunction")
    values = [environment(function).get(setting.name) for function in functions]
    needed = {name for name in references(values) if name in TEMPLATE["Parameters"]}
    assert needed - {"Delivery"} <= code(VARIABLES[setting.name][0]) | {"VendedRole"}
    assert code(VARIABLES[setting.name][0]) <= TEMPLATE["Parameters"].keys()


def test_the_page_has_each_parameter() -> None:
    named = {
        name for row in ROWS for name in code(row[0]) | (code(row[1]) if len(row) == 4 else set())
    }
    assert TEMPLATE["Parameters"].keys() - named == set()


def test_the_page_has_the_defaults_of_parameters() -> None:
    """This covers rows about one parameter; the page describes an empty default in words."""
    for row in ROWS:
        if len(row) == 3 and len(names := code(row[0])) == 1:
            parameter = TEMPLATE["Parameters"][names.pop()]
            if "Default" not in parameter:
                assert row[1] == "required"
            elif parameter["Default"] != "":
                assert row[1].strip("`") == str(parameter["Default"])


def test_the_template_accepts_the_example_parameters() -> None:
    """docs/samconfig.example.toml has all required parameters, with values that AWS accepts."""
    text = (ROOT / "docs/samconfig.example.toml").read_text()
    pairs = tomllib.loads(text)["default"]["deploy"]["parameters"]["parameter_overrides"]
    given = dict(pair.split("=", 1) for pair in pairs)
    required = {name for name, one in TEMPLATE["Parameters"].items() if "Default" not in one}
    assert required <= given.keys() <= TEMPLATE["Parameters"].keys()
    for name, value in given.items():
        parameter = TEMPLATE["Parameters"][name]
        assert re.fullmatch(parameter.get("AllowedPattern", ".*"), value), name
        assert value in parameter.get("AllowedValues", [value]), name
    assert Stack(given).broken_rules() == []
    page = (ROOT / "docs/deploying.md").read_text()
    assert all(f'"{pair}"' in page for pair in pairs)
    ignored = (ROOT / ".gitignore").read_text().split()
    assert any(fnmatch("deploy.toml", pattern) for pattern in ignored)


@pytest.mark.parametrize("name", ["default", "materialize"])
def test_samconfig_sets_existing_parameters(name: str) -> None:
    section = tomllib.loads((ROOT / "samconfig.toml").read_text())[name]
    for command in ("build", "deploy"):
        pairs = section[command]["parameters"]["parameter_overrides"].split()
        chosen = dict(pair.split("=") for pair in pairs)
        assert chosen.keys() <= TEMPLATE["Parameters"].keys()
        for parameter, value in chosen.items():
            assert value in TEMPLATE["Parameters"][parameter]["AllowedValues"]


# ---------------------------------------------------------------- resources


def test_no_resource_depends_on_itself() -> None:
    """cfn-lint misses a cycle through SAM's function alias; AWS refuses it."""
    needs = {
        name: set(references(with_globals(resource))) & RESOURCES.keys()
        for name, resource in RESOURCES.items()
    }
    assert set(TopologicalSorter(needs).static_order()) == set(RESOURCES)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_deployed_resources_refer_only_to_deployed_ones(delivery: str) -> None:
    present = {
        name: resource
        for name, resource in (RESOURCES | TEMPLATE["Outputs"]).items()
        if "Condition" not in resource or holds(resource["Condition"], delivery)
    }
    for name, resource in present.items():
        needs = set(references(deployed(with_globals(resource), delivery)))
        missing = needs & RESOURCES.keys() - present.keys()
        assert not missing, f"{name} refers to {missing}"


def test_rest_function_cannot_write_to_s3_under_object_lambda() -> None:
    allowed = [a for s in statements("RestCatalogFunction", "object-lambda") for a in actions(s)]
    assert {action for action in allowed if action.startswith("s3:")} == {"s3:GetObject"}


def test_the_store_has_exactly_the_rights_it_needs_in_s3() -> None:
    storage = ROOT / "layers/bridge/polynya/storage"
    store = (storage / "cache_store.py").read_text() + (storage / "objects.py").read_text()
    calls = set(re.findall(r"s3(?:\(\))?\.([a-z]+_object)\(", store))
    cache = {"Fn::Sub": "${CacheBucket.Arn}/*"}
    allowed = {
        action
        for one in statements("ObjectLambdaFunction", "object-lambda")
        if one["Resource"] == cache
        for action in actions(one)
    }
    assert allowed == {"s3:" + call.title().replace("_", "") for call in calls}


def test_rest_function_writes_only_below_the_virtual_prefix_under_materialize() -> None:
    writing = [
        statement["Resource"]["Fn::Sub"]
        for statement in statements("RestCatalogFunction", "materialize")
        if any(re.match(r"s3:(?!Get|List)", action) for action in actions(statement))
    ]
    assert writing == ["arn:${AWS::Partition}:s3:::${DataBucket}/${VirtualPrefix}/*"]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_statement_of_a_function_allows_all_actions_or_resources(
    function: str, delivery: str
) -> None:
    for statement in statements(function, delivery):
        assert statement["Resource"] != "*"
        assert not [action for action in actions(statement) if "*" in action]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_exactly_the_rights_it_needs_in_dynamodb(
    function: str, delivery: str
) -> None:
    store = (ROOT / "layers/bridge/polynya/storage/cache_store.py").read_text()
    calls = set(re.findall(r"dynamodb(?:\(\))?\.([a-z_]+)\(", store))
    needed = {"dynamodb:" + call.title().replace("_", "") for call in calls}
    allowed = {action for one in statements(function, delivery) for action in actions(one)}
    assert needed and needed == {action for action in allowed if action.startswith("dynamodb:")}


@pytest.mark.parametrize(
    ("function", "delivery", "layers"),
    [
        ("RestCatalogFunction", "object-lambda", ["BridgeLayer"]),
        ("RestCatalogFunction", "materialize", ["BridgeLayer", "ColumnarLayer"]),
        ("ObjectLambdaFunction", "object-lambda", ["BridgeLayer", "ColumnarLayer"]),
        ("CommitsFunction", "object-lambda", ["BridgeLayer", "ColumnarLayer"]),
        ("CommitsFunction", "materialize", ["BridgeLayer", "ColumnarLayer"]),
    ],
)
def test_only_functions_that_build_files_have_the_columnar_layer(
    function: str, delivery: str, layers: list[str]
) -> None:
    given = deployed(RESOURCES[function]["Properties"]["Layers"], delivery)
    assert given == [{"Ref": layer} for layer in layers]


def test_ranged_reads_and_heads_reach_the_function() -> None:
    access_point = RESOURCES["ObjectLambdaAccessPoint"]["Properties"]["ObjectLambdaConfiguration"]
    assert set(access_point["AllowedFeatures"]) == {
        f"{action}-{feature}"
        for action in ("GetObject", "HeadObject")
        for feature in ("Range", "PartNumber")
    }
    [transformation] = access_point["TransformationConfigurations"]
    assert {"GetObject", "HeadObject"} <= set(transformation["Actions"])


@pytest.mark.parametrize(
    ("function", "settings", "others"),
    [
        # With another delivery this function does not exist, and this one copies nothing.
        ("ObjectLambdaFunction", "ObjectLambdaSettings", {"Delivery", "CopyDataFiles"}),
        ("RestCatalogFunction", "CatalogSettings", set()),
        ("CommitsFunction", "CommitsSettings", set()),
    ],
)
def test_a_new_layer_or_another_setting_publishes_a_new_version(
    function: str, settings: str, others: set[str]
) -> None:
    properties = RESOURCES[function]["Properties"]
    assert properties["AutoPublishAlias"] and properties["AutoPublishAliasAllProperties"]
    for layer in set(references(properties["Layers"])) & RESOURCES.keys():
        assert RESOURCES[layer]["Properties"]["PublishLambdaVersion"]

    # The description of the version names the ARN of a policy with an immutable description.
    named = set(references(properties["VersionDescription"]))
    assert settings in named
    assert properties["Policies"][0] == {"Ref": settings}
    description = RESOURCES[settings]["Properties"]["Description"]
    described = list(references(description))
    vpc = TEMPLATE["Globals"]["Function"]["VpcConfig"]
    frozen = [environment(function), vpc, properties["SnapStart"]]
    used = set(references(frozen)) & TEMPLATE["Parameters"].keys()
    assert {*described, *named} - {settings} == used - others

    def longest_value(parameter: dict[str, Any]) -> int:
        values = parameter.get("AllowedValues") or [parameter.get("MaxValue", "")]
        # The bucket's name is limited by its pattern.
        return parameter.get("MaxLength") or max(map(len, map(str, values))) or 63

    longest = {name: longest_value(one) for name, one in TEMPLATE["Parameters"].items()}
    both = {"PolicyParameter": "/lake/policy", "PolicyObject": "data/policy.json"}
    assert any("not in both" in sentence for sentence in Stack(both).broken_rules())
    longest["PolicyObject"] = 0  # its rule: with the other one it is empty
    assert sum(longest[name] + 1 for name in described) - 1 <= 1000
    # An ARN has up to 168 characters, the description of a version 256.
    assert sum(longest[name] + 1 for name in named - {settings}) + 168 <= 256


@pytest.mark.parametrize("function", FUNCTIONS)
def test_snapshots_are_taken_of_versions_that_callers_name_and_only_on_request(function: str):
    """AWS bills a snapshot as long as its version exists."""
    assert RESOURCES[function]["Properties"]["VersionDeletionPolicy"] == "Delete"
    for value, applied in ("Disabled", "None"), ("Enabled", "PublishedVersions"):
        assert Stack({"SnapStart": value}).properties(function)["SnapStart"] == {"ApplyOn": applied}
    assert Stack({}).properties(function)["SnapStart"] == {"ApplyOn": "None"}
    # Lambda refuses both together: who adds it also adds a rule of the template.
    assert "ProvisionedConcurrencyConfig" not in RESOURCES[function]["Properties"]


def test_api_gateway_calls_the_published_version() -> None:
    for name, resource in RESOURCES.items():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::ApiGatewayV2::Integration":
            assert properties["IntegrationUri"]["Ref"].endswith("Function.Alias"), name
        if resource["Type"] == "AWS::Lambda::Permission":
            assert properties["FunctionName"]["Ref"].endswith("Function.Alias"), name


@pytest.mark.parametrize(
    ("writes", "functions"),
    [
        ("no", ["RestCatalogFunctionRole"]),
        ("yes", ["RestCatalogFunctionRole", "CommitsFunctionRole"]),
    ],
)
def test_only_the_functions_that_answer_clients_can_assume_the_vended_role(
    writes: str, functions: list[str]
) -> None:
    """The Object Lambda function trusts the name of a session, which its caller chooses."""
    stack = Stack({"Vending": "yes", "Writes": writes})
    role = stack.properties("VendedRole")
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"AWS": [f"${{{one}.Arn}}" for one in functions]}
    assert not {"Policies", "ManagedPolicyArns"} & role.keys()
    assert stack.properties("VendPolicy")["Roles"] == [f"${{{one}}}" for one in functions]


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_vended_role_allows_exactly_the_actions_of_session_policies(delivery: str) -> None:
    """It allows nothing else, because a session has the intersection of both."""
    document = deployed(RESOURCES["FilesPolicy"]["Properties"]["PolicyDocument"], delivery)
    allowed = {action for statement in document["Statement"] for action in actions(statement)}
    scope = S3Scope("s3://b/t/", True)
    virtual = scope if delivery == "object-lambda" else None
    policy = json.loads(session_policy([scope], [], [], "aws", virtual))
    assert allowed == {action for one in policy["Statement"] for action in actions(one)}


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_the_writer_role_allows_exactly_the_actions_of_session_policies(delivery: str) -> None:
    documents = [
        deployed(RESOURCES[name]["Properties"]["PolicyDocument"], delivery)
        for name in ("FilesPolicy", "WriteFilesPolicy")
    ]
    found = [statement for document in documents for statement in document["Statement"]]
    scopes = [S3Scope("s3://b/t/", True)]
    virtual = scopes[0] if delivery == "object-lambda" else None
    policy = json.loads(session_policy(scopes, scopes, scopes, "aws", virtual))
    allowed, needed = (
        {action for one in some if one["Effect"] == "Allow" for action in actions(one)}
        for some in (found, policy["Statement"])
    )
    assert allowed == needed
    assert "s3:DeleteObject" not in allowed


def test_only_the_two_functions_can_assume_the_writer_role() -> None:
    """No other principal may, because the name of a session selects its table."""
    role = RESOURCES["WriterRole"]["Properties"]
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assumed_by = {"RestCatalogFunctionRole.Arn", "CommitsFunctionRole.Arn"}
    assert {one["Fn::GetAtt"] for one in statement["Principal"]["AWS"]} == assumed_by
    assert not {"Policies", "ManagedPolicyArns"} & role.keys()


def test_requests_are_authorized_by_iam_unless_there_is_an_issuer() -> None:
    routes = [one for one in RESOURCES.values() if one["Type"] == "AWS::ApiGatewayV2::Route"]
    assert RESOURCES["ApiRoute"] in routes and "Condition" not in RESOURCES["ApiRoute"]
    names = ("AuthorizationType", "AuthorizerId", "AuthorizationScopes")
    for route in routes:
        authorization = [route["Properties"][name] for name in names]
        assert authorization == [RESOURCES["ApiRoute"]["Properties"][name] for name in names]
        assert authorization[0] == {"Fn::If": ["TakesTokens", "JWT", "AWS_IAM"]}


def reasons(service: str, least_status: int = 400) -> set[str]:
    """The words for refusals in the metrics of a function and in its answers."""
    word = {"rest-catalog": "type", "commits": "type", "object-lambda": "code"}[service]
    named = [one for one in vars(errors).values() if isinstance(one, type)]
    classes = [one for one in named if issubclass(one, errors.PolynyaError)]
    if service != "commits":
        classes.remove(errors.CommitStateUnknown)
    return {getattr(one, word) for one in classes if one.status >= least_status}


@pytest.mark.parametrize("service", ["rest-catalog", "object-lambda", "commits"])
def test_each_internal_refusal_triggers_an_alarm(service: str) -> None:
    """For Lambda an answer 500 or 503 is no error if the function itself does not fail."""
    watched = {
        one["Value"]
        for resource in RESOURCES.values()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
        and {"Name": "service", "Value": service} in resource["Properties"]["Dimensions"]
        for one in resource["Properties"]["Dimensions"]
        if one["Name"] == "reason"
    }
    assert watched == reasons(service, 500)


@pytest.mark.parametrize(
    ("function", "parameter"),
    [
        ("RestCatalogFunction", "CatalogConcurrency"),
        ("ObjectLambdaFunction", "FilesConcurrency"),
        ("CommitsFunction", "CommitsConcurrency"),
    ],
)
def test_concurrency_is_limited_only_by_a_parameter(function: str, parameter: str) -> None:
    """By default there is no reservation, because it fails in an account with a low limit."""
    reserved = "ReservedConcurrentExecutions"
    assert reserved not in Stack({}).properties(function)
    assert Stack({parameter: "20"}).properties(function)[reserved] == "20"


def test_requests_are_limited_by_parameters() -> None:
    stage = Stack({"RequestRate": "7", "RequestBurst": "3"}).properties("ApiStage")
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": "7",
        "ThrottlingBurstLimit": "3",
    }


def test_alarms_and_dashboard_watch_existing_metrics() -> None:
    """They use the dimensions of the metrics, because an alarm on others never rings."""
    services = {
        environment(function)["POWERTOOLS_SERVICE_NAME"]: function for function in FUNCTIONS
    }
    for name, resource in RESOURCES.items():
        if resource["Type"] != "AWS::CloudWatch::Alarm" or isinstance(
            resource["Properties"]["Namespace"], str
        ):
            continue
        alarm = resource["Properties"]
        assert alarm["Namespace"] == environment(FUNCTIONS[0])["POWERTOOLS_METRICS_NAMESPACE"]
        assert alarm["MetricName"] in METRICS, name
        dimensions = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
        assert dimensions.keys() == {"service", "reason"} & dimensions.keys() | {"service"}
        assert ("reason" in dimensions) == (alarm["MetricName"] == "Refusals")
        assert dimensions["service"] in services
        assert dimensions.get("reason") in {None, *reasons(dimensions["service"])}
    body = Stack({}).properties("Dashboard")["DashboardBody"]
    widgets = json.loads(body)["widgets"]
    assert len(widgets) > 10
    # Each metric that the functions write has its place, and no other.
    shown = {*re.findall(r'"(\w+)", "service"', body), *re.findall(r'MetricName=."(\w+)', body)}
    assert shown == METRICS.keys()
    # With several lakes, so has each that is written for each of them.
    searches = re.findall(
        r"SEARCH\(.*?\)", Stack({"Lakes": "yes"}).properties("Dashboard")["DashboardBody"]
    )
    of_lakes = [search for search in searches if ",service,lake}" in search]
    assert {*re.findall(r'MetricName=."(\w+)', "".join(of_lakes))} == BY_LAKE.keys()
    assert ",service,lake}" not in body


def test_the_dashboard_has_what_is_deployed() -> None:
    least = Stack({"Delivery": "materialize"}).properties("Dashboard")["DashboardBody"]
    assert "${ObjectLambdaFunction}" not in least and "${CommitsFunction}" not in least
    given = {"Writes": "yes", "EventsSchedule": "rate(1 minute)", "Lakes": "yes"}
    most = Stack(given).properties("Dashboard")["DashboardBody"]
    named = {"ObjectLambdaFunction", "CommitsFunction", "EventsFunction", "CommitsLogs"}
    assert named <= {*re.findall(r"\$\{(\w+)\}", most)}
    assert json.loads(most).keys() == {"widgets"}


def test_a_new_description_makes_a_new_managed_policy() -> None:
    """The test of new versions depends on this; the schema is from CloudFormation's registry."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", "AWS::IAM::ManagedPolicy")
    assert "/properties/Description" in schema.schema["createOnlyProperties"]
    assert schema.schema["properties"]["Description"]["maxLength"] == 1000


# ---------------------------------------------------------------- sample events

REST = {
    "version",
    "routeKey",
    "rawPath",
    "rawQueryString",
    "headers",
    "requestContext",
    "isBase64Encoded",
}
OBJECT = {"xAmzRequestId", "configuration", "userRequest", "userIdentity", "protocolVersion"}
KINDS = {  # required keys, and additional keys of some requests
    "rest_config": (REST, {"queryStringParameters", "pathParameters"}),
    "rest_health": (REST, {"pathParameters"}),
    "rest_list_namespaces": (REST, {"pathParameters"}),
    "rest_list_tables": (REST, {"queryStringParameters", "pathParameters"}),
    "rest_load_table": (REST, {"queryStringParameters", "pathParameters"}),
    "rest_load_table_jwt": (REST, {"queryStringParameters", "pathParameters"}),
    "rest_missing_table": (REST, {"queryStringParameters", "pathParameters"}),
    "rest_write": (REST, {"body", "pathParameters"}),
    **{
        f"commits_{name}": (REST, {"body", "pathParameters"})
        for name in (
            *("create_namespace", "create_table", "update_table", "stale", "forbidden"),
            "report_metrics",
        )
    },
    "commits_drop_table": (REST, {"pathParameters"}),
    "object_get_whole": (OBJECT, {"getObjectContext"}),
    "object_get_range": (OBJECT, {"getObjectContext"}),
    "object_head": (OBJECT, {"headObjectContext"}),
    "object_real": (OBJECT, {"getObjectContext"}),
    "object_missing": (OBJECT, {"getObjectContext"}),
    "object_list": (OBJECT, {"listObjectsV2Context"}),
}


def test_there_is_one_event_of_each_kind() -> None:
    assert {path.stem for path in (ROOT / "events").glob("*.json")} == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_event_has_the_documented_keys(kind: str) -> None:
    event = json.loads((ROOT / "events" / f"{kind}.json").read_text())
    required, additional = KINDS[kind]
    assert event.keys() == required | additional
    if "getObjectContext" in event:
        assert event["getObjectContext"].keys() == {"inputS3Url", "outputRoute", "outputToken"}
    elif "rawPath" in event:
        assert event["version"] == "2.0"
        assert event["requestContext"]["http"]["path"] == event["rawPath"]


@pytest.mark.parametrize(("delivery", "lists"), [("materialize", True), ("object-lambda", False)])
def test_the_catalog_function_may_list_virtual_files_only_if_it_puts_them(delivery, lists):
    found = [
        (statement["Resource"], statement["Condition"])
        for statement in statements("RestCatalogFunction", delivery)
        if "s3:ListBucket" in actions(statement)
    ]
    bucket = {"Fn::Sub": "arn:${AWS::Partition}:s3:::${DataBucket}"}
    prefix = {"StringLike": {"s3:prefix": {"Fn::Sub": "${VirtualPrefix}/*"}}}
    assert found == ([(bucket, prefix)] if lists else [])
