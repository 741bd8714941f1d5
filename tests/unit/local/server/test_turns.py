import asyncio
import time

import pytest
from polynya.http.application import observed
from polynya.runtime import metrics
from polynya_local.cache_folder import CacheFolder
from polynya_local.server import turns
from polynya_local.server.turns import Turns

TABLE = "/v1/lake/namespaces/main/tables/t"


class Clients:
    """Requests that an application answers with the status that they ask for."""

    def __init__(self, folder) -> None:
        self.order = []
        self._folder = folder
        self._start = time.monotonic()
        self.new_process()

    def new_process(self, app=None):
        """Let another process answer what follows."""
        self._app = Turns(app or self._answer, CacheFolder(self._folder).store("lake"))

    async def _answer(self, scope, receive, send):
        await send({"type": "http.response.start", "status": scope["status"], "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask(self, name, status=409, method="POST", path=TABLE):
        """Ask, and note when the answer is there."""

        async def send(message):
            if message["type"] == "http.response.start":
                self.order.append((name, time.monotonic() - self._start))

        scope = {"type": "http", "method": method, "path": path, "status": status}
        await self._app({**scope, "client": (name, 1)}, None, send)

    async def conflicts(self, *names):
        """Refused commits, each after the other; the task of each."""
        tasks = []
        for name in names:
            tasks.append(asyncio.create_task(self.ask(name)))
            await asyncio.sleep(0)
        return tasks

    @property
    def names(self):
        """Whose answers are there, in order."""
        return [name for name, _ in self.order]


@pytest.fixture
def clients(monkeypatch, tmp_path):
    monkeypatch.setattr(turns, "TURN_SECONDS", 60)
    monkeypatch.setattr(turns, "LONGEST_WAIT", 60)
    return Clients(tmp_path)


def test_the_next_client_tries_when_the_one_before_commits(clients):
    async def run():
        tasks = await clients.conflicts("a", "b", "c")
        await clients.ask("other", 200)  # it is not its turn
        await asyncio.sleep(0.05)
        assert clients.names == ["a", "other"]
        await clients.ask("a", 200)
        await asyncio.sleep(0.05)
        assert clients.names == ["a", "other", "a", "b"]
        lost = asyncio.create_task(clients.ask("b"))  # again: it waits behind the others
        await asyncio.sleep(0.05)
        assert clients.names[4:] == ["c"]
        await clients.ask("c", 200)
        await asyncio.gather(lost, *tasks)
        assert clients.names[5:] == ["c", "b"]
        await clients.ask("b", 200)
        await clients.ask("a later conflict")  # it waits for nobody

    asyncio.run(run())


def test_the_next_client_has_its_answer_while_the_one_before_commits(clients):
    committing = asyncio.Event()

    async def commit(scope, receive, send):
        if scope["status"] == 200:
            await committing.wait()
        await clients._answer(scope, receive, send)

    clients.new_process(commit)

    async def run():
        await clients.conflicts("a", "b")
        commit = asyncio.create_task(clients.ask("a", 200))
        while clients.names != ["a", "b"]:
            await asyncio.sleep(0.01)
        committing.set()
        await commit

    asyncio.run(asyncio.wait_for(run(), 10))


def test_the_clients_of_all_processes_take_turns(clients):
    async def run():
        tasks = await clients.conflicts("a", "b")
        first, _ = clients._app, clients.new_process()
        tasks += await clients.conflicts("c", "d")
        await asyncio.sleep(0.05)
        assert clients.names == ["a"]
        second, clients._app = clients._app, first
        await clients.ask("a", 200)
        while len(clients.names) < 3:
            await asyncio.sleep(0.01)
        assert clients.names[:2] == ["a", "a"] and clients.names[2] in "bc"
        await asyncio.sleep(0.05)
        assert len(clients.names) == 3
        clients._app = first if clients.names[2] == "b" else second
        await clients.ask(clients.names[2], 200)
        while len(clients.names) < 5:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()

    asyncio.run(asyncio.wait_for(run(), 10))


def test_without_a_folder_no_answer_waits(clients, tmp_path):
    (tmp_path / "lake").write_text("no folder")

    async def run():
        await asyncio.gather(*await clients.conflicts("a", "b", "c"))

    asyncio.run(asyncio.wait_for(run(), 10))
    assert sorted(clients.names) == ["a", "b", "c"]


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
        tasks = await clients.conflicts("a", "b")
        await asyncio.wait_for(clients.ask("other", **other), 5)
        assert clients.names == ["a", "other"]
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def test_a_client_that_does_not_come_back_ends_its_turn(clients, monkeypatch):
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.1)

    async def run():
        await asyncio.gather(*await clients.conflicts("a", "b", "c"))

    asyncio.run(run())
    assert clients.names == ["a", "b", "c"]
    times = [seconds for name, seconds in clients.order if name in "abc"]
    assert times[1] >= 0.1 and times[2] >= 0.2


def test_no_answer_waits_too_long(clients, monkeypatch):
    monkeypatch.setattr(turns, "LONGEST_WAIT", 0.1)

    async def run():
        await asyncio.gather(*await clients.conflicts("a", "b", "c"))
        # Who has gone is passed over.
        monkeypatch.setattr(turns, "LONGEST_WAIT", 60)
        gone, waiting = await clients.conflicts("gone", "waiting")
        gone.cancel()
        await clients.ask("a", 200)
        await waiting
        assert clients.names[-2:] == ["a", "waiting"]

    asyncio.run(asyncio.wait_for(run(), 10))
    assert sorted(clients.names[:3]) == ["a", "b", "c"]


def test_the_wait_for_a_turn_is_no_time_of_the_request(clients):
    seen = []
    clients.new_process(observed(clients._answer))

    async def run():
        first, second = await clients.conflicts("a", "b")
        await first
        await asyncio.sleep(0.5)
        await clients.ask("a", 200)
        await second

    with metrics.watching(lambda name, value, labels: seen.append(value)):
        asyncio.run(run())
    assert clients.order[-1][1] > 0.5
    assert len(seen) == 3 and max(seen) < 0.4
