"""Processes that answer calls, with limits of memory and time: if one ends, one call fails.

Each is started when it is needed, and ends after some minutes without a call, or with this process.
`concurrent.futures` has no such pool: there the end of one process fails the calls of all others,
and a call cannot be ended.
"""

import logging
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore, Lock, Thread, Timer, main_thread
from typing import Any, NamedTuple

from polynya.runtime import budget, metrics
from polynya.runtime.errors import OutOfTime, PolynyaError, log_fields
from polynya.runtime.isolation import Ended

from ..garbage import collect_rarely
from ..server.logs import log_to_stderr
from .spawned import spawned

logger = logging.getLogger(__name__)

MEGABYTES = 4096
"""The address space of a process. The largest commit needs 800 MB of memory (docs/performance.md);
Python, DuckDB and their threads take 700 MB of address space, of which they use 70 MB."""
KEPT_MEGABYTES = 512
"""A process that has needed more memory ends after its call."""

IDLE_SECONDS = 300
START_SECONDS = 60
GRACE_SECONDS = 2
"""How much longer than its budget a call may take, so that it can report the timeout itself."""
WATCH_SECONDS = 1
"""How often the thread that waits for the end of the program checks if the pool is closed."""
LONGEST_SECONDS = 3600
"""How long a call without a time budget may take."""

READY = "ready"

NewFunction = Callable[[], Callable[..., Any]]
"""Makes the function that answers calls, in the process that calls it. It can be pickled."""


class _Answer(NamedTuple):
    """What a process answers to a call."""

    is_error: bool
    value: Any
    """What the function has returned or raised."""
    watched: list[tuple[str, float, dict[str, str]]]
    """The values of metrics that the call has observed."""
    is_last: bool
    """Whether the process has used too much memory to be kept."""


class ProcessPool:
    """Calls a function in processes of their own. Calls wait while all processes are busy."""

    def __init__(self, new_function: NewFunction, most: int, *, niceness: int = 0) -> None:
        """Keep the arguments; no process is started yet.

        Args:
            most: the greatest number of processes at the same time.
            niceness: of the processes, as `os.nice` adds it.
        """
        self._new_function, self._niceness = new_function, niceness
        self._free = BoundedSemaphore(most)
        self._idle: list[_Process] = []
        """The waiting processes, in the order of their last answers."""
        self._all: set[_Process] = set()
        self._timer: Timer | None = None
        self._lock = Lock()
        self._is_watched = self._is_ending = False

    def call(self, *arguments: Any) -> Any:
        """What the function returns or raises for these arguments.

        Raises:
            Ended: the process was killed, or needed more memory than it may have.
            OutOfTime: no time is left in the budget; the process was ended.
            PolynyaError: no process can be started.
        """
        if not self._free.acquire(timeout=_seconds_left()):
            raise _timeout_error()
        try:
            process = self._waiting() or self._started()
            try:
                answer = process.call(arguments)
            except BaseException:
                self._end(process)
                raise
            if answer.is_last:
                self._end(process)
            else:
                self._keep(process)
        finally:
            self._free.release()
        for name, value, labels in answer.watched:
            metrics.observe(name, value, **labels)
        if answer.is_error:
            raise answer.value
        return answer.value

    def close(self) -> None:
        """End all processes, and the threads that watch them; calls under way raise Ended."""
        self._is_ending = True
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            waiting, self._idle = self._idle, []
            for process in self._all:
                process.kill()
        for process in waiting:
            self._end(process)

    def _started(self) -> "_Process":
        with self._lock:
            if not self._is_watched:
                Thread(target=self._end_with_the_program, daemon=True).start()
                self._is_watched = True
        process = _Process.started(self._new_function, self._niceness)
        with self._lock:
            self._all.add(process)
        if self._is_ending:  # `close` did not see it
            self._end(process)
            raise Ended("the server is stopping, and nothing has changed: try again")
        return process

    def _end(self, process: "_Process") -> None:
        with self._lock:
            self._all.discard(process)
        process.end()

    def _end_with_the_program(self) -> None:
        """End open calls once the main thread has ended: the program waits for their threads."""
        program = main_thread()
        while program.is_alive() and not self._is_ending:
            program.join(WATCH_SECONDS)
        self.close()

    def _waiting(self) -> "_Process | None":
        """The process that has answered last, if there is one."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                process = self._idle.pop()
            if process.is_alive():
                return process
            self._end(process)

    def _keep(self, process: "_Process") -> None:
        process.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(process)
            self._watch_idle()

    def _watch_idle(self) -> None:
        if self._timer is None:
            self._timer = Timer(IDLE_SECONDS, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            self._timer = None
            longest = time.monotonic() - IDLE_SECONDS
            ended = [process for process in self._idle if process.idle_since <= longest]
            self._idle = [process for process in self._idle if process.idle_since > longest]
            if self._idle:
                self._watch_idle()
        for process in ended:
            self._end(process)


def _seconds_left() -> float:
    budget.check()
    return min(budget.seconds_left(), LONGEST_SECONDS)


def _timeout_error() -> OutOfTime:
    return OutOfTime("the answer takes longer than one request may take; try again")


@dataclass(slots=True, eq=False)
class _Process:
    """A process that answers one call after the other."""

    process: BaseProcess
    pipe: Connection
    folder: TemporaryDirectory[str]
    """Its temporary files, which it cannot remove itself: it is killed."""
    idle_since: float = 0

    @classmethod
    def started(cls, new_function: NewFunction, niceness: int) -> "_Process":
        folder = TemporaryDirectory(prefix="polynya-", ignore_cleanup_errors=True)
        process, pipe = spawned(_answer_calls, new_function, niceness, folder.name)
        started = cls(process, pipe, folder)
        with suppress(EOFError, OSError):
            if pipe.poll(START_SECONDS) and pipe.recv() == READY:
                return started
        started.end()
        raise PolynyaError("the process for this request cannot be started")

    def is_alive(self) -> bool:
        return self.process.is_alive()

    def call(self, arguments: tuple[Any, ...]) -> _Answer:
        """The answer. Raises: as `ProcessPool.call`."""
        seconds = _seconds_left()
        try:
            self.pipe.send((seconds, arguments))
            if not self.pipe.poll(seconds + GRACE_SECONDS):
                raise _timeout_error()
            answer: _Answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(1)
            logger.error("a process that worked for a request ended with %s", self.process.exitcode)
            raise Ended(
                "the process that read files for this request has ended, or needed too much "
                "memory; nothing has changed. If that happens again, a file is damaged or too "
                "large: write it again"
            ) from None
        return answer

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()
        self.process.close()
        self.folder.cleanup()


def _answer_calls(pipe: Connection, new_function: NewFunction, niceness: int, folder: str) -> None:
    """Answer calls until the pipe is closed."""
    tempfile.tempdir = folder
    os.dup2(2, 1)  # stdout is for the line of the command
    log_to_stderr()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends it
    Thread(target=_end_with_the_caller, daemon=True).start()
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    watched: list[tuple[str, float, dict[str, str]]] = []

    def watch(name: str, value: float, labels: Mapping[str, str]) -> None:
        # The caller knows the lake.
        own_labels = {label: text for label, text in labels.items() if label != "lake"}
        watched.append((name, value, own_labels))

    function = new_function()
    collect_rarely()
    pipe.send(READY)
    with metrics.watching(watch), suppress(EOFError, OSError):
        while True:
            seconds, arguments = pipe.recv()
            _limit_cpu(seconds)
            watched.clear()
            is_error, value = _result(function, arguments, seconds)
            pipe.send(_Answer(is_error, value, watched, _megabytes() > KEPT_MEGABYTES))


def _result(
    function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
) -> tuple[bool, Any]:
    try:
        with budget.limited(seconds), metrics.invocation():
            return False, function(*arguments)
    except MemoryError:
        os._exit(1)  # the state of the process is uncertain
    except Exception as error:
        if not isinstance(error, (PolynyaError, ValueError)):
            logger.error("unexpected error: %s", log_fields(error))
            error = PolynyaError("an unexpected error; see the log")
        return True, error


def _limit_cpu(seconds: float) -> None:
    """End this process if a call computes for much longer than it may take."""
    used = time.process_time()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(used + 4 * (seconds + GRACE_SECONDS)), hard))


def _megabytes() -> int:
    """The most memory that this process ever had."""
    try:
        # On Linux `ru_maxrss` begins with the memory of the process that has started this one.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20  # in bytes on macOS


def _end_with_the_caller() -> None:
    """End this process when the one that calls it is gone, even in the middle of a call."""
    caller = multiprocessing.parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)
