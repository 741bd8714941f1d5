"""Work that takes longer than a visitor should wait: done in a thread, its result kept.

A page waits a moment for it. If that is not enough, it says what is being done, and loads itself
again until the result is there. Each `Work` has a thread and a connection to the database of its
own; what it is asked for is done one after the other.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

from ..reports.generator import Generator

logger = logging.getLogger(__name__)

CAPACITY = 64
"""Results that are kept."""
SECONDS_TO_STOP = 5


@dataclass(slots=True)
class Job:
    """Something that is done, or was."""

    key: Hashable
    result: Any = None
    error: Exception | None = None
    progress: str = ""
    """How far it is, in words."""
    partial: Any = None
    """What is known of the result so far."""
    finished: datetime | None = None
    is_cancelled: bool = False
    """Nobody waits for it any more."""
    done: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or an error."""
        return self.done.is_set()


Task = Callable[[Generator, Job], Any]


class Work:
    """Does what it is asked for in a thread, and keeps the results."""

    def __init__(self, name: str, new_generator: Callable[[], Generator]) -> None:
        """`new_generator` is called in the thread, when there is something to do."""
        self._name = name
        self._new_generator = new_generator
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self._queue: SimpleQueue[tuple[Job, Task] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def job(self, key: Hashable, task: Task, *, seconds: float, again: bool = False) -> Job:
        """What is known of a job, which begins if it is new.

        Args:
            key: what is asked for: the same key, the same job.
            seconds: how long to wait for it.
            again: do it once more, if it is done.
        """
        found = self._jobs.get(key)
        if found is None or (found.is_done and (again or found.error is not None)):
            found = self._jobs[key] = Job(key)
            self._start()
            self._queue.put((found, task))
        self._jobs.move_to_end(key)
        if len(self._jobs) > CAPACITY:
            _, oldest = self._jobs.popitem(last=False)
            oldest.is_cancelled = True
        found.done.wait(seconds)
        return found

    def known(self, key: Hashable) -> Job | None:
        """What is known of a job; None: nobody has asked for it."""
        return self._jobs.get(key)

    def close(self) -> None:
        """Stop after what can be stopped; what cannot ends with the process."""
        for job in self._jobs.values():
            job.is_cancelled = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(SECONDS_TO_STOP)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        generator: Generator | None = None
        while asked := self._queue.get():
            job, task = asked
            try:
                if not job.is_cancelled:
                    generator = generator or self._new_generator()
                    job.result = task(generator, job)
            except Exception as error:
                logger.debug("%s: %s failed", self._name, job.key, exc_info=True)
                job.error = error
            job.finished = datetime.now(UTC)
            job.done.set()
        if generator is not None:
            generator.database.close()
