"""Step 4: executors build the missing manifests, and the files that these refer to."""

from collections.abc import Iterator
from dataclasses import replace

from pg8000.native import Connection
from polynya.files.names import parse
from polynya.files.table_files import TableFiles
from polynya.files.table_names import Manifest

from ..table import PublishedTable
from ..tasks import Answer, Part, Task, run_parts


def parts(number: int, table: PublishedTable) -> Iterator[Part]:
    """The work of executors for a table; records how many manifests are missing.

    Args:
        number: the position of the table among those that are published together.
    """
    for snapshot_id, manifests in _missing_manifests(table).items():
        keys = tuple(table.key(manifest.name) for manifest in manifests)
        yield Part(number, table.destination, table.history, (snapshot_id,), keys)


def _missing_manifests(table: PublishedTable) -> dict[int, list[Manifest]]:
    """The missing manifests, each once, by the newest snapshot whose list refers to it."""
    newest: dict[Manifest, int] = {}
    for snapshot_id in sorted(table.plans, reverse=True):
        for manifest in table.plans[snapshot_id]:
            newest.setdefault(manifest, snapshot_id)
    names = set(table.files.missing(manifest.name for manifest in newest))
    result = table.result
    result.manifests_built = len(names)
    result.manifests_existing = max(result.manifests_existing, len(newest) - len(names))
    missing: dict[int, list[Manifest]] = {}
    for manifest, snapshot_id in newest.items():
        if manifest.name in names:
            missing.setdefault(snapshot_id, []).append(manifest)
    return missing


def build_in_executor(task: Task) -> list[Answer]:
    """For each part, the number of files that were written and their size in bytes."""
    return run_parts(task, _build)


def _build(con: Connection, is_shared: bool, part: Part) -> list[int]:
    destination = part.destination
    store = destination.files()
    # Rows that are newer than the driver's may include partial files.
    history = part.history if is_shared else replace(part.history, has_partial=True)
    files = TableFiles(con, history, destination.build_context(store))
    prefix = destination.settings.virtual_prefix
    manifests = [files.manifest(parse(key, prefix)) for key in part.keys]
    if not is_shared:
        # Only manifests that the rows still give; the driver builds the others.
        (snapshot_id,) = part.snapshot_ids
        current = set(files.manifests(snapshot_id))
        manifests = [manifest for manifest in manifests if manifest in current]
    files.cache_manifests(manifests)
    return [store.made, store.bytes_made]
