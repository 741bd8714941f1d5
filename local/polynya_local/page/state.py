"""What the pages know of the lake that is served, and the work that they wait for.

`Work` does in a thread what takes longer than a visitor should wait. A page waits a moment for it.
If that is not enough, it says what is being done, and loads itself again until the result is there.
Each `Work` has a thread and a connection to the database of its own, and does its tasks one after
the other.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from pg8000.native import Connection
from polynya.runtime.errors import BadRequest
from polynya.runtime.isolation import Run, isolating, isolating_run
from polynya.runtime.metrics import watched
from polynya.storage.objects import ObjectReader

from ..lakes.opened import LocalLake
from ..reports.generator import KEPT_BYTES, Generator
from ..reports.opened_table import Statuses
from ..reports.preview import Endpoints
from ..reports.preview_worker import PreviewReader
from ..reports.sight import Sight
from ..reports.snippets import Place
from .links import Addresses, visitor

logger = logging.getLogger(__name__)

CAPACITY = 64
"""The number of results that are kept."""
SECONDS_TO_STOP = 5
YOUR_TOKEN = "your token"
"""The placeholder for a token in snippets."""
KEPT_BYTES_OF_CALLER = 64 * 1024 * 1024
"""The bytes of generated files that are kept for one of several callers."""


@dataclass(slots=True)
class Job:
    """A task that waits, is under way, or is done."""

    key: Hashable
    result: Any = None
    error: Exception | None = None
    progress: str = ""
    """How far it is, in words."""
    partial: Any = None
    """The part of the result that there is so far."""
    started: datetime | None = None
    finished: datetime | None = None
    is_cancelled: bool = False
    """Whether it was stopped, or its result is not wanted any more."""
    done: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or an error."""
        return self.done.is_set()

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        until = self.finished or datetime.now(UTC)
        return (until - self.started).total_seconds() if self.started else 0.0


class Stopped(BadRequest):
    """A visitor has stopped the task before it began."""

    def __init__(self) -> None:
        super().__init__("it was stopped")


Task = Callable[[Generator, Job], Any]


class Work:
    """Runs tasks in a thread, and keeps their results."""

    def __init__(self, name: str, new_generator: Callable[[], Generator]) -> None:
        """`new_generator` is called in the thread, when there is something to do."""
        self._name = name
        self._new_generator = new_generator
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self._queue: SimpleQueue[tuple[Job, Task, Run | None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def job(self, key: Hashable, task: Task, *, seconds: float, again: bool = False) -> Job:
        """The job with this key, which begins if it is new.

        Args:
            key: identifies the job: the same key gives the same job.
            seconds: how long to wait for it.
            again: repeat it, if it is done.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None or (job.is_done and (again or job.error is not None)):
                job = self._jobs[key] = Job(key)
                self._start()
                self._queue.put((job, task, isolating_run()))
            self._jobs.move_to_end(key)
            if len(self._jobs) > CAPACITY:
                _, oldest = self._jobs.popitem(last=False)
                oldest.is_cancelled = True
        job.done.wait(seconds)
        return job

    def forget(self, key: Hashable) -> None:
        """Drop a result that is too large to be kept."""
        with self._lock:
            self._jobs.pop(key, None)

    def stop(self, key: Hashable) -> None:
        """Ask the task of a job to end; one that waits does not begin."""
        if (job := self._jobs.get(key)) is not None:
            job.is_cancelled = True

    def existing_job(self, key: Hashable) -> Job | None:
        """The job with this key; None: it has not been requested."""
        return self._jobs.get(key)

    def close(self) -> None:
        """Stop all tasks that can be stopped; the others end with the process."""
        for job in self._jobs.values():
            job.is_cancelled = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(SECONDS_TO_STOP)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=watched(self._run), name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        generator: Generator | None = None
        while entry := self._queue.get():
            job, task, run = entry
            try:
                if job.is_cancelled:
                    raise Stopped
                job.started = datetime.now(UTC)
                generator = generator or self._new_generator()
                with isolating(run):
                    job.result = task(generator, job)
            except Exception as error:
                logger.debug("%s: %s failed", self._name, job.key, exc_info=True)
                job.error = error
            job.finished = datetime.now(UTC)
            job.done.set()
        if generator is not None:
            generator.database.close()


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ForCaller:
    """The caller for whom pages are made, if the server knows callers."""

    sight: Sight
    new_token: Callable[[], str]
    """Makes a token that reads rows with the rights of the caller."""


@dataclass(frozen=True, slots=True)
class PageState:
    """The lake as far as its visitors may see it, and what has been found out about it."""

    addresses: Addresses
    lake: LocalLake
    generator: Generator
    statuses: Statuses
    files: Work
    """Generates metadata files."""
    doctor: Work
    """Checks tables."""
    previews: Work
    """Asks `reader` for rows."""
    reader: PreviewReader

    @classmethod
    def create(
        cls,
        addresses: Addresses,
        lake: LocalLake,
        settings: Mapping[str, str],
        objects: ObjectReader | None = None,
        caller: ForCaller | None = None,
    ) -> "PageState":
        """The state of a page; nothing is read yet.

        Args:
            settings: of the deployment, as in docs/settings.md.
            objects: as `Generator`.
            caller: None: everybody may see everything.

        Raises:
            Misconfigured: a setting is not usable.
        """
        new = partial(
            Generator,
            lake.database,
            lake.metadata_schema,
            lake.aws,
            addresses.warehouse,
            settings=settings,
            objects=objects,
            sight=caller.sight if caller else None,
            kept_bytes=KEPT_BYTES_OF_CALLER if caller else KEPT_BYTES,
        )
        generator = new()
        works = Work("page-files", new), Work("page-doctor", new), Work("page-previews", new)
        endpoints = Endpoints(
            addresses.catalog_uri,
            addresses.warehouse,
            addresses.s3_endpoint,
            lake.database,
            lake.metadata_schema,
            lake.aws,
        )
        reader = PreviewReader(endpoints, new_token=caller.new_token if caller else None)
        return cls(addresses, lake, generator, Statuses(generator), *works, reader)

    @property
    def place(self) -> Place:
        """Where clients find the lake; without a table."""
        addresses = self.addresses
        return Place(
            addresses.catalog_uri,
            addresses.warehouse,
            addresses.s3_endpoint,
            namespace="",
            table="",
            token=YOUR_TOKEN if addresses.has_tokens else "",
        )

    def notices(self, path: str) -> list[str]:
        """What a visitor should know about the whole lake."""
        staleness = self.lake.staleness()
        notices = [f"{staleness}. What was committed since is not shown."] if staleness else []
        if path == "/" and self.lake.folder_warning and visitor().sees_all:
            notices.append(f"{self.lake.folder_warning}.")
        return notices

    def read(self, question: Callable[[Connection], Result]) -> Result:
        """The result of a function of a connection, within one transaction.

        Raises:
            PolynyaError: the database cannot be read.
        """
        return self.generator.read(question)

    def close(self) -> None:
        """End the threads, and close the connections."""
        self.files.close()
        self.doctor.close()
        # Closed before the thread that waits for its answers.
        self.reader.close()
        self.previews.close()
        self.generator.database.close()
