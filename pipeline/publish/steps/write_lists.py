"""Step 5: writes the missing manifest lists, and after them what leads to them."""

from ..table import PublishedTable
from .export_pointer import ExportPointer


def write_lists(table: PublishedTable) -> None:
    """Write lists, then the metadata document; builds manifests that no executor has built.

    Raises:
        Refused, NoSuchKey: the table cannot be served.
        Conflict: another export of the table was faster.
        Unavailable: the destination cannot be written.
    """
    for snapshot_id in sorted(table.plans):
        table.files.cache_list(table.lists[snapshot_id], table.plans[snapshot_id])
    if table.destination.is_export:
        pointer = ExportPointer(table.destination.directory)
        result = table.result
        result.is_new, result.metadata_location = pointer.move(table.document.body)
    elif len(table.lists) == len(table.document.snapshots):
        # A document may only name lists that exist: a plain bucket generates nothing when read.
        _write_document(table)
    table.result.add_files(table.store.made, table.store.bytes_made)


def _write_document(table: PublishedTable) -> None:
    before = table.store.made
    table.files.cache_document(table.document)
    table.result.is_new = table.store.made > before
    table.result.metadata_location = table.files.metadata_location(table.document)
