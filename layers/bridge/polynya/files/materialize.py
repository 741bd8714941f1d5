"""The delivery `materialize`: all files of a table's metadata document are put into the bucket."""

from collections.abc import Sequence
from functools import partial

from ..iceberg.table_metadata import TableMetadata
from .bucket_files import BucketFiles
from .build_context import BuildContext
from .names import Name
from .table_files import TableFiles
from .table_names import FILE_KINDS

MANIFESTS = frozenset(FILE_KINDS.values())


def materialize(files: TableFiles, document: TableMetadata, context: BuildContext) -> None:
    """Put into the bucket what is missing of the document and all files to which it refers.

    Nothing happens with another delivery.

    Raises:
        ServiceUnavailable: it takes longer than one request may, or the bucket does not answer.
        Misconfigured: the role may not list the bucket.
    """
    if context.bucket is None:
        return
    # Several snapshots of one commit have the same list.
    snapshot_ids = dict.fromkeys(snapshot.sequence_number for snapshot in document.snapshots)
    lists = [*files.lists(snapshot_ids).values()]
    restore = partial(_restore, files, document, lists)
    BucketFiles(context.bucket, context, restore).ensure(lists, files.document_name(document))


def _restore(
    files: TableFiles, document: TableMetadata, lists: Sequence[Name], names: Sequence[Name]
) -> None:
    """Put these into the bucket: the document, its lists, or files to which they refer."""
    missing = {name for name in names if name.kind in MANIFESTS}
    for manifest_list in reversed(lists):  # the manifests of one list are read together
        if missing:
            listed = files.manifests(manifest_list.snapshot_id)
            wanted = [manifest for manifest in listed if manifest.name in missing]
            files.cache_manifests(wanted)
            missing.difference_update(manifest.name for manifest in wanted)
    others = [name for name in names if name.kind not in MANIFESTS or name in missing]
    for number, name in enumerate(others, 1):
        files.restore(name, document.body if name.kind == "table" else None)
        files.check_time("files", number, len(others))
