"""Step 2: which manifest lists are missing at the destination, or refer to missing manifests."""

from polynya.files.names import GENERATOR, Name, parse
from polynya.iceberg.avro.manifests import manifest_paths

from ..table import PublishedTable


def find_missing_lists(table: PublishedTable) -> None:
    """Record the incomplete snapshots of a table.

    Raises:
        Refused: the table cannot be served.
        NoSuchKey: a file that the table needs does not exist.
        Unavailable: the destination cannot be read.
    """
    bodies = table.store.get_many([table.key(name) for name in table.lists.values()])
    listed = {
        snapshot_id: [_name(table, path) for path in manifest_paths(body)]
        for snapshot_id, body in zip(table.lists, bodies, strict=True)
        if body is not None
    }
    manifests = list(dict.fromkeys(name for names in listed.values() for name in names))
    missing = set(table.files.missing(manifests))
    table.incomplete = [
        snapshot_id
        for snapshot_id in table.lists
        if snapshot_id not in listed or not missing.isdisjoint(listed[snapshot_id])
    ]
    result = table.result
    result.snapshots = len(table.lists)
    result.manifests_existing = len(manifests) - len(missing)
    result.lists_built = len(table.incomplete)
    result.lists_existing = len(table.lists) - len(table.incomplete)


def _name(table: PublishedTable, location: str) -> Name:
    """The name of a manifest, from its location in a list."""
    prefix = table.destination.settings.virtual_prefix
    file_name = location.rpartition("/")[2]
    return parse(f"{prefix}/{table.history.table.table_uuid}/{GENERATOR}/{file_name}", prefix)
