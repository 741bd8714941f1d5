"""What executors do for `publish`: ask for the manifests of snapshots, and make manifests."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pg8000.native import Connection
from polynya.ducklake.history import TableHistory
from polynya.errors import NoSuchKey, PolynyaError, Refused
from polynya.files.names import Name, parse
from polynya.files.table_files import TableFiles

from ..common.errors import JobError, Unavailable
from .destinations import Destination
from .shared_snapshot import SharedSnapshot, joined


@dataclass(frozen=True, slots=True)
class Part:
    """What there is to do for one table."""

    number: int
    """Of the table."""
    place: Destination
    history: TableHistory
    """As the driver sees it."""
    snapshot_ids: tuple[int, ...]
    """Whose manifests are asked for; or one, which shows those of `keys`."""
    keys: tuple[str, ...] = ()
    """Of the manifests to make."""

    @property
    def weight(self) -> int:
        return len(self.keys or self.snapshot_ids)

    def split(self, weight: int) -> "tuple[Part, Part]":
        """OtherTables stay together: they are read in one pass."""
        name = "keys" if self.keys else "snapshot_ids"
        items = getattr(self, name)
        head, tail = items[:weight], items[weight:]
        return replace(self, **{name: head}), replace(self, **{name: tail})


@dataclass(frozen=True, slots=True)
class Task:
    view: SharedSnapshot
    parts: tuple[Part, ...]


MANIFESTS = 16
"""In a task, at least: that many are made in about the time that Spark takes to start it, and in
one pass over the statistics."""


def tasks(view: SharedSnapshot, parts: Iterable[Part], most: int) -> list[Task]:
    """The parts in about equal tasks, at most so many."""
    parts = list(parts)
    least = MANIFESTS if any(part.keys for part in parts) else 1
    size = max(least, -(-sum(part.weight for part in parts) // max(1, most)))
    return [Task(view, tuple(some)) for some in _equal(parts, size)]


def _equal(parts: list[Part], size: int) -> Iterator[list[Part]]:
    some: list[Part] = []
    room = size
    for part in parts:
        while part.weight > room:
            head, part = part.split(room)
            yield [*some, head]
            some, room = [], size
        some.append(part)
        room -= part.weight
        if not room:
            yield some
            some, room = [], size
    if some:
        yield some


Answer = list[Any]
"""As JSON has it: a table's number, what became of it, and what the work has given."""

DONE, REFUSED, FAILED = "done", "refused", "failed"


def plan(task: Task) -> list[Answer]:
    """For each snapshot the keys of its manifests; nothing where the driver must ask itself."""
    return _worked(task, _planned)


def make(task: Task) -> list[Answer]:
    """How many files were kept, and their bytes."""
    return _worked(task, _made)


def _planned(con: Connection, is_same: bool, part: Part) -> list[Any]:
    if not is_same:
        return []
    files = TableFiles(con, part.history, part.place.build_context(part.place.files()))
    prefix = part.place.settings.virtual_prefix
    return [
        [snapshot_id, [manifest.name.key(prefix) for manifest in files.manifests(snapshot_id)]]
        for snapshot_id in part.snapshot_ids
    ]


def _made(con: Connection, is_same: bool, part: Part) -> list[int]:
    kept = part.place.files()
    # Where it is not the driver's view there may be partial files that the driver has not seen.
    seen = part.history if is_same else replace(part.history, has_partial=True)
    files = TableFiles(con, seen, part.place.build_context(kept))
    manifests = [files.manifest(name_of(key, part.place)) for key in part.keys]
    if not is_same:
        # Of what there is now. What has changed since the driver looked it makes itself.
        (snapshot_id,) = part.snapshot_ids
        there = set(files.manifests(snapshot_id))
        manifests = [manifest for manifest in manifests if manifest in there]
    files.cache_manifests(manifests)
    return [kept.made, kept.bytes_made]


def name_of(key: str, place: Destination) -> Name:
    return parse(key, place.settings.virtual_prefix)


def _worked(task: Task, work: Callable[[Connection, bool, Part], list[Any]]) -> list[Answer]:
    """An exception would arrive at the driver as a stack of Java's."""
    answers: list[Answer] = []
    try:
        with joined(task.view) as (con, is_same):
            for part in task.parts:
                try:
                    answers.append([part.number, DONE, work(con, is_same, part)])
                except (Refused, NoSuchKey) as error:
                    answers.append([part.number, REFUSED, str(error)])
    except PolynyaError as error:
        return [[-1, FAILED, [Unavailable.__name__, str(error)]]]
    except JobError as error:
        return [[-1, FAILED, [type(error).__name__, str(error)]]]
    return answers
