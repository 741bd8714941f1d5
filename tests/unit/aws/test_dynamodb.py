"""The DynamoDB of `polynya serve` answers like moto's to every request of the cache."""

import itertools

import boto3
import pytest
from botocore.exceptions import ClientError
from polynya.storage.cache_store import ITEM_LIMIT, LEASE_SECONDS, CacheStore

from tests.aws.dynamodb import dynamodb

NUMBERS = itertools.count()
TTL = 100


@pytest.fixture(scope="module")
def endpoint():
    with dynamodb() as endpoint:
        yield endpoint


@pytest.fixture
def clients(endpoint, moto):
    """A client of the stand-in and one of moto, and the name of an empty table."""
    table = f"stand-in-{next(NUMBERS)}"
    clients = [boto3.client("dynamodb", endpoint_url=uri) for uri in (endpoint, moto)]
    clients[1].create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
    yield clients, table
    for client in clients:
        client.close()


@pytest.fixture
def both(clients):
    """Calls the same method of a cache on each, and returns the answer, which must be equal."""
    now = [1_700_000_000.5]
    stores = [
        CacheStore(
            table=clients[1],
            bucket="",
            ttl_seconds=TTL,
            dynamodb=lambda client=client: client,
            s3=lambda: None,
            clock=lambda: now[0],
        )
        for client in clients[0]
    ]

    def call(method, *arguments, seconds=0):
        now[0] += seconds
        ours, motos = (getattr(store, method)(*arguments) for store in stores)
        assert ours == motos
        return ours

    return call


def test_the_first_body_stays(both):
    assert both("get", "a") is None
    assert both("put", "a", b"\x00\xff") == b"\x00\xff"
    assert both("put", "a", b"other") == b"\x00\xff"
    assert both("get", "a") == b"\x00\xff"


def test_an_expired_body_is_replaced(both):
    both("put", "a", b"old")
    assert both("get", "a", seconds=TTL + 1) is None
    assert both("put", "a", b"new") == b"new"


def test_the_largest_item_fits(both):
    assert both("put", "a", b"x" * ITEM_LIMIT) == both("get", "a")


def test_one_caller_has_the_lease(both):
    assert both("lease", "a") and not both("lease", "a") and both("lease", "b")
    assert both("lease", "a", seconds=LEASE_SECONDS + 1)
    both("release", "a")
    assert both("lease", "a")


def test_a_body_that_does_not_match_its_checksum_is_dropped(both, clients):
    for client in clients[0]:
        client.put_item(
            TableName=clients[1],
            Item={
                "pk": {"S": "a"},
                "sha256": {"S": "no digest"},
                "ttl": {"N": "1800000000"},
                "body": {"B": b"broken"},
            },
        )
    assert both("get", "a") is None
    assert both("put", "a", b"whole") == b"whole"


@pytest.mark.parametrize(
    "condition", ["size(pk) <= :now", "pk = :now AND pk = :now", "begins_with(pk, :now)"]
)
def test_an_unknown_condition_is_refused(endpoint, condition):
    client = boto3.client("dynamodb", endpoint_url=endpoint)
    with pytest.raises(ClientError, match="ValidationException"):
        client.put_item(
            TableName="t",
            Item={"pk": {"S": "a"}},
            ConditionExpression=condition,
            ExpressionAttributeValues={":now": {"N": "1"}},
        )
    with pytest.raises(ClientError, match="UnknownOperationException"):
        client.scan(TableName="t")
    client.close()
