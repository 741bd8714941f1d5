"""Keeps the bytes of generated files by key. It knows keys and bytes, neither of the formats.

`CacheStore` keeps them where AWS has room for them: DynamoDB for small ones, S3 for large ones.
`BucketStore` keeps them as real objects in the bucket that clients read (delivery `materialize`).
In both the first copy stays: a name never changes its bytes.
"""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

from aws_lambda_powertools import Logger

from ..errors import Misconfigured
from ..metrics import count

logger = Logger(child=True)

ITEM_LIMIT = 350_000
"""Bytes of a body in DynamoDB, whose items end at 400 KB with all names."""

LEASE_SECONDS = 3
"""For which one instance alone makes a file: longer than nearly all take."""


class Store(Protocol):
    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, body: bytes) -> bytes:
        """Keep `body` unless the key is taken; what is kept under the key comes back."""


class Leases(Protocol):
    def lease(self, key: str) -> bool:
        """Whether the caller shall make the file: nobody else does."""

    def release(self, key: str) -> None:
        """Whoever has the lease cannot make the file."""


class Listed(Protocol):
    """A store that tells what it holds."""

    def ages(self, keys: Iterable[str]) -> dict[str, float]:
        """How many seconds ago each was put or renewed, of those that are there."""

    def renew(self, key: str) -> bool:
        """Let a life begin anew, with the same bytes; False: it is not there."""


class CacheStore:
    """DynamoDB for bodies up to 350 KB; S3 for larger ones, with an item that points there.

    The table has the key `pk` (text) and the TTL attribute `ttl` (seconds since 1970). DynamoDB
    deletes expired items within days and shows them until then, so `ttl` is compared here too.
    """

    def __init__(
        self,
        *,
        table: str,
        bucket: str,
        ttl_seconds: int,
        dynamodb: Callable[[], Any],
        s3: Callable[[], Any],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`dynamodb` and `s3` give boto3 clients; they are called when one is first needed."""
        self._table, self._bucket, self._ttl_seconds = table, bucket, ttl_seconds
        self._dynamodb, self._s3, self._clock = dynamodb, s3, clock

    def get(self, key: str) -> bytes | None:
        response = self._dynamodb().get_item(TableName=self._table, Key={"pk": {"S": key}})
        item = response.get("Item")
        if item is None or int(item["ttl"]["N"]) <= self._clock():
            return None
        body = (
            item["body"]["B"]
            if "body" in item
            else _object(self._s3(), self._bucket, item["s3"]["S"])
        )
        if body is not None and _digest(body) != item["sha256"]["S"]:
            logger.warning("a kept file does not match its checksum; it is made anew", key=key)
            count("BrokenItems")
            self._drop(key, item["sha256"]["S"])
            return None
        return body

    def put(self, key: str, body: bytes) -> bytes:
        place = {"body": {"B": body}} if len(body) <= ITEM_LIMIT else self._put_object(key, body)
        if place is None:
            return body
        now = int(self._clock())
        dynamodb = self._dynamodb()
        try:
            dynamodb.put_item(
                TableName=self._table,
                Item={
                    "pk": {"S": key},
                    "sha256": {"S": _digest(body)},
                    "ttl": {"N": str(now + self._ttl_seconds)},
                    **place,
                },
                ConditionExpression="attribute_not_exists(pk) OR #ttl <= :now",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={":now": {"N": str(now)}},
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return self.get(key) or body
        return body

    def lease(self, key: str) -> bool:
        now = self._clock()
        until = now + LEASE_SECONDS
        dynamodb = self._dynamodb()
        try:
            dynamodb.put_item(
                TableName=self._table,
                Item={
                    "pk": {"S": _lease(key)},
                    "until": {"N": str(until)},
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
        self._dynamodb().delete_item(TableName=self._table, Key={"pk": {"S": _lease(key)}})

    def _drop(self, key: str, sha256: str) -> None:
        # Only the item that was found broken: another instance may have mended it meanwhile.
        dynamodb = self._dynamodb()
        with suppress(dynamodb.exceptions.ConditionalCheckFailedException):
            dynamodb.delete_item(
                TableName=self._table,
                Key={"pk": {"S": key}},
                ConditionExpression="sha256 = :sha256",
                ExpressionAttributeValues={":sha256": {"S": sha256}},
            )

    def _put_object(self, key: str, body: bytes) -> dict[str, Any] | None:
        if not self._bucket:
            return None
        # Under its own digest: two instances with different bytes do not overwrite each other.
        object_key = f"{key}/{_digest(body)}"
        self._s3().put_object(Bucket=self._bucket, Key=object_key, Body=body)
        return {"s3": {"S": object_key}}


class BucketStore:
    """Real objects under the same keys, in a bucket that clients read."""

    def __init__(
        self, bucket: str, s3: Callable[[], Any], clock: Callable[[], float] = time.time
    ) -> None:
        self._bucket, self._s3, self._clock = bucket, s3, clock

    def get(self, key: str) -> bytes | None:
        return _object(self._s3(), self._bucket, key)

    def put(self, key: str, body: bytes) -> bytes:
        client = self._s3()
        try:
            client.put_object(Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*")
        except client.exceptions.ClientError as error:
            # 412: it is there. 409: another put of the same key was faster.
            if _status(error) not in {409, 412}:
                raise
            return self.get(key) or body
        return body

    def ages(self, keys: Iterable[str]) -> dict[str, float]:
        """One request tells of up to a thousand keys that follow each other, so that there are at
        most as many requests as keys, and mostly one: what nobody asks about is jumped over.

        Raises:
            Misconfigured: the bucket may not be listed.
        """
        left = deque(sorted({*keys}, key=str.encode))  # S3's order
        now = self._clock()
        found: dict[str, float] = {}
        while left:
            folder = left[0][: left[0].rfind("/") + 1]
            page = self._page(folder, left[0])
            listed = {one["Key"]: one["LastModified"] for one in page.get("Contents", ())}
            last = max(map(str.encode, listed), default=b"") if page["IsTruncated"] else None
            while (
                left and left[0].startswith(folder) and (last is None or left[0].encode() <= last)
            ):
                key = left.popleft()
                if key in listed:
                    found[key] = now - listed[key].timestamp()
        return found

    def _page(self, folder: str, first: str) -> Any:
        """The keys of a folder from this one on, up to a thousand."""
        client = self._s3()
        try:
            # S3 lists what is after a key: so from the one without its last character.
            return client.list_objects_v2(Bucket=self._bucket, Prefix=folder, StartAfter=first[:-1])
        except client.exceptions.ClientError as error:
            if _status(error) == 403:
                raise Misconfigured(
                    "the bucket of the virtual files may not be listed: the role needs "
                    "s3:ListBucket for the prefix of the virtual files"
                ) from None
            raise

    def renew(self, key: str) -> bool:
        client = self._s3()
        here = {"Bucket": self._bucket, "Key": key}
        try:
            # S3 copies an object to itself only where something changes; there is no metadata.
            client.copy_object(**here, CopySource=here, MetadataDirective="REPLACE")
        except client.exceptions.ClientError as error:
            if _status(error) in {403, 404}:
                return False
            raise
        return True


def _object(s3: Any, bucket: str, key: str) -> bytes | None:
    try:
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except s3.exceptions.ClientError as error:
        # Who may not list the bucket is told 403 where there is no such object.
        if _status(error) in {403, 404}:
            return None
        raise
    return body


def _lease(key: str) -> str:
    return f"{key}#lease"


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _status(error: Any) -> int:
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status
