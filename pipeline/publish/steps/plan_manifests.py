"""Step 3: which manifests the incomplete lists refer to; executors query them if they can."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pg8000.native import Connection
from polynya.files.names import parse
from polynya.files.table_files import TableFiles

from ..table import PublishedTable
from ..tasks import Answer, Part, Task, run_parts


def parts(number: int, table: PublishedTable) -> Iterator[Part]:
    """The work of executors for a table.

    Args:
        number: the position of the table among those that are published together.
    """
    if table.incomplete:
        yield Part(number, table.destination, table.history, tuple(table.incomplete))


def plan_in_executor(task: Task) -> list[Answer]:
    """For each snapshot, the keys of its manifests.

    Returns:
        Nothing if the executor cannot read the driver's snapshot of PostgreSQL: its rows may be
        newer. The driver then queries itself.
    """
    return run_parts(task, _keys)


def _keys(con: Connection, is_shared: bool, part: Part) -> list[Any]:
    if not is_shared:
        return []
    destination = part.destination
    files = TableFiles(con, part.history, destination.build_context(destination.files()))
    prefix = destination.settings.virtual_prefix
    return [
        [snapshot_id, [manifest.name.key(prefix) for manifest in files.manifests(snapshot_id)]]
        for snapshot_id in part.snapshot_ids
    ]


def record_plans(table: PublishedTable, answer: Iterable[Sequence[Any]]) -> None:
    """Record the keys that an executor found."""
    prefix = table.destination.settings.virtual_prefix
    for snapshot_id, keys in answer:
        names = [parse(key, prefix) for key in keys]
        table.plans[snapshot_id] = [table.files.manifest(name) for name in names]


def plan_in_driver(table: PublishedTable) -> None:
    """Query the manifests of the snapshots that no executor found.

    Raises:
        Refused, NoSuchKey: the table cannot be served.
    """
    for snapshot_id in table.incomplete:
        if snapshot_id not in table.plans:
            table.plans[snapshot_id] = table.files.manifests(snapshot_id)
