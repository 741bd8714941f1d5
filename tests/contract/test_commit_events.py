"""The handler of the function that writes gives the documented answers to its sample events."""

import json

import pytest

from tests.aws.functions import Functions
from tests.aws.lambda_function import LambdaFunction
from tests.checks.runtime_interface import RuntimeInterface
from tests.contract.test_events import DATA, EVENTS, NEEDS_CONTAINERS, NEEDS_EMULATOR, event
from tests.support.answers import json_of
from tests.support.servers.in_process import functions
from tests.support.writes.writable import set_up_writes

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE orders(id INTEGER, s VARCHAR);
INSERT INTO orders SELECT i, 'v' || i FROM range(1000) AS r(i);
CREATE TABLE customers(id INTEGER);
"""
WRITER = "arn:aws:iam::111122223333:role/LakeWriter"
POLICY = {
    "rules": [
        {
            "principals": [WRITER],
            "tables": {"*": ["*"]},
            "write": {"main": ["orders", "new_table"], "sales": ["*"]},
        }
    ]
}


def in_process(started: Functions) -> LambdaFunction:
    return LambdaFunction("commits", started.commits, region="us-east-1", timeout_s=29)


def behind_the_runtime_interface(started: Functions) -> RuntimeInterface:
    return RuntimeInterface("commits", 29)


def in_containers(started: Functions):
    from tests.support.servers.in_containers import Containers

    return Containers("commits", 29)


WAYS = [
    in_process,
    pytest.param(in_containers, marks=NEEDS_CONTAINERS),
    pytest.param(behind_the_runtime_interface, marks=NEEDS_EMULATOR),
]


@pytest.fixture(scope="module", params=WAYS)
def function(request, lake, moto):
    """The function over a lake with the tables `main.orders` and `main.customers`."""
    served = set_up_writes(lake.write(f"commits_{request.param.__name__}", LAKE))
    values = {
        "DATABASE_URL": served.database.url,
        "VIRTUAL_BUCKET": DATA,
        "DELIVERY": "materialize",
        "WRITES": "yes",
        "AUTHORIZATION": json.dumps(POLICY),
        "AWS_ENDPOINT_URL_S3": moto,
    }
    with functions(**values) as started:
        found = request.param(started)
        yield found
        found.stop()


def names(body: dict) -> list[str]:
    return [field["name"] for field in body["metadata"]["schemas"][-1]["fields"]]


SAMPLES = {
    "create_namespace": (200, lambda body: body == {"namespace": ["sales"], "properties": {}}),
    "create_table": (200, lambda body: names(body) == ["id", "note"]),
    "update_table": (
        200,
        lambda body: body["metadata"]["properties"]["polynya.tag.owner-team"] == "ducks",
    ),
    "stale": (409, lambda body: body["error"]["type"] == "CommitFailedException"),
    "forbidden": (403, lambda body: body["error"]["type"] == "ForbiddenException"),
    "drop_table": (403, lambda body: body["error"]["type"] == "ForbiddenException"),
    "report_metrics": (204, None),
}


def test_every_sample_is_tested():
    found = {path.stem for path in EVENTS.glob("commits_*.json")}
    assert found == {f"commits_{name}" for name in SAMPLES}


@pytest.mark.parametrize("name", SAMPLES)
def test_api_gateway(function, name):
    """The answer has payload format 2.0, and the body is that of the route."""
    status, holds = SAMPLES[name]
    answer = function.invoke(event(f"commits_{name}"))
    assert answer["statusCode"] == status, answer
    if holds is None:
        assert not answer.get("body")
        return
    assert answer["headers"]["content-type"] == "application/json"
    body = json_of(answer)
    assert holds(body), body


def test_a_request_that_is_sent_again_is_answered_again(function):
    """The sample has an Idempotency-Key."""
    first, second = (
        json_of(function.invoke(event("commits_create_table")))["metadata"] for _ in range(2)
    )
    assert first == second
