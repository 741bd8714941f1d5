import asyncio
import time

import pytest
from polynya.http.application import observed
from polynya.runtime import metrics
from polynya_local.server import turns
from polynya_local.server.turns import Turns

TABLE = "/v1/lake/namespaces/main/tables/t"


class Clients:
    """Requests that an application answers with the status that they ask for."""

    def __init__(self) -> None:
        self.order = []
        self._app = Turns(self._answer)
        self._start = time.monotonic()

    async def _answer(self, scope, receive, send):
        await send({"type": "http.response.start", "status": scope["status"], "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask(self, name, status=409, method="POST", path=TABLE):
        """Ask, and note when the answer is there."""

        async def send(message):
            if message["type"] == "http.response.start":
                self.order.append((name, time.monotonic() - self._start))

        scope = {"type": "http", "method": method, "path": path, "status": status}
        await self._app(scope, None, send)

    async def conflicts(self, number):
        """So many refused commits, each after the other; the task of each."""
        tasks = []
        for name in range(number):
            tasks.append(asyncio.create_task(self.ask(name)))
            await asyncio.sleep(0)
        return tasks

    @property
    def names(self):
        return [name for name, _ in self.order]


@pytest.fixture
def clients(monkeypatch):
    monkeypatch.setattr(turns, "TURN_SECONDS", 60)
    monkeypatch.setattr(turns, "LONGEST_WAIT", 60)
    return Clients()


def test_the_next_client_tries_when_a_commit_has_ended(clients):
    async def run():
        tasks = await clients.conflicts(3)
        await asyncio.sleep(0.05)
        assert clients.names == [0]
        await clients.ask("first commit", 200)
        await asyncio.sleep(0.05)
        assert clients.names == [0, "first commit", 1]
        await clients.ask("second commit", 200)
        await asyncio.gather(*tasks)
        assert clients.names == [0, "first commit", 1, "second commit", 2]
        await clients.ask("third commit", 200)
        await clients.ask("a later conflict")  # it waits for nobody

    asyncio.run(run())


@pytest.mark.parametrize(
    "other",
    [
        {"path": f"{TABLE}2"},
        {"method": "GET", "status": 200},
        {"status": 400},
        {"status": 503},
        {"path": f"{TABLE}/plan"},
        {"path": "/v1/lake/transactions/commit"},
    ],
)
def test_other_answers_do_not_wait(clients, other):
    async def run():
        tasks = await clients.conflicts(2)
        await asyncio.wait_for(clients.ask("other", **other), 5)
        assert clients.names == [0, "other"]
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_a_client_that_does_not_come_back_ends_its_turn(clients, monkeypatch):
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.1)

    async def run():
        await asyncio.gather(*await clients.conflicts(3))

    asyncio.run(run())
    assert clients.names == [0, 1, 2]
    times = [seconds for _, seconds in clients.order]
    assert times[1] >= 0.1 and times[2] >= 0.2


def test_no_answer_waits_too_long(clients, monkeypatch):
    monkeypatch.setattr(turns, "LONGEST_WAIT", 0.1)

    async def run():
        await asyncio.wait_for(asyncio.gather(*await clients.conflicts(4)), 5)
        # Who has gone is passed over.
        waiting = asyncio.create_task(clients.ask("waiting"))
        gone = asyncio.create_task(clients.ask("gone"))
        await asyncio.sleep(0)
        gone.cancel()
        await clients.ask("commit", 200)
        await waiting
        assert clients.names[-2:] == ["commit", "waiting"]

    asyncio.run(run())
    assert sorted(clients.names[:4]) == [0, 1, 2, 3]


def test_the_wait_for_a_turn_is_no_time_of_the_request(clients):
    seen = []
    clients._app = Turns(observed(clients._answer))

    async def run():
        first, second = await clients.conflicts(2)
        await first
        await asyncio.sleep(0.5)
        await clients.ask("a commit", 200)
        await second

    with metrics.watching(lambda name, value, labels: seen.append(value)):
        asyncio.run(run())
    assert clients.order[-1][1] > 0.5
    assert len(seen) == 3 and max(seen) < 0.4
