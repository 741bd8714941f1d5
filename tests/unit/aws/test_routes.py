"""Requests reach the function of their route, which is that of template.yaml."""

import pytest
import urllib3

from tests.aws.api_gateway import READING, ROUTES, WRITING, function_of
from tests.aws.stand_in import StandIn
from tests.aws.template import LOGICAL_IDS, template

TABLE = "/v1/lake/namespaces/main/tables/orders"
RESOURCES = template()["Resources"]


def test_the_routes_are_those_of_the_template():
    found = {}
    for resource in RESOURCES.values():
        if resource["Type"] == "AWS::ApiGatewayV2::Route":
            route = resource["Properties"]
            integration = route["Target"]["Fn::Sub"].removeprefix("integrations/")[2:-1]
            uri = RESOURCES[integration]["Properties"]["IntegrationUri"]
            found[route["RouteKey"]] = uri["Ref"].removesuffix(".Alias")
    assert found == {route: LOGICAL_IDS[name] for route, name in ROUTES.items()}


# The order in which API Gateway chooses is that of its documentation: a full match, then a greedy
# one; ANY has the methods that no other route with the same path has.
REQUESTS = [
    ("GET", "/v1/config", READING),
    ("HEAD", TABLE, READING),
    ("OPTIONS", TABLE, READING),
    ("POST", TABLE, WRITING),
    ("DELETE", TABLE, WRITING),
    ("PUT", TABLE, WRITING),
    ("PATCH", TABLE, WRITING),
    ("POST", "/v1/lake/transactions/commit", WRITING),
    ("POST", "/v1/lake/namespaces", WRITING),
    ("POST", TABLE + "/metrics", READING),
    ("DELETE", TABLE + "/metrics", WRITING),
    ("GET", TABLE + "/metrics", READING),
    ("POST", "/metrics", WRITING),
    # A name with a slash, which API Gateway has decoded: no route has so many segments.
    ("POST", TABLE + "/b/metrics", WRITING),
    ("GET", "/", READING),
]


@pytest.mark.parametrize(("method", "path", "function"), REQUESTS)
def test_a_request_has_the_function_of_its_route(method, path, function):
    assert function_of(method, path, {READING, WRITING}) == function
    assert function_of(method, path, {READING}) == READING


def answering(name: str):
    return lambda event, context: {"statusCode": 200, "body": name}


@pytest.mark.parametrize("writes", [True, False])
def test_the_stand_in_calls_that_function(writes):
    given = {"alias": None, "supporting_bucket": None, "s3_endpoint": None, "region": "us-east-1"}
    with StandIn(**given) as stand_in:
        commits = answering(WRITING) if writes else None
        stand_in.start(answering(READING), commits_handler=commits)
        for method, path, function in REQUESTS:
            answer = urllib3.request(method, stand_in.api_uri + path)
            expected = function if writes else READING
            assert answer.data == (b"" if method == "HEAD" else expected.encode())
