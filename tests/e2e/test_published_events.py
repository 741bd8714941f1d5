"""Events of a lake on a bus of EventBridge: each snapshot, in order, whatever fails meanwhile.

The bus, its table and the queue that hears it are moto's; native DuckLake writes the lake.
"""

import io
import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from itertools import count

import boto3
import pytest
from polynya.aws_lambda.function_lakes import FunctionLakes
from polynya.catalog import events
from polynya.catalog.events import RESERVE_SECONDS, SKIPPED, SNAPSHOT
from polynya.catalog.reader import open_catalog
from polynya.runtime import budget
from polynya.runtime.errors import Misconfigured, ServiceUnavailable
from polynya.storage.event_bus import LEASE_SECONDS, MOST_BYTES, Entry, EventBus, Positions
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.processes.serving import REGION

from functions.rest_catalog import events as function
from tests.aws.lambda_function import LambdaContext

NUMBERS = count()
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE orders(id BIGINT);
"""


class Published:
    """A lake, a bus, and a queue with all that is put onto the bus."""

    def __init__(self, con, moto) -> None:
        self._con = con
        self.name = f"bus-{next(NUMBERS)}"
        self.events, self.dynamodb, sqs = (
            boto3.client(service, endpoint_url=moto, region_name=REGION)
            for service in ("events", "dynamodb", "sqs")
        )
        self.events.create_event_bus(Name=self.name)
        queue = sqs.create_queue(QueueName=self.name)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        rule = {"Name": "all", "EventBusName": self.name}
        self.events.put_rule(**rule, EventPattern=json.dumps({"source": ["polynya"]}))
        target = {"Id": "queue", "Arn": arn["Attributes"]["QueueArn"]}
        self.events.put_targets(Rule="all", EventBusName=self.name, Targets=[target])
        self.dynamodb.create_table(
            TableName=self.name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self._receive = lambda: sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        self._delete = lambda handle: sqs.delete_message(QueueUrl=queue, ReceiptHandle=handle)
        self.bus = self.bus_named(self.name)
        self.positions = self.positions_by(time.time)

    def bus_named(self, name: str) -> EventBus:
        return EventBus(name, lambda: function.lakes.aws("events"))

    def positions_by(self, clock: Callable[[], float]) -> Positions:
        return Positions(self.name, lambda: function.lakes.aws("dynamodb"), clock)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._con.execute(statement)

    def insert(self, times: int) -> range:
        """So many snapshots; returns their ids."""
        before = self.newest()
        self.run(*["INSERT INTO orders FROM range(1)"] * times)
        return range(before + 1, before + 1 + times)

    def newest(self) -> int:
        sql = "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')"
        [[newest]] = self._con.execute(sql).fetchall()
        return newest

    def heard(self) -> list[dict]:
        """What was put onto the bus since the last call, in order."""
        bodies = []
        while messages := self._receive().get("Messages"):
            for message in messages:
                bodies.append(json.loads(message["Body"]))
                self._delete(message["ReceiptHandle"])
        return bodies

    def ids(self) -> list[int]:
        heard = self.heard()
        assert {one["detail-type"] for one in heard} <= {SNAPSHOT}
        return [one["detail"]["snapshot-id"] for one in heard]

    def publish(self, bus=None, positions=None) -> int | None:
        return events.publish(
            function.lakes().named(None), bus or self.bus, positions or self.positions
        )


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("published", SCRIPT)


@pytest.fixture(scope="module")
def native(written, moto):
    with closing(connect(LAKE, moto)) as con:
        attach(con, written, read_only=False)
        con.execute("USE lake")
        yield con


@pytest.fixture
def published(written, native, moto, monkeypatch):
    """A bus onto which nothing was put yet."""
    made = Published(native, moto)
    variables = {
        "DATABASE_URL": written.database.url,
        "METADATA_SCHEMA": written.metadata_schema,
        "VIRTUAL_BUCKET": "lakes",
        "EVENT_BUS": made.name,
        "EVENTS_TABLE": made.name,
        "AWS_ENDPOINT_URL": moto,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(function, "lakes", FunctionLakes(os.environ, open_catalog))
    yield made
    function.lakes.close()


@pytest.fixture
def begun(published):
    """A bus with the events from here on."""
    assert published.publish() == 1
    [began] = published.heard()
    assert began["detail-type"] == SKIPPED
    return published


def later() -> float:
    """The time when every lease of now has ended."""
    return time.time() + LEASE_SECONDS


def invoke() -> dict:
    return function.handler({}, LambdaContext("events", 1769, "", "1", time.monotonic() + 60))


def test_each_snapshot_is_published_once_in_order_as_clients_get_it(published):
    log = io.StringIO()
    stream = function.logger.registered_handler.setStream(log)
    function.logger.setLevel("INFO")
    start = published.newest()
    assert invoke() == {"published": 1}
    [began] = published.heard()
    assert began["source"] == "polynya" and began["detail-type"] == SKIPPED
    assert began["detail"] == {
        "warehouse": "lake",
        "idempotency-key": f"lake@{start}-skipped",
        "reason": "began",
        "last-snapshot-id": start,
    }
    assert invoke() == {"published": 0} and published.heard() == []
    published.insert(11)
    published.run(
        "BEGIN",
        "CALL lake.set_commit_message('Ada', 'a view — ø')",
        'CREATE VIEW "v ø" AS SELECT 1 AS one',
        "COMMIT",
    )
    assert invoke() == {"published": 12}
    heard = published.heard()
    wanted = events.events_after(function.lakes().named(None), start)["events"]
    assert [one["snapshot-id"] for one in wanted] == [*range(start + 1, start + 13)]
    assert [one["detail"] for one in heard] == [
        {
            "warehouse": "lake",
            "idempotency-key": f"lake@{event['snapshot-id']}",
            **event,
        }
        for event in wanted
    ]
    assert heard[-1]["detail"]["message"] == "a view — ø"
    assert heard[-1]["detail"]["changes"][0]["name"] == "v ø"
    times = [one["detail"]["timestamp-ms"] // 1000 for one in heard]
    assert [int(datetime.fromisoformat(one["time"]).timestamp()) for one in heard] == times
    assert invoke() == {"published": 0} and published.heard() == []
    function.logger.registered_handler.setStream(stream)
    function.logger.setLevel("WARNING")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["published"] for line in lines] == [1, 0, 12, 0]


class Flaky:
    """EventBridge's client, whose answers to some requests are failures."""

    def __init__(self, client, *answers) -> None:
        self._client, self._answers = client, [*answers]

    def put_events(self, Entries):
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer or self._client.put_events(Entries=Entries)


def failed(code: str) -> dict:
    return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "…"}]}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (failed("ThrottlingException"), ServiceUnavailable),
        (failed("InternalFailure"), ServiceUnavailable),
        (failed("AccessDeniedException"), Misconfigured),
    ],
)
def test_a_failure_stops_there_and_the_next_run_goes_on(answer, error, begun):
    ids = begun.insert(5)
    client = Flaky(begun.events, None, None, answer)
    with pytest.raises(error, match="the event bus cannot be written to"):
        begun.publish(EventBus(begun.name, lambda: client))
    assert begun.ids() == [*ids[:2]]
    assert begun.publish() == 3
    assert begun.ids() == [*ids[2:]]


def test_a_process_that_dies_repeats_what_it_did_not_note(begun, monkeypatch):
    """At least once: in order, from the last snapshot that was noted."""
    ids = begun.insert(3)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Positions, "_update", once_only(Positions._update))
        begun.publish(positions=begun.positions_by(time.time))
    assert begun.ids() == [*ids]
    # It holds the lease still, as a killed process does.
    assert begun.publish() is None
    assert begun.publish(positions=begun.positions_by(later)) == 3
    assert begun.ids() == [*ids]


def once_only(update):
    """The first call goes through; at the second one the process ends."""
    calls = count()

    def ending(*arguments):
        if next(calls):
            raise KeyboardInterrupt
        return update(*arguments)

    return ending


def test_two_at_once_do_not_publish_the_same_lake(begun):
    ids = begun.insert(2)
    with begun.positions.turn("lake") as turn:
        assert turn.snapshot_id == ids[0] - 1
        assert begun.publish() is None and begun.ids() == []
        with begun.positions.turn("another") as other:
            assert other.snapshot_id is None
    assert begun.publish() == 2
    assert begun.ids() == [*ids]


def test_who_has_lost_the_lease_notes_nothing(begun):
    ids = begun.insert(2)
    with begun.positions.turn("lake") as slow:
        assert begun.publish(positions=begun.positions_by(later)) == 2
        with pytest.raises(ServiceUnavailable, match="another process publishes"):
            slow.advance(ids[0])
    more = begun.insert(1)
    assert begun.publish() == 1
    assert begun.ids() == [*ids, *more]


def test_snapshots_that_expired_before_they_were_published_are_an_event(begun):
    a, b, c, d, e, f = begun.insert(6)
    begun.run(f"CALL ducklake_expire_snapshots('lake', versions => [{a}, {b}, {e}])")
    assert begun.publish() == 5
    heard = [(one["detail-type"], one["detail"]) for one in begun.heard()]
    assert [
        (detail["first-snapshot-id"], detail["last-snapshot-id"], detail["reason"])
        if kind == SKIPPED
        else detail["snapshot-id"]
        for kind, detail in heard
    ] == [(a, b, "expired"), c, d, (e, e, "expired"), f]
    keys = [detail["idempotency-key"].removeprefix("lake@") for _, detail in heard]
    assert keys == [f"{b}-skipped", str(c), str(d), f"{e}-skipped", str(f)]


def test_a_lake_that_was_restored_begins_again(begun):
    """Its snapshots get numbers that consumers have seen already."""
    start = begun.newest()
    with begun.positions.turn("lake") as turn:
        turn.advance(start + 99)
    assert begun.publish() == 1
    [again] = begun.heard()
    assert again["detail"]["reason"] == "replaced"
    assert again["detail"]["last-snapshot-id"] == start
    ids = begun.insert(1)
    assert begun.publish() == 1 and begun.ids() == [*ids]


def test_what_does_not_fit_into_the_time_is_left_to_the_next_run(begun):
    ids = begun.insert(3)

    class Slow(EventBus):
        def put(self, entry: Entry) -> None:
            super().put(entry)
            time.sleep(0.3)

    with budget.limited(RESERVE_SECONDS + 0.3):
        assert begun.publish(Slow(begun.name, begun.bus.events)) == 1
    assert begun.ids() == [*ids[:1]]
    assert begun.publish() == 2
    assert begun.ids() == [*ids[1:]]


def test_a_refusal_of_the_bus_is_said(begun):
    """moto refuses a bus that does not exist, where EventBridge drops the event."""
    ids = begun.insert(1)
    with pytest.raises(Misconfigured, match="the event bus cannot be written to: ResourceNotFound"):
        begun.publish(begun.bus_named("none-of-this-name"))
    assert begun.publish() == 1 and begun.ids() == [*ids]


def test_an_event_is_cut_to_what_eventbridge_takes():
    names = [{"type": "created_table", "id": n, "name": f"ø{n:0200}"} for n in range(3000)]
    detail = {"snapshot-id": 7, "changes": names, "author": "Ada"}
    cut = events._shortened(Entry(SNAPSHOT, detail))
    changes = cut.detail["changes"]
    assert changes == names[: len(changes)] and 500 < len(changes) < 3000
    assert cut.detail["is-cut"] and cut.detail["author"] == "Ada"
    assert len(cut.text.encode()) + len("polynya") + len(SNAPSHOT) <= MOST_BYTES
    longer = {**cut.detail, "changes": names[: len(changes) + 1]}
    assert EventBus.bytes_left(Entry(SNAPSHOT, longer)) < 0
    long_message = {**detail, "message": "x" * MOST_BYTES}
    cut = events._shortened(Entry(SNAPSHOT, long_message))
    assert "message" not in cut.detail and EventBus.bytes_left(cut) >= 0
    assert len(cut.detail["changes"]) >= len(changes)
    small = Entry(SNAPSHOT, {**detail, "changes": names[:2]})
    assert events._shortened(small) is small


def test_a_lake_that_is_away_does_not_stop_the_others(published, written, monkeypatch):
    twin = {"database_url": written.database.url, "data_path": f"{written.data_path}/"}
    away = {"database_url": "postgresql://u@127.0.0.1:1/d", "data_path": "s3://lakes/away/"}
    monkeypatch.setenv("LAKES", json.dumps({"away": away, "twin": twin}))
    monkeypatch.setattr(function, "lakes", FunctionLakes(os.environ, open_catalog))

    def keys() -> dict[str, list[str]]:
        with pytest.raises(ServiceUnavailable):  # Lambda counts it, for the alarm
            invoke()
        heard = {"lake": [], "twin": []}
        for event in published.heard():
            heard[event["detail"]["warehouse"]].append(event["detail"]["idempotency-key"])
        return heard

    assert keys() == {name: [f"{name}@{published.newest()}-skipped"] for name in ("lake", "twin")}
    ids = published.insert(2)
    assert keys() == {name: [f"{name}@{id_}" for id_ in ids] for name in ("lake", "twin")}
