"""Requests to DynamoDB by rules of which moto checks not all."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from polynya.storage.cache_store import CacheStore
from polynya.storage.event_bus import Positions

HELD = {"snapshot_id": {"N": "7"}, "holder": {"S": "h"}, "until": {"N": "0"}}


class DynamoDB:
    """Keeps the parameters of each request."""

    exceptions = SimpleNamespace(ConditionalCheckFailedException=KeyError)

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def update_item(self, **parameters: Any) -> dict[str, Any]:
        self.requests.append(parameters)
        return {"Attributes": HELD}

    put_item = delete_item = update_item

    def get_item(self, **parameters: Any) -> dict[str, Any]:
        self.requests.append(parameters)
        return {}


def publish(dynamodb: DynamoDB) -> None:
    with Positions("events", lambda: dynamodb).turn("lake") as turn:
        assert turn is not None
        turn.advance(8)


def keep(dynamodb: DynamoDB) -> None:
    clients = {"dynamodb": lambda: dynamodb, "s3": lambda: None}
    store = CacheStore(table="cache", bucket="", ttl_seconds=60, **clients)
    store.lease("key")
    store.put("key", b"body")
    store.get("key")
    store.release("key")
    store._drop("key", "sha256")


@pytest.mark.parametrize(("act", "count"), [(publish, 3), (keep, 5)])
def test_a_request_gives_names_and_values_that_its_expressions_use_and_no_empty_map(act, count):
    """DynamoDB answers ValidationException to everything else."""
    dynamodb = DynamoDB()
    act(dynamodb)
    assert len(dynamodb.requests) == count
    for request in dynamodb.requests:
        texts = (str(value) for key, value in request.items() if key.endswith("Expression"))
        used = set(re.findall(r"[#:]\w+", " ".join(texts)))
        maps = [request[key] for key in request if key.startswith("ExpressionAttribute")]
        assert all(maps), request
        assert {name for some in maps for name in some} == used, request
