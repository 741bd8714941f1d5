"""The store of the delivery `object-lambda`: DynamoDB for small files, S3 for large ones."""

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from ..runtime.metrics import count
from .objects import get_object

logger = Logger(child=True)

ITEM_LIMIT = 350_000
"""Bytes of a body in DynamoDB, whose items end at 400 KB with all names."""

LEASE_SECONDS = 3
"""How long one instance alone generates a file: nearly all files take less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStore:
    """DynamoDB for bodies up to 350 KB; S3 for larger ones, with an item that points to the object.

    The table has the key `pk` (text) and the TTL attribute `ttl` (seconds since 1970). DynamoDB
    deletes expired items within days and returns them until then, so `ttl` is compared here too.
    Methods raise boto3's errors.
    """

    table: str
    bucket: str
    """For large bodies; empty: they are not stored."""
    ttl_seconds: int
    dynamodb: Callable[[], Any]
    """Gives a boto3 client; it is called when one is needed."""
    s3: Callable[[], Any]
    """The same."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970."""

    def get(self, key: str) -> bytes | None:
        """The stored bytes; None if there are none, if they have expired, or if their checksum is
        wrong: then the item is deleted."""
        response = self.dynamodb().get_item(TableName=self.table, Key={"pk": {"S": key}})
        item = response.get("Item")
        if item is None or int(item["ttl"]["N"]) <= self.clock():
            return None
        body = (
            item["body"]["B"]
            if "body" in item
            else get_object(self.s3(), self.bucket, item["s3"]["S"])
        )
        if body is not None and _digest(body) != item["sha256"]["S"]:
            logger.warning(
                "a stored file does not match its checksum; it is generated again", key=key
            )
            count("BrokenItems")
            self._drop(key, item["sha256"]["S"])
            return None
        return body

    def put(self, key: str, body: bytes) -> bytes:
        """Store a file for `ttl_seconds` unless there is one; returns the stored bytes."""
        content = {"body": {"B": body}} if len(body) <= ITEM_LIMIT else self._put_object(key, body)
        if content is None:
            return body
        now = int(self.clock())
        dynamodb = self.dynamodb()
        try:
            dynamodb.put_item(
                TableName=self.table,
                Item={
                    "pk": {"S": key},
                    "sha256": {"S": _digest(body)},
                    "ttl": {"N": str(now + self.ttl_seconds)},
                    **content,
                },
                ConditionExpression="attribute_not_exists(pk) OR #ttl <= :now",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={":now": {"N": str(now)}},
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return self.get(key) or body
        return body

    def lease(self, key: str) -> bool:
        """Take the lease of a key for 3 seconds, by a conditional write; False if it is taken."""
        now = self.clock()
        until = now + LEASE_SECONDS
        dynamodb = self.dynamodb()
        try:
            dynamodb.put_item(
                TableName=self.table,
                Item={
                    "pk": {"S": _lease_key(key)},
                    "until": {"N": str(until)},
                    # DynamoDB then deletes the leases of processes that died.
                    "ttl": {"N": str(int(until) + 1)},
                },
                ConditionExpression="attribute_not_exists(pk) OR #until <= :now",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":now": {"N": str(now)}},
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def release(self, key: str) -> None:
        """Delete the lease of a key."""
        self.dynamodb().delete_item(TableName=self.table, Key={"pk": {"S": _lease_key(key)}})

    def _drop(self, key: str, sha256: str) -> None:
        # Delete only the broken item: another instance may have replaced it in the meantime.
        dynamodb = self.dynamodb()
        with suppress(dynamodb.exceptions.ConditionalCheckFailedException):
            dynamodb.delete_item(
                TableName=self.table,
                Key={"pk": {"S": key}},
                ConditionExpression="sha256 = :sha256",
                ExpressionAttributeValues={":sha256": {"S": sha256}},
            )

    def _put_object(self, key: str, body: bytes) -> dict[str, Any] | None:
        if not self.bucket:
            return None
        # Under its own digest: two instances with different bytes do not overwrite each other.
        object_key = f"{key}/{_digest(body)}"
        self.s3().put_object(Bucket=self.bucket, Key=object_key, Body=body)
        return {"s3": {"S": object_key}}


def _lease_key(key: str) -> str:
    return f"{key}#lease"


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
