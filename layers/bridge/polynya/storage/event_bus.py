"""EventBridge, and the table of the last snapshot of each lake whose events it has.

The table has the key `pk` (text): one item for each lake. An item is never deleted, and its number
is kept nowhere else, so this is not the table of the cache, which may be emptied.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from ..runtime.errors import PolynyaError, ServiceUnavailable
from . import aws

MOST_BYTES = 256 * 1024 - 1
"""The size of an entry ("Calculating Amazon EventBridge PutEvents event entry size")."""

LEASE_SECONDS = 75
"""Longer than an invocation may last (60 s), but short, so that others soon go on after one that
was stopped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event for EventBridge."""

    kind: str
    """`detail-type`."""
    detail: Mapping[str, Any]
    time: datetime | None = None
    """When it happened; None: now."""

    @property
    def text(self) -> str:
        """The detail as JSON."""
        return compact_json(self.detail)


@dataclass(frozen=True, slots=True)
class EventBus:
    """Puts events onto one bus, one in each request.

    A request may have ten events, and EventBridge may accept the second and not the first. A
    consumer that keeps the last snapshot would then ignore the first when it arrives later.
    """

    SOURCE = "polynya"

    bus: str
    """Its name or its ARN."""
    events: Callable[[], Any]
    """Gives a boto3 client."""

    def put(self, entry: Entry) -> None:
        """Put one event. On a bus that does not exist EventBridge drops it, without an error.

        Raises:
            Misconfigured: this role may not put events onto the bus.
            ServiceUnavailable: EventBridge does not take it now.
        """
        fields = {
            "EventBusName": self.bus,
            "Source": self.SOURCE,
            "DetailType": entry.kind,
            "Detail": entry.text,
            **({} if entry.time is None else {"Time": entry.time}),
        }
        answer = aws.call(
            "the event bus", lambda: self.events().put_events(Entries=[fields]), "written to"
        )
        if answer["FailedEntryCount"]:
            raise aws.failure("the event bus", answer["Entries"][0]["ErrorCode"], "written to")

    @classmethod
    def bytes_left(cls, entry: Entry) -> int:
        """The bytes that may be added to an entry; negative: it is too large."""
        of_time = 14 if entry.time else 0
        return MOST_BYTES - len(f"{cls.SOURCE}{entry.kind}{entry.text}".encode()) - of_time


@dataclass(frozen=True, slots=True)
class Positions:
    """The last published snapshot of each lake, and the process that publishes its events now."""

    table: str
    dynamodb: Callable[[], Any]
    """Gives a boto3 client."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970."""

    @contextmanager
    def turn(self, lake: str) -> Iterator["Turn | None"]:
        """Let this process alone publish events of a lake in the block; None: another one does.

        Raises:
            Misconfigured: there is no such table, or this role may not change it.
            ServiceUnavailable: DynamoDB does not answer now.
        """
        holder = uuid4().hex
        now = self.clock()
        item = self._update(
            lake,
            "SET holder = :holder, #until = :until",
            "attribute_not_exists(#until) OR #until <= :now",
            {
                ":holder": {"S": holder},
                ":until": _number(now + LEASE_SECONDS),
                ":now": _number(now),
            },
        )
        if item is None:
            yield None
            return
        last = int(item["snapshot_id"]["N"]) if "snapshot_id" in item else None
        turn = Turn(last, lambda snapshot_id: self._advance(lake, holder, snapshot_id))
        try:
            yield turn
        finally:
            with suppress(PolynyaError):  # the lease then ends by itself
                self._update(
                    lake,
                    "SET #until = :until",
                    "holder = :holder",
                    {":until": _number(0), ":holder": {"S": holder}},
                )

    def _advance(self, lake: str, holder: str, snapshot_id: int) -> None:
        item = self._update(
            lake,
            "SET snapshot_id = :snapshot_id",
            "holder = :holder",
            {":snapshot_id": _number(snapshot_id), ":holder": {"S": holder}},
        )
        if item is None:
            raise ServiceUnavailable("another process publishes the events of this lake now")

    def _update(
        self, lake: str, update: str, condition: str, values: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The item after the update; None if the condition does not hold."""
        dynamodb = self.dynamodb()
        # DynamoDB refuses names that no expression uses, and a map without names.
        uses_until = "#until" in update + condition
        names = {"ExpressionAttributeNames": {"#until": "until"}} if uses_until else {}

        def request() -> Any:
            try:
                return dynamodb.update_item(
                    TableName=self.table,
                    Key={"pk": {"S": lake}},
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeValues=dict(values),
                    ReturnValues="ALL_NEW",
                    **names,
                )
            except dynamodb.exceptions.ConditionalCheckFailedException:
                return None

        answer = aws.call("the table of published events", request, "written to")
        return None if answer is None else dict(answer["Attributes"])


@dataclass(slots=True)
class Turn:
    """The time in which one process alone publishes the events of a lake."""

    snapshot_id: int | None
    """The last published snapshot; None: none yet."""
    _store: Callable[[int], None]

    def advance(self, snapshot_id: int) -> None:
        """Record that all events up to a snapshot are published.

        Raises:
            ServiceUnavailable: this process was so slow that another one has taken over.
            Misconfigured, ServiceUnavailable: as `Positions.turn`.
        """
        if snapshot_id != self.snapshot_id:
            self._store(snapshot_id)
            self.snapshot_id = snapshot_id


def compact_json(thing: Any) -> str:
    """JSON without spaces and without escaped letters."""
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))


def _number(value: float) -> dict[str, str]:
    return {"N": str(value)}
