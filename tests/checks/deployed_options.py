"""What `make deployed` does with a stack of SnapStart, EventsSchedule and AddedFiles."""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import Any

import boto3
import requests
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from polynya_local.processes.serving import KEY_ID, REGION, SECRET
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import RESTError

from tests.checks import deployed_writes as writes
from tests.checks.emulator import ACCOUNT, answer_of, vended_s3

BUS = "lake-changes"
PARAMETERS = {
    "SnapStart": "Enabled",
    # In quotes, because SAM ends a value at a space.
    "EventsSchedule": '"rate(1 minute)"',
    "EventBusName": BUS,
    "AddedFiles": "arn:aws:s3:::exports/sales/*",
}
FUNCTIONS = ("RestCatalogFunction", "ObjectLambdaFunction", "CommitsFunction")
SECONDS = 90
"""How long a schedule of a minute, or a queue, may take."""

# Native tables with files of other programs: `sold` below AddedFiles, `paid` beside it.
EXPORT = "COPY (SELECT i, 'exported' AS s FROM range({first}, {first} + 10) r(i)) TO '{place}'"
FILES = {"sales/2025": 100, "sales/2026": 200, "wages/2026": 300}
ADD = """
CREATE TABLE lake.main.sold(i BIGINT, s VARCHAR);
CALL ducklake_add_data_files('lake', 'sold', 's3://exports/sales/2025.parquet');
CREATE TABLE lake.main.paid(i BIGINT, s VARCHAR);
CALL ducklake_add_data_files('lake', 'paid', 's3://exports/wages/2026.parquet')"""


def change(lake: Lake, aws: str, statements: Iterable[str]) -> None:
    """Let native DuckLake change the lake."""
    with connect(LAKE, aws) as con:
        attach(con, lake, read_only=False)
        for statement in statements:
            con.execute(statement)


def newest(lake: Lake) -> int:
    """The newest snapshot of a lake."""
    table = f'"{lake.metadata_schema}".ducklake_snapshot'
    [[snapshot_id]] = lake.database.run(f"SELECT max(snapshot_id) FROM {table}")
    return int(snapshot_id)


def resources(aws: str, stack: str) -> dict[str, str]:
    """The physical ids of the resources of a stack, by their names in the template."""
    client = boto3.client("cloudformation", endpoint_url=aws)
    pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
    return {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
    }


def wait_for(condition: Callable[[], bool]) -> float:
    """Wait until a condition holds; returns the seconds that it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < SECONDS, condition
        time.sleep(0.2)
    return time.monotonic() - started


# SnapStart


def snapshots(aws: str, stack: str) -> None:
    """The versions that callers name have snapshots, and no others are left."""
    client = boto3.client("lambda", endpoint_url=aws)
    names = resources(aws, stack)
    for function in FUNCTIONS:
        if function in names:
            _snapshot(client, function, names[function])
    events = client.get_function_configuration(FunctionName=names["EventsFunction"])
    assert events["SnapStart"]["ApplyOn"] == "None"


def _snapshot(client: Any, function: str, name: str) -> None:
    def configuration() -> dict[str, Any]:
        return client.get_function_configuration(FunctionName=name, Qualifier="live")

    seconds = wait_for(lambda: configuration()["State"] != "Pending")
    live = configuration()
    assert live["State"] == "Active", live.get("StateReason")
    assert live["SnapStart"] == {"ApplyOn": "PublishedVersions", "OptimizationStatus": "On"}
    latest = client.get_function_configuration(FunctionName=name)
    assert latest["SnapStart"]["OptimizationStatus"] == "Off"
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=name)
    versions = [version["Version"] for page in pages for version in page["Versions"]]
    assert versions == ["$LATEST", live["Version"]]
    alias = client.get_alias(FunctionName=name, Name="live")
    assert alias["FunctionVersion"] == live["Version"]
    print(
        f"  {function}: the alias live is on version {live['Version']}, the only one, "
        f"SnapStart On, Active after {seconds:.0f} s"
    )


# AddedFiles


def add_files(lake: Lake, aws: str) -> None:
    """Native DuckLake adds files of another bucket to two tables."""
    boto3.client("s3", endpoint_url=aws).create_bucket(Bucket="exports")
    exports = [
        EXPORT.format(first=first, place=f"s3://exports/{name}.parquet")
        for name, first in FILES.items()
    ]
    change(lake, aws, [*exports, *ADD.split(";")])


def refuse(uri: str, signed: str, table: str) -> None:
    """A table with files that the function may not read is not loaded."""
    address = f"{uri}/v1/lake/namespaces/main/tables/{table}"
    answer = requests.get(address, headers={"Authorization": signed}, timeout=60)
    message = answer.json().get("error", {}).get("message", "")
    print(f"  loadTable {table}: {answer.status_code} {message.partition(';')[0]}")
    assert answer.status_code == 500 and "AccessDenied" in message


def drop(lake: Lake, aws: str) -> None:
    """Native DuckLake drops the table whose file is outside of AddedFiles."""
    change(lake, aws, ["DROP TABLE lake.main.paid"])


def reach(catalog: Catalog, aws: str) -> None:
    """Try what the credentials of a table reach among the files of AddedFiles."""
    s3 = vended_s3(catalog.load_table("main.sold").io.properties, aws)
    cases = [
        ("get_object", "sales/2025", True),
        ("get_object", "sales/2026", False),
        ("get_object", "wages/2026", False),
        ("put_object", "sales/2025", False),
        ("delete_object", "sales/2025", False),
    ]
    for operation, name, expected in cases:
        request = partial(getattr(s3, operation), Bucket="exports", Key=f"{name}.parquet")
        answer = answer_of(request)
        print(f"  credentials of sold, {operation} exports/{name}.parquet: {answer}")
        assert (answer == "allowed") is expected, (operation, name)


def add_by_client(uri: str, aws: str) -> None:
    """PyIceberg adds files to its table, from where the policy permits and from elsewhere."""
    # Vended credentials do not read a file before it is in the table.
    signing = {"rest.sigv4-enabled": "true", "rest.signing-name": "execute-api"}
    values = {"type": "rest", "uri": uri, "warehouse": "lake", "s3.endpoint": aws}
    values |= {"rest.signing-region": REGION, "header.X-Iceberg-Access-Delegation": "none"}
    values |= {"s3.region": REGION, "s3.access-key-id": KEY_ID, "s3.secret-access-key": SECRET}
    with closing(load_catalog("own", **values, **signing)) as catalog:
        table = catalog.load_table("main.py")
        assert "s3.session-token" not in table.io.properties
        before = table.scan().count()
        table.add_files(["s3://exports/sales/2026.parquet"])
        added = catalog.load_table("main.py").scan().count() - before
        assert added == 10
        print(
            f"  PyIceberg, own credentials: add_files of exports/sales/2026.parquet, {added} rows"
        )
        try:
            catalog.load_table("main.py").add_files(["s3://exports/wages/2026.parquet"])
        except RESTError as error:
            print(f"  the same of exports/wages/2026.parquet: {type(error).__name__}")
        else:
            raise AssertionError("added from a directory that the policy does not name")


def rights(aws: str, stack: str) -> None:
    """What the roles of the stack permit, as the emulator evaluates their policies."""
    names = resources(aws, stack)
    sales, wages = (f"arn:aws:s3:::exports/{name}/x" for name in ("sales", "wages"))
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus"
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:"
    readers = [f"{name}Role" for name in FUNCTIONS if name in names]
    cases = [
        *[
            (role, action, resource, expected)
            for role in (*readers, "VendedRole", "WriterRole")
            for action, resource, expected in (
                ("s3:GetObject", sales, True),
                ("s3:GetObject", wages, False),
                ("s3:PutObject", sales, False),
            )
        ],
        ("EventsFunctionRole", "events:PutEvents", f"{bus}/{BUS}", True),
        ("EventsFunctionRole", "events:PutEvents", f"{bus}/default", False),
        ("EventsFunctionRole", "s3:GetObject", sales, False),
        ("EventsSchedulerRole", "lambda:InvokeFunction", function + names["EventsFunction"], True),
        (
            "EventsSchedulerRole",
            "lambda:InvokeFunction",
            function + names["RestCatalogFunction"],
            False,
        ),
    ]
    client = boto3.client("iam", endpoint_url=aws)
    for role, action, resource, expected in cases:
        answer = client.simulate_principal_policy(
            PolicySourceArn=f"arn:aws:iam::{ACCOUNT}:role/{names[role]}",
            ActionNames=[action],
            ResourceArns=[resource],
        )
        [result] = answer["EvaluationResults"]
        decision = result["EvalDecision"]
        assert (decision == "allowed") is expected, (role, action, resource, decision)
        print(f"  {role}, {action} {resource.rpartition(':')[2]}: {decision}")


# EventsSchedule


class Bus:
    """A bus of EventBridge, and a queue with every event that is put onto it."""

    def __init__(self, aws: str) -> None:
        events, self._sqs = (boto3.client(name, endpoint_url=aws) for name in ("events", "sqs"))
        events.create_event_bus(Name=BUS)
        self._queue = self._sqs.create_queue(QueueName=BUS)["QueueUrl"]
        rule = {"Name": "all", "EventBusName": BUS}
        events.put_rule(**rule, EventPattern=json.dumps({"source": ["polynya"]}))
        target = {"Id": "queue", "Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{BUS}"}
        events.put_targets(Rule="all", EventBusName=BUS, Targets=[target])

    def received(self) -> list[dict[str, Any]]:
        """What was put onto the bus since the last call, in order."""
        events = []
        while messages := self._receive():
            for message in messages:
                handle = message["ReceiptHandle"]
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=handle)
                events.append(json.loads(message["Body"]))
        return events

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """So many events, and any that come with them."""
        events: list[dict[str, Any]] = []

        def is_complete() -> bool:
            events.extend(self.received())
            return len(events) >= count

        wait_for(is_complete)
        return events

    def _receive(self) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10)
        return answer.get("Messages", [])


def schedule(aws: str, stack: str) -> str:
    """The schedule starts the function that publishes, with a role; returns its target."""
    names = resources(aws, stack)
    scheduler, functions, iam = (
        boto3.client(name, endpoint_url=aws) for name in ("scheduler", "lambda", "iam")
    )
    described = scheduler.get_schedule(Name=names["EventsRun"])
    target = described["Target"]
    function = functions.get_function_configuration(FunctionName=names["EventsFunction"])
    role = iam.get_role(RoleName=names["EventsSchedulerRole"])["Role"]
    assert (target["Arn"], target["RoleArn"]) == (function["FunctionArn"], role["Arn"])
    assert function["Handler"] == "events.handler"
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "scheduler.amazonaws.com"}
    # Neither the schedule nor Lambda tries again: the next run does.
    assert target["RetryPolicy"] == {"MaximumRetryAttempts": 0}
    invoked = functions.get_function_event_invoke_config(
        FunctionName=names["EventsFunction"], Qualifier="$LATEST"
    )
    assert invoked["MaximumRetryAttempts"] == 0
    expression, state = described["ScheduleExpression"], described["State"]
    assert (expression, state) == ("rate(1 minute)", "ENABLED")
    print(f"  the schedule {expression}, {state}: {target['Arn'].rpartition(':')[2]}")
    rule = boto3.client("events", endpoint_url=aws).describe_rule(
        Name=names["EventsBusExists"].rpartition("|")[2], EventBusName=BUS
    )
    print(f"  the rule without targets on {rule['EventBusName']}: {rule['State']}")
    assert rule["State"] == "DISABLED"
    return str(target["Arn"])


def publish(aws: str, function: str, bus: Bus, lake: Lake) -> None:
    """The function puts each snapshot onto the bus, in order and not twice."""
    began = _published(aws, function, bus, 2)
    assert {event["detail-type"] for event in began} == {"DuckLake Snapshots Skipped"}
    reasons = {event["detail"]["warehouse"]: event["detail"]["reason"] for event in began}
    assert reasons == {"lake": "began", writes.SECOND: "began"}
    print(f"  the first run: {len(began)} events, of {', '.join(sorted(reasons))}: began")
    before = newest(lake)
    change(lake, aws, [f"INSERT INTO lake.main.sold VALUES ({i}, 'new')" for i in range(5)])
    events = _published(aws, function, bus, 5)
    assert keys(events) == [f"lake@{before + number}" for number in range(1, 6)]
    changes = [event["detail"]["changes"] for event in events]
    assert {change["name"] for [change] in changes} == {"sold"}
    print(f"  after five commits: {', '.join(keys(events))}")
    again = _published(aws, function, bus, 0)
    assert again == []
    print("  after none: no event")


def _published(aws: str, function: str, bus: Bus, count: int) -> list[dict[str, Any]]:
    """Start the function as the schedule does; returns the events."""
    client = boto3.client("lambda", endpoint_url=aws)
    answer = client.invoke(FunctionName=function, Payload=b"{}")
    payload = answer["Payload"].read().decode()
    assert "FunctionError" not in answer, payload
    # A run of the schedule at the same moment may be the one that publishes.
    return bus.wait_for(count)


def scheduled(bus: Bus, aws: str, lake: Lake) -> None:
    """The emulator starts the function by the schedule, which publishes what has happened since."""
    change(lake, aws, ["INSERT INTO lake.main.sold VALUES (5, 'for the schedule')"])
    key = f"lake@{newest(lake)}"
    events: list[dict[str, Any]] = []

    def has_come() -> bool:
        events.extend(bus.received())
        return key in keys(events)

    wait_for(has_come)
    assert len({*keys(events)}) == len(events)
    print(f"  by the schedule: {len(events)} events, the last of them {key}")


def keys(events: Iterable[dict[str, Any]]) -> list[str]:
    """The idempotency keys of events."""
    return [event["detail"]["idempotency-key"] for event in events]


# The dashboard


def dashboard(aws: str, stack: str) -> None:
    """The dashboard is JSON and names the functions of the stack."""
    names = resources(aws, stack)
    client = boto3.client("cloudwatch", endpoint_url=aws)
    text = client.get_dashboard(DashboardName=names["Dashboard"])["DashboardBody"]
    widgets = json.loads(text)["widgets"]
    for function in (*FUNCTIONS, "EventsFunction"):
        assert names.get(function, '"none"') in text, function
    assert "${" not in text
    print(f"  the dashboard {names['Dashboard']}: {len(widgets)} widgets")
