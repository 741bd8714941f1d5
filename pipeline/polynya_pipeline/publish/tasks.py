"""Work for Spark's executors: parts of tables, grouped into tasks of about equal size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from pg8000.native import Connection
from polynya.ducklake.queries.history import TableHistory
from polynya.runtime.errors import NoSuchKey, PolynyaError, Refused

from ..common import errors
from ..common.errors import JobError, Unavailable
from ..common.progress import Reporter
from ..common.spark import map_in_spark
from .destinations import Destination
from .table import SharedSnapshot, joined


@dataclass(frozen=True, slots=True)
class Part:
    """Work for one table."""

    number: int
    """The position of the table among those that are published together."""
    destination: Destination
    history: TableHistory
    """As the driver read it."""
    snapshot_ids: tuple[int, ...]
    """The snapshots whose manifests are planned; or one, whose list refers to those in `keys`."""
    keys: tuple[str, ...] = ()
    """The keys of the manifests to build."""

    @property
    def weight(self) -> int:
        """The number of manifests to build, or of snapshots to plan."""
        return len(self.keys or self.snapshot_ids)

    def split(self, weight: int) -> "tuple[Part, Part]":
        """Two parts, the first with this weight. Neighbours stay together: one pass reads them."""
        name = "keys" if self.keys else "snapshot_ids"
        items = getattr(self, name)
        head, tail = items[:weight], items[weight:]
        return replace(self, **{name: head}), replace(self, **{name: tail})


@dataclass(frozen=True, slots=True)
class Task:
    """Parts of tables that one executor works on."""

    snapshot: SharedSnapshot
    parts: tuple[Part, ...]


TASKS_PER_CORE = 2
"""Few: without an index, each task scans all statistics."""

MANIFESTS = 16
"""A task builds at least this many manifests: that takes about as long as Spark needs to start it,
and one pass over the statistics serves all of them."""


def _groups(parts: list[Part], size: int) -> Iterator[list[Part]]:
    """Groups of parts with the weight `size`; the last one may have less."""
    group: list[Part] = []
    room = size
    for part in parts:
        while part.weight > room:
            head, part = part.split(room)
            yield [*group, head]
            group, room = [], size
        group.append(part)
        room -= part.weight
        if not room:
            yield group
            group, room = [], size
    if group:
        yield group


Answer = list[Any]
"""The table's number, an outcome, and the result of the work or a reason. JSON can hold it."""

DONE, REFUSED, FAILED = "done", "refused", "failed"


def run_parts(task: Task, work: Callable[[Connection, bool, Part], list[Any]]) -> list[Answer]:
    """Do the work for each part in one transaction, which reads the driver's snapshot if it can.

    Args:
        work: gets the connection, and whether it reads the driver's snapshot.
    """
    answers: list[Answer] = []
    try:
        with joined(task.snapshot) as (con, is_shared):
            for part in task.parts:
                try:
                    answers.append([part.number, DONE, work(con, is_shared, part)])
                except (Refused, NoSuchKey) as error:
                    answers.append([part.number, REFUSED, str(error)])
    # Raised in an executor, an error would reach the driver as a Java stack trace.
    except PolynyaError as error:
        return [[-1, FAILED, [Unavailable.__name__, str(error)]]]
    except JobError as error:
        return [[-1, FAILED, [type(error).__name__, str(error)]]]
    return answers


@dataclass(frozen=True, slots=True)
class Executors:
    """The executors of a Spark session; or this process, without a session or for one task."""

    spark: Any | None
    reporter: Reporter

    def tasks(self, snapshot: SharedSnapshot, parts: Iterable[Part]) -> list[Task]:
        """Group parts into tasks of about equal weight, two for each core."""
        parts = list(parts)
        count = self._cores * TASKS_PER_CORE if self.spark else 1
        least = MANIFESTS if any(part.keys for part in parts) else 1
        size = max(least, -(-sum(part.weight for part in parts) // count))
        return [Task(snapshot, tuple(group)) for group in _groups(parts, size)]

    @property
    def _cores(self) -> int:
        try:
            return int(self.spark.sparkContext.defaultParallelism)  # type: ignore[union-attr]
        except Exception:  # Spark Connect has no context
            return 2

    def run(
        self, work: Callable[[Task], list[Answer]], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, bool, Any]]:
        """The table's number for each part, and True with the result, or False with a reason.

        Raises:
            JobError: a task failed.
        """
        for number, outcome, result in map_in_spark(self._spark_for(tasks), work, tasks):
            if outcome == FAILED:
                # The class is found by its name, because the results of a task are JSON.
                kind, message = result
                error: Exception = getattr(errors, kind)(message)
                raise error
            yield number, outcome == DONE, result

    def stage(self, doing: str, tasks: Sequence[Task]) -> AbstractContextManager[None]:
        """Report a stage in which these tasks run."""
        spark = self._spark_for(tasks)
        return self.reporter.spark_stage(doing, spark) if spark else self.reporter.stage(doing)

    def _spark_for(self, tasks: Sequence[Task]) -> Any | None:
        return self.spark if len(tasks) > 1 else None
