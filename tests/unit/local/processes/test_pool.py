"""Processes that work for a server: the end of one costs one call, and none outlives its server."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from polynya.runtime import budget, metrics
from polynya.runtime.errors import BadRequest, OutOfTime, PolynyaError
from polynya.runtime.isolation import Ended, isolated, isolating
from polynya_local.builders import new_readers
from polynya_local.processes import pool as of_pool
from polynya_local.processes.pool import KEPT_MEGABYTES, ProcessPool
from polynya_local.server.uvicorn_server import _long_lived


def caller():
    """Makes the function that calls another one."""
    return lambda function, *arguments: function(*arguments)


def unusable():
    raise OSError


def refuse(sentence):
    raise BadRequest(sentence)


def fail():
    raise LookupError("the value of a row")


@isolated
def where():
    return os.getpid()


def watch():
    metrics.observe("AwsCalls", 0.5, service="s3")


@pytest.fixture
def pool():
    with closing(ProcessPool(caller, 2)) as one:
        yield one


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def frozen():
    """How many objects no search for garbage looks at, in a worker of the server too."""
    pooled = gc.get_freeze_count()
    gc.unfreeze()
    _long_lived(lambda: None)
    return pooled, gc.get_freeze_count(), gc.get_threshold()[0]


def test_no_search_for_garbage_stops_a_process_among_its_modules(pool):
    pooled, of_worker, threshold = pool.call(frozen)
    # Python makes some 10,000 objects for itself.
    assert min(pooled, of_worker) > 50_000
    assert threshold > 10_000


def end_by(number):
    os.kill(os.getpid(), number)


def test_a_pool(pool, monkeypatch):
    # One test, because each process takes a second to start.
    first = pool.call(os.getpid)
    assert first != os.getpid()
    assert pool.call(os.getpid) == first  # it is kept

    with pytest.raises(BadRequest, match="no such thing"):
        pool.call(refuse, "no such thing")
    with pytest.raises(PolynyaError, match="see the log"):  # not its message, which has a value
        pool.call(fail)
    assert pool.call(os.getpid) == first

    assert where() == os.getpid()
    with isolating(pool.call):
        assert where() == first

    seen = []
    with metrics.watching(lambda *values: seen.append(values)):
        pool.call(watch)
    assert seen == [("AwsCalls", 0.5, {"service": "s3", "lake": ""})]

    with budget.limited(1), pytest.raises(OutOfTime):
        pool.call(time.sleep, 60)
    assert is_gone(first)
    assert pool.call(os.getpid) != first


def test_a_pool_that_is_closed_leaves_no_thread(monkeypatch):
    """A check of a lake has one of its own, and a server makes many checks."""
    monkeypatch.setattr(of_pool, "WATCH_SECONDS", 0.05)
    before = set(threading.enumerate())
    with closing(ProcessPool(caller, 1)) as one:
        one.call(os.getpid)
        assert set(threading.enumerate()) - before
    eventually(lambda: not set(threading.enumerate()) - before)


def test_readers_have_no_credentials(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with closing(new_readers()) as readers:
        assert readers.call(os.getenv, "AWS_SECRET_ACCESS_KEY") is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_the_end_of_a_process_costs_one_call(pool, number):
    with ThreadPoolExecutor(2) as threads:
        other = threads.submit(pool.call, time.sleep, 1)
        with pytest.raises(Ended, match="has ended"):
            pool.call(end_by, number)
        other.result()
    assert pool.call(sum, [1, 2]) == 3


def test_the_folder_of_a_process_ends_with_it():
    with closing(ProcessPool(caller, 1)) as one:
        folder = Path(one.call(tempfile.mkdtemp)).parent
        assert folder.parent == Path(tempfile.gettempdir())
        (folder / "file").write_text("left by a call")
    assert not folder.exists()


def test_one_is_kept_however_large_the_server_is(pool):
    """On Linux `ru_maxrss` of a process begins with that of the one that has started it."""
    ballast = b"x" * (KEPT_MEGABYTES + 100 << 20)
    assert pool.call(os.getpid) == pool.call(os.getpid)
    del ballast


def test_one_that_is_killed_while_it_waits_costs_none(pool):
    pid = pool.call(os.getpid)
    [process] = pool._idle
    os.kill(pid, signal.SIGKILL)
    # Not `is_gone`: a process is a zombie before the last of its threads has ended.
    eventually(lambda: not process.is_alive())
    assert pool.call(os.getpid) != pid


def test_too_much_memory_ends_it(pool):
    with pytest.raises(Ended):
        pool.call(bytearray, of_pool.MEGABYTES << 20)


def test_a_process_that_has_had_much_memory_is_not_kept(pool):
    pid = pool.call(os.getpid)
    pool.call(_touch, (of_pool.KEPT_MEGABYTES + 50) << 20)
    assert is_gone(pid)


def _touch(size):
    bytearray(b"x") * size


def test_what_waits_for_long_is_ended(monkeypatch, pool):
    monkeypatch.setattr(of_pool, "IDLE_SECONDS", 0.2)
    pid = pool.call(os.getpid)
    eventually(lambda: is_gone(pid))
    assert pool.call(os.getpid) != pid


def test_one_that_cannot_be_started_is_no_fault_of_the_input():
    with closing(ProcessPool(unusable, 1)) as pool, pytest.raises(PolynyaError) as error:
        pool.call(sum, [])
    assert not isinstance(error.value, BadRequest)
    assert "cannot be started" in str(error.value)


def test_more_calls_than_processes_wait_within_their_budget():
    with closing(ProcessPool(caller, 1)) as pool, ThreadPoolExecutor(2) as threads:
        pool.call(sum, [])
        busy = threads.submit(pool.call, time.sleep, 2)
        eventually(lambda: not pool._idle)
        with budget.limited(0.2), pytest.raises(OutOfTime):
            pool.call(sum, [])
        assert threads.submit(pool.call, sum, [1]).result() == 1
        busy.result()


SERVER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from polynya_local.processes.pool import ProcessPool
from tests.unit.local.processes.test_pool import caller, spin
import os
if __name__ == "__main__":
    pool = ProcessPool(caller, 2)
    print(pool.call(os.getpid), flush=True)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(pool.call, spin)
        print(pool.call(os.getpid), flush=True)
        sys.stdin.read()
"""


PROGRAM = """
import time
from threading import Thread
from polynya_local.processes.pool import ProcessPool
from tests.unit.local.processes.test_pool import caller
if __name__ == "__main__":
    pool = ProcessPool(caller, 1)
    pool.call(sum, [])
    def later(seconds):
        time.sleep(seconds)
        pool.call(time.sleep, 600)
    Thread(target=later, args=(SECONDS,)).start()
"""


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_program_ends_without_the_calls_under_way(seconds):
    """Nor those that begin when it has ended already: its other threads would wait for them."""
    program = PROGRAM.replace("SECONDS", str(seconds))
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Ended" in done.stderr


def spin():
    while True:
        pass


def test_they_end_when_their_server_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        busy, waiting = int(server.stdout.readline()), int(server.stdout.readline())
        assert busy != waiting
        server.kill()
        eventually(lambda: is_gone(busy) and is_gone(waiting))
